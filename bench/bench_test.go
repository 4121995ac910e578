package bench

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// BenchmarkUnmarshal is the first yardstick: encoding/json reading the input into any.
func BenchmarkUnmarshal(b *testing.B) {
	in := []byte(input)
	b.ReportAllocs()
	for b.Loop() {
		var v any
		if err := json.Unmarshal(in, &v); err != nil {
			b.Fatal(err)
		}
	}
	note(b)
}

// BenchmarkSHA256 is the second: hashing the input.
func BenchmarkSHA256(b *testing.B) {
	in := []byte(input)
	b.ReportAllocs()
	for b.Loop() {
		sha256.Sum256(in)
	}
	note(b)
}

// BenchmarkCall is one governed call from raw JSON to its settled outcome: edge, schema, gates, begin, hooks, function,
// settle, ledger. Folding the beliefs and sealing the ledger go on beside it and are waited for before the clock stops.
func BenchmarkCall(b *testing.B) {
	look := func(context.Context, action.View) error { return nil }
	for _, c := range []struct {
		name  string
		hooks hooks.Hooks
	}{{"plain", hooks.Hooks{}}, {"hooks", hooks.Hooks{Before: look, After: look, OnError: look}}} {
		b.Run(c.name, func(b *testing.B) {
			d := open(b, 2, c.hooks)
			d.do(b, "charge", action.OK)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N { // not b.Loop, which stops the clock by itself
				d.do(b, "charge", action.OK)
			}
			if err := d.engine.Sync(context.Background()); err != nil {
				b.Fatal(err)
			}
			note(b)
		})
	}
}

// BenchmarkRefusal is a call that gate 4 turns away, recorded.
func BenchmarkRefusal(b *testing.B) {
	d := open(b, 2, hooks.Hooks{})
	b.ReportAllocs()
	for b.Loop() {
		d.do(b, "refund", action.NotLegal)
	}
	note(b)
}

// BenchmarkOffer reads the offer of an agent with that many actions.
func BenchmarkOffer(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := open(b, n, hooks.Hooks{})
			d.do(b, "charge", action.OK)
			if err := d.engine.Sync(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				o, err := d.task.Offer(context.Background())
				if err != nil || len(o.Actions) != n {
					b.Fatal(len(o.Actions), err)
				}
			}
			note(b)
		})
	}
}

// kernel is the engine without a shell, on the same store.
type kernel struct {
	rules *engine.Rules
	agent *engine.Agent
	store *memory.InProcess
	input action.Document
	hash  string
	n     int
}

func newKernel(b *testing.B) *kernel {
	in, err := schema.Declared([]byte(`{"type":"object"}`))
	if err != nil {
		b.Fatal(err)
	}
	doc, f := in.Check([]byte(input))
	if f != nil {
		b.Fatal(f)
	}
	g, err := statespace.Compile([]statespace.Node{{Name: "charge"}})
	if err != nil {
		b.Fatal(err)
	}
	m, err := risk.New(risk.Config{})
	if err != nil {
		b.Fatal(err)
	}
	k := &kernel{
		rules: &engine.Rules{Model: m}, store: memory.New(memory.Config{}), input: doc, hash: in.Hash(),
		agent: &engine.Agent{
			Name: "clerk", Graph: g, Grants: policy.NewGrants(map[string][]string{"clerk": {"charge"}}),
			Actions: map[string]*engine.Action{"charge": {Name: "charge", Version: "1", Input: in, Risk: 2, Effect: action.Idempotent}},
		},
	}
	k.apply(b, engine.Start(engine.TaskState{ID: "t", Agent: "clerk", Threshold: 4, AskTTL: 1}, 1, 0))
	return k
}

func (k *kernel) apply(b *testing.B, t *txn.Txn) txn.Reply {
	r, err := k.store.Apply(context.Background(), t)
	if err != nil || !r.OK {
		b.Fatal(r.Failed, err)
	}
	return r
}

func (k *kernel) view(b *testing.B) *engine.View {
	snap, err := k.store.Load(context.Background(), "clerk", "t", nil)
	if err != nil {
		b.Fatal(err)
	}
	v, err := engine.Look(k.rules, k.agent, snap, nil)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

func (k *kernel) call(v *engine.View) *engine.Call {
	k.n++
	id := fmt.Sprint("i", k.n)
	return &engine.Call{
		Intent: action.Intent{
			ID: id, Agent: "clerk", Task: "t", Action: "charge", Version: "1", Input: k.input,
			Digest: approval.Digest("clerk", "t", "charge", "1", k.hash, k.input.Text()),
		},
		Now: v.Snap.Now, At: v.Snap.Now, Owner: id, TTL: time.Hour.Microseconds(), AskID: id,
	}
}

// BenchmarkDecide is gates 1 to 8 and the transaction of the begin, without a store.
func BenchmarkDecide(b *testing.B) {
	k := newKernel(b)
	v := k.view(b)
	c := k.call(v)
	b.ReportAllocs()
	for b.Loop() {
		var room engine.Room // as the shell has it for a call
		room.Lend()
		c.Room = &room
		if d := engine.Decide(k.rules, k.agent, v, c); d.Begun == nil {
			b.Fatal(d.Refusal)
		}
		room.Return()
	}
	note(b)
}

// batch is how many calls are begun before they are settled: some run at a time, not all that ever will.
const batch = 64

// BenchmarkSettle is the settle of a call that began: its transaction, computed and applied.
func BenchmarkSettle(b *testing.B) {
	k := newKernel(b)
	out, f := schema.Canonical([]byte(`{"orderId":"ORD-2026-000042","charged":125000}`), 0)
	if f != nil {
		b.Fatal(f)
	}
	end := engine.End{Code: action.OK, Output: out, Cost: action.Cost{Calls: 1}, At: 1}
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= batch {
		b.StopTimer()
		runs := k.begin(b, min(left, batch))
		b.StartTimer()
		for _, x := range runs {
			k.apply(b, x.Settle(end))
		}
	}
	note(b)
}

// begin starts n calls, and drops what is pending of earlier ones without learning it: learning is not the settle's.
func (k *kernel) begin(b *testing.B, n int) []*engine.Run {
	k.apply(b, &txn.Txn{Agent: "clerk", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Trim, Scope: txn.Agent, N: int64(k.n)}}})
	v := k.view(b)
	runs := make([]*engine.Run, n)
	for i := range runs {
		c := k.call(v)
		d := engine.Decide(k.rules, k.agent, v, c)
		k.apply(b, d.Txn)
		runs[i] = &engine.Run{Agent: k.agent, Begun: d.Begun, Fence: 1, Owner: c.Owner, Input: k.input.Tree()}
	}
	return runs
}
