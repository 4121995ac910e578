package replay

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Real recordings, where they are at hand: every row of them replays, whatever its tools are called.
func TestRecordings(t *testing.T) { replayAll(t, "tau2_airline*") }

func replayAll(t *testing.T, patterns ...string) {
	var files []string
	for _, p := range patterns {
		found, err := filepath.Glob("../../../../../shared/data/" + p + ".jsonl.gz")
		require.NoError(t, err)
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Skip("no recordings beside this checkout in ../shared/data")
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			got, err := Files(context.Background(), Config{}, f)
			require.NoError(t, err)
			var rows, outcomes int64
			for _, a := range got.Actions {
				assert.LessOrEqual(t, a.Gated, a.Runs)
				rows += a.Runs
			}
			for _, a := range got.Agents {
				assert.True(t, 0 <= a.Lower && a.Lower <= a.Upper && a.Upper <= 1, "%+v", a)
				outcomes += a.OK + a.Err
			}
			assert.Equal(t, [2]int64{got.Rows, got.Rows}, [2]int64{rows, outcomes})
		})
	}
}
