package delta_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// A refund: a person says what it is about, a planner proposes the amount, which is verified, and the refund is a governed
// call.
func ExampleEngine_StartWorkflow() {
	type refund struct {
		Order  string `json:"order"`
		Amount int    `json:"amount"`
	}
	pay := delta.Define("pay-back", func(_ *delta.Context, in refund) mo.Result[refund] { return mo.Ok(in) }).
		Describe("Pay an amount back").Risk(2).Effect(action.Idempotent).MustBuild()
	desk := delta.NewAgent("desk").Grant(pay).MustBuild()

	sop := workflow.New("refund", "1").
		Step(workflow.AskPerson("ask").Hitl(workflow.Hitl{
			Who: []string{"ana"}, Prompt: "Which order?",
			Intake: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"},"paid":{"type":"integer"}},"required":["order","paid"]}`),
		})).
		Step(workflow.Reason("triage", "half").Needs("ask").Map("paid", "steps.ask.output.paid").
			Output(`{"type":"object","properties":{"amount":{"type":"integer","maximum":100}},"required":["amount"]}`)).
		Step(workflow.Execute("refund", "pay-back").Needs("triage").Map("order", "steps.ask.output.order").Map("amount", "steps.triage.output.amount")).
		MustBuild()

	half := delta.ProposerFunc(func(_ context.Context, r delta.StepRequest) (delta.Draft, error) {
		var in struct{ Paid int }
		err := json.Unmarshal(r.Input, &in)
		return delta.Draft{Document: fmt.Appendf(nil, `{"amount":%d}`, in.Paid/2)}, err
	})
	ctx := context.Background()
	e, err := delta.New(delta.Config{Authenticator: anybody, Workflows: delta.Workflows{
		Definitions: []*workflow.Definition{sop}, Proposers: map[string]delta.Proposer{"half": half},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = e.Close(ctx) }()
	run, err := e.StartWorkflow(ctx, sop, delta.Goal{Agent: desk, Text: "Refund what is due"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := run.Run(ctx)
	fmt.Println(s.Status, s.Parked(), err)

	ana, _ := e.Authenticate(ctx, "ana")
	fmt.Println(run.Signal(ctx, "ask", ana, []byte(`{"order":"ORD-42","paid":120}`)))
	s, err = run.Run(ctx)
	out, _ := s.Artifact("refund")
	fmt.Println(s.Status, string(out), err)
	// Output:
	// running true <nil>
	// <nil>
	// completed {"amount":60,"order":"ORD-42"} <nil>
}
