package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nothing that was exported is replaced, and nothing is kept twice.
func TestSettleInReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	put := func(text string) {
		w := filepath.Join(dir, "written")
		require.NoError(t, os.WriteFile(w, []byte(text), 0o600))
		require.NoError(t, settleIn(w, dir, "t1"))
		_, err := os.Stat(w)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	long := string(make([]byte, 1<<17))
	for _, text := range []string{"first", "second", "first", "second", long, long + "x", long} {
		put(text)
	}
	want := map[string]string{"t1.jsonl": "first", "t1~2.jsonl": "second", "t1~3.jsonl": long, "t1~4.jsonl": long + "x"}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, len(want))
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, text, string(got), name)
	}
}
