package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Position is how far the trail got in a ledger.
type Position struct {
	Seq   int64 `json:"seq"`             // of the last entry written
	Ended bool  `json:"ended,omitempty"` // the task has ended: nothing is expected
}

// Positions remembers how far a trail got, from one process to the next. Its methods are called by one goroutine at a time.
type Positions interface {
	Load() (map[string]Position, error)
	// Save is called about every second while there is something new, and at the end: of what came after the last one, a
	// process that dies repeats entries.
	Save(all map[string]Position) error
}

// File keeps positions in a file.
type File struct{ path string }

// NewFile returns positions in a file, which need not be there yet. Its folder must.
func NewFile(path string) File { return File{path} }

// Load reads the file; none is an empty one.
func (f File) Load() (map[string]Position, error) {
	b, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("audit positions: %w", err)
	}
	var all map[string]Position
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("audit positions %s: %w; without the file everything is written again", f.path, err)
	}
	return all, nil
}

// Save replaces the file as a whole, so that a process that dies leaves the old one or the new one.
func (f File) Save(all map[string]Position) (err error) {
	b, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("audit positions: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*")
	if err != nil {
		return fmt.Errorf("audit positions: %w", err)
	}
	_, err = tmp.Write(append(b, '\n'))
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("audit positions: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}
