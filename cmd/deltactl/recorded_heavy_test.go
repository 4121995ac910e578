//go:build heavy

package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	riskbench "github.com/seed-ab2cfece/delta-agents/bench/risk"
)

// On recorded calls of real agents the product's estimate is better than what was declared and than a moving average,
// with nothing fitted to them.
func TestRecordedAgents(t *testing.T) {
	files, err := filepath.Glob("../../../shared/data/*.jsonl.gz")
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("no recorded agents here")
	}
	for _, f := range files {
		var out, errs bytes.Buffer
		root := newRoot()
		root.SetOut(&out)
		root.SetErr(&errs)
		require.Zero(t, execute(t.Context(), root, []string{"bench", "risk", "--json", "--data", f}, &errs), errs.String())
		var r riskbench.Recorded
		require.NoError(t, json.Unmarshal(out.Bytes(), &r))
		loss := map[string]float64{}
		for _, s := range r.Scores {
			loss[s.Name] = s.LogLoss
		}
		require.Len(t, loss, 8)
		name, _, _ := strings.Cut(filepath.Base(f), ".")
		t.Logf("%-25s %5d rows: delta %.3f, ewma %.3f, declared %.3f", name, r.Rows, loss["delta"], loss["ewma"], loss["declared"])
		for _, other := range []string{"ewma", "declared", "reference"} {
			assert.Less(t, loss["delta"], loss[other], "%s: %s", name, other)
		}
	}
}
