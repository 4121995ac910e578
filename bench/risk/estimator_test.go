package riskbench

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mathext"
)

// By hand, from the definitions: one action declared 2 (prior 0.0474), then Err, Ok.
func TestBaselinesByHand(t *testing.T) {
	prior := sigma(-3)
	a := Action{Declared: 2, Runs: 2}
	for _, c := range []struct {
		name string
		f    filter
		want [3]float64
	}{
		{"declared", newDeclared(a), [3]float64{prior, prior, prior}},
		{"ewma", ewmaRule{.1, .003}.start(a), [3]float64{prior, .9*prior + .1, .9 * (.9*prior + .1)}},
		{"window of one", windowRule{1, 2, false}.start(a), [3]float64{prior, (2*prior + 1) / 3, 2 * prior / 3}},
		{"beta", betaRule{.5, 2, false}.start(a), [3]float64{prior, (2*prior + 1) / 3, (2*prior + .5) / 3.5}},
		{"linear", linearRule{.5, 1, .5}.start(a), [3]float64{prior, prior + .5*(1-prior), .5 * (prior + .5*(1-prior))}},
		// After the Err: no progress, so friction 10 and efficiency seen 0; surprise is 1 − .001/(.88+.001) short of 1.
		{"reference", newReference(a), [3]float64{.4, .7*.4 + .3*(.3+.4*(.88/.881)+.3), -1}},
	} {
		for i, y := range []float64{1, 0} {
			p, lo, hi := c.f.predict()
			assert.InDelta(t, c.want[i], p, 1e-12, "%s at %d", c.name, i)
			assert.LessOrEqual(t, lo, hi)
			c.f.observe(y)
		}
		if c.want[2] >= 0 {
			p, _, _ := c.f.predict()
			want := c.want[2]
			if c.name == "linear" { // variance .5 after the first, 1 aged
				want = .5 * c.want[1]
			}
			assert.InDelta(t, want, p, 1e-12, c.name)
		}
	}
}

// Predict changes nothing that a later call could tell, for every estimator and the oracle.
func TestPredictIsPure(t *testing.T) {
	s := scenarioOf(t, "bursty").Stream(2)
	s.Steps = s.Steps[:120]
	list := Estimators()
	list = append(list, Kind{Name: oracle, New: func() Estimator { return scenarioOf(t, "bursty").Oracle() }})
	for _, k := range list {
		once, often := k.New(), k.New()
		for _, x := range s.Steps {
			a := s.Actions[0]
			for range 3 {
				often.Predict(a)
			}
			p1, lo1, hi1 := once.Predict(a)
			p2, lo2, hi2 := often.Predict(a)
			require.Equal(t, [3]float64{p1, lo1, hi1}, [3]float64{p2, lo2, hi2}, k.Name)
			require.True(t, p1 >= 0 && p1 <= 1 && lo1 <= hi1, k.Name)
			once.Observe(a, x.Err)
			often.Observe(a, x.Err)
		}
	}
}

// What is learned of one action says nothing of another to a baseline.
func TestBaselinesKeepActionsApart(t *testing.T) {
	for _, k := range Estimators() {
		if k.Name == Delta {
			continue
		}
		e := k.New()
		a, b := Action{ID: 0, Declared: 2, Runs: 9}, Action{ID: 3, Declared: 2, Runs: 9}
		before, _, _ := e.Predict(b)
		for range 5 {
			e.Observe(a, true)
		}
		after, _, _ := e.Predict(b)
		assert.Equal(t, before, after, k.Name)
	}
}

// The interval of a Beta distribution is the same wherever the search for it began.
func TestBetaSpan(t *testing.T) {
	r := random("span", 1)
	var s betaSpan
	a, b := .1, 3.
	for range 3000 {
		if r.Float64() < .1 {
			a, b = .97*a+1, .97*b
		} else {
			a, b = .97*a, .97*b+1
		}
		_, lo, hi := s.of(a+.05, b+1, false)
		require.InDelta(t, mathext.InvRegIncBeta(a+.05, b+1, .05), lo, 1e-8)
		require.InDelta(t, mathext.InvRegIncBeta(a+.05, b+1, .95), hi, 1e-8)
	}
}
