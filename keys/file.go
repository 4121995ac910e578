package keys

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// maxFile bounds a key file, in bytes: more is no key file.
const maxFile = 1 << 20

// ErrExposed says that others than its owner and group may read a key file.
var ErrExposed = errors.New("everybody on this machine may read it: chmod 600")

// Read reads a ring from a file: one key a line, its name, when it was made (RFC 3339) and its 32 bytes in base64; the last
// is the newest. Empty lines, and those that begin with #, are passed over. A file that everybody may read is refused with
// [ErrExposed]. Errors never quote a key.
func Read(path string) (*Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("key file: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("key file %s is a folder", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0:
		return nil, fmt.Errorf("key file %s: %w", path, ErrExposed)
	}
	s, err := Parse(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return s, nil
}

// Parse reads what a key file holds.
func Parse(r io.Reader) (*Set, error) {
	var all []Key
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		k, err := parseKey(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, k)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return NewSet(all...)
}

func parseKey(fields []string) (k Key, err error) {
	if len(fields) != 3 {
		return k, fmt.Errorf("%d fields, want a name, a time and a key", len(fields))
	}
	k.ID = fields[0]
	if err := checkID(k.ID); err != nil {
		return Key{}, errors.New("its name is not one: letters, digits, and after the first '-', '.', '/'")
	}
	if k.Made, err = time.Parse(time.RFC3339, fields[1]); err != nil {
		return Key{}, errors.New("its time is not in the form of RFC 3339")
	}
	raw, err := base64.StdEncoding.DecodeString(fields[2])
	if err != nil || len(raw) != Size {
		return Key{}, fmt.Errorf("the key is not %d bytes in base64", Size)
	}
	copy(k.key[:], raw)
	return k, nil
}

// Write writes the ring into a file that its owner alone may read, in place of what was there, as a whole or not at all.
func (s *Set) Write(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // mode 600
	if err != nil {
		return fmt.Errorf("write key file: %w", err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("write key file %s: %w", path, err)
		}
	}()
	_, err = f.WriteString(s.text())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func (s *Set) text() string {
	var b strings.Builder
	b.WriteString("# Keys that wrap the data keys of a delta-agents store; the last wraps, all unwrap. Keep it secret, and keep it.\n")
	for _, k := range s.keys {
		fmt.Fprintf(&b, "%s %s %s\n", k.ID, k.Made.UTC().Format(time.RFC3339), base64.StdEncoding.EncodeToString(k.key[:]))
	}
	return b.String()
}
