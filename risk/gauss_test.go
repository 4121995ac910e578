package risk

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

func TestQuadratureAgreesWithTheGrid(t *testing.T) {
	r := newRule()
	for _, mean := range []float64{-20, -9, -5, -4, -2, 0, 3, 8} {
		for _, variance := range []float64{1e-4, .1, 1, 2.25, 5, 10} {
			for _, err := range []bool{false, true} {
				m, v, z := gridMoments(mean, variance, err)
				got, gz := r.match(gauss{mean, variance}, err)
				at := []any{"mean %v variance %v err %v", mean, variance, err}
				assert.InDelta(t, m, got.mean, 1e-3*math.Sqrt(variance), at...)
				assert.InEpsilon(t, v, got.variance, 2e-3, at...)
				assert.InDelta(t, z, gz, 1e-3, at...)
				assert.InEpsilon(t, z, gz, 1e-3, at...)
			}
		}
	}
}

func TestThePriorPreservesTheDeclaredProbability(t *testing.T) {
	for _, variance := range []float64{.1, 1, 5, 10} {
		c := Single()
		c.Members[0].Action = variance
		m, err := New(c)
		require.NoError(t, err)
		for d := 1; d <= maxRisk; d++ {
			_, _, p := gridMoments(m.base(0, d, 0), variance, true)
			assert.InEpsilon(t, declared(d), p, 1e-3, "variance %v, declared %d", variance, d)
		}
	}
}

// noChange is a model of one action whose change detector never fires.
func noChange(t *testing.T) *Model {
	c := Single()
	c.Worse.Threshold, c.Better.Threshold = maxSum, maxSum
	m, err := New(c)
	require.NoError(t, err)
	return m
}

var streams = []struct {
	name  string
	every int // an Err every so many outcomes
	risk  int
}{{"rare", 40, 1}, {"some", 7, 3}, {"half", 2, 3}, {"always", 1, 2}, {"never", 1000, 4}}

// The filter against moments summed on a grid, step by step.
func TestFilterAgreesWithMomentsOnAGrid(t *testing.T) {
	m := noChange(t)
	for _, c := range streams {
		mean, variance := m.base(0, c.risk, 0), m.cfg.Members[0].Action
		b, d := m.Prior(), Declaration{Name: "a", Risk: c.risk}
		for i := 1; i <= 40; i++ {
			err := i%c.every == 0
			mean, variance, _ = gridMoments(mean, math.Min(variance+m.cfg.Members[0].ActionDrift, maxVariance), err)
			_, _, p := gridMoments(mean, variance, true)
			b, _, _ = m.Update(b, d, Observation{Err: err})
			e := m.Risk(b, d)
			require.InDelta(t, p, e.P, 1e-3, "%s, step %d", c.name, i)
			require.InDelta(t, mean, e.Mean, 2e-3, "%s, step %d", c.name, i)
			require.InDelta(t, variance, e.Variance, 1e-2, "%s, step %d", c.name, i)
		}
	}
}

// The filter against the exact density. Projecting on a Gaussian after every outcome is an approximation: its price is
// largest in the first few outcomes, where the posterior is skewed, and fades.
func TestFilterStaysNearTheExactDensity(t *testing.T) {
	m := noChange(t)
	for _, c := range streams {
		f := newGridFilter(m.base(0, c.risk, 0), m.cfg.Members[0].Action)
		b, d := m.Prior(), Declaration{Name: "a", Risk: c.risk}
		for i := 1; i <= 150; i++ {
			err := i%c.every == 0
			f.age(m.cfg.Members[0].ActionDrift)
			f.observe(err)
			b, _, _ = m.Update(b, d, Observation{Err: err})
			tol := 0.04
			if i > 100 {
				tol = 0.015
			}
			require.InDelta(t, f.p(), m.Risk(b, d).P, tol, "%s, step %d", c.name, i)
		}
	}
}

func TestACorrectionNeverRaisesTheVariance(t *testing.T) {
	r := newRule()
	rapid.Check(t, func(t *rapid.T) {
		g := gauss{rapid.Float64Range(-maxLogOdds, maxLogOdds).Draw(t, "mean"), rapid.Float64Range(minVariance, maxVariance).Draw(t, "variance")}
		err := rapid.Bool().Draw(t, "err")
		post, z := r.match(g, err)
		require.True(t, post.proper(maxLogOdds), "%v", post)
		require.LessOrEqual(t, post.variance, g.variance)
		require.True(t, z > 0 && z <= 1+1e-3, "evidence %v", z)
		if err {
			require.GreaterOrEqual(t, post.mean, g.mean)
		} else {
			require.LessOrEqual(t, post.mean, g.mean)
		}
	})
}

func TestExp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.OneOf(rapid.Float64Range(-5, 5), rapid.Float64Range(-708, 709)).Draw(t, "x")
		require.InEpsilon(t, math.Exp(x), exp(x), 4e-16, "%v", x)
	})
	for _, x := range []float64{0, 1, -1, 700, -700, 1e-300, math.Ln2 / 128, -math.Ln2 / 128} {
		require.InEpsilon(t, math.Exp(x), exp(x), 4e-16, "%v", x)
	}
	require.Equal(t, 1., exp(0))
	require.True(t, math.IsNaN(exp(math.NaN())))
	require.Zero(t, exp(-800))
	require.Zero(t, exp(math.Inf(-1)))
	require.True(t, math.IsInf(exp(math.Inf(1)), 1))
}

func TestStudentQuantile(t *testing.T) {
	for nu := 1.0; nu < 1e5; nu *= 1.07 {
		want := distuv.StudentsT{Sigma: 1, Nu: nu}.Quantile(0.95)
		assert.InDelta(t, want, student95(nu), max(1e-4, .03/(nu*nu)), "nu %v", nu)
	}
	assert.InDelta(t, 1.6991, student95(29), 1e-4, "printed tables")
}

func TestTreapAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tab table
		ref := map[string]uint64{}
		name := rapid.StringMatching(`[a-f]{1,2}`)
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			n, old := name.Draw(t, "name"), tab
			had := len(old.names())
			if rapid.IntRange(0, 3).Draw(t, "op") == 0 {
				tab = tab.without(n)
				delete(ref, n)
			} else {
				tab = tab.with(&state{name: n, record: record{n: uint64(i)}})
				ref[n] = uint64(i)
			}
			require.Len(t, old.names(), had, "the old table stays as it was")
		}
		names := tab.names()
		require.IsNonDecreasing(t, names)
		require.Len(t, names, len(ref))
		for n, v := range ref {
			s, ok := tab.get(n)
			require.True(t, ok)
			require.Equal(t, v, s.n)
		}
	})
}
