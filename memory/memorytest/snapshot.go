package memorytest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

func snapshotCases() []testCase {
	return []testCase{
		{"snapshot/empty", "a first call has nothing to read", snapshotEmpty},
		{"snapshot/contents", "decisions are made of it", snapshotContents},
		{"snapshot/isolation", "callers change what they were given", snapshotIsolation},
		{"snapshot/have", "an unchanged snapshot is reused, a changed one is not", snapshotHave},
		{"snapshot/gap", "a snapshot that missed a write must not be trusted", snapshotGap},
		{"snapshot/advance", "after a call the next decision needs no reading", snapshotAdvance},
		{"snapshot/merge", "a refusal corrects what was wrong", snapshotMerge},
	}
}

func snapshotEmpty(e *env) {
	s := e.load(nil)
	require.NotNil(e, s)
	assert.Positive(e, s.Now)
	assert.Empty(e, s.Pending)
	e.plain(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: "k", N: 1}) // a refusal leaves no trace
	s = e.load(nil)
	assert.Equal(e, txn.NewSpace(), full(s.Task))
	assert.Equal(e, txn.NewSpace(), full(s.Record))
	assert.Equal(e, txn.NewSpace(), full(s.Agent))
	s.Replay([]txn.Clause{{Op: txn.Put, Scope: txn.Record, Key: "k"}}, 1) // its maps can be written to
	assert.False(e, s.Gap)
}

func snapshotContents(e *env) {
	r := e.must(append(written(), pend("y"))...)
	e.apply(&txn.Txn{Agent: "a", Task: "u", Phase: txn.Plain, Clauses: []txn.Clause{
		{Op: txn.Put, Scope: txn.Task, Key: "of another task"}, {Op: txn.Put, Scope: txn.Agent, Key: "of the agent", Val: "x"}}})
	s := e.load(nil)
	at := txn.Token{State: "x", At: r.Now}
	assert.Equal(e, txn.Space{Rev: 1, Cells: map[string]txn.Cell{"cell": {Ver: 1, Val: "x"}}, Counters: map[string]int64{"n": 1},
		Tokens: map[string]txn.Token{"token": at}}, full(s.Task))
	assert.Equal(e, txn.Space{Rev: 2, Cells: map[string]txn.Cell{"of the agent": {Ver: 1, Val: "x"}}, Counters: map[string]int64{"n": 1},
		Tokens: map[string]txn.Token{"token": at}}, full(s.Agent))
	assert.Empty(e, full(s.Record).Cells, "cold cells are read by name")
	assert.Equal(e, []txn.Pending{{Seq: 2, Val: "y"}}, s.Pending)
	assert.GreaterOrEqual(e, s.Now, r.Now)
}

func snapshotIsolation(e *env) {
	t := &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain, Clauses: written()}
	e.apply(t)
	t.Clauses[0].Val, t.Clauses[0].Key = "changed by the caller", "changed"
	want := see(e, e.Store, "a", "t", wholeLook)
	spoil := func(s *txn.Snapshot) {
		for _, sp := range []*txn.Space{&s.Task, &s.Record, &s.Agent} {
			sp.Cells["cell"], sp.Counters["n"], sp.Tokens["token"] = txn.Cell{Ver: 9}, 9, txn.Token{State: "z"}
			sp.Rev = 99
		}
		for i := range s.Pending {
			s.Pending[i].Val = "z"
		}
	}
	s := e.load(nil)
	spoil(s)
	assert.Equal(e, want, see(e, e.Store, "a", "t", wholeLook), "after changing a snapshot")
	s = e.load(nil)
	spoil(e.load(s))
	assert.Equal(e, want, see(e, e.Store, "a", "t", wholeLook), "after changing a snapshot that was reused")
	r := e.plain(append(written(), txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: "k", N: 1})...)
	require.NotNil(e, r.Fresh)
	r.Fresh.Task.Cells["cell"] = txn.Cell{Ver: 9}
	r.Fresh.Agent.Counters["n"] = 9
	for i := range r.Pending {
		r.Pending[i].Val = "z"
	}
	assert.Equal(e, want, see(e, e.Store, "a", "t", wholeLook), "after changing what a refusal brought")
	q := e.queued("q", txn.Queued{}, false, 9)
	q[0].Member = "z"
	assert.Equal(e, want, see(e, e.Store, "a", "t", wholeLook), "after changing a page of a queue")
}

func snapshotHave(e *env) {
	e.must(written()...)
	steps := []txn.Clause{
		event(txn.Task, "e"),
		{Op: txn.Put, Scope: txn.Task, Key: "cell", Val: "2"},
		{Op: txn.Put, Scope: txn.Record, Key: "cell", Val: "2"},
		{Op: txn.Count, Scope: txn.Agent, Key: "n", N: 1, Max: 9},
		pend("o"), trim(1), trim(9),
		{Op: txn.Take, Scope: txn.Task, Key: "token", From: "x"},
	}
	s := e.load(nil)
	for _, c := range steps {
		e.must(c)
		want := e.load(nil)
		s = e.load(s)
		assert.Equal(e, full(want.Task), full(s.Task), "after %c", c.Op)
		assert.Equal(e, full(want.Agent), full(s.Agent), "after %c", c.Op)
		assert.Equal(e, none(want.Pending), none(s.Pending), "after %c", c.Op)
	}
	e.wait()
	assert.GreaterOrEqual(e, e.load(s).Now, s.Now+short, "its time is the reading's")
}

func snapshotGap(e *env) {
	put := func(key string) *txn.Txn {
		return &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{
			{Op: txn.Put, Scope: txn.Task, Key: key}, {Op: txn.Put, Scope: txn.Agent, Key: key}}}
	}
	e.apply(put("first"))
	s := e.load(nil)
	e.apply(put("another worker's"))
	mine := put("mine")
	s.Advance(mine, e.apply(mine))
	require.True(e, s.Gap, "somebody wrote in between")
	n := e.load(s)
	assert.False(e, n.Gap)
	for _, sp := range []txn.Space{n.Task, n.Agent} {
		assert.Len(e, sp.Cells, 3, "read again")
		assert.EqualValues(e, 3, sp.Rev)
	}
}

func snapshotAdvance(e *env) {
	s := e.load(nil)
	for i, cs := range [][]txn.Clause{
		written(), {pend("2"), trim(1)}, {{Op: txn.Put, Scope: txn.Task, Key: "cell", Val: "2"}, {Op: txn.Read, Scope: txn.Record, Key: "cell"}},
		{event(txn.Task, "e")}, {{Op: txn.Take, Scope: txn.Task, Key: "token", From: "x", To: "y"}, {Op: txn.Take, Scope: txn.Agent, Key: "token", From: "no", Soft: true}},
		{{Op: txn.Set, Scope: txn.Agent, Key: "new", To: "s", Val: "v", N: long}, {Op: txn.Count, Scope: txn.Task, Key: "n", N: -1, Min: 1, Max: 9}},
	} {
		t := begin("t", string(rune('a'+i)), cs...)
		r := e.apply(t)
		require.True(e, r.OK)
		s.Advance(t, r)
		want := e.load(nil)
		assert.False(e, s.Gap, "transaction %d", i)
		assert.Equal(e, full(want.Task), full(s.Task), "transaction %d", i)
		assert.Equal(e, full(want.Agent), full(s.Agent), "transaction %d", i)
		assert.Equal(e, none(want.Pending), none(s.Pending), "transaction %d", i)
		r = e.apply(t)
		require.True(e, r.Replay)
		again := *s
		again.State = txn.State{Task: s.Task.Clone(), Record: s.Record.Clone(), Agent: s.Agent.Clone()}
		again.Advance(t, r)
		assert.True(e, again.Gap, "a repeat is not applied twice")
		assert.Equal(e, s.Task, again.Task)
	}
}

func snapshotMerge(e *env) {
	e.must(written()...)
	s := txn.NewSnapshot()
	s.Task.Cells["gone"] = txn.Cell{Ver: 4}
	s.Task.Cells["n"] = txn.Cell{Ver: 1}
	cs := []txn.Clause{{Op: txn.Expect, Scope: txn.Task, Key: "cell"}, {Op: txn.Expect, Scope: txn.Task, Key: "gone", N: 4},
		{Op: txn.Count, Scope: txn.Task, Key: "n", N: 1, Max: 1}, {Op: txn.Have, Scope: txn.Agent, Key: "token"}}
	r := e.plain(cs...)
	require.False(e, r.OK)
	s.Merge(r.Fresh, cs)
	assert.Equal(e, map[string]txn.Cell{"cell": {Ver: 1, Val: "x"}, "n": {Ver: 1}}, s.Task.Cells)
	assert.Equal(e, map[string]int64{"n": 1}, s.Task.Counters)
	assert.Equal(e, "x", s.Agent.Tokens["token"].State)
	for i, c := range []txn.Clause{{Op: txn.Expect, Scope: txn.Task, Key: "cell", N: s.Task.Cells["cell"].Ver},
		{Op: txn.Count, Scope: txn.Task, Key: "n", N: 1, Max: s.Task.Counters["n"] + 1}, {Op: txn.Have, Scope: txn.Agent, Key: "token", From: "x"}} {
		assert.True(e, e.plain(c).OK, "decided again: %d", i)
	}
}
