package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/audit"
	"github.com/seed-ab2cfece/delta-agents/audit/file"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Entries lie in whole lines over several files, none missing.
func TestFilesAreRotatedBetweenEntries(t *testing.T) {
	dir := t.TempDir()
	sink, err := file.New(file.Config{Path: filepath.Join(dir, "logs", "audit.jsonl"), MaxSize: 1})
	require.NoError(t, err)
	long := strings.Repeat("x", 10_000)
	for i := range 250 {
		require.NoError(t, sink.Write(t.Context(), []audit.Entry{{Ledger: "a", Seq: int64(i + 1), Reason: long}}))
	}
	require.NoError(t, sink.Close())
	files, err := filepath.Glob(filepath.Join(dir, "logs", "*"))
	require.NoError(t, err)
	assert.Greater(t, len(files), 1)
	lines := 0
	for _, f := range files {
		info, err := os.Stat(f)
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, info.Mode().Perm())
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		for line := range strings.Lines(string(b)) {
			assert.True(t, strings.HasPrefix(line, "{") && strings.HasSuffix(line, "}\n"))
			lines++
		}
	}
	assert.Equal(t, 250, lines)
}

func TestWhatCannotBe(t *testing.T) {
	_, err := file.New(file.Config{})
	require.ErrorContains(t, err, "no Path")
	_, err = file.New(file.Config{Path: "x", MaxAge: -1})
	require.ErrorContains(t, err, "negative")

	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	sink, err := file.New(file.Config{Path: filepath.Join(path, "audit.jsonl")})
	require.NoError(t, err)
	assert.Error(t, sink.Write(t.Context(), []audit.Entry{{Seq: 1}}), "a folder that is a file")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, sink.Write(ctx, []audit.Entry{{Seq: 1}}), context.Canceled)
	require.NoError(t, sink.Close())
}

func ExampleNew() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	sink, err := file.New(file.Config{Path: filepath.Join(dir, "audit.jsonl"), MaxSize: 100, MaxAge: 90, Compress: true})
	if err != nil {
		panic(err)
	}
	trail, err := audit.New(audit.Config{Sink: sink, Positions: audit.NewFile(filepath.Join(dir, "audit.positions"))})
	if err != nil {
		panic(err)
	}
	fmt.Println(trail.Watch().Name, trail.Close(context.Background()))
	// Output: audit <nil>
}
