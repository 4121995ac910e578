package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// big is the size in bytes from which on a person is asked before a file is deleted.
const big = 1 << 20

// Folder is the input of list-folder.
type Folder struct {
	Folder string `json:"folder" jsonschema:"minLength=1,maxLength=200"`
}

// Entry is a file that was listed.
type Entry struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	Days  int    `json:"days"` // since it was changed
}

// Listing is what list-folder returns.
type Listing struct {
	Entries []Entry `json:"entries"`
}

// File is the input of delete-file. Path and size are both of one listed entry: who says that a big file is small names
// none.
type File struct {
	Path  string `json:"path" jsonschema:"minLength=1,maxLength=200"`
	Bytes int64  `json:"bytes" jsonschema:"minimum=0"`
}

// actions are what the housekeeper may do in a house. The root keeps a function inside even where everything else fails.
func actions(house *os.Root) (list *delta.Action[Folder, Listing], remove *delta.Action[File, string], err error) {
	list, err = delta.Define("list-folder", func(_ *delta.Context, in Folder) mo.Result[Listing] {
		return mo.TupleToResult(entries(house, in.Folder))
	}).Describe("List the files of a folder").Risk(1).Effect(action.None).Fetches().Build()
	if err != nil {
		return nil, nil, err
	}
	remove, err = delta.Define("delete-file", func(_ *delta.Context, in File) mo.Result[string] {
		return mo.TupleToResult(deleted(house, in))
	}).Describe("Delete a file that was listed").Risk(2).Effect(action.Irreversible).
		Needs(list.OnOutput("path", "entries.*.path").OnOutput("bytes", "entries.*.bytes").Consumed().Within(10*time.Minute)).
		RiskWhen("big file", func(in File) bool { return in.Bytes >= big }, 5).
		Skills("housekeeping").Build()
	return list, remove, err
}

// entries lists the regular files of a folder.
func entries(house *os.Root, folder string) (Listing, error) {
	found, err := fs.ReadDir(house.FS(), folder)
	if err != nil {
		return Listing{}, err
	}
	l := Listing{Entries: []Entry{}}
	for _, f := range found {
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // gone meanwhile, or not ours to delete
		}
		l.Entries = append(l.Entries, Entry{path.Join(folder, f.Name()), info.Size(), int(time.Since(info.ModTime()) / (24 * time.Hour))})
	}
	return l, nil
}

// deleted deletes a file that is still what was listed.
func deleted(house *os.Root, f File) (string, error) {
	info, err := house.Lstat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s is gone already", f.Path)
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() != f.Bytes:
		return "", fmt.Errorf("%s has changed since it was listed; list its folder again", f.Path)
	}
	if err := house.Remove(f.Path); err != nil {
		return "", err
	}
	return "deleted " + f.Path, nil
}
