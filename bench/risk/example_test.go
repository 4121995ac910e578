package riskbench_test

import (
	"context"
	"fmt"

	riskbench "github.com/seed-ab2cfece/delta-agents/bench/risk"
)

// An action that never fails and one that fails half of the time: which threshold would have been cheapest?
func ExampleGate() {
	var calls []riskbench.Call
	for i := range 100 {
		calls = append(calls,
			riskbench.Call{Agent: "desk", Tool: "look-up"},
			riskbench.Call{Agent: "desk", Tool: "charge", Err: i%2 == 0})
	}
	stream, err := riskbench.Record(calls, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := riskbench.Gate(context.Background(), "example", stream, riskbench.Prices{Ask: 1, Err: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	never := report.Points[len(report.Points)-1]
	fmt.Printf("never asking costs %g, asking always %g\n", never.Cost, report.Points[0].Cost)
	c := report.Cheapest
	fmt.Printf("the cheapest lies above the declared level: %v; it asks about half of the calls: %v; it lets few of %d Errs through: %v\n",
		c.Threshold > 2, c.Asked > 90 && c.Asked < 110, report.Errs, c.Missed < 5)
	// Output:
	// never asking costs 500, asking always 200
	// the cheapest lies above the declared level: true; it asks about half of the calls: true; it lets few of 50 Errs through: true
}

// Estimators see what an action declares, predict, and are told the outcome.
func ExampleEstimators() {
	a := riskbench.Action{Agent: "desk", Name: "charge", Declared: 2, Runs: 3}
	for _, k := range riskbench.Estimators() {
		if k.Name != "declared" && k.Name != "ewma" {
			continue
		}
		e := k.New()
		for range 3 {
			e.Observe(a, true)
		}
		p, _, _ := e.Predict(a)
		fmt.Printf("%s after three Err: %.3f\n", k.Name, p)
	}
	// Output:
	// declared after three Err: 0.047
	// ewma after three Err: 0.125
}
