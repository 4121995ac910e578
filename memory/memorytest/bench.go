package memorytest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Bench measures what a governed call costs of the store: begin and settle of one intent, by one worker and by many of
// one agent; a refusal; and a reading that finds nothing new.
func Bench(b *testing.B, open Open) {
	b.Run("begin-settle", func(b *testing.B) {
		e := newEnv(b, open)
		b.ReportAllocs()
		for i := range b.N {
			benchCall(e, fmt.Sprint("i", i))
		}
	})
	b.Run("begin-settle-parallel", func(b *testing.B) {
		e := newEnv(b, open)
		var n atomic.Int64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				benchCall(e, fmt.Sprint("i", n.Add(1)))
			}
		})
	})
	b.Run("refusal", func(b *testing.B) {
		e := newEnv(b, open)
		t := begin("t", "i", benchClauses("i")...)
		t.Clauses[0].Max = 0
		b.ReportAllocs()
		for range b.N {
			if e.apply(t).OK {
				b.Fatal("accepted")
			}
		}
	})
	b.Run("load-unchanged", func(b *testing.B) {
		e := newEnv(b, open)
		benchCall(e, "i")
		s := e.load(nil)
		b.ReportAllocs()
		for range b.N {
			s = e.load(s)
		}
	})
}

func benchClauses(id string) []txn.Clause {
	return []txn.Clause{
		{Op: txn.Count, Scope: txn.Task, Key: "granted/tokens", N: 5, Max: txn.NoMax},
		{Op: txn.Expect, Scope: txn.Agent, Key: "level/charge"},
		{Op: txn.Expect, Scope: txn.Record, Key: "call/" + id},
		{Op: txn.Put, Scope: txn.Record, Key: "intent/" + id, Val: `{"action":"charge","est":5}`},
		event(txn.Task, `{"type":"begun","intent":"`+id+`"}`),
	}
}

func benchCall(e *env, id string) {
	t := begin("t", id, benchClauses(id)...)
	if !e.apply(t).OK {
		e.Fatal("begin refused")
	}
	if !e.apply(&txn.Txn{Agent: "a", Task: "t", Phase: txn.Settle, Intent: id, Fence: 1, Owner: "A", Clauses: []txn.Clause{
		{Op: txn.Count, Scope: txn.Task, Key: "spent/tokens", N: 5, Min: txn.NoMin, Max: txn.NoMax},
		{Op: txn.Set, Scope: txn.Task, Key: "fact/confirm/orderId", To: "held", Val: id},
		{Op: txn.Put, Scope: txn.Record, Key: "result/" + id, Val: `{"ok":true}`},
		event(txn.Task, `{"type":"settled","intent":"`+id+`"}`),
	}}).OK {
		e.Fatal("settle refused")
	}
}
