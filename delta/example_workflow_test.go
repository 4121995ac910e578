package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
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

// An engine that has the store alone starts a workflow for the workers on it.
func ExampleEngine_StartWorkflowFor() {
	type parcel struct {
		ID string `json:"id"`
	}
	pack := delta.Define("pack", func(_ *delta.Context, in parcel) mo.Result[parcel] { return mo.Ok(in) }).
		Describe("Pack a parcel").Risk(1).Effect(action.Idempotent).MustBuild()
	ship := workflow.New("ship", "1").Step(workflow.Execute("pack", "pack").Map("id", "input.id")).MustBuild()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store := looked{memory.New(memory.Config{})} // a store that people look into, as Redis is
	worker, _ := delta.New(delta.Config{Store: store, Workflows: delta.Workflows{Definitions: []*workflow.Definition{ship}}})
	_ = worker.Register(delta.NewAgent("dock").Grant(pack).MustBuild())

	desk, _ := delta.New(delta.Config{Store: store})
	_, err := desk.StartWorkflowFor(ctx, "dock", ship, delta.Goal{}, []byte(`{"id":"p1"}`))
	var nobody *delta.NoWorkerError
	fmt.Println(errors.As(err, &nobody), nobody.Actions)

	gone := make(chan error)
	go func() { gone <- worker.Work(ctx) }()
	for live, _ := desk.Workers(ctx, "dock"); len(live) == 0; live, _ = desk.Workers(ctx, "dock") {
		time.Sleep(time.Millisecond)
	}
	run, err := desk.StartWorkflowFor(ctx, "dock", ship, delta.Goal{}, []byte(`{"id":"p1"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := run.Wait(ctx)
	fmt.Println(s.Status, err)
	stop()
	<-gone
	_, _ = desk.Close(context.Background()), worker.Close(context.Background())
	// Output:
	// true [pack]
	// completed <nil>
}
