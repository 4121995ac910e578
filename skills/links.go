package skills

import (
	"fmt"
	"io/fs"
	"strings"
)

// solid is a file system without its links: of what a name stands for elsewhere nothing is read.
type solid struct{ of fs.FS }

// Open implements [fs.FS].
func (s solid) Open(name string) (fs.File, error) {
	if err := unlinked(s.of, name); err != nil {
		return nil, err
	}
	return s.of.Open(name)
}

// unlinked reports a link on the way to a name. A file system that does not tell its links from other files, see
// [fs.ReadLinkFS], is taken to have none.
func unlinked(fsys fs.FS, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	for end := 0; end < len(name); end++ {
		if n := strings.IndexByte(name[end:], '/'); n >= 0 {
			end += n
		} else {
			end = len(name)
		}
		info, err := fs.Lstat(fsys, name[:end])
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%q is a link, which is not followed; put the file itself there", name[:end])
		}
	}
	return nil
}
