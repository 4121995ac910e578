package delta

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// AttachmentFolder keeps the content of attachments as files of a folder, each named by its SHA-256: for engines in several
// processes that share a disk. It deletes nothing; whoever owns the folder decides how long what is kept. Files appear as a
// whole or not at all.
type AttachmentFolder struct{ folder string }

// OpenAttachmentFolder uses an existing folder.
func OpenAttachmentFolder(folder string) (*AttachmentFolder, error) {
	info, err := os.Stat(folder)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	if err != nil {
		return nil, fmt.Errorf("attachments in %q: %w; create the folder, or name another", folder, err)
	}
	return &AttachmentFolder{folder}, nil
}

// Put implements [AttachmentStore].
func (a *AttachmentFolder) Put(_ context.Context, sum string, content []byte) (err error) {
	root, err := a.root(sum)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Stat(sum); err == nil {
		return nil // what has this name has this content, or reading it says so
	}
	part := "part-" + rand.Text()
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Remove(part))
		}
	}()
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return root.Rename(part, sum)
}

// Get implements [AttachmentStore].
func (a *AttachmentFolder) Get(ctx context.Context, sum string) ([]byte, error) {
	root, err := a.root(sum)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Lstat(sum)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("its content is no longer in %q", a.folder)
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("what has its name is not a file")
	}
	if err != nil {
		return nil, err
	}
	f, err := root.Open(sum)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, info.Size())) // it never grows: one that did is not what was attached
	return content, errors.Join(err, context.Cause(ctx))
}

// root opens the folder for a name that is a SHA-256.
func (a *AttachmentFolder) root(sum string) (*os.Root, error) {
	if a == nil || a.folder == "" {
		return nil, errors.New("there is no folder; make it with OpenAttachmentFolder")
	}
	if len(sum) != 64 || !isHex(sum) {
		return nil, errors.New("not the SHA-256 of an attachment")
	}
	return os.OpenRoot(a.folder)
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

var _ AttachmentStore = (*AttachmentFolder)(nil)
