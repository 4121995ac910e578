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
			when, r.P, r.Lo, r.Hi, r.Score, r.Effective(charge.Risk, 0), t.Score)
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

// Why an action that never ran is riskier than it was declared: its agent fails at what has the same tag.
func ExampleModel_Explain() {
	model, err := risk.New(risk.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	belief := model.Prior()
	for i := range 30 {
		name, tag := "read-page", "read"
		if i%3 == 0 {
			name, tag = "write-page", "write"
		}
		done := risk.Declaration{Name: name, Risk: 2, Tags: []string{tag}}
		belief, _, _ = model.Update(belief, done, risk.Observation{Err: tag == "write" && i > 12})
	}
	why, err := model.Explain(belief, risk.Declaration{Name: "write-comment", Risk: 2, Tags: []string{"write"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(why)
	// Output:
	// write-comment: probability of Err 0.067, 90 % within 0.000 to 0.408, after 0 executions with 0 Err
	//   declared                  -4.94   level 2 stands for 0.047
	//   agent                     +0.21   ± 0.56, shared
	//   level means more          +0.19   ± 0.49, shared
	//   write                     +0.04   ± 0.19, shared
	//   action                    +0.00   ± 2.25, its own
	//   together                  -4.49   ± 2.50 in log-odds
	//   uncertainty               +1.85   0.011 → 0.067: a rate that is not known well may be high
}

// A tracker follows one agent in place.
func ExampleTracker() {
	model, err := risk.New(risk.Single())
	if err != nil {
		fmt.Println(err)
		return
	}
	agent, err := model.Track(model.Prior())
	if err != nil {
		fmt.Println(err)
		return
	}
	deploy := risk.Declaration{Name: "deploy", Risk: 4}
	for i := range 100 {
		if _, err := agent.Observe(deploy, risk.Observation{Err: i%25 == 24}); err != nil {
			fmt.Println(err)
			return
		}
	}
	e := agent.Risk(deploy)
	fmt.Printf("p %.2f [%.2f, %.2f], %d Err in %d, trust %.2f\n", e.P, e.Lo, e.Hi, e.Errs, e.N, agent.Trust().Score)
	// Output:
	// p 0.04 [0.01, 0.08], 4 Err in 100, trust 0.85
}
