package riskbench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	familyActions = 50
	familyTags    = 5
	familyRounds  = 10 // executions of each action; twice as many where something changes half-way
)

// Family is a stream of fifty actions of one agent in random order, ten executions each at a time. Their rates have parts
// in common, by agent and by one of five tags, and declarations are honest with an error of one level.
type Family struct {
	Name   string
	What   string
	rounds int
	agent  float64 // added to the log-odds of every action half-way
	one    float64 // added to those of one action half-way
}

// Families are the streams of related actions that are judged.
func Families() []Family { return slices.Clone(families) }

var families = []Family{
	{"H1", "fifty actions, ten executions each", familyRounds, 0, 0},
	{"H2", "the agent degrades half-way", 2 * familyRounds, 2, 0},
	{"H3", "one action breaks half-way", 2 * familyRounds, 0, 3.5},
}

// Stream makes the stream of a seed.
func (f Family) Stream(seed uint64) Stream {
	r := random(f.Name, seed)
	rates, out := related(r)
	n := f.rounds * familyActions
	broken := r.IntN(familyActions)
	for len(out.Steps) < n {
		for _, a := range r.Perm(familyActions) {
			x := rates[a]
			if len(out.Steps) >= n/2 {
				x += f.agent
				if a == broken {
					x += f.one
				}
			}
			p := sigma(x)
			out.Steps = append(out.Steps, Step{Action: a, P: p, Err: r.Float64() < p})
		}
	}
	out.count()
	return out
}

// related draws the log-odds of the actions, and declares them.
func related(r *rand.Rand) ([]float64, Stream) {
	agent := .8 * r.NormFloat64()
	var tags [familyTags]float64
	for i := range tags {
		tags[i] = .5 * r.NormFloat64()
	}
	var rates []float64
	var s Stream
	for i := range familyActions {
		tag := r.IntN(familyTags)
		x := -2.5 + agent + tags[tag] + .7*r.NormFloat64()
		rates = append(rates, x)
		s.Actions = append(s.Actions, Action{
			ID: i, Agent: "agent", Name: fmt.Sprintf("action-%02d", i), Tags: []string{fmt.Sprintf("tag-%d", tag)},
			Declared: int(clamp(math.RoundToEven(5+x+r.NormFloat64()), 1, 5)),
		})
	}
	return rates, s
}
