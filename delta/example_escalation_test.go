package delta_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// Failures in a row pause the task until somebody has looked at it.
func ExampleEngine_ResumeTask() {
	broken := true
	ship := delta.Define("ship", func(_ *delta.Context, in struct {
		Order int `json:"order"`
	}) mo.Result[string] {
		if broken {
			return mo.Err[string](errors.New("the carrier does not answer"))
		}
		return mo.Ok(fmt.Sprint("shipped ", in.Order))
	}).Describe("Ship an order").Risk(1).MustBuild()
	agent := delta.NewAgent("packer").Grant(ship).MustBuild()
	engine, err := delta.New(delta.Config{
		Authenticator: delta.AuthenticatorFunc(func(_ context.Context, session any) (string, error) { return session.(string), nil }),
		Operators:     []string{"ana"},
		Escalate:      delta.Escalate{Failures: 2},
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer engine.Close(ctx)
	task, err := engine.Start(ctx, delta.Goal{ID: "friday", Agent: agent, Text: "ship what is packed", Threshold: 5})
	if err != nil {
		panic(err)
	}
	for i := range 3 {
		o := task.Do(ctx, delta.Call{Action: "ship", Input: fmt.Appendf(nil, `{"order":%d}`, i)}).MustGet()
		fmt.Println(o.Code)
	}
	waiting, err := engine.Escalations(ctx, 10)
	if err != nil {
		panic(err)
	}
	for _, e := range waiting {
		fmt.Println(e.Task, "-", e.Concern, "-", e.Reason)
		ana, err := engine.Authenticate(ctx, "ana")
		if err != nil {
			panic(err)
		}
		broken = false
		if err := engine.ResumeTask(ctx, e.ID, ana, "the carrier is back"); err != nil {
			panic(err)
		}
	}
	o := task.Do(ctx, delta.Call{Action: "ship", Input: []byte(`{"order":4}`)}).MustGet()
	fmt.Println(o.Code == action.OK, string(o.Output))
	// Output:
	// FAILED
	// FAILED
	// TASK_PAUSED
	// packer~friday - failure - 2 calls failed and no Ok in between
	// true "shipped 4"
}
