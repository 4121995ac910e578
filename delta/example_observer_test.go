package delta_test

import (
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// An observer is told what is recorded, after it is. It holds up nothing.
func ExampleObserver() {
	greet := delta.Define("greet", func(_ *delta.Context, in struct {
		Name string `json:"name"`
	}) mo.Result[string] {
		return mo.Ok("hello " + in.Name)
	}).Describe("Greet somebody").Risk(1).MustBuild()
	agent := delta.NewAgent("porter").Grant(greet).MustBuild()

	engine, err := delta.New(delta.Config{Observers: []delta.Watch{{
		Name:   "printer",
		Filter: delta.Filter{Types: []ledger.Type{ledger.TaskStarted, ledger.Begun, ledger.Settled}},
		Observer: delta.ObserverFunc(func(_ context.Context, r delta.Record) {
			fmt.Printf("%d %s in %s\n", r.Seq, r.Type, r.TaskID())
		}),
	}}})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	task, err := engine.Start(ctx, delta.Goal{ID: "door", Agent: agent, Text: "be kind"})
	if err != nil {
		panic(err)
	}
	task.Do(ctx, delta.Call{Action: "greet", Input: []byte(`{"name":"Ana"}`)})
	if err := engine.Close(ctx); err != nil { // observers finish what waits for them
		panic(err)
	}
	// Output:
	// 1 task_started in porter~door
	// 2 begun in porter~door
	// 3 settled in porter~door
}
