package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The story runs unattended, deletes exactly what it says, and leaves nothing behind.
func TestTheStory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out, errs bytes.Buffer
	require.Zero(t, run(context.Background(), nil, &out, &errs), errs.String())
	text := out.String()
	for _, line := range []string{
		`delete-file +\{path:logs/app-1.log,bytes:1200\} +NOT_LEGAL`,
		`delete-file +\{path:logs/app-1.log,bytes:1200\} +OK`,
		`delete-file +\{path:\.\./precious.txt,bytes:14\} +NOT_LEGAL`,
		`delete-file +\{path:logs/today.log,bytes:299\} +NOT_LEGAL`,
		`list-folder +\{folder:\.\.\} +FAILED`,
		`delete-file +\{path:backups/2025.tar,bytes:2097152\} +APPROVAL_REJECTED`,
		`delete-file +\{path:backups/2024.tar,bytes:3145728\} +OK`,
		`channel=household text="4 files deleted`,
		`deletes: 4 done, 6 not legal, 2 times a person said no`,
	} {
		assert.Regexp(t, regexp.MustCompile(line), text)
	}
	_, left, _ := strings.Cut(text, "WHAT IS LEFT")
	for _, name := range []string{"house/backups/2025.tar", "house/logs/today.log", outside} {
		assert.Contains(t, left, name)
	}
	for _, name := range []string{"app-1", "app-2", "thumbs", "2024"} {
		assert.NotContains(t, left, name)
	}
	assert.Empty(t, found(t), "nothing is left behind")
}

func found(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(os.TempDir(), "delta-files-*"))
	require.NoError(t, err)
	return names
}

func TestKeepLeavesTheDirectory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out, errs bytes.Buffer
	require.Zero(t, run(context.Background(), []string{"--keep"}, &out, &errs), errs.String())
	require.Len(t, found(t), 1)
	assert.Contains(t, out.String(), found(t)[0])
}

func TestUsage(t *testing.T) {
	var out, errs bytes.Buffer
	assert.Zero(t, run(context.Background(), []string{"--help"}, &out, &errs))
	assert.Contains(t, out.String(), "--keep")
	assert.Equal(t, 2, run(context.Background(), []string{"--no"}, &out, &errs))
	assert.Equal(t, 2, run(context.Background(), []string{"x"}, &out, &errs))
	assert.Contains(t, errs.String(), "--help")
}

// The function itself does not leave the house either, nor delete what changed since it was listed.
func TestFunctionsStayInside(t *testing.T) {
	p, err := build()
	require.NoError(t, err)
	defer func() { require.NoError(t, p.close(false)) }()
	require.NoError(t, os.Symlink(filepath.Join(p.dir, outside), filepath.Join(p.dir, "house", "link")))
	require.NoError(t, os.Symlink(p.dir, filepath.Join(p.dir, "house", "up")))
	for _, f := range []File{{"../" + outside, 14}, {"link", 14}, {"up/" + outside, 14}, {filepath.Join(p.dir, outside), 14}, {"logs/today.log", 299}, {"logs/none", 0}, {"logs", 0}} {
		_, err := deleted(p.house, f)
		assert.Error(t, err, f.Path)
	}
	_, err = entries(p.house, "up")
	assert.Error(t, err)
	l, err := entries(p.house, ".")
	require.NoError(t, err)
	assert.Empty(t, l.Entries, "links and folders are not listed")
	assert.FileExists(t, filepath.Join(p.dir, outside))
}
