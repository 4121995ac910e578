package txn_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		"an intent to read":        {Agent: "a", Task: "t", Phase: txn.Plain, Intent: "i"},
		"a step":                   {Agent: "a", Task: "t", Phase: txn.Renew, Intent: "i", Fence: 3, Owner: "o", TTL: 1, Step: 2},
	} {
		assert.NoError(t, x.Check(), reason)
	}
}
