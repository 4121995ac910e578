package riskbench

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cheap are estimators without quantiles of Beta distributions.
func cheap() (out []Kind) {
	for _, k := range kinds {
		if k.Name != "window" && k.Name != "beta" {
			out = append(out, k)
		}
	}
	return out
}

func TestARunDoesNotDependOnTheNumberOfGoroutines(t *testing.T) {
	cfg := Config{Seeds: 3, Scenarios: []string{"sleeper", "H1", "cost-jump"}, Kinds: cheap()}
	cfg.Workers = 1
	one, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	cfg.Workers = 3
	three, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	assert.Equal(t, one, three)
	assert.Nil(t, one.Mean)
	assert.NotEmpty(t, one.Verdicts)
}

func TestRunRefuses(t *testing.T) {
	_, err := Run(t.Context(), Config{Scenarios: []string{"nonsense"}})
	require.ErrorContains(t, err, `no scenario "nonsense", want one of stationary-01,`)
	_, err = Run(t.Context(), Config{Seeds: -1})
	require.ErrorContains(t, err, "seeds is -1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Run(ctx, Config{Seeds: 2, Scenarios: []string{"rare"}})
	require.ErrorIs(t, err, context.Canceled)
}

// The oracle is beaten by nobody on what it knows, and who knows the rate has no gap, error nor regret.
func TestMetricsOnThoseWhoKnow(t *testing.T) {
	s := scenarioOf(t, "bursty").Stream(4)
	knower := &knows{steps: s.Steps}
	got := walk(knower, s, watch{jump: -1, change: -1})
	got.best = known(s)
	score := gather("knower", []tally{got}, watch{jump: -1, change: -1}, false)
	assert.InDelta(t, 0, score.Gap, 1e-12)
	assert.InDelta(t, 0, score.ECE, 1e-12)
	assert.InDelta(t, 0, score.Regret, 1e-9)
	assert.InDelta(t, 1, score.Cover, 1e-12)
	assert.InDelta(t, 1, score.NIS, .6, "one stream of rare Errs")
}

type knows struct {
	steps []Step
	at    int
}

func (k *knows) Predict(Action) (p, lo, hi float64) {
	p = k.steps[k.at].P
	return p, p, p
}
func (k *knows) Observe(Action, bool) { k.at++ }

func TestMetricsByHand(t *testing.T) {
	assert.InDelta(t, math.Ln2, loss(.5, .5), 1e-12)
	assert.InDelta(t, 0, regret(.05, .05), 1e-12, "not gated, and rightly")
	assert.InDelta(t, 450, regret(.05, .2), 1e-9, "gated for 0.95 where 0.5 would do")
	assert.InDelta(t, 1200, regret(.2, .05), 1e-9, "let through for 2 where 0.8 would do")
	var b bins
	b.add(.1, .2)
	b.add(.11, .1)
	b.add(.95, .95)
	assert.InDelta(t, .09/3, b.ece(), 1e-12, "the first two share a bin")
	require.Len(t, b.filled(), 2)
	assert.InDelta(t, 2.5, quantile([]float64{1, 2, 3, 4}, .5), 1e-12)
	assert.InDelta(t, 1, quantile([]float64{1}, .9), 1e-12)
	values := make([]float64, 2000)
	for i := range values {
		values[i] = float64(2000 - i)
	}
	assert.InDelta(t, 1998, alarm(values), 1e-12, "two of two thousand are above")
	assert.InDelta(t, 1, standardError([]float64{1, 3}), 1e-12)
}

// A target missed by less than two standard errors is close, not missed; with few seeds nobody can tell.
func TestVerdicts(t *testing.T) {
	r := &Report{Seeds: 2 * blocks, Scenarios: []Result{{Scenario: "slow", Scores: []Score{{
		Name: Delta, Gap: .016, ECE: .009, Cover: .7, SE: map[string]float64{"gap": .001, "ece": .0001},
	}}}}}
	got := judge(r)
	require.Len(t, got, 3)
	assert.True(t, got[0].Close)
	assert.False(t, got[1].Close)
	assert.False(t, got[2].Close || got[2].Pass)
	assert.Equal(t, "1.60 ± 0.10 > 1.5", got[0].cell())
	assert.Equal(t, "MISS", r.verdictOf(got))
	assert.Equal(t, "close", r.verdictOf(got[:1]))
}

func (r *Report) verdictOf(v []Verdict) string {
	r.Verdicts = v
	return r.row("slow")[5]
}

func TestEveryTargetNamesAScenario(t *testing.T) {
	names := append(Names(), overall)
	for _, x := range Targets() {
		assert.Contains(t, names, x.Scenario)
		assert.Less(t, x.Lo, x.Hi)
		_, ok := Score{Delay: &Delays{}}.metric(x.Metric)
		assert.True(t, ok, x.Metric)
	}
}
