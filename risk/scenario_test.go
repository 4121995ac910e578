//go:build heavy

package risk

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The filter on streams whose failure rate is known at every step, beside an exact Bayes filter on a grid that knows the
// dynamics and the constants of the stream, but not the moment of a jump. The gap is the expected log loss over that
// filter's, minus one.

const (
	horizon = 1000
	seeds   = 240
	jumpAt  = 200
)

type scenario struct {
	name     string
	declared int
	path     func(r *rand.Rand) []float64 // the failure rate at every step
	grid     func() *exact
	gap, ece float64 // the most that is allowed
	cover    float64 // the least of the 90 % interval
}

func constant(p float64) func(*rand.Rand) []float64 {
	return func(*rand.Rand) []float64 { return slices.Repeat([]float64{p}, horizon) }
}

func jump(from, to float64) func(*rand.Rand) []float64 {
	return func(*rand.Rand) []float64 {
		return append(slices.Repeat([]float64{from}, jumpAt), slices.Repeat([]float64{to}, horizon-jumpAt)...)
	}
}

func slow(r *rand.Rand) []float64 {
	x, out := -3+.7*r.NormFloat64(), make([]float64, horizon)
	for i := range out {
		out[i] = sigma(clamp(x, -7, 3))
		x += .05 * r.NormFloat64()
	}
	return out
}

func ramp(*rand.Rand) []float64 {
	out := make([]float64, horizon)
	for i := range out {
		out[i] = sigma(-4 + 3.5*clamp(float64(i-200)/600, 0, 1))
	}
	return out
}

func bursty(r *rand.Rand) []float64 {
	out, burst := make([]float64, horizon), false
	for i := range out {
		if burst {
			burst = r.Float64() >= 1./25
		} else {
			burst = r.Float64() < 1./150
		}
		out[i] = .02
		if burst {
			out[i] = .6
		}
	}
	return out
}

// exact is a Bayes filter on a grid of log-odds.
type exact struct {
	p, w []float64
	move [][]float64 // by source; nil where nothing moves
	band int
}

func still(declared float64) func() *exact { return around(declared-5, 1.5, 0, 0) }

// around has a Gaussian prior and, where sd is positive, a Gaussian walk.
func around(mean, prior, drift, sd float64) func() *exact {
	return func() *exact {
		e := &exact{band: 12}
		var x []float64
		for v := -9.; v <= 5.0001; v += .05 {
			x = append(x, v)
			e.p = append(e.p, sigma(v))
			e.w = append(e.w, math.Exp(-.5*(v-mean)*(v-mean)/prior/prior))
		}
		normalise(e.w)
		if sd > 0 {
			for i := range x {
				row := make([]float64, len(x))
				for j := range x {
					z := (x[j] - x[i] - drift) / sd
					row[j] = math.Exp(-.5 * z * z)
				}
				normalise(row)
				e.move = append(e.move, row)
			}
		}
		return e
	}
}

func states(a, b, forth, back float64) func() *exact {
	return func() *exact {
		return &exact{p: []float64{a, b}, w: []float64{1, 0}, band: 1, move: [][]float64{{1 - forth, forth}, {back, 1 - back}}}
	}
}

func normalise(w []float64) {
	var s float64
	for _, v := range w {
		s += v
	}
	for i := range w {
		w[i] /= s
	}
}

func (e *exact) predict(first bool) (p float64) {
	if e.move != nil && !first {
		next := make([]float64, len(e.w))
		for i, w := range e.w {
			if w > 1e-14 {
				for j := max(0, i-e.band); j < min(len(next), i+e.band+1); j++ {
					next[j] += w * e.move[i][j]
				}
			}
		}
		e.w = next
	}
	for i, w := range e.w {
		p += w * e.p[i]
	}
	return p
}

func (e *exact) observe(err bool) {
	for i, p := range e.p {
		if err {
			e.w[i] *= p
		} else {
			e.w[i] *= 1 - p
		}
	}
	normalise(e.w)
}

var scenarios = []scenario{
	{"stationary .01", 1, constant(.01), still(1), .025, .006, .85},
	{"stationary .05", 1, constant(.05), still(1), .02, .018, .85},
	{"stationary .20", 3, constant(.20), still(3), .015, .025, .85},
	{"stationary .35", 2, constant(.35), still(2), .015, .025, .85},
	{"step", 1, jump(.02, .4), states(.02, .4, 1./400, 0), .023, .017, .88},
	{"slow", 2, slow, around(-3, .7, 0, .05), .015, .008, .78},
	{"ramp", 1, ramp, around(-4, .3, .0035, .05), .025, .026, .72},
	{"bursty", 1, bursty, states(.02, .6, 1./150, 1./25), .15, .023, .78},
	{"sleeper", 1, jump(.002, .8), states(.002, .8, 1./400, 0), .035, .032, .90},
	{"rare", 1, constant(.002), still(1), .01, .003, .80},
	{"recovery", 1, jump(.4, .02), states(.4, .02, 1./400, 0), .045, .015, .80},
}

// loss is the expected log loss of predicting q where the rate is p.
func loss(p, q float64) float64 {
	q = clamp(q, 1e-6, 1-1e-6)
	return -p*math.Log(q) - (1-p)*math.Log1p(-q)
}

// regret per thousand of gating at p = 1/11, where a needless gate costs 1 and a missed failure 10.
func regret(p, q float64) float64 {
	c := 10 * p
	if q > 1./11 {
		c = 1 - p
	}
	return 1000 * (c - min(1-p, 10*p))
}

// edges of the bins of the calibration error: thirteen between 10^−3.5 and one half, then tenths.
var edges = func() (e []float64) {
	for i := range 14 {
		e = append(e, math.Pow(10, -3.5+(math.Log10(.5)+3.5)*float64(i)/13))
	}
	return append(e, .6, .7, .8, .9)
}()

type tally struct {
	own, best, regret, covered, gated float64
	bins                              map[int][3]float64
	delays                            []int
	regrets                           []float64
}

func (t *tally) run(m *Model, s scenario, seed uint64) {
	r := rand.New(rand.NewPCG(seed, uint64(len(s.name))*7919+uint64(s.name[0])))
	b, _ := m.Track(m.Prior())
	d, e := Declaration{Name: "a", Risk: s.declared}, s.grid()
	delay, reg := horizon-jumpAt, 0.0
	for i, p := range s.path(r) {
		y := r.Float64() < p
		q := b.Risk(d)
		t.own += loss(p, q.P)
		t.best += loss(p, e.predict(i == 0))
		reg += regret(p, q.P) / horizon
		if q.Lo <= p && p <= q.Hi {
			t.covered++
		}
		if q.P >= .2 {
			t.gated++
			if i >= jumpAt {
				delay = min(delay, i-jumpAt)
			}
		}
		k, _ := slices.BinarySearch(edges, q.P)
		v := t.bins[k]
		t.bins[k] = [3]float64{v[0] + 1, v[1] + q.P, v[2] + p}
		e.observe(y)
		_, _ = b.Observe(d, Observation{Err: y})
	}
	t.delays, t.regrets, t.regret = append(t.delays, delay), append(t.regrets, reg), t.regret+reg
}

func (t *tally) ece() (sum float64) {
	for _, v := range t.bins {
		sum += math.Abs(v[1]-v[2]) / (horizon * seeds)
	}
	return sum
}

func TestScenariosOfOneAction(t *testing.T) { testScenarios(t, Single(), scenarios) }

// The bank, which does not know that the agent has one action only, reaches what a filter made for that reaches, but for
// the calibration of bursts.
func TestScenariosWithTheBank(t *testing.T) {
	list := slices.Clone(scenarios)
	for i := range list {
		if list[i].name == "bursty" {
			list[i].ece = .025
		}
	}
	testScenarios(t, Config{}, list)
}

func testScenarios(t *testing.T, c Config, scenarios []scenario) {
	m, err := New(c)
	require.NoError(t, err)
	var gaps, regrets float64
	for _, s := range scenarios {
		sum := tally{bins: map[int][3]float64{}}
		for seed := range uint64(seeds) {
			sum.run(m, s, seed)
		}
		gap := sum.own/sum.best - 1
		gaps, regrets = gaps+gap, regrets+sum.regret/seeds
		cover, gated := sum.covered/(horizon*seeds), sum.gated/(horizon*seeds)
		slices.Sort(sum.delays)
		slices.Sort(sum.regrets)
		t.Logf("%-15s gap %5.2f %%  ECE %5.2f %%  cover %.3f  gated %.4f  regret %5.1f, median %5.1f  delay %d, %d", s.name, 100*gap, 100*sum.ece(),
			cover, gated, sum.regret/seeds, sum.regrets[seeds/2], sum.delays[(seeds-1)/2], sum.delays[(seeds-1)*9/10])
		assert.LessOrEqual(t, gap, s.gap, "%s: gap", s.name)
		assert.LessOrEqual(t, sum.ece(), s.ece, "%s: calibration error", s.name)
		assert.GreaterOrEqual(t, cover, s.cover, "%s: coverage", s.name)
		switch s.name {
		case "step":
			assert.LessOrEqual(t, sum.delays[(seeds-1)/2], 8)
			assert.LessOrEqual(t, sum.delays[(seeds-1)*9/10], 16)
		case "sleeper":
			assert.LessOrEqual(t, sum.delays[(seeds-1)/2], 3)
			assert.LessOrEqual(t, sum.delays[(seeds-1)*9/10], 5)
		case "bursty":
			assert.LessOrEqual(t, sum.regrets[seeds/2], 200.)
		case "stationary .01":
			assert.LessOrEqual(t, gated, .0005)
		case "stationary .05":
			assert.LessOrEqual(t, gated, .0025)
		}
	}
	n := float64(len(scenarios))
	t.Logf("mean gap %.2f %%, mean regret %.1f per thousand", 100*gaps/n, regrets/n)
	assert.LessOrEqual(t, gaps/n, .025)
	assert.LessOrEqual(t, regrets/n, 33.)
}
