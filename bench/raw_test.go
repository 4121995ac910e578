package bench

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// raw opens a desk whose one action has no Go type, no timeout and no prerequisites.
func raw(tb testing.TB) *delta.Task {
	typed := delta.Define("typed", func(*delta.Context, order) mo.Result[receipt] { return mo.Ok(receipt{}) }).Describe("Charge").MustBuild()
	receipt := action.Output(`{"charged":125000,"orderId":"ORD-2026-000042"}`)
	charge := delta.DefineRaw("charge", typed.Schema(), func(*delta.Context, action.Input) mo.Result[action.Output] {
		return mo.Ok(receipt)
	}).Describe("Charge an order").Risk(2).Cost(action.Cost{Tokens: 100}).Effect(action.Idempotent).Timeout(delta.NoTimeout).MustBuild()
	e, err := delta.New(delta.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) })
	t, err := e.Start(context.Background(), delta.Goal{
		Agent: delta.NewAgent("clerk").Grant(charge).MustBuild(), Text: "charge orders",
		Limit: action.Limit{Tokens: action.Max(action.MaxAmount / 2), Calls: action.Max(action.MaxAmount / 2)},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// BenchmarkPreview is edge, schema, gates 1 to 8 and the encoded event, from raw bytes.
func BenchmarkPreview(b *testing.B) {
	t := raw(b)
	call := delta.Call{Action: "charge", Input: json.RawMessage(input)}
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if v, err := t.Preview(context.Background(), call, dst); err != nil || !v.OK() {
			b.Fatal(v, err)
		}
	}
	note(b)
}

// BenchmarkRawCall is a governed call of it; folding and sealing go on beside it.
func BenchmarkRawCall(b *testing.B) {
	t := raw(b)
	call := delta.Call{Action: "charge", Input: json.RawMessage(input)}
	b.ReportAllocs()
	for b.Loop() {
		if o, err := t.Do(context.Background(), call).Get(); err != nil || !o.OK() {
			b.Fatal(o, err)
		}
	}
	note(b)
}
