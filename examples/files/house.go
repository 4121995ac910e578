package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// place is a real directory: the house, and something beside it that is none of its business.
type place struct {
	dir   string
	house *os.Root
}

// things are what the house holds at first: path, size in bytes, age in days.
var things = []struct {
	path        string
	bytes, days int
}{
	{"logs/app-1.log", 1200, 90}, {"logs/app-2.log", 900, 45}, {"logs/today.log", 300, 0},
	{"cache/thumbs.bin", 20_000, 60},
	{"backups/2024.tar", 3 << 20, 700}, {"backups/2025.tar", 2 << 20, 300},
}

// outside lies beside the house.
const outside = "precious.txt"

func build() (p *place, err error) {
	p = &place{}
	if p.dir, err = os.MkdirTemp("", "delta-files-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close(false))
		}
	}()
	if err := os.WriteFile(filepath.Join(p.dir, outside), []byte("years of work\n"), 0o600); err != nil {
		return p, err
	}
	for _, t := range things {
		name := filepath.Join(p.dir, "house", t.path)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return p, err
		}
		if err := os.WriteFile(name, make([]byte, t.bytes), 0o600); err != nil {
			return p, err
		}
		at := time.Now().AddDate(0, 0, -t.days)
		if err := os.Chtimes(name, at, at); err != nil {
			return p, err
		}
	}
	p.house, err = os.OpenRoot(filepath.Join(p.dir, "house"))
	return p, err
}

// left lists the files that are there, the one outside included.
func (p *place) left() (out []string, err error) {
	err = fs.WalkDir(os.DirFS(p.dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out = append(out, name)
		}
		return err
	})
	return out, err
}

func (p *place) close(keep bool) error {
	var err error
	if p.house != nil {
		err = p.house.Close()
	}
	if keep {
		return err
	}
	if gone := os.RemoveAll(p.dir); gone != nil {
		return errors.Join(err, fmt.Errorf("the directory could not be removed; delete %s by hand: %w", p.dir, gone))
	}
	return err
}
