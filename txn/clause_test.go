package txn_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

func TestCheckNamesWhatIsWrong(t *testing.T) {
	begin := txn.Txn{Agent: "a", Task: "t", Phase: txn.Begin, Intent: "i", Fence: 1, Owner: "o", TTL: 1}
	put := txn.Clause{Op: txn.Put, Scope: txn.Task, Key: "k"}
	require.NoError(t, begin.Check())
	with := func(f func(x *txn.Txn)) txn.Txn { x := begin; f(&x); return x }
	clause := func(cs ...txn.Clause) txn.Txn { x := begin; x.Clauses = cs; return x }
	for _, c := range []struct {
		want string
		x    txn.Txn
	}{
		{"without an agent", with(func(x *txn.Txn) { x.Agent = "" })},
		{"line break", with(func(x *txn.Txn) { x.Task = "t\nu" })},
		{"line break", with(func(x *txn.Txn) { x.Intent = "i\n" })},
		{`unknown phase '?'`, with(func(x *txn.Txn) { x.Phase = '?' })},
		{"unknown phase", with(func(x *txn.Txn) { x.Phase = 0 })},
		{"phase B needs task, intent, fence and owner", with(func(x *txn.Txn) { x.Intent = "" })},
		{"phase B needs task, intent, fence and owner", with(func(x *txn.Txn) { x.Task = "" })},
		{"phase B needs task, intent, fence and owner", with(func(x *txn.Txn) { x.Fence = 0 })},
		{"phase B needs task, intent, fence and owner", with(func(x *txn.Txn) { x.Owner = "" })},
		{"lease length of at least 1 µs, not 0", with(func(x *txn.Txn) { x.TTL = 0 })},
		{"lease length", with(func(x *txn.Txn) { x.TTL = txn.NoMax + 1 })},
		{"phase B with step 1", with(func(x *txn.Txn) { x.Step = 1 })},
		{"phase L with step -1", with(func(x *txn.Txn) { x.Phase, x.Step = txn.Renew, -1 })},
		{"clause 1 (P k): needs a task", txn.Txn{Agent: "a", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Time}, put}}},
		{"clauses 0 and 2 both write T k", clause(put, txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "k", N: 1}, put)},
		{"both write A k", clause(txn.Clause{Op: txn.Set, Scope: txn.Agent, Key: "k"}, txn.Clause{Op: txn.Take, Scope: txn.Agent, Key: "k"})},
		{"clause 0 (z k): unknown op", clause(txn.Clause{Op: 'z', Scope: txn.Task, Key: "k"})},
		{"unknown scope", clause(txn.Clause{Op: txn.Put, Key: "k"})},
		{"needs a key", clause(txn.Clause{Op: txn.Put, Scope: txn.Task})},
		{"needs a key", clause(txn.Clause{Op: txn.Queue, Val: "m"})},
		{"needs scope Task or Agent", clause(txn.Clause{Op: txn.Event, Scope: txn.Record})},
		{"needs the number of a record and a link", clause(txn.Clause{Op: txn.Link, Scope: txn.Task, N: 1})},
		{"needs the number of a record and a link", clause(txn.Clause{Op: txn.Link, Scope: txn.Task, Val: "x"})},
		{"keeps this queue by itself", clause(txn.Clause{Op: txn.Unqueue, Key: txn.Leases, Val: "t\ni"})},
		{"an agent does not expire", clause(txn.Clause{Op: txn.Expire, Scope: txn.Agent})},
		{"needs a key", clause(txn.Clause{Op: txn.Expire, Scope: txn.Record})},
		{"a number beyond 9007199254740991 in magnitude", clause(txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "k", Max: txn.NoMax + 1})},
		{"a number beyond", clause(txn.Clause{Op: txn.Trim, N: txn.NoMin - 1})},
	} {
		assert.ErrorContains(t, c.x.Check(), c.want)
	}
}

func TestCheckAllows(t *testing.T) {
	k := func(op txn.Op, sc txn.Scope, n int64) txn.Clause {
		return txn.Clause{Op: op, Scope: sc, Key: "k", N: n}
	}
	for reason, x := range map[string]txn.Txn{
		"an agent alone":           {Agent: "a", Phase: txn.Plain, Clauses: []txn.Clause{k(txn.Put, txn.Agent, 0), {Op: txn.Pend}, {Op: txn.Trim}, {Op: txn.Time}, {Op: txn.Queue, Key: "q"}}},
		"a condition and a write":  {Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{k(txn.Expect, txn.Task, 0), k(txn.Put, txn.Task, 0)}},
		"bounds and an addition":   {Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{k(txn.Count, txn.Task, 0), k(txn.Count, txn.Task, 1)}},
		"one name in three spaces": {Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{k(txn.Put, txn.Task, 0), k(txn.Count, txn.Task, 1), k(txn.Set, txn.Task, 0)}},
		"one key in three scopes":  {Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{k(txn.Put, txn.Task, 0), k(txn.Put, txn.Record, 0), k(txn.Put, txn.Agent, 0)}},
		"a task that is over":      {Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Expire, Scope: txn.Task}}},
		"an intent that is kept":   {Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Expire, Scope: txn.Record, Key: "i", N: -1}}},
		"an intent to read":        {Agent: "a", Task: "t", Phase: txn.Plain, Intent: "i"},
		"a step":                   {Agent: "a", Task: "t", Phase: txn.Renew, Intent: "i", Fence: 3, Owner: "o", TTL: 1, Step: 2},
	} {
		assert.NoError(t, x.Check(), reason)
	}
}

// Any list of clauses, short or long: the two that are named write one key, the first such pair in order; where none is
// named, no two do.
func TestCheckFindsWhatIsWrittenTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 3, 24, 25, 60, 256, 257, 600}).Draw(t, "clauses")
		keys := rapid.SampledFrom([]int{4, n, n * n, 1 << 30}).Draw(t, "keys")
		x := txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain}
		for range n {
			x.Add(txn.Clause{
				Op:    rapid.SampledFrom([]txn.Op{txn.Put, txn.Put, txn.Set, txn.Count, txn.Take, txn.Expect, txn.Read}).Draw(t, "op"),
				Scope: rapid.SampledFrom([]txn.Scope{txn.Task, txn.Record, txn.Agent}).Draw(t, "scope"),
				Key:   fmt.Sprint(rapid.IntRange(0, max(1, keys)).Draw(t, "key")),
				N:     int64(rapid.IntRange(0, 1).Draw(t, "n")), Max: txn.NoMax,
			})
		}
		want := ""
		kind := map[txn.Op]byte{txn.Put: 'v', txn.Set: 'k', txn.Take: 'k', txn.Count: 'c'}
		seen := map[string]int{}
		for i, c := range x.Clauses {
			if kind[c.Op] == 0 || c.Op == txn.Count && c.N == 0 {
				continue
			}
			at := fmt.Sprint(kind[c.Op], c.Scope, c.Key)
			if j, dup := seen[at]; dup {
				want = fmt.Sprintf("clauses %d and %d both write %c %s", j, i, c.Scope, c.Key)
				break
			}
			seen[at] = i
		}
		if err := x.Check(); want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{10, 100, 256, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain}
			for i := range n {
				x.Add(txn.Clause{Op: txn.Set, Scope: txn.Task, Key: fmt.Sprint("f/confirm@orderId=", i), To: "held"})
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := x.Check(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
