package skills

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// File is the name of the file that makes a folder a skill.
const File = "SKILL.md"

// Limits of what is read. A skill that is longer is an error, never cut: half an instruction is another instruction.
const (
	MaxFront = 16 << 10  // bytes of the front matter, its two lines of dashes included
	MaxText  = 256 << 10 // bytes of SKILL.md
	MaxFile  = 1 << 20   // bytes of any other file
	MaxFiles = 256       // other files in one skill
	MaxList  = 1024      // skills in one library
)

// Errors that say what is wrong with a skill.
var (
	ErrNotFound  = errors.New("there is no such skill")
	ErrMalformed = errors.New("the skill is malformed")
)

// Library finds skills by their names. It keeps nothing open and caches nothing: what is read is what lies there. It is
// safe for concurrent use; a nil Library is empty.
type Library struct{ places []place }

// place is a folder that holds skill folders.
type place struct {
	name string
	open func(skill string) (fs.FS, io.Closer, error) // that skill's folder alone
	list func() ([]fs.DirEntry, error)
}

// Open returns the library of the skills in these folders, each of which holds skill folders. It is an error where one is
// no folder; the skills are read when they are used.
func Open(folders ...string) (*Library, error) {
	l := &Library{}
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil {
			return nil, fmt.Errorf("skills in %q: %w; create the folder, or name another", folder, err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("skills in %q: it is not a folder; name the folder that holds the skill folders", folder)
		}
		l.places = append(l.places, place{folder, within(folder), func() ([]fs.DirEntry, error) { return os.ReadDir(folder) }})
	}
	return l, nil
}

// within opens a skill's folder as a root of its own, so that no link leads from one skill into another either.
func within(folder string) func(string) (fs.FS, io.Closer, error) {
	return func(skill string) (fs.FS, io.Closer, error) {
		outer, err := os.OpenRoot(folder)
		if err != nil {
			return nil, nil, err
		}
		defer outer.Close()
		inner, err := outer.OpenRoot(skill)
		if err != nil {
			return nil, nil, err
		}
		return inner.FS(), inner, nil
	}
}

// New returns the library of the skills in file systems, such as those embedded in the program. Where a file system has
// links, they are refused, wherever they lead. For a folder that others write to while it is read, use [Open]: there the
// operating system sees to it that nothing leads out.
func New(systems ...fs.FS) *Library {
	l := &Library{}
	for i, fsys := range systems {
		l.places = append(l.places, place{
			fmt.Sprintf("file system %d", i+1),
			func(skill string) (fs.FS, io.Closer, error) {
				if err := unlinked(fsys, skill); err != nil {
					return nil, nil, err
				}
				sub, err := fs.Sub(fsys, skill)
				return solid{sub}, io.NopCloser(nil), err
			},
			func() ([]fs.DirEntry, error) { return fs.ReadDir(fsys, ".") },
		})
	}
	return l
}

// List returns what there is, in order of names. Malformed skills are left out, and the error names every one of them.
func (l *Library) List() ([]Info, error) {
	var out []Info
	var faults []error
	for _, name := range l.names(&faults) {
		info, err := l.Info(name)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		out = append(out, info)
	}
	return out, errors.Join(faults...)
}

// names are the folders that hold a SKILL.md, each once, in order.
func (l *Library) names(faults *[]error) (names []string) {
	if l == nil {
		return nil
	}
	for _, p := range l.places {
		entries, err := p.list()
		if err != nil {
			*faults = append(*faults, fmt.Errorf("skills in %q: %w", p.name, err))
		}
		for _, e := range entries {
			if len(names) > MaxList {
				*faults = append(*faults, fmt.Errorf("skills in %q: more than %d; split the library", p.name, MaxList))
				return names[:MaxList]
			}
			if p.holds(e.Name()) {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (p place) holds(skill string) bool {
	fsys, closer, err := p.open(skill)
	if err != nil {
		return false
	}
	defer closer.Close()
	_, err = fs.Stat(fsys, File)
	return err == nil
}

// find opens the folder of a skill. Two of one name are an error: which of them is meant must not depend on an order.
func (l *Library) find(name string) (fs.FS, io.Closer, place, error) {
	if err := CheckName(name); err != nil {
		return nil, nil, place{}, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if l == nil || len(l.places) == 0 {
		return nil, nil, place{}, fmt.Errorf("skill %q: %w: the library has no folder; name those that hold skills with skills.Open", name, ErrNotFound)
	}
	var in []place
	for _, p := range l.places {
		if p.holds(name) {
			in = append(in, p)
		}
	}
	switch len(in) {
	case 0:
		where := make([]string, len(l.places))
		for i, p := range l.places {
			where[i] = filepath.Join(p.name, name, File)
		}
		return nil, nil, place{}, fmt.Errorf("skill %q: %w: none of %q exists; create one with a front matter of name and description, or name another skill", name, ErrNotFound, where)
	case 1:
		fsys, closer, err := in[0].open(name)
		return fsys, closer, in[0], err
	}
	return nil, nil, place{}, fmt.Errorf("skill %q: %w: both %q and %q have it; rename or remove one", name, ErrMalformed, in[0].name, in[1].name)
}

// Info reads the front matter of a skill.
func (l *Library) Info(name string) (Info, error) {
	s, err := l.read(name, true)
	return s.Info, err
}

// Read reads a skill.
func (l *Library) Read(name string) (Skill, error) { return l.read(name, false) }

func (l *Library) read(name string, frontOnly bool) (Skill, error) {
	fsys, closer, p, err := l.find(name)
	if err != nil {
		return Skill{}, err
	}
	defer closer.Close()
	text, err := load(fsys, File, MaxText, frontOnly)
	var s Skill
	if err == nil {
		s, err = Parse(text, frontOnly)
	}
	if err == nil && s.Name != name {
		err = fmt.Errorf("its front matter names it %q; a skill has the name of its folder", s.Name)
	}
	if err != nil {
		return Skill{}, fmt.Errorf("skill %q: %w: %s: %w", name, ErrMalformed, filepath.Join(p.name, name, File), err)
	}
	return s, nil
}

// ReadFile reads another file of a skill, such as "references/limits.md". The name is one of [Library.Files], or what the
// skill's text calls it; it never leaves the skill's folder.
func (l *Library) ReadFile(skill, file string) ([]byte, error) {
	fsys, closer, _, err := l.find(skill)
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	if !fs.ValidPath(file) || file == "." {
		return nil, fmt.Errorf("skill %q: %q is not the name of a file in it; write it relative to the skill's folder, with slashes and without %q", skill, file, "..")
	}
	text, err := load(fsys, file, MaxFile, false)
	if err != nil {
		return nil, fmt.Errorf("skill %q: %w", skill, err)
	}
	return text, nil
}

// Files returns the names of the other files of a skill, in order. Links are not among them.
func (l *Library) Files(skill string) ([]string, error) {
	fsys, closer, _, err := l.find(skill)
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	var out []string
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case len(out) >= MaxFiles:
			return fmt.Errorf("it has more than %d files", MaxFiles)
		case d.Type().IsRegular() && path.Clean(name) != File:
			out = append(out, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("skill %q: %w", skill, err)
	}
	return out, nil
}

// load reads a regular file of at most limit bytes; with front no more than a front matter can have. Anything else that a
// name can stand for, a pipe say, could block for ever.
func load(fsys fs.FS, name string, limit int64, front bool) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%q is not a regular file", name)
	case info.Size() > limit:
		return nil, fmt.Errorf("%q is %d bytes long, at most %d are read", name, info.Size(), limit)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	most := limit + 1
	if front {
		most = min(most, MaxFront)
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err == nil && int64(len(text)) > limit { // it grew
		err = fmt.Errorf("%q is more than %d bytes long", name, limit)
	}
	return text, err
}
