package risk_test

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

// An action declared harmless starts to fail: its risk crosses the threshold of a gate, and its agent loses trust.
func Example() {
	model, err := risk.New(risk.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	charge := risk.Declaration{Name: "charge", Risk: 2, Estimate: action.Cost{Tokens: 500}}
	belief := model.Prior()
	show := func(when string) {
		r, t := model.Risk(belief, charge), model.Trust(belief)
		fmt.Printf("%-12s p %.3f [%.3f, %.3f] score %.2f, effective %.2f, trust %.3f\n",
			when, r.P, r.Lo, r.Hi, r.Score, risk.Effective(charge.Risk, r.Score, 0), t.Score)
	}
	show("declared")
	for range 20 {
		belief, _, _ = model.Update(belief, charge, risk.Observation{Cost: action.Cost{Tokens: 450}})
	}
	show("after 20 Ok")
	for range 3 {
		var in risk.Innovation
		belief, in, _ = model.Update(belief, charge, risk.Observation{Err: true, Cost: action.Cost{Tokens: 450}})
		fmt.Printf("Err: surprise %.2f nats, %.1f bits, change %q\n", in.Surprise, in.Bits, in.Change)
	}
	show("after 3 Err")
	f := model.Forecast(belief, charge).On(action.Tokens)
	fmt.Printf("95 of 100 calls use at most %d tokens (%d seen)\n", f.P95, f.N)
	// Output:
	// declared     p 0.047 [0.001, 0.262] score 2.00, effective 2.00, trust 0.385
	// after 20 Ok  p 0.013 [0.000, 0.063] score 1.00, effective 2.00, trust 0.903
	// Err: surprise 0.67 nats, 6.3 bits, change ""
	// Err: surprise 0.52 nats, 4.4 bits, change ""
	// Err: surprise 2.10 nats, 3.0 bits, change "worse"
	// after 3 Err  p 0.481 [0.060, 0.927] score 4.92, effective 4.92, trust 0.395
	// 95 of 100 calls use at most 1026 tokens (23 seen)
}
