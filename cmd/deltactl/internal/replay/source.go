package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/seed-ab2cfece/delta-agents/schema"
)

// source is a recording that can be read from its start more than once. It is open only while it is read, so that the
// number of recordings is not bounded by that of open files.
type source struct {
	name string // as errors name it
	path string
	temp bool
}

// openSource finds a file, or takes standard input for "-". What is not a regular file, a pipe for one, is copied first.
func openSource(path string, stdin io.Reader) (*source, error) {
	if path == "-" {
		if stdin == nil {
			stdin = os.Stdin
		}
		return spool("standard input", stdin)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder, want a file", path)
	case info.Mode().IsRegular():
		return &source{name: path, path: path}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return spool(path, f)
}

func spool(name string, from io.Reader) (*source, error) {
	f, err := os.CreateTemp("", "deltactl-replay-*")
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", name, err)
	}
	s := &source{name: name, path: f.Name(), temp: true}
	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("copy %s: %w", name, err), s.close())
	}
	return s, nil
}

// close removes what was copied.
func (s *source) close() error {
	if s.temp {
		return os.Remove(s.path)
	}
	return nil
}

// gzipMagic begins every gzip stream, whatever the file is called.
var gzipMagic = []byte{0x1f, 0x8b}

// plain returns what a file holds, decompressed where it is compressed.
func plain(f io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(f, 1<<16)
	if magic, err := in.Peek(len(gzipMagic)); err != nil || !bytes.Equal(magic, gzipMagic) {
		return in, nil // a file too short for the magic is short text
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(z, 1<<16), nil
}

// rows calls do for every row, in order, until it fails or ctx ends. Blank lines are skipped. Errors name file and line.
func (s *source) rows(ctx context.Context, do func(Row) error) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	in, err := plain(f)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err == io.EOF {
			return nil
		}
		if err == nil && !blank(line) {
			err = one(ctx, line, do)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", s.name, n, err)
		}
	}
}

func one(ctx context.Context, line []byte, do func(Row) error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	row, err := ParseRow(line)
	if err != nil {
		if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
			err = fmt.Errorf("a recording has one JSON object a line, this is none: %w", err)
		}
		return err
	}
	return do(row)
}

// readLine returns the next line of at most schema.DefaultLimit bytes; io.EOF only where there is none.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > schema.DefaultLimit:
			return nil, fmt.Errorf("the line is longer than %d bytes", schema.DefaultLimit)
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(line) > 0, err == nil:
			return line, nil
		default:
			return nil, err
		}
	}
}
