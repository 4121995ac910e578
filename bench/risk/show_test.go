package riskbench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTableShowsTargetsBesideWhatWasMeasured(t *testing.T) {
	r, err := Run(t.Context(), Config{Seeds: 1, Kinds: cheap()})
	require.NoError(t, err)
	header, rows := r.Table()
	require.Len(t, rows, len(Names())+2)
	for _, row := range rows {
		assert.Len(t, row, len(header), row[0])
		if row[0] != "median of the eleven" { // which has no target
			assert.Equal(t, "?", row[5], "one seed is too few to tell")
		}
	}
	r.Seeds = 2 * blocks // enough to judge; there is no spread in this report, so that nothing is close
	header, rows = r.Table()
	for _, row := range rows {
		if row[0] == "median of the eleven" {
			continue
		}
		assert.Contains(t, []string{"pass", "MISS"}, row[5], "nothing is close without a spread")
		miss := strings.Contains(strings.Join(row[1:5], " "), " > ") || strings.Contains(strings.Join(row[1:5], " "), " not in ") ||
			strings.Contains(strings.Join(row[1:5], " "), " < ")
		assert.Equal(t, miss, row[5] == "MISS", "%v", row)
	}
	text := Markdown(header, rows)
	assert.Equal(t, len(rows)+2, strings.Count(text, "\n"))
	assert.Contains(t, text, "| step | ")
}

func TestVerdictCells(t *testing.T) {
	for _, c := range []struct {
		v    Verdict
		cell string
		text string
	}{
		{Verdict{Metric: "gap", Measured: .02161, Hi: .023, Pass: true}, "2.16 ≤ 2.3", "gap 2.16 % ≤ 2.30 %"},
		{Verdict{Metric: "delay p90", Measured: 17, Hi: 16}, "17 > 16", "delay p90 17 ≤ 16"},
		{Verdict{Metric: "gap", Measured: .02161, Hi: .023, SE: .00042, Pass: true}, "2.16 ± 0.042 ≤ 2.3", "gap 2.16 % ≤ 2.30 %"},
		{Verdict{Metric: "gap", Measured: .023001, Hi: .023}, "2.3001 > 2.3", "gap 2.30 % ≤ 2.30 %"},
		{Verdict{Metric: "gap", Measured: .023, Hi: .023, Pass: true}, "2.30 ≤ 2.3", "gap 2.30 % ≤ 2.30 %"},
		{Verdict{Metric: "cover", Measured: .98004, Lo: .85, Hi: .98}, "0.98004 not in 0.85–0.98", "cover 0.980 within 0.850 to 0.980"},
		{Verdict{Metric: "regret", Measured: 187.94, Hi: 180, SE: 3.346}, "187.9 ± 3.3 > 180", "regret 187.9 ≤ 180"},
		{Verdict{Metric: "cover", Measured: .9, Lo: .85, Hi: .98, Pass: true}, "0.900 in 0.85–0.98", "cover 0.900 within 0.850 to 0.980"},
		{Verdict{Metric: "cover", Measured: .99, Lo: .85, Hi: .98}, "0.990 not in 0.85–0.98", "cover 0.990 within 0.850 to 0.980"},
		{Verdict{Metric: "cover", Measured: .8, Lo: .78, Hi: 1, Pass: true}, "0.800 ≥ 0.78", "cover 0.800 within 0.780 to 1.000"},
		{Verdict{Metric: "cover", Measured: .7, Lo: .78, Hi: 1}, "0.700 < 0.78", "cover 0.700 within 0.780 to 1.000"},
	} {
		assert.Equal(t, c.cell, c.v.cell())
		assert.Equal(t, c.text, c.v.String())
	}
}
