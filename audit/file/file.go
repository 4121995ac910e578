// Package file writes an audit trail into a file that is rotated by size and age.
//
//	sink, err := file.New(file.Config{Path: "/var/log/agents/audit.jsonl", MaxSize: 100, MaxAge: 90})
//
// Each entry is a line of JSON and is never split between two files. What is written is with the operating system: it
// outlives the process, and a machine that loses power may lose the last of it. The ledger has it.
package file

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/DeRuina/timberjack"

	"github.com/seed-ab2cfece/delta-agents/audit"
)

// Config says where and how long.
type Config struct {
	// Path is the file being written; older ones lie beside it with the time in their names. Folders are made.
	Path string
	// MaxSize is the size in MiB at which a new file is begun. Default 100.
	MaxSize int
	// MaxAge is how many days older files are kept, MaxFiles how many; 0 is for ever, and all.
	MaxAge, MaxFiles int
	// Compress packs older files with gzip.
	Compress bool
	// Mode is that of new files. Default 0600: an audit trail names people.
	Mode os.FileMode
}

// New returns the sink.
func New(c Config) (audit.Sink, error) {
	if c.Path == "" {
		return nil, errors.New("audit file: no Path")
	}
	if c.MaxSize < 0 || c.MaxAge < 0 || c.MaxFiles < 0 {
		return nil, fmt.Errorf("audit file %s: MaxSize, MaxAge or MaxFiles is negative; 0 is the default", c.Path)
	}
	if c.Mode == 0 {
		c.Mode = 0o600
	}
	l := &timberjack.Logger{Filename: c.Path, MaxSize: c.MaxSize, MaxAge: c.MaxAge, MaxBackups: c.MaxFiles, FileMode: c.Mode}
	if c.Compress {
		l.Compression = "gzip"
	}
	return &sink{l}, nil
}

type sink struct{ l *timberjack.Logger }

// Write writes each entry on its own, so that a file is rotated between two.
func (s *sink) Write(ctx context.Context, entries []audit.Entry) error {
	for i := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := audit.Marshal(entries[i : i+1])
		if err != nil {
			return err
		}
		if _, err := s.l.Write(b); err != nil {
			return fmt.Errorf("audit file: %w", err)
		}
	}
	return nil
}

func (s *sink) Close() error { return s.l.Close() }
