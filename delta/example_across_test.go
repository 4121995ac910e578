package delta_test

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/delta"
)

// A customer who was identified in one task need not be identified again in the next, for an hour.
func ExampleAction_Across() {
	type Customer struct {
		ID string `json:"id"`
	}
	identify := delta.Define("identify", func(_ *delta.Context, in Customer) mo.Result[string] {
		return mo.Ok(in.ID + " is who they say")
	}).Describe("Identify a customer").Risk(1).MustBuild()
	advise := delta.Define("advise", func(_ *delta.Context, in Customer) mo.Result[string] {
		return mo.Ok("told " + in.ID + " what they have")
	}).Describe("Talk about a customer's account").Risk(2).Needs(identify.On("id").Across(time.Hour)).MustBuild()

	ctx := context.Background()
	engine, _ := delta.New(delta.Config{})
	defer engine.Close(ctx)
	desk := delta.NewAgent("desk").Grant(identify, advise).MustBuild()

	morning, _ := engine.Start(ctx, delta.Goal{Agent: desk, Text: "a call"})
	fmt.Println(advise.Do(ctx, morning, Customer{"ada"}).Error())
	fmt.Println(identify.Do(ctx, morning, Customer{"ada"}).MustGet())

	next, _ := engine.Start(ctx, delta.Goal{Agent: desk, Text: "she calls again"})
	fmt.Println(advise.Do(ctx, next, Customer{"ada"}).MustGet())
	fmt.Println(advise.Do(ctx, next, Customer{"bob"}).Error())
	// Output:
	// NOT_LEGAL: action "advise" is not available for this input now: it needs identify on id within 1h0m0s, in this task or an earlier one
	// ada is who they say
	// told ada what they have
	// NOT_LEGAL: action "advise" is not available for this input now: it needs identify on id within 1h0m0s, in this task or an earlier one
}
