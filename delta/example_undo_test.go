package delta_test

import (
	"context"
	"fmt"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// What completed is undone in strict reverse, through the same gates.
func ExampleTask_Compensate() {
	type Seat struct {
		Seat string `json:"seat"`
	}
	cancel := delta.Define("cancel", func(_ *delta.Context, in Seat) mo.Result[bool] {
		fmt.Println("cancelled", in.Seat)
		return mo.Ok(true)
	}).Describe("Cancel a seat").Risk(1).Effect(action.Idempotent).MustBuild()
	book := delta.Define("book", func(_ *delta.Context, in Seat) mo.Result[bool] { return mo.Ok(true) }).
		Describe("Book a seat").Risk(1).Effect(action.Compensatable).
		Undo(cancel, func(in Seat, _ bool) any { return in }).MustBuild()

	ctx := context.Background()
	engine, _ := delta.New(delta.Config{})
	defer engine.Close(ctx)
	task, _ := engine.Start(ctx, delta.Goal{Agent: delta.NewAgent("traveller").Grant(book, cancel).MustBuild()})
	book.Do(ctx, task, Seat{"1A"})
	book.Do(ctx, task, Seat{"1B"})
	c, err := task.Compensate(ctx, "the trip is off")
	fmt.Println(len(c.Undone), c.Err(), err)
	// Output:
	// cancelled 1B
	// cancelled 1A
	// 2 <nil> <nil>
}
