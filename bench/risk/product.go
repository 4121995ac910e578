package riskbench

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/risk"
)

// product is the estimator of package risk, one belief per agent. It has to be told nothing that cannot be observed, and
// the recorded streams are long: an observation it refuses is a mistake of this package.
type product struct {
	model   *risk.Model
	beliefs map[string]risk.Belief
}

func newProduct() Estimator {
	return &product{model: model, beliefs: map[string]risk.Belief{}}
}

var model = func() *risk.Model {
	m, err := risk.New(risk.Config{})
	if err != nil {
		panic(err) // the defaults are valid
	}
	return m
}()

func (f *product) belief(a Action) risk.Belief {
	b, ok := f.beliefs[a.Agent]
	if !ok {
		b = f.model.Prior()
		f.beliefs[a.Agent] = b
	}
	return b
}

func declaration(a Action) risk.Declaration {
	return risk.Declaration{Name: a.Name, Risk: a.Declared, Tags: a.Tags}
}

// Predict returns the published estimate.
func (f *product) Predict(a Action) (p, lo, hi float64) {
	e := f.model.Risk(f.belief(a), declaration(a))
	return e.P, e.Lo, e.Hi
}

// Observe folds the outcome into the agent's belief.
func (f *product) Observe(a Action, err bool) {
	next, _, e := f.model.Update(f.belief(a), declaration(a), risk.Observation{Err: err})
	if e != nil {
		panic(fmt.Sprintf("riskbench: %v", e)) // names are checked where streams are made
	}
	f.beliefs[a.Agent] = next
}
