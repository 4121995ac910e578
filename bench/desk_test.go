package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
)

// order is an input of eight fields.
type order struct {
	OrderID  string   `json:"orderId" jsonschema:"minLength=1,maxLength=40"`
	Customer customer `json:"customer"`
	Amount   int64    `json:"amount" jsonschema:"minimum=1"`
	Currency string   `json:"currency" jsonschema:"enum=EUR,enum=USD"`
	Express  bool     `json:"express"`
	Weight   float64  `json:"weight" jsonschema:"minimum=0"`
	Items    []item   `json:"items"`
	Note     string   `json:"note"`
}

type customer struct {
	ID    int64  `json:"id"`
	Email string `json:"email"`
}

type item struct {
	SKU string `json:"sku"`
	N   int    `json:"n" jsonschema:"minimum=1"`
}

type receipt struct {
	OrderID string `json:"orderId"`
	Charged int64  `json:"charged"`
}

// input is an order of 313 bytes.
const input = `{"orderId":"ORD-2026-000042","customer":{"id":900142,"email":"someone@example.com"},"amount":125000,` +
	`"currency":"EUR","express":true,"weight":12.75,"items":[{"sku":"SKU-0001","n":2},{"sku":"SKU-0002","n":1},` +
	`{"sku":"SKU-0003","n":12}],"note":"Leave it with the neighbour at number 12; the bell is broken, do knock"}`

func TestInput(t *testing.T) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(input), &fields); err != nil || len(fields) != 8 || len(input) != 313 {
		t.Fatalf("%d bytes, %d fields, %v", len(input), len(fields), err)
	}
}

// desk is an agent on the in-process store with one action that always runs, one that never may, and others to offer.
type desk struct {
	engine *delta.Engine
	task   *delta.Task
}

func open(tb testing.TB, actions int, before hooks.Hooks) *desk {
	charge := delta.Define("charge", func(_ *delta.Context, in order) mo.Result[receipt] {
		return mo.Ok(receipt{in.OrderID, in.Amount})
	}).Describe("Charge an order").Risk(2).Cost(action.Cost{Tokens: 100}).Effect(action.Idempotent).Hooks(before).MustBuild()
	refund := delta.Define("refund", func(_ *delta.Context, in order) mo.Result[receipt] {
		return mo.Ok(receipt{in.OrderID, 0})
	}).Describe("Refund an order").Risk(2).Needs(charge.On("orderId")).MustBuild()
	all := []delta.Definition{charge, refund}
	for i := len(all); i < actions; i++ {
		all = append(all, delta.Define(fmt.Sprintf("act-%d", i), func(_ *delta.Context, in order) mo.Result[receipt] {
			return mo.Ok(receipt{in.OrderID, 0})
		}).Describe("Do something else").Risk(1+i%3).MustBuild())
	}
	agent, err := delta.NewAgent("clerk").Grant(all...).Build()
	if err != nil {
		tb.Fatal(err)
	}
	e, err := delta.New(delta.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) })
	t, err := e.Start(context.Background(), delta.Goal{
		Agent: agent, Text: "charge orders", Limit: action.Limit{Tokens: action.Max(action.MaxAmount / 2), Calls: action.Max(action.MaxAmount / 2)},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return &desk{e, t}
}

// do makes a call that must end as wanted.
func (d *desk) do(tb testing.TB, name string, want action.Code) {
	out, err := d.task.Do(context.Background(), delta.Call{Action: name, Input: json.RawMessage(input)}).Get()
	if err != nil || out.Code != want {
		tb.Fatalf("%s: %v %v %v", name, out.Code, out.Failure, err)
	}
}
