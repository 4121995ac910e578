package delta_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// What a call costs may depend on its input: then that much is reserved, shown to whoever is asked, and refused where it is not
// left, before anything runs.
func ExampleBuilder_CostOf() {
	ctx := context.Background()
	pay := delta.Define("pay", func(c *delta.Context, in Invoice) mo.Result[string] {
		if err := c.Spend(action.Cost{Money: in.Cents * 10_000, Currency: "EUR"}); err != nil {
			return mo.Err[string](err)
		}
		return mo.Ok("paid " + in.Number)
	}).Describe("Pay an invoice").Risk(1).RequireApproval().
		CostOf(func(in Invoice) action.Cost { return action.Cost{Money: in.Cents * 10_000, Currency: "EUR"} }, action.Money).
		MaxCost(action.Limit{Money: action.Max(500_000_000), Currency: "EUR"}).
		MustBuild()

	engine, err := delta.New(delta.Config{Authenticator: delta.VoucherFunc(badges)})
	if err != nil {
		panic(err)
	}
	defer engine.Close(ctx)
	books := delta.NewAgent("books").Grant(pay).MustBuild()
	task, err := engine.Start(ctx, delta.Goal{
		Agent: books, Text: "pay", Approvers: []string{"ana"}, Limit: action.Limit{Money: action.Max(600_000_000), Currency: "EUR"},
	})
	if err != nil {
		panic(err)
	}
	call := delta.Call{Action: "pay", Input: json.RawMessage(`{"number":"R-1","cents":41250}`)}
	id := task.Do(ctx, call).MustGet().Failure.Approval()
	asked, _ := engine.Approval(ctx, id)
	for line := range strings.Lines(asked.Explain()) {
		if strings.HasPrefix(line, "  cost") {
			fmt.Print(strings.TrimSpace(line), "\n")
		}
	}
	ana, _ := engine.Authenticate(ctx, "ana/finance")
	fmt.Println(engine.Approve(ctx, id, ana, "checked"), task.Do(ctx, call).MustGet().Code)

	more := func(cents string) *action.Failure {
		return task.Do(ctx, delta.Call{Action: "pay", Input: json.RawMessage(`{"number":"R-2","cents":` + cents + `}`)}).MustGet().Failure
	}
	fmt.Println(more("30000"))
	fmt.Println(more("60000"))
	// Output:
	// cost      will cost EUR 412.50, by its input; 1 call (forecast)
	// <nil> OK
	// BUDGET_EXHAUSTED: the budget does not allow "pay": the call costs EUR 300.00, EUR 187.50 left
	// COST_INVALID: this call of "pay" would cost EUR 600.00, and a call of it may cost at most EUR 500.00
}
