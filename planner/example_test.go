package planner_test

import (
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/planner"
)

type order struct {
	OrderID string `json:"orderId"`
}

// desk is an agent that may ship an order once it was confirmed and charged.
func desk() *delta.Agent {
	same := func(_ *delta.Context, in order) mo.Result[order] { return mo.Ok(in) }
	confirm := delta.Define("confirm-order", same).Describe("Confirm an order").Risk(2).Cost(action.Cost{Tokens: 300}).MustBuild()
	charge := delta.Define("charge-order", same).Describe("Charge an order").Risk(3).Needs(confirm.On("orderId")).MustBuild()
	ship := delta.Define("ship-order", same).Describe("Ship an order").Risk(2).Needs(charge.On("orderId")).MustBuild()
	poll := delta.Define("ask-opinion", same).Describe("Ask for an opinion").Risk(1).Cost(action.Cost{Tokens: 900}).MustBuild()
	return delta.NewAgent("desk").Grant(poll, confirm, charge, ship).MustBuild()
}

func run(p delta.Planner) {
	engine, err := delta.New(delta.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer engine.Close(ctx)
	task, err := engine.Start(ctx, delta.Goal{Agent: desk(), Text: "ship ORD-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := engine.Run(ctx, task, p).Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range report.Results {
		fmt.Println(r.Call.Action, string(r.Call.Input), r.Outcome.Code)
	}
	fmt.Println(report.Ended, "-", report.Why)
}

// A script may look at what became of its last proposal.
func ExampleScripted() {
	const one, two = `{"orderId":"ORD-1"}`, `{"orderId":"ORD-2"}`
	run(planner.Scripted{
		planner.Propose(planner.Call("charge-order", one)),
		func(r delta.Request) delta.Proposal {
			if r.Last[0].Outcome.Code == action.NotLegal {
				return delta.Proposal{Calls: []delta.Call{planner.Call("confirm-order", one)}}
			}
			return delta.Proposal{Done: true, Why: "it was charged unconfirmed"}
		},
		planner.Propose(planner.Call("charge-order", two)),
		planner.Propose(planner.Call("charge-order", one)),
		planner.Finish("charged"),
	})
	// Output:
	// charge-order {"orderId":"ORD-1"} NOT_LEGAL
	// confirm-order {"orderId":"ORD-1"} OK
	// charge-order {"orderId":"ORD-2"} NOT_LEGAL
	// charge-order {"orderId":"ORD-1"} OK
	// done - charged
}

// Greedy knows nothing of prerequisites: it takes the cheapest offer until the target is among them.
func ExampleGreedy() {
	in := `{"orderId":"ORD-1"}`
	run(planner.Greedy{
		Target: "ship-order",
		Inputs: planner.Given(map[string]string{"confirm-order": in, "charge-order": in, "ship-order": in, "ask-opinion": in}),
	})
	// Output:
	// confirm-order {"orderId":"ORD-1"} OK
	// charge-order {"orderId":"ORD-1"} OK
	// ship-order {"orderId":"ORD-1"} OK
	// done - ship-order has succeeded
}
