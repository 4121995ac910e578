//go:build heavy

package riskbench

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The streams and the baselines are those of the study they come from: its mean gaps over the eleven scenarios, on other
// random numbers and with settings of its own search, are met within the spread of the seeds and of the settings.
func TestBaselinesAsPublished(t *testing.T) {
	names := Names()[:len(scenarios)]
	r, err := Run(t.Context(), Config{Scenarios: names})
	require.NoError(t, err)
	require.Len(t, r.Mean, len(kinds)+1)
	for _, m := range r.Mean {
		want, ok := map[string]struct{ gap, within float64 }{
			"oracle": {0, 1e-9}, "declared": {1, .01}, "reference": {1.97, .03},
			"ewma": {.053, .004}, "window": {.074, .005}, "beta": {.056, .004}, "linear": {.058, .004}, "ekf": {.063, .004},
		}[m.Name]
		t.Logf("%-10s gap %6.2f ± %.2f %%  ECE %.2f %%  regret %.1f", m.Name, 100*m.Gap, 100*m.GapSE, 100*m.ECE, m.Regret)
		if ok {
			assert.InDelta(t, want.gap, m.Gap, want.within, m.Name)
		} else {
			assert.Equal(t, Delta, m.Name)
		}
	}
	for _, s := range r.Scenarios {
		assert.InDelta(t, 0, s.Oracle.Gap, 1e-12)
		if s.Scenario != "rare" { // there the declaration is wrong by a factor of nine, and the oracle begins with it
			assert.InDelta(t, 1, s.Oracle.NIS, .2, "%s: the oracle is right on average", s.Scenario)
		}
	}
	step := r.Scenarios[4].Oracle.Delay
	assert.InDelta(t, 4, step.Median, 1)
	assert.InDelta(t, 11, step.P90, 2)
	sleeper := r.Scenarios[8].Oracle.Delay
	assert.InDelta(t, 1, sleeper.Median, 0)
	assert.InDelta(t, 2, sleeper.P90, 0)
}

// The product meets its targets, with room for two standard errors of a gap over the seeds.
func TestTargets(t *testing.T) {
	r, err := Run(t.Context(), Config{Kinds: kinds[:1]})
	require.NoError(t, err)
	for _, v := range r.Verdicts {
		t.Logf("%-20s %s: %v", v.Scenario, v, v.Pass)
		assert.LessOrEqual(t, v.Measured, v.Hi+2*math.Max(v.SE, room[v.Metric]), "%s: %s", v.Scenario, v.Metric)
		if v.Lo > 0 {
			assert.GreaterOrEqual(t, v.Measured, v.Lo-2*room[v.Metric], "%s: %s", v.Scenario, v.Metric)
		}
	}
}

// room is a standard error over 240 seeds of the metrics whose own is not reported, from running other seeds.
var room = map[string]float64{
	"ece": .0003, "cover": .005, "gated": .0001, "regret": .5, "regret median": 8, "early regret": 15, "delay median": .25, "delay p90": .5,
}
