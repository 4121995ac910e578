package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/schema"
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

// input is an order of 313 bytes.
const input = `{"orderId":"ORD-2026-000042","customer":{"id":900142,"email":"someone@example.com"},"amount":125000,` +
	`"currency":"EUR","express":true,"weight":12.75,"items":[{"sku":"SKU-0001","n":2},{"sku":"SKU-0002","n":1},` +
	`{"sku":"SKU-0003","n":12}],"note":"Leave it with the neighbour at number 12; the bell is broken, do knock"}`

// receipt is what charging an order gives.
const receipt = `{"orderId":"ORD-2026-000042","charged":125000}`

// orders is the schema of an order.
var orders = sync.OnceValues(func() (*schema.Schema, error) { return schema.Reflect(reflect.TypeFor[order]()) })

// look is a hook that looks at the call and lets it pass.
func look(context.Context, action.View) error { return nil }

// charge is an action on raw JSON, with every hook there is, that always runs.
// The timeout may be delta.NoTimeout.
func charge(timeout time.Duration) (*delta.Action[action.Input, action.Output], error) {
	s, err := orders()
	if err != nil {
		return nil, err
	}
	b := delta.DefineRaw("charge", s.JSON(), func(*delta.Context, action.Input) mo.Result[action.Output] { return mo.Ok(action.Output(receipt)) }).
		Describe("Charge an order").Risk(2).Cost(action.Cost{Tokens: 100}).Effect(action.Idempotent).
		Hooks(hooks.Hooks{Before: look, After: look, OnError: look, Timeout: bound(timeout)})
	return b.Timeout(timeout).Build()
}

// bound is how long the hooks may take: where nothing bounds the action, nothing bounds them either.
func bound(timeout time.Duration) time.Duration {
	if timeout == delta.NoTimeout {
		return hooks.NoTimeout
	}
	return hooks.DefaultTimeout
}

// desk is an engine with one task of one agent.
type desk struct {
	engine *delta.Engine
	task   *delta.Task
}

func newEngine() (*delta.Engine, error) { return delta.New(delta.Config{}) }

func start(ctx context.Context, e *delta.Engine, name string, actions ...delta.Definition) (*delta.Task, error) {
	agent, err := delta.NewAgent(name).Grant(actions...).Build()
	if err != nil {
		return nil, err
	}
	return e.Start(ctx, delta.Goal{Agent: agent, Text: "serve the counter", Limit: action.Limit{
		Tokens: action.Max(action.MaxAmount / 2), Calls: action.Max(action.MaxAmount / 2)}})
}

func open(ctx context.Context, actions ...delta.Definition) (*desk, error) {
	e, err := newEngine()
	if err != nil {
		return nil, err
	}
	t, err := start(ctx, e, "clerk", actions...)
	if err != nil {
		return nil, err
	}
	return &desk{e, t}, nil
}

func (d *desk) close() { _ = d.engine.Close(context.Background()) }

// call makes a governed call that must succeed.
func call(ctx context.Context, t *delta.Task) error {
	out, err := t.Do(ctx, delta.Call{Action: "charge", Input: json.RawMessage(input)}).Get()
	if err == nil && !out.OK() {
		err = fmt.Errorf("the call ended as %s: %w", out.Code, out.Err())
	}
	return err
}
