package riskbench

import (
	"context"
	"math"
	"slices"
)

const (
	costSteps  = 500
	costSpread = .6 // standard deviation of a log cost about its level
	costWarm   = 20 // forecasts that are not judged
)

// CostScenario is a stream of costs of one action, declared to cost 100, with the true 0.95 quantile of each.
type CostScenario struct {
	Name string
	What string
	walk float64 // of the level, per execution
	jump float64 // of the level half-way
	tail bool    // three in a hundred cost eight times as much
}

// Costs are the streams of costs that are judged.
func Costs() []CostScenario { return slices.Clone(costs) }

var costs = []CostScenario{
	{"cost-drift", "the level drifts", .05, 0, false},
	{"cost-jump", "the level jumps by a factor of 3.3 half-way", .01, 1.2, false},
	{"cost-stationary", "the level stays", 0, 0, false},
	{"cost-heavy", "three in a hundred cost eight times as much", .03, 0, true},
}

// Stream returns log costs and the true 0.95 quantile of each.
func (c CostScenario) Stream(seed uint64) (x, q []float64) {
	r := random(c.Name, seed)
	mu := math.Log(100) + .5*r.NormFloat64()
	above := c.above()
	for i := range costSteps {
		mu += c.walk * r.NormFloat64()
		if i == costSteps/2 {
			mu += c.jump
		}
		v := mu + costSpread*r.NormFloat64()
		if c.tail && r.Float64() < .03 {
			v += math.Log(8)
		}
		x, q = append(x, v), append(q, mu+above)
	}
	return x, q
}

// above is the 0.95 quantile over the level; that of the mixture by search.
func (c CostScenario) above() float64 {
	if !c.tail {
		return 1.6449 * costSpread
	}
	for z := 0.; ; z += 1e-3 {
		if .97*normal(z/costSpread)+.03*normal((z-math.Log(8))/costSpread) >= .95 {
			return z
		}
	}
}

func normal(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// pinball is the loss whose expectation the 0.95 quantile minimises.
func pinball(x, q float64) float64 { return math.Max(.95*(x-q), .05*(q-x)) }

// CostResult is how forecasts of the 0.95 quantile did on one scenario.
type CostResult struct {
	Scenario string      `json:"scenario"`
	Scores   []CostScore `json:"estimators"`
}

// CostScore is how one did: the pinball loss of the log cost over that of the true quantile, minus one, and the share of
// costs at or below the forecast, both without the first twenty.
type CostScore struct {
	Name  string  `json:"name"`
	Gap   float64 `json:"gap"`
	Cover float64 `json:"cover"`
	P5    float64 `json:"cover_p5"` // the share that 19 streams of 20 exceed
	// SE holds the standard errors of gap and cover over the seeds; nil of fewer than twenty seeds.
	SE map[string]float64 `json:"se,omitempty"`
}

// quantiler forecasts the 0.95 quantile of the next log cost.
type quantiler interface {
	forecast() float64
	observe(x float64)
}

var costKinds = []struct {
	name string
	new  func() quantiler
}{
	{Delta, func() quantiler { return &productCost{track()} }},
	{"declared", func() quantiler { return fixed(math.Log(250)) }},
	{"ewma", func() quantiler { return &emaCost{rate: tunedCost.rate, width: tunedCost.width, m: 100, v: 4000} }},
	{"window", func() quantiler { return &windowCost{size: tunedCost.size} }},
}

// tunedCost are the settings of the cost baselines, the best of a search on other seeds.
var tunedCost = struct {
	rate, width float64
	size        int
}{.05, 2, 60}

// fixed is the declared cost times 2.5.
type fixed float64

func (f fixed) forecast() float64 { return float64(f) }
func (f fixed) observe(float64)   {}

// emaCost is an exponential mean of the cost and so many of its standard deviations.
type emaCost struct{ rate, width, m, v float64 }

func (f *emaCost) forecast() float64 { return math.Log(f.m + f.width*math.Sqrt(f.v)) }

func (f *emaCost) observe(x float64) {
	d := math.Exp(x) - f.m
	f.m += f.rate * d
	f.v = (1 - f.rate) * (f.v + f.rate*d*d)
}

// windowCost is the quantile of the last costs, from the fifteenth on.
type windowCost struct {
	size int
	last []float64
}

func (f *windowCost) forecast() float64 {
	if len(f.last) < 15 {
		return math.Log(250)
	}
	s := sorted(f.last)
	return s[min(len(s)-1, int(math.Ceil(.95*float64(len(s)+1)))-1)]
}

func (f *windowCost) observe(x float64) {
	f.last = append(f.last, x)
	if len(f.last) > f.size {
		f.last = f.last[1:]
	}
}

func (r *runner) cost(ctx context.Context, c CostScenario) (CostResult, error) {
	type sums struct{ own, best, covered []float64 }
	all := make([]sums, len(costKinds))
	for k := range all {
		all[k] = sums{make([]float64, r.Seeds), make([]float64, r.Seeds), make([]float64, r.Seeds)}
	}
	err := r.each(ctx, c.Name, func(i int) {
		x, q := c.Stream(r.FirstSeed + uint64(i))
		for k, kind := range costKinds {
			all[k].own[i], all[k].best[i], all[k].covered[i] = walkCost(kind.new(), x, q)
		}
	})
	out := CostResult{Scenario: c.Name}
	for k, kind := range costKinds {
		s := all[k]
		out.Scores = append(out.Scores, costScore(kind.name, s.own, s.best, s.covered))
	}
	return out, err
}

func costScore(name string, own, best, covered []float64) CostScore {
	s := CostScore{Name: name, Gap: mean(own)/mean(best) - 1, Cover: mean(covered), P5: quantile(sorted(covered), .05)}
	if len(own) < 2*blocks {
		return s
	}
	var gaps, covers []float64
	for i := range blocks {
		lo, hi := i*len(own)/blocks, (i+1)*len(own)/blocks
		gaps = append(gaps, mean(own[lo:hi])/mean(best[lo:hi])-1)
		covers = append(covers, mean(covered[lo:hi]))
	}
	s.SE = map[string]float64{"gap": standardError(gaps), "cover": standardError(covers)}
	return s
}

func walkCost(f quantiler, x, q []float64) (own, best, covered float64) {
	n := float64(len(x) - costWarm)
	for i, v := range x {
		if p := f.forecast(); i >= costWarm {
			own, best = own+pinball(v, p)/n, best+pinball(v, q[i])/n
			if v <= p {
				covered += 1 / n
			}
		}
		f.observe(v)
	}
	return own, best, covered
}
