package risk

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/seed-ab2cfece/delta-agents/action"
)

const (
	minNoise = 1e-8 // floor of the observation variance, so that an action of constant cost keeps a proper belief
	maxLevel = 40   // log(1+action.MaxAmount) is 36.7
)

// AxisForecast is what a call is expected to use on one axis.
type AxisForecast struct {
	P95   int64 // amount that 95 of 100 calls stay at or below, in the axis' unit
	N     int   // observations behind it; below five the declared estimate is the better guide
	Known bool  // false where there is neither an estimate nor an observation; P95 is 0 then
}

// Forecast is what a call is expected to use.
type Forecast struct {
	Axes     [action.AxisCount]AxisForecast
	Currency string // of the money axis, "" where that is 0
}

// On returns the forecast of one axis, the zero value for an axis that does not exist.
func (f Forecast) On(a action.Axis) AxisForecast {
	if a < action.AxisCount {
		return f.Axes[a]
	}
	return AxisForecast{}
}

// Cost returns the P95 of every axis as one cost, 0 where it is not known.
func (f Forecast) Cost() action.Cost {
	var c action.Cost
	for a := range action.AxisCount {
		c = c.With(a, f.Axes[a].P95)
	}
	if c.Money > 0 {
		c.Currency = f.Currency
	}
	return c
}

// level is a local-level Kalman filter on log(1+amount) whose observation variance is learned (West and Harrison 1997,
// §10.8), with a two-sided CUSUM of its standardised innovations. The zero value has not started: no estimate, and nothing
// but amounts of zero so far.
type level struct {
	mean, variance float64
	weight, sum    float64 // of the inverse gamma: the observation variance is sum/weight, weight its degrees of freedom
	up, down       float64
	n              uint64
}

func (l level) started() bool { return l.weight > 0 }

func (l level) noise() float64 { return math.Max(l.sum/l.weight, minNoise) }

func (l level) proper() bool {
	return l.mean >= 0 && l.mean <= maxLevel && l.variance >= minVariance && l.variance <= maxVariance &&
		l.weight >= 0.5 && l.weight <= 1<<53 && l.sum > 0 && l.sum <= 1e18 &&
		l.up >= 0 && l.up <= maxSum && l.down >= 0 && l.down <= maxSum && l.n <= maxCount
}

// begin starts a level about an amount.
func (c *CostConfig) begin(amount int64, variance float64) level {
	return level{mean: math.Log1p(float64(amount)), variance: variance, weight: c.NoiseWeight, sum: c.Noise * c.NoiseWeight}
}

// observe folds one amount. Where nothing was declared the first amount that is not zero places the level, with the
// variance of one observation about it, and what came before is forgotten.
func (c *CostConfig) observe(l level, estimate, amount int64) level {
	switch {
	case l.started():
	case estimate > 0:
		l = c.begin(estimate, c.LevelVariance)
	case amount > 0:
		l = c.begin(amount, c.Noise)
		l.n = 1
		return l
	default:
		return l
	}
	return c.filter(l, math.Log1p(float64(amount)))
}

// reach bounds a standardised innovation. One amount that is far out, by a slip or a lie, moves level and noise by no more
// than one that is merely rare (Huber 1981; West 1981 for dynamic models). Amounts that stay out there sum up in the
// detector, which by default takes two of them, and the level follows in such steps.
const reach = 4

func (c *CostConfig) filter(l level, x float64) level {
	r := l.noise()
	p := l.variance + c.Drift
	e := x - l.mean
	z := within(e, p+r)
	l.up, l.down = math.Max(0, l.up+z-c.Slack), math.Max(0, l.down-z-c.Slack)
	changed := l.up > c.Threshold || l.down > c.Threshold
	if changed {
		l.up, l.down = 0, 0
		p += c.Inflation
		z = within(e, p+r)
	}
	gain := p / (p + r)
	l.mean = clamp(l.mean+gain*z*math.Sqrt(p+r), 0, maxLevel)
	l.variance = clamp((1-gain)*p, minVariance, maxVariance)
	// An amount that is off because the level is says nothing of the noise.
	if out := math.Abs(z) == reach && p > r/4; !changed && !out {
		l.weight = math.Min(c.Discount*l.weight+1, 1<<53)
		l.sum = clamp(c.Discount*l.sum+r*z*z, minNoise*l.weight, 1e18)
	}
	l.n = min(l.n+1, maxCount)
	return l
}

// within standardises an innovation.
func within(e, variance float64) float64 { return clamp(e/math.Sqrt(variance), -reach, reach) }

// p95 is the 0.95 quantile of the Student-t prediction of the next amount, rounded up.
func (c *CostConfig) p95(l level) int64 {
	scale := math.Sqrt(l.variance + c.Drift + l.noise())
	x := math.Ceil(math.Expm1(l.mean + student95(l.weight)*scale))
	if !(x < float64(action.MaxAmount)) {
		return action.MaxAmount
	}
	return int64(math.Max(0, x))
}

// student95 is the 0.95 quantile of Student's t with nu degrees of freedom, nu ≥ 1/2. It is nearly linear in 1/nu: between
// knots of gonum's, which takes microseconds, a straight line there is exact to 1e-4 from ten degrees of freedom on.
func student95(nu float64) float64 {
	x := 1 / math.Max(nu, 1)
	t := studentKnots()
	at := x * (float64(len(t)) - 1)
	i := min(int(at), len(t)-2)
	return t[i] + (at-float64(i))*(t[i+1]-t[i])
}

// studentKnots are the quantiles at 1/nu = 0, 1/n, 2/n, … 1. Read-only.
var studentKnots = sync.OnceValue(func() []float64 {
	const n = 200
	t := make([]float64, n+1)
	t[0] = distuv.UnitNormal.Quantile(0.95)
	for i := 1; i <= n; i++ {
		t[i] = distuv.StudentsT{Sigma: 1, Nu: float64(n) / float64(i)}.Quantile(0.95)
	}
	return t
})

// Forecast returns what the next call of d is expected to use. Where the declaration and the history are in two
// currencies, the history on money does not count. A declaration that Update would refuse has no forecast.
func (m *Model) Forecast(b Belief, d Declaration) Forecast {
	s, _ := b.actions.get(d.Name)
	return m.forecast(&b.shared, s, d)
}

func (m *Model) forecast(sh *shared, s *state, d Declaration) (f Forecast) {
	if m.admit(sh, d) != nil {
		return f
	}
	f.Currency = s.currencyFor(d.Estimate, action.Cost{})
	costs := s.costsIn(f.Currency)
	for a := range action.AxisCount {
		f.Axes[a] = m.cfg.Cost.forecast(costs[a], d.Estimate.Amount(a), s.n)
	}
	if f.Axes[action.Money].P95 == 0 {
		f.Currency = ""
	}
	return f
}

func (c *CostConfig) forecast(l level, estimate int64, runs uint64) AxisForecast {
	switch {
	case l.started():
		return AxisForecast{P95: c.p95(l), N: int(l.n), Known: true}
	case estimate > 0:
		return AxisForecast{P95: c.p95(c.begin(estimate, c.LevelVariance)), Known: true}
	default: // nothing but zeros, or nothing at all
		return AxisForecast{N: int(runs), Known: runs > 0}
	}
}
