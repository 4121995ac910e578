package riskbench

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// z90 is the half-width of the central 90 % of a standard normal.
const z90 = 1.645

// tuned are the settings of the baselines, one for everything: the best of the random search of TestTrain over the eleven
// scenarios, on seeds that judge nothing.
var tuned = struct {
	ewma   ewmaRule
	window windowRule
	beta   betaRule
	linear linearRule
	ekf    ekfRule
}{
	ewma:   ewmaRule{rate: .028, edge: .004},
	window: windowRule{size: 63, weight: 10},
	beta:   betaRule{keep: .97, weight: 3.3},
	linear: linearRule{drift: 1.9e-5, noise: .033, start0: .004},
	ekf:    ekfRule{drift: .0022, start0: 2.8, pull: 1},
}

// declared believes what it was told.
type declared float64

func newDeclared(a Action) filter { return declared(a.Prior()) }

func (d declared) predict() (p, lo, hi float64) { return float64(d), float64(d), float64(d) }
func (d declared) observe(float64)              {}

// reference is the rule of the TypeScript implementation of the same idea. A score follows .3·friction + .4·surprise +
// .3·failure with α = .3 and never falls below declared/5. Friction is the share of the budget used over the share of work
// done, a tenth of it at most 1; surprise is how far efficiency is from a scalar Kalman estimate of it. Every execution
// costs one unit of a budget of 1.25 units per execution.
type reference struct {
	floor, score       float64
	efficiency, spread float64
	runs, done, budget float64
}

func newReference(a Action) filter {
	floor := float64(a.Declared) / 5
	return &reference{floor: floor, score: floor, efficiency: 1 - .3*floor, spread: .5, budget: 1.25 * float64(a.Runs)}
}

func (r *reference) predict() (p, lo, hi float64) {
	return r.score, r.score, math.Min(1, 1.15*r.score)
}

func (r *reference) observe(y float64) {
	r.runs++
	r.done += 1 - y
	progress, used := r.done/r.runs, r.runs/r.budget
	friction, seen := 10., 0.
	if progress > 0 {
		friction, seen = math.Min(10, used/progress), math.Min(1, progress/used)
	}
	surprise := math.Min(1, math.Abs(r.efficiency-seen)/(math.Abs(r.efficiency)+.001))
	prior := r.spread + .01
	gain := prior / (prior + .1)
	r.efficiency = clamp(r.efficiency+gain*(seen-r.efficiency), 0, 1)
	r.spread = math.Max(0, (1-gain)*prior)
	r.score = math.Max(r.floor, math.Min(1, .7*r.score+.3*(.3*friction/10+.4*surprise+.3*y)))
}

// ewmaRule moves by a fixed share towards every outcome; what it states is kept off 0 and 1 by an edge.
type ewmaRule struct{ rate, edge float64 }

type ewma struct {
	ewmaRule
	x float64
}

func (r ewmaRule) start(a Action) filter { return &ewma{r, a.Prior()} }

func (f *ewma) predict() (p, lo, hi float64) {
	p = clamp(f.x, f.edge, 1-f.edge)
	w := z90 * math.Sqrt(p*(1-p)*f.rate/(2-f.rate))
	return p, math.Max(0, p-w), math.Min(1, p+w)
}

func (f *ewma) observe(y float64) { f.x += f.rate * (y - f.x) }

// windowRule is a Beta prior of that weight and the last outcomes.
type windowRule struct {
	size   int
	weight float64
	bare   bool // no interval: most of the time goes into it
}

type window struct {
	windowRule
	prior float64
	last  []float64 // a ring once it is full
	at    int
	errs  float64
	span  betaSpan
}

func (r windowRule) start(a Action) filter { return &window{windowRule: r, prior: a.Prior()} }

func (f *window) predict() (p, lo, hi float64) {
	return f.span.of(f.weight*f.prior+f.errs, f.weight*(1-f.prior)+float64(len(f.last))-f.errs, f.bare)
}

func (f *window) observe(y float64) {
	f.errs += y
	if len(f.last) < f.size {
		f.last = append(f.last, y)
		return
	}
	f.errs -= f.last[f.at]
	f.last[f.at] = y
	f.at = (f.at + 1) % f.size
}

// betaRule counts Ok and Err, each old count shrinking by a factor per outcome, on top of a Beta prior that stays.
type betaRule struct {
	keep, weight float64
	bare         bool // no interval
}

type beta struct {
	betaRule
	prior    float64
	errs, ok float64
	span     betaSpan
}

func (r betaRule) start(a Action) filter { return &beta{betaRule: r, prior: a.Prior()} }

func (f *beta) predict() (p, lo, hi float64) {
	return f.span.of(f.errs+f.weight*f.prior, f.ok+f.weight*(1-f.prior), f.bare)
}

func (f *beta) observe(y float64) {
	f.errs = f.keep*f.errs + y
	f.ok = f.keep*f.ok + 1 - y
}

// betaSpan is the central 90 % of the Beta distribution that was asked for last. Distributions change little from one
// outcome to the next, so Newton's method from the last interval saves most of the search.
type betaSpan struct{ a, b, lo, hi float64 }

func (s *betaSpan) of(a, b float64, bare bool) (p, lo, hi float64) {
	if !bare && (s.a != a || s.b != b) {
		norm := mathext.Lbeta(a, b)
		*s = betaSpan{a, b, betaQuantile(a, b, norm, .05, s.lo), betaQuantile(a, b, norm, .95, s.hi)}
	}
	return a / (a + b), s.lo, s.hi
}

// betaQuantile searches from x; norm is the logarithm of the beta function at a and b.
func betaQuantile(a, b, norm, q, x float64) float64 {
	for range 8 {
		if !(x > 1e-6 && x < 1-1e-6) { // the start, or where the density may have a pole
			break
		}
		d := (mathext.RegIncBeta(a, b, x) - q) / math.Exp((a-1)*math.Log(x)+(b-1)*math.Log1p(-x)-norm)
		x -= d
		if math.Abs(d) < 1e-9 {
			return x
		}
	}
	return mathext.InvRegIncBeta(a, b, q)
}

// linearRule is a Kalman filter that takes the outcomes, 0 and 1, for measurements of the rate with Gaussian noise.
type linearRule struct{ drift, noise, start0 float64 }

type linear struct {
	linearRule
	x, v float64
}

func (r linearRule) start(a Action) filter { return &linear{r, a.Prior(), r.start0} }

func (f *linear) predict() (p, lo, hi float64) {
	w := z90 * math.Sqrt(f.v+f.drift)
	return clamp(f.x, .001, .999), math.Max(0, f.x-w), math.Min(1, f.x+w)
}

func (f *linear) observe(y float64) {
	f.v += f.drift
	gain := f.v / (f.v + f.noise)
	f.x += gain * (y - f.x)
	f.v *= 1 - gain
}

// ekfRule is an extended Kalman filter in log-odds, pulled towards the declaration where pull is below 1. It states the
// mean by the probit approximation.
type ekfRule struct{ drift, start0, pull float64 }

type ekf struct {
	ekfRule
	base, m, v float64
}

func (r ekfRule) start(a Action) filter {
	base := float64(a.Declared) - 5
	return &ekf{r, base, base, r.start0}
}

func (f *ekf) aged() (m, v float64) { return f.base + f.pull*(f.m-f.base), f.pull*f.pull*f.v + f.drift }

func (f *ekf) predict() (p, lo, hi float64) {
	m, v := f.aged()
	w := z90 * math.Sqrt(v)
	return sigma(m / math.Sqrt(1+math.Pi/8*v)), sigma(m - w), sigma(m + w)
}

func (f *ekf) observe(y float64) {
	m, v := f.aged()
	p := sigma(m)
	r := p * (1 - p)
	f.m, f.v = m+v*(y-p)/(1+v*r), v/(1+v*r)
}
