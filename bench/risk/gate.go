package riskbench

import (
	"context"
	"fmt"
	"math"

	"github.com/seed-ab2cfece/delta-agents/risk"
)

// Prices says what a person's attention and a failure cost, in any unit.
type Prices struct {
	Ask float64 // one approval asked for
	Err float64 // one Err that nobody was asked about
}

// maxPrice keeps what a recording costs a finite number.
const maxPrice = 1e12

// Check reports a price out of range.
func (p Prices) Check() error {
	for _, x := range []struct {
		name string
		v    float64
	}{{"ask", p.Ask}, {"err", p.Err}} {
		if !(x.v >= 0 && x.v <= maxPrice) {
			return fmt.Errorf("the cost of an %s is %v, want 0 or more, at most %g", x.name, x.v, maxPrice)
		}
	}
	return nil
}

// GatePoint is what a threshold would have done with a recording.
type GatePoint struct {
	Threshold float64 `json:"threshold"`       // effective risk from which a person is asked; 0 with Never
	Never     bool    `json:"never,omitempty"` // nobody is ever asked
	P         float64 `json:"p"`               // the probability of Err that the threshold stands for; 1 with Never
	Asked     int     `json:"asked"`
	Caught    int     `json:"caught"`      // Errs among them
	Missed    int     `json:"let_through"` // Errs that nobody was asked about
	Cost      float64 `json:"cost"`
}

// GateReport is every threshold from 1 to 5 in steps of a twentieth, and none at all.
type GateReport struct {
	Data     string      `json:"data"`
	Rows     int         `json:"rows"`
	Errs     int         `json:"errs"`
	AskCost  float64     `json:"ask_cost"`
	ErrCost  float64     `json:"err_cost"`
	Cheapest GatePoint   `json:"cheapest"` // of equal ones that which asks least
	Points   []GatePoint `json:"points"`
}

const gateStep = 20 // thresholds per level

// Gate predicts every call of a recording with the product's estimator and finds what each threshold on its effective risk
// would have asked and let through. It assumes that whoever is asked about a call that will fail stops it, and that the
// outcome of every call is learned.
func Gate(ctx context.Context, data string, s Stream, prices Prices) (GateReport, error) {
	if err := prices.Check(); err != nil {
		return GateReport{}, err
	}
	out := GateReport{Data: data, Rows: len(s.Steps), AskCost: prices.Ask, ErrCost: prices.Err}
	// By the last threshold that still asks: asked[i] for thresholds up to 1+i/gateStep.
	var asked, caught [4*gateStep + 1]int
	e := &product{agents: map[string]*risk.Tracker{}}
	for _, x := range s.Steps {
		if ctx.Err() != nil {
			return GateReport{}, context.Cause(ctx)
		}
		a := s.Actions[x.Action]
		r := e.of(a).Risk(declaration(a)).Effective(a.Declared, 0)
		i := int(math.Floor((r-1)*gateStep + 1e-9))
		asked[i]++
		if x.Err {
			out.Errs++
			caught[i]++
		}
		e.Observe(a, x.Err)
	}
	for i := len(asked) - 2; i >= 0; i-- {
		asked[i] += asked[i+1]
		caught[i] += caught[i+1]
	}
	for i := range asked {
		t := 1 + float64(i)/gateStep
		out.Points = append(out.Points, GatePoint{Threshold: t, P: sigma(t - 5), Asked: asked[i], Caught: caught[i]})
	}
	out.Points = append(out.Points, GatePoint{Never: true, P: 1})
	for i := range out.Points {
		g := &out.Points[i]
		g.Missed = out.Errs - g.Caught
		g.Cost = prices.Ask*float64(g.Asked) + prices.Err*float64(g.Missed)
		if i == 0 || g.Cost <= out.Cheapest.Cost {
			out.Cheapest = *g
		}
	}
	return out, nil
}
