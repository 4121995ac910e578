package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRepository is the gate: every rule on every file of the checkout it runs in.
func TestRepository(t *testing.T) {
	found, err := Check(checkout(t))
	require.NoError(t, err)
	for _, f := range found {
		t.Error(f)
	}
}

// TestListsAreAlive keeps the exceptions honest: one that no longer applies must go.
func TestListsAreAlive(t *testing.T) {
	tree := checkout(t)
	for p, reason := range long {
		src, err := fs.ReadFile(tree.FS, p)
		require.NoError(t, err, "listed as long, but absent")
		assert.Greater(t, lineCount(src), maxLines, "%s is short enough now", p)
		assert.NotEmpty(t, reason)
	}
	for folder, l := range folders {
		_, ok := mayImport[l]
		assert.True(t, ok, "the layer %s of %s may import something or nothing, say which", l, folder)
	}
}

func checkout(t *testing.T) Tree {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(mod), "\n")
	tree := Tree{FS: os.DirFS(root), Module: strings.TrimSpace(strings.TrimPrefix(first, "module "))}
	tree.Tracked = tracked(t, root, tree.FS)
	require.NotEmpty(t, tree.Tracked)
	return tree
}

// tracked asks git; in an unpacked archive every file counts.
func tracked(t *testing.T, root string, fsys fs.FS) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err == nil && len(out) > 0 {
		return present(fsys, strings.Split(string(bytes.TrimRight(out, "\x00")), "\x00"))
	}
	var files []string
	require.NoError(t, fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (p == ".git" || p == "bin" || p == "dist") {
			return fs.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			files = append(files, p)
		}
		return err
	}))
	return files
}

// present drops what is tracked but deleted in the work tree, and links.
func present(fsys fs.FS, files []string) []string {
	var kept []string
	for _, p := range files {
		if info, err := fs.Stat(fsys, p); err == nil && info.Mode().IsRegular() {
			kept = append(kept, p)
		}
	}
	return kept
}
