package delta_test

import (
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// An account is opened for whom the procedure let in, and for nobody else.
func ExampleCompleted() {
	type Customer struct {
		ID string `json:"customer"`
	}
	check := delta.Define("check-papers", func(_ *delta.Context, in Customer) mo.Result[string] { return mo.Ok("fine") }).
		Describe("Check the papers of a customer").Risk(1).Effect(action.None).MustBuild()
	admit := workflow.New("admit", "1").
		Input(`{"type":"object","properties":{"customer":{"type":"string"}},"required":["customer"]}`).
		Step(workflow.Execute("papers", "check-papers").Map("customer", "input.customer")).
		MustBuild()
	open := delta.Define("open-account", func(_ *delta.Context, in Customer) mo.Result[string] {
		return mo.Ok("an account for " + in.ID)
	}).Describe("Open an account").Risk(2).Needs(delta.Completed(admit).On("customer")).MustBuild()
	desk := delta.NewAgent("desk").Grant(check, open).MustBuild()

	ctx := context.Background()
	e, _ := delta.New(delta.Config{Workflows: delta.Workflows{Definitions: []*workflow.Definition{admit}}})
	defer e.Close(ctx)
	task, _ := e.Start(ctx, delta.Goal{Agent: desk, Text: "open what is asked for"})
	offer, _ := task.Offer(ctx)
	_, offered := offer.Find("open-account")
	fmt.Println("offered:", offered)
	fmt.Println(open.Do(ctx, task, Customer{"ada"}).Error())

	run, err := task.StartWorkflow(ctx, admit, delta.Goal{Agent: desk, Text: "admit ada"}, []byte(`{"customer":"ada"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := run.Run(ctx)
	fmt.Println(s.Status, err)

	offer, _ = task.Offer(ctx)
	_, offered = offer.Find("open-account")
	fmt.Println("offered:", offered)
	fmt.Println(open.Do(ctx, task, Customer{"ada"}).MustGet())
	fmt.Println(open.Do(ctx, task, Customer{"bob"}).Error())
	// Output:
	// offered: false
	// NOT_LEGAL: action "open-account" is not available for this input now: a workflow has to complete first, which it cannot run itself
	// completed <nil>
	// offered: true
	// an account for ada
	// NOT_LEGAL: action "open-account" is not available for this input now: a workflow has to complete first, which it cannot run itself
}
