package delta_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

type Order struct {
	OrderID string `json:"orderId"`
}

type Charge struct {
	OrderID string `json:"orderId"`
	Cents   int64  `json:"cents" jsonschema:"minimum=1"`
}

type Receipt struct {
	OrderID string `json:"orderId"`
	Charged int64  `json:"charged"`
}

// An agent may charge an order only after that very order was confirmed.
func Example() {
	confirm := delta.Define("confirm-order", func(_ *delta.Context, in Order) mo.Result[Order] {
		return mo.Ok(in)
	}).Describe("Confirm an order with the customer").Risk(2).Effect(action.Idempotent).MustBuild()

	charge := delta.Define("charge-order", func(_ *delta.Context, in Charge) mo.Result[Receipt] {
		return mo.Ok(Receipt{in.OrderID, in.Cents})
	}).Describe("Charge a confirmed order").Risk(3).Needs(confirm.On("orderId")).MustBuild()

	support := delta.NewAgent("support").Grant(confirm, charge).MustBuild()
	engine, err := delta.New(delta.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer engine.Close(ctx)
	task, err := engine.Start(ctx, delta.Goal{Agent: support, Text: "charge ORD-1", Limit: action.Limit{Calls: action.Max(10)}})
	if err != nil {
		fmt.Println(err)
		return
	}

	propose := func(name, input string) {
		out, err := task.Do(ctx, delta.Call{Action: name, Input: json.RawMessage(input)}).Get()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(name, out.Code)
	}
	propose("charge-order", `{"orderId":"ORD-1","cents":4200}`)
	propose("confirm-order", `{"orderId":"ORD-1"}`)
	propose("charge-order", `{"orderId":"ORD-2","cents":4200}`)
	propose("charge-order", `{"orderId":"ORD-1","cents":4200}`)

	receipt, err := charge.Do(ctx, task, Charge{"ORD-1", 100}).Get()
	fmt.Println(receipt.Charged, err)
	// Output:
	// charge-order NOT_LEGAL
	// confirm-order OK
	// charge-order NOT_LEGAL
	// charge-order OK
	// 100 <nil>
}
