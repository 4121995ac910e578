package memorytest

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// written are clauses that all hold on an empty store and between them change everything that can be changed.
func written() []txn.Clause {
	return []txn.Clause{
		{Op: txn.Put, Scope: txn.Task, Key: "cell", Val: "x"},
		{Op: txn.Put, Scope: txn.Record, Key: "cell", Val: "x"},
		{Op: txn.Count, Scope: txn.Task, Key: "n", N: 1, Max: 1},
		{Op: txn.Count, Scope: txn.Agent, Key: "n", N: 1, Max: 1},
		{Op: txn.Set, Scope: txn.Task, Key: "token", To: "x"},
		{Op: txn.Take, Scope: txn.Agent, Key: "token", To: "x"},
		{Op: txn.Event, Scope: txn.Task, Val: "x"},
		{Op: txn.Event, Scope: txn.Agent, Val: "x"},
		{Op: txn.Pend, Val: "x"},
		{Op: txn.Trim, N: 1},
		{Op: txn.Queue, Key: "q", Val: "m"},
		{Op: txn.Unqueue, Key: "q", Val: "old"},
		{Op: txn.Link, Scope: txn.Task, N: 1, Val: "x"},
	}
}

// failing are conditions that do not hold on the store of wholeEvery.
func failing() []txn.Clause {
	return []txn.Clause{
		{Op: txn.Expect, Scope: txn.Task, Key: "other", N: 1},
		{Op: txn.Expect, Scope: txn.Record, Key: "other", N: 1},
		{Op: txn.Expect, Scope: txn.Agent, Key: "other", N: 1},
		{Op: txn.Count, Scope: txn.Task, Key: "other", N: 1, Max: 0},
		{Op: txn.Count, Scope: txn.Agent, Key: "other", Min: 1, Max: 9},
		{Op: txn.Have, Scope: txn.Task, Key: "other", From: "x"},
		{Op: txn.Take, Scope: txn.Agent, Key: "other", From: "x", To: "y"},
		{Op: txn.Time, Min: 0, Max: 1},
	}
}

var wholeLook = look{record: []string{"cell", "other"}, intents: []string{"i"}, queues: []string{"q", txn.Leases}}

func wholeCases() []testCase {
	return []testCase{
		{"whole/all or nothing", "half a transaction is a charge without its record", wholeEvery},
		{"whole/malformed", "what no store may accept must not half happen", wholeMalformed},
		{"whole/revisions", "a snapshot is reused while they stand still", wholeRevisions},
		{"whole/refusal", "the engine decides again by what a refusal brings", wholeRefusal},
		{"whole/time", "leases and freshness compare it", wholeTime},
		{"whole/an agent without a task", "operators act on agents", wholeAgent},
	}
}

func wholeEvery(e *env) {
	e.must(event(txn.Task, "old"), txn.Clause{Op: txn.Pend, Val: "old"}, txn.Clause{Op: txn.Queue, Key: "q", Val: "old", N: long})
	before := see(e, e.Store, "a", "t", wholeLook)
	for _, f := range failing() {
		for at := range len(written()) + 1 {
			t := &txn.Txn{Agent: "a", Task: "t", Phase: txn.Begin, Intent: "i", Fence: 1, Owner: "A", TTL: long,
				Clauses: slices.Insert(written(), at, f)}
			r := e.apply(t)
			require.False(e, r.OK, "%c at %d", f.Op, at)
			require.Equal(e, at, r.Failed, "%c: the one condition that does not hold", f.Op)
			require.Equal(e, before, see(e, e.Store, "a", "t", wholeLook), "%c refused at %d changed something", f.Op, at)
		}
	}
	t := begin("t", "i", written()...)
	r := e.apply(t)
	require.True(e, r.OK)
	after := see(e, e.Store, "a", "t", wholeLook)
	assert.Equal(e, []string{"old", "x"}, values(after.OfTask))
	assert.Equal(e, []string{"x"}, values(after.OfAgent))
	assert.Equal(e, "x", after.OfTask[0].Link)
	assert.Equal(e, []txn.Pending{{Seq: 2, Val: "x"}}, after.Pending)
	assert.Equal(e, []txn.Queued{{Member: "m", Due: r.Now}}, after.Queues["q"])
	require.True(e, e.apply(t).Replay)
	assert.Equal(e, after, see(e, e.Store, "a", "t", wholeLook), "a repeat changed something")
}

func wholeMalformed(e *env) {
	before := see(e, e.Store, "a", "t", wholeLook)
	p := txn.Clause{Op: txn.Put, Scope: txn.Task, Key: "cell", Val: "x"}
	for name, t := range map[string]*txn.Txn{
		"no agent":         {Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{p}},
		"no task":          {Agent: "a", Phase: txn.Plain, Clauses: []txn.Clause{p}},
		"no phase":         {Agent: "a", Task: "t", Clauses: []txn.Clause{p}},
		"no intent":        {Agent: "a", Task: "t", Phase: txn.Park, Fence: 1, Owner: "A", Clauses: []txn.Clause{p}},
		"no owner":         {Agent: "a", Task: "t", Phase: txn.Park, Intent: "i", Fence: 1, Clauses: []txn.Clause{p}},
		"no fence":         {Agent: "a", Task: "t", Phase: txn.Park, Intent: "i", Owner: "A", Clauses: []txn.Clause{p}},
		"no length":        {Agent: "a", Task: "t", Phase: txn.Begin, Intent: "i", Fence: 1, Owner: "A", Clauses: []txn.Clause{p}},
		"two writes":       {Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{p, p}},
		"no ledger":        {Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{p, event(txn.Record, "x")}},
		"unknown op":       {Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{p, {Op: 'z', Scope: txn.Task, Key: "k"}}},
		"the store's own":  {Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{p, {Op: txn.Queue, Key: txn.Leases, Val: "t\ni"}}},
		"beyond 2^53":      {Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{p, {Op: txn.Count, Scope: txn.Task, Key: "n", N: txn.NoMax + 1}}},
		"two lines intent": {Agent: "a", Task: "t", Phase: txn.Park, Intent: "i\nj", Fence: 1, Owner: "A", Clauses: []txn.Clause{p}},
	} {
		r, err := e.Store.Apply(e.ctx, t)
		assert.Error(e, err, name)
		assert.False(e, r.OK, name)
	}
	assert.Equal(e, before, see(e, e.Store, "a", "t", wholeLook))
}

func wholeRevisions(e *env) {
	task, agent := int64(0), int64(0)
	for _, c := range []struct {
		c           txn.Clause
		task, agent int64
	}{
		{txn.Clause{Op: txn.Put, Scope: txn.Task, Key: "k"}, 1, 0},
		{txn.Clause{Op: txn.Put, Scope: txn.Record, Key: "k"}, 1, 0},
		{txn.Clause{Op: txn.Put, Scope: txn.Agent, Key: "k"}, 0, 1},
		{txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "k", N: 1, Max: 9}, 1, 0},
		{txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "k", Max: 9}, 0, 0},
		{txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "k", N: 9, Max: 9}, 0, 0}, // refused
		{txn.Clause{Op: txn.Set, Scope: txn.Agent, Key: "k", To: "x"}, 0, 1},
		{txn.Clause{Op: txn.Take, Scope: txn.Agent, Key: "k", From: "x", To: "y"}, 0, 1},
		{txn.Clause{Op: txn.Take, Scope: txn.Agent, Key: "k", From: "x", To: "y"}, 0, 0}, // refused
		{txn.Clause{Op: txn.Take, Scope: txn.Agent, Key: "k", From: "x", To: "y", Soft: true}, 0, 1},
		{txn.Clause{Op: txn.Pend, Val: "o"}, 0, 1},
		{txn.Clause{Op: txn.Trim, N: 1}, 0, 1},
		{txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: "k", N: 1}, 0, 0},
		{txn.Clause{Op: txn.Have, Scope: txn.Task, Key: "k"}, 0, 0},
		{txn.Clause{Op: txn.Read, Scope: txn.Task, Key: "k"}, 0, 0},
		{txn.Clause{Op: txn.Event, Scope: txn.Task, Val: "e"}, 0, 0},
		{txn.Clause{Op: txn.Event, Scope: txn.Agent, Val: "e"}, 0, 0},
		{txn.Clause{Op: txn.Link, Scope: txn.Task, N: 1, Val: "e"}, 0, 0},
		{txn.Clause{Op: txn.Queue, Key: "q", Val: "m"}, 0, 0},
		{txn.Clause{Op: txn.Unqueue, Key: "q", Val: "m"}, 0, 0},
	} {
		r := e.plain(c.c)
		task, agent = task+c.task, agent+c.agent
		what := fmt.Sprintf("%c %c", c.c.Op, c.c.Scope)
		assert.Equal(e, []int64{task, agent}, []int64{r.TaskRev, r.AgentRev}, what)
		s := e.load(nil)
		assert.Equal(e, []int64{task, agent}, []int64{s.Task.Rev, s.Agent.Rev}, what)
	}
	r := e.must(written()[:6]...)
	assert.Equal(e, []int64{task + 1, agent + 1}, []int64{r.TaskRev, r.AgentRev}, "a transaction counts once")
}

func wholeRefusal(e *env) {
	in := func(sc txn.Scope, key string, c txn.Clause) txn.Clause { c.Scope, c.Key = sc, key; return c }
	e.must(in(txn.Task, "cell", put("x")), in(txn.Agent, "n", add(3)), in(txn.Record, "token", set("s", "v", 0)),
		in(txn.Task, "all", put("y")), in(txn.Task, "all", add(4)), in(txn.Task, "hidden", put("z")),
		txn.Clause{Op: txn.Pend, Val: "o"})
	e.must(in(txn.Agent, "n", put("a cell of the counter's name")))
	e.apply(begin("t", "i"))
	t := &txn.Txn{Agent: "a", Task: "t", Phase: txn.Settle, Intent: "i", Fence: 1, Owner: "A", Clauses: []txn.Clause{
		in(txn.Task, "cell", expect(9)), in(txn.Agent, "n", count(0, 0, 1)), in(txn.Record, "token", have("other", 0)),
		{Op: txn.Read, Scope: txn.Task, Key: "all"}, in(txn.Task, "absent", put("")), event(txn.Task, "e"),
	}}
	r := e.apply(t)
	require.False(e, r.OK)
	f := plainReply(r).Fresh
	require.NotNil(e, f)
	assert.Equal(e, map[string]txn.Cell{"cell": {Ver: 1, Val: "x"}, "all": {Ver: 1, Val: "y"}}, f.Task.Cells, "what the clauses name, and nothing else")
	assert.Equal(e, map[string]int64{"all": 4}, f.Task.Counters)
	assert.Equal(e, map[string]int64{"n": 3}, f.Agent.Counters)
	assert.Empty(e, f.Agent.Cells)
	assert.Equal(e, "s", f.Record.Tokens["token"].State)
	assert.Equal(e, []txn.Pending{{Seq: 1, Val: "o"}}, f.Pending)
	assert.Equal(e, f.Pending, r.Pending)
	assert.Equal(e, txn.Begin, f.Leases["i"].Phase)
	s := e.load(nil)
	assert.Equal(e, []int64{s.Task.Rev, s.Agent.Rev}, []int64{r.TaskRev, r.AgentRev})
	assert.Equal(e, []int64{s.Task.Rev, s.Agent.Rev}, []int64{f.Task.Rev, f.Agent.Rev})
	assert.Equal(e, r.Now, f.Now)
}

func wholeTime(e *env) {
	last := int64(0)
	for range 20 {
		r := e.must(event(txn.Task, "e"))
		assert.GreaterOrEqual(e, r.Now, last)
		last = r.Now
	}
	e.wait()
	s := e.load(nil)
	assert.GreaterOrEqual(e, s.Now, last+short)
	r := e.plain(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: "k", N: 1})
	assert.GreaterOrEqual(e, r.Now, s.Now, "a refusal carries the time too")
	for i, rec := range e.records("t", 1, 100) {
		assert.True(e, 0 < rec.At && rec.At <= last, "record %d", i)
	}
}

func wholeAgent(e *env) {
	t := &txn.Txn{Agent: "a", Phase: txn.Plain, Clauses: []txn.Clause{
		{Op: txn.Put, Scope: txn.Agent, Key: "k", Val: "x"}, event(txn.Agent, "e"), {Op: txn.Pend, Val: "o"}, {Op: txn.Queue, Key: "q", Val: "m"},
		{Op: txn.Read, Scope: txn.Agent, Key: "k"}, {Op: txn.Time, Max: txn.NoMax},
	}}
	r := e.apply(t)
	require.True(e, r.OK)
	assert.EqualValues(e, 1, r.AgentRev)
	require.NotNil(e, r.Fresh)
	assert.Equal(e, txn.Cell{Ver: 1, Val: "x"}, r.Fresh.Agent.Cells["k"])
	s, err := e.Store.Load(e.ctx, "a", "", nil)
	require.NoError(e, err)
	assert.Equal(e, txn.Cell{Ver: 1, Val: "x"}, s.Agent.Cells["k"])
	assert.Empty(e, s.Task.Cells)
	assert.Len(e, e.records("", 1, 9), 1)
	assert.Empty(e, e.records("t", 1, 9))
}
