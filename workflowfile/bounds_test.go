package workflowfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/workflowfile"
)

// file writes n steps, each with what it needs.
func file(n int, needs func(i int) (from, to int)) []byte {
	var b strings.Builder
	b.WriteString("workflow: w\nversion: \"1\"\nsteps:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: s%d, type: EXECUTION, action: act, needs: [", i)
		for from, to := needs(i); from < to; from++ {
			fmt.Fprintf(&b, "s%d,", from)
		}
		b.WriteString("]}\n")
	}
	return []byte(b.String())
}

// Graphs whose edges nobody could follow are listed: no drawing grows beyond what its steps and a fixed room take.
func TestDrawingsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		n      int
		needs  func(i int) (from, to int)
		listed bool
		why    string
	}{
		"each needs all before":   {100, func(i int) (int, int) { return 0, i }, true, "its edges pass too many layers"},
		"all of one need another": {200, func(i int) (int, int) { return 0, i / 100 * 100 }, true, "its wires are longer than anybody reads"},
		"nothing is needed":       {400, func(int) (int, int) { return 0, 0 }, false, "one row"},
		"a long chain":            {400, func(i int) (int, int) { return max(0, i-1), i }, false, "one column"},
		"a column beside a row":   {400, func(i int) (int, int) { return max(0, i-1), min(i, 200) }, true, "most of the picture is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := workflowfile.Parse(file(c.n, c.needs))
			require.NoError(t, err)
			text, svg := workflowfile.Text(d), string(workflowfile.SVG(d))
			assert.Equal(t, c.listed, strings.Contains(text, " after s0"), c.why)
			assert.Equal(t, c.listed, strings.Contains(svg, ">after s0"))
			assert.Less(t, len(text), 3_000_000)
			assert.Less(t, len(svg), 3_000_000)
			for _, step := range []string{"s0", fmt.Sprintf("s%d", c.n-1)} {
				assert.Contains(t, text, " "+step+" ", "every step is there")
				assert.Contains(t, svg, ">"+step+"<")
			}
		})
	}
}

// What one file says once is not drawn with each step.
func TestLongLinesAreCut(t *testing.T) {
	var b strings.Builder
	b.WriteString("workflow: w\nversion: \"1\"\nowners: [" + strings.Repeat("somebody, ", 20_000) + "]\nsteps:\n")
	for i := range 50 {
		fmt.Fprintf(&b, "  - {name: s%d, type: HUMAN, hitl: {intake: {}}}\n", i)
	}
	d, err := workflowfile.Parse([]byte(b.String()))
	require.NoError(t, err)
	text := workflowfile.Text(d)
	assert.Contains(t, text, "HUMAN somebody, somebody, ")
	assert.Contains(t, text, "…")
	assert.Less(t, len(text), 1_000_000)
	assert.Less(t, len(workflowfile.SVG(d)), 1_000_000)
}

func TestTooManySteps(t *testing.T) {
	_, err := workflowfile.Parse(file(2001, func(int) (int, int) { return 0, 0 }))
	require.EqualError(t, err, `line 1: workflow "w" has 2001 steps, want at most 2000: run parts of it as workflows of their own, by steps of type SUB_SOP`)
}
