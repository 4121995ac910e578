package riskbench

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Action is what an estimator may know of an action before it runs.
type Action struct {
	ID       int    // dense from 0 within its stream
	Agent    string // who runs it
	Name     string // unique per agent
	Declared int    // level of risk, 1 to 5
	Tags     []string
	Runs     int // executions in the whole stream: the budget that the reference rule measures progress by; others must not look
}

// Prior is the probability of Err that the declared level stands for, sigma(d−5).
func (a Action) Prior() float64 { return sigma(float64(a.Declared) - 5) }

// Step is one execution: which action, its true rate of Err (NaN where unknown), and how it ended.
type Step struct {
	Action int
	P      float64
	Err    bool
	Run    int // of a recording: which run, dense from 0
}

// Stream is a sequence of executions.
type Stream struct {
	Actions []Action
	Steps   []Step
}

// random returns the generator of a named stream: seeds of different names have nothing in common.
func random(name string, seed uint64) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// count fills in how often each action runs.
func (s *Stream) count() {
	for i := range s.Actions {
		s.Actions[i].Runs = 0
	}
	for _, x := range s.Steps {
		s.Actions[x.Action].Runs++
	}
}

func sigma(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

func clamp(x, lo, hi float64) float64 { return math.Min(math.Max(x, lo), hi) }
