package riskbench

import (
	"fmt"
	"math"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

// product is the estimator of package risk with its defaults, one tracker per agent. Streams are made by this package and
// recorded names are replaced, so what the tracker refuses is a mistake made here.
type product struct{ agents map[string]*risk.Tracker }

func newProduct() Estimator { return &product{agents: map[string]*risk.Tracker{}} }

var model = func() *risk.Model {
	m, err := risk.New(risk.Config{})
	if err != nil {
		panic(err) // the defaults are valid
	}
	return m
}()

func track() *risk.Tracker {
	t, err := model.Track(model.Prior())
	if err != nil {
		panic(err) // the prior is the model's own
	}
	return t
}

func (f *product) of(a Action) *risk.Tracker {
	t, ok := f.agents[a.Agent]
	if !ok {
		t = track()
		f.agents[a.Agent] = t
	}
	return t
}

func declaration(a Action) risk.Declaration {
	return risk.Declaration{Name: a.Name, Risk: a.Declared, Tags: a.Tags}
}

// Predict returns the published estimate.
func (f *product) Predict(a Action) (p, lo, hi float64) {
	e := f.of(a).Risk(declaration(a))
	return e.P, e.Lo, e.Hi
}

// Observe folds the outcome into what is known of the agent.
func (f *product) Observe(a Action, err bool) {
	if _, e := f.of(a).Observe(declaration(a), risk.Observation{Err: err}); e != nil {
		panic(fmt.Sprintf("riskbench: %v", e))
	}
}

// productCost is the product's forecast of a cost. Amounts are whole numbers: a millionth of a unit is fine enough.
type productCost struct{ t *risk.Tracker }

const costScale = 1e6

var costly = risk.Declaration{Name: "action", Risk: 2, Estimate: action.Cost{Tokens: 100 * costScale}}

func (f *productCost) forecast() float64 {
	return math.Log(float64(f.t.Forecast(costly).On(action.Tokens).P95) / costScale)
}

func (f *productCost) observe(x float64) {
	o := risk.Observation{Cost: action.Cost{Tokens: int64(math.Round(math.Exp(x) * costScale))}}
	if _, err := f.t.Observe(costly, o); err != nil {
		panic("riskbench: " + err.Error())
	}
}
