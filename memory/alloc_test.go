package memory_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// calls are the begin and the settle of n intents, with what a governed call has in them.
func calls(n int) (out []*txn.Txn) {
	for i := range n {
		id := fmt.Sprint("i", i)
		out = append(out,
			&txn.Txn{Agent: "a", Task: "t", Phase: txn.Begin, Intent: id, Fence: 1, Owner: "o", TTL: 1_000_000, Clauses: []txn.Clause{
				{Op: txn.Expect, Scope: txn.Agent, Key: "level/charge"},
				{Op: txn.Count, Scope: txn.Task, Key: "granted/tokens", N: 5, Max: txn.NoMax},
				{Op: txn.Put, Scope: txn.Record, Key: "intent/" + id, Val: "{}"},
				{Op: txn.Put, Scope: txn.Record, Key: "call/" + id, Val: id},
				{Op: txn.Event, Scope: txn.Task, Val: "begun"},
			}},
			&txn.Txn{Agent: "a", Task: "t", Phase: txn.Settle, Intent: id, Fence: 1, Owner: "o", Clauses: []txn.Clause{
				{Op: txn.Count, Scope: txn.Task, Key: "spent/tokens", N: 5, Min: txn.NoMin, Max: txn.NoMax},
				{Op: txn.Set, Scope: txn.Task, Key: "fact/charge", To: "held"},
				{Op: txn.Pend, Scope: txn.Agent, Val: "ok"},
				{Op: txn.Put, Scope: txn.Record, Key: "out/" + id, Val: "{}"},
				{Op: txn.Event, Scope: txn.Task, Val: "settled"},
			}},
			&txn.Txn{Agent: "a", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Trim, N: int64(i + 1)}, {Op: txn.Put, Scope: txn.Agent, Key: "belief", Val: "b"}}})
	}
	return out
}

// A transaction costs what it keeps: maps and lists that grow, now and then, and nothing of its own.
func TestTransactionsAllocateOnlyWhatGrows(t *testing.T) {
	const n = 4000
	ctx, all := context.Background(), calls(n)
	s := memory.New(memory.Config{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, x := range all {
		r, err := s.Apply(ctx, x)
		if err != nil || !r.OK {
			require.NoError(t, err)
			require.True(t, r.OK)
		}
	}
	runtime.ReadMemStats(&after)
	assert.Less(t, float64(after.Mallocs-before.Mallocs)/n, 0.25, "allocations a call")
}

// BenchmarkCall is the begin, the settle and the fold of a call, its transactions made before.
func BenchmarkCall(b *testing.B) {
	ctx, all := context.Background(), calls(b.N)
	s := memory.New(memory.Config{})
	b.ReportAllocs()
	b.ResetTimer()
	for _, x := range all {
		if r, err := s.Apply(ctx, x); err != nil || !r.OK {
			b.Fatal(r, err)
		}
	}
}
