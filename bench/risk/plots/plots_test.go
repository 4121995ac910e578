package plots

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	riskbench "github.com/seed-ab2cfece/delta-agents/bench/risk"
)

// Every picture exists in both formats and is what its name says.
func TestPictures(t *testing.T) {
	r, err := riskbench.Run(t.Context(), riskbench.Config{Seeds: 1, Scenarios: []string{"sleeper", "H1"}, Kinds: riskbench.Estimators()[:2]})
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "new")
	paths, err := Report(dir, r)
	require.NoError(t, err)
	s, err := riskbench.Record([]riskbench.Call{{Agent: "a", Tool: "x", Err: true}, {Agent: "a", Tool: "x"}}, 2)
	require.NoError(t, err)
	g, err := riskbench.Gate(t.Context(), "two", s, riskbench.Prices{Ask: 1, Err: 10})
	require.NoError(t, err)
	more, err := Gate(dir, g)
	require.NoError(t, err)
	paths = append(paths, more...)
	rec, err := riskbench.Prequential(t.Context(), "two", s, riskbench.Estimators()[:3], nil)
	require.NoError(t, err)
	more, err = Recorded(dir, rec)
	require.NoError(t, err)
	paths = append(paths, more...)
	require.Len(t, paths, 2*6, "a trace, two diagrams, the gaps, the gate, the recorded diagram")
	for _, p := range paths {
		text, err := os.ReadFile(p)
		require.NoError(t, err)
		if filepath.Ext(p) == ".png" {
			assert.True(t, bytes.HasPrefix(text, []byte("\x89PNG")), p)
		} else {
			assert.Contains(t, string(text[:200]), "<svg", p)
		}
	}
}

// Marks stand only where something can be, whatever room the legend takes beyond.
func TestTicksEndWhereValuesDo(t *testing.T) {
	ticks := upTo(1).Ticks(1e-3, 8)
	require.NotEmpty(t, ticks)
	for _, x := range ticks {
		assert.LessOrEqual(t, x.Value, 1.000001)
	}
}

func TestAFolderThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Trace(filepath.Join(file, "in"), riskbench.Scenarios()[0], 0)
	require.Error(t, err)
}
