package riskbench

import (
	"math/rand/v2"
	"slices"
)

const (
	horizon = 1000 // executions of a single stream
	jumpAt  = 200  // where a rate that jumps does so
)

// Scenario is a stream of one action, and what an oracle knows of it: its constants and how its rate moves, but not when.
type Scenario struct {
	Name     string
	Declared int
	path     func(*rand.Rand) []float64 // the rate of Err at every step
	oracle   func() *Grid
	jumps    bool // at jumpAt, upward: a delay of detection can be told
}

// Stream makes the stream of a seed.
func (s Scenario) Stream(seed uint64) Stream {
	r := random(s.Name, seed)
	out := Stream{Actions: []Action{{Agent: "agent", Name: "action", Declared: s.Declared}}}
	for _, p := range s.path(r) {
		out.Steps = append(out.Steps, Step{P: p, Err: r.Float64() < p})
	}
	out.count()
	return out
}

// Oracle returns the exact filter that knows the dynamics.
func (s Scenario) Oracle() *Grid { return s.oracle() }

// Scenarios are the eleven streams that are judged, in the order in which they are shown.
func Scenarios() []Scenario { return slices.Clone(scenarios) }

var scenarios = []Scenario{
	{"stationary-01", 1, constant(.01), around(-4, 1.5, 0, 0), false},
	{"stationary-05", 1, constant(.05), around(-4, 1.5, 0, 0), false},
	{"stationary-20", 3, constant(.20), around(-2, 1.5, 0, 0), false},
	{"stationary-35", 2, constant(.35), around(-3, 1.5, 0, 0), false},
	{"step", 1, jump(.02, .4), states(.02, .4, 1./400, 0), true},
	{"slow", 2, slow, around(-3, .7, 0, .05), false},
	{"ramp", 1, ramp, around(-4, .3, .0035, .05), false},
	{"bursty", 1, bursty, states(.02, .6, 1./150, 1./25), false},
	{"sleeper", 1, jump(.002, .8), states(.002, .8, 1./400, 0), true},
	{"rare", 1, constant(.002), around(-4, 1.5, 0, 0), false},
	{"recovery", 1, jump(.4, .02), states(.4, .02, 1./400, 0), false},
}

// quiet is the stream on which thresholds are matched: nothing ever happens to it, so every alarm is false.
var quiet = Scenario{"quiet", 1, constant(.02), around(-4, 1.5, 0, 0), false}

func constant(p float64) func(*rand.Rand) []float64 {
	return func(*rand.Rand) []float64 { return slices.Repeat([]float64{p}, horizon) }
}

func jump(from, to float64) func(*rand.Rand) []float64 {
	return func(*rand.Rand) []float64 {
		return append(slices.Repeat([]float64{from}, jumpAt), slices.Repeat([]float64{to}, horizon-jumpAt)...)
	}
}

// slow is a random walk in log-odds.
func slow(r *rand.Rand) []float64 {
	x, out := -3+.7*r.NormFloat64(), make([]float64, horizon)
	for i := range out {
		out[i] = sigma(clamp(x, -7, 3))
		x += .05 * r.NormFloat64()
	}
	return out
}

// ramp rises in log-odds from -4 to -0.5 between a fifth and four fifths of the way.
func ramp(*rand.Rand) []float64 {
	out := make([]float64, horizon)
	for i := range out {
		out[i] = sigma(-4 + 3.5*clamp(float64(i-200)/600, 0, 1))
	}
	return out
}

// bursty switches between two rates, calm for 150 executions on average and bad for 25.
func bursty(r *rand.Rand) []float64 {
	out, bad := make([]float64, horizon), false
	for i := range out {
		if bad {
			bad = r.Float64() >= 1./25
		} else {
			bad = r.Float64() < 1./150
		}
		out[i] = .02
		if bad {
			out[i] = .6
		}
	}
	return out
}
