package memorytest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

func keepCases() []testCase {
	return []testCase{
		{"keep/ended intents go", "a process that runs for a year must not hold every call of it", keepEnded},
		{"keep/refused intents go", "whoever is refused all day fills the store", keepRefused},
		{"keep/not before", "the repeat of a call would run again", keepNotBefore},
		{"keep/what is at work stays", "a person may take longer than that", keepAtWork},
		{"keep/counted from the last", "what was put after the end is of the intent too", keepLast},
		{"keep/kept until said otherwise", "an unknown outcome is resolved some day", keepKept},
		{"keep/what is of the task stays", "an id that was used must not be used again", keepSoft},
		{"keep/another's cell stays", "it was put by somebody who did not end", keepOthers},
		{"keep/what no intent put stays", "nobody said that it goes", keepPlain},
		{"keep/tasks that are over go", "a process that runs for a year must not hold every task of it", keepTask},
		{"keep/a task at work stays", "its calls settle, and unknown outcomes are resolved", keepTaskAtWork},
		{"keep/tasks that are not over stay", "it may wait for a person for ever", keepTaskOpen},
	}
}

// outlive lets pass what keeps, and has the store tidy up: it may do so a little at a time.
func (e *env) outlive() {
	if e.Keep == 0 {
		e.Skip("the store's Keep cannot be waited for")
	}
	e.Advance(e.Keep + time.Millisecond)
	for range 8 {
		e.must(event(txn.Agent, "later"))
	}
}

// now is the store's time.
func (e *env) now() int64 {
	e.Helper()
	return e.must(txn.Clause{Op: txn.Read, Scope: txn.Task, Key: "nothing"}).Now
}

// inTime looks at what a store has while it must keep it: look does so for the intent it is given, and says for how long, by
// the store's clock, something had to be kept, and what is to be said of it. That is judged unless it took longer than the
// store keeps things: where its clock is the wall clock, a busy machine gets further tries.
func (e *env) inTime(look func(intent string) (took int64, judge func())) {
	e.Helper()
	for try := range 20 {
		if took, judge := look(fmt.Sprint("i", try)); e.Keep <= 0 || took < e.Keep.Microseconds() {
			judge()
			return
		}
	}
	e.Fatalf("nothing of this could be seen within %v", e.Keep)
}

// soon judges what holds until what ended at the time goes.
func (e *env) soon(ended int64, judge func()) {
	e.Helper()
	if e.Keep > 0 && e.now()-ended >= e.Keep.Microseconds() {
		e.Logf("not looked at: the machine is too busy to look within %v", e.Keep)
		return
	}
	judge()
}

func record(key string) txn.Clause {
	return txn.Clause{Op: txn.Put, Scope: txn.Record, Key: key, Val: key}
}

// settle is the settle of an intent that begin began.
func settle(intent string, cs ...txn.Clause) *txn.Txn {
	return &txn.Txn{Agent: "a", Task: "t", Phase: txn.Settle, Intent: intent, Fence: 1, Owner: "A", Clauses: cs}
}

// life begins and settles an intent, which puts the cells KEY/begun and KEY/ended.
func (e *env) life(intent string, at ...txn.Clause) {
	e.Helper()
	require.True(e, e.apply(begin("t", intent, record(intent+"/begun"), event(txn.Task, "begun"))).OK)
	require.True(e, e.apply(settle(intent, append(at, record(intent+"/ended"), event(txn.Task, "ended"))...)).OK)
}

// holds reports which of the cells of scope Record the store has.
func (e *env) holds(keys ...string) (out []string) {
	e.Helper()
	for _, k := range keys {
		if c, _, _ := e.read(txn.Record, k); c.Ver > 0 {
			out = append(out, k)
		}
	}
	return out
}

func keepEnded(e *env) {
	for i := range 5 {
		e.life(fmt.Sprint("i", i))
	}
	e.outlive()
	for i := range 5 {
		id := fmt.Sprint("i", i)
		assert.Empty(e, e.holds(id+"/begun", id+"/ended"), id)
		_, has := e.lease(id)
		assert.False(e, has, id)
	}
	assert.Len(e, e.records("t", 1, 100), 10, "the ledger stays")
	assert.Empty(e, e.queued(txn.Leases, txn.Queued{}, false, 9))
	e.life("i0") // as if it had never been
	assert.Len(e, e.holds("i0/begun", "i0/ended"), 2)
}

func keepRefused(e *env) {
	require.True(e, e.apply(&txn.Txn{Agent: "a", Task: "t", Phase: txn.Refuse, Intent: "i", Fence: 1, Owner: "A", Clauses: []txn.Clause{record("k")}}).OK)
	e.outlive()
	assert.Empty(e, e.holds("k"))
	_, has := e.lease("i")
	assert.False(e, has)
}

func keepNotBefore(e *env) {
	e.inTime(func(i string) (int64, func()) {
		from := e.now()
		e.life(i)
		if e.Keep > 0 {
			e.Advance(e.Keep - e.Keep/8)
		}
		held, again := e.holds(i+"/begun", i+"/ended"), e.apply(settle(i))
		return e.now() - from, func() {
			assert.Equal(e, []string{i + "/begun", i + "/ended"}, held)
			assert.True(e, again.Replay)
		}
	})
}

func keepSoft(e *env) {
	soft := func(key string) txn.Clause { c := record(key); c.Soft = true; return c }
	require.True(e, e.apply(begin("t", "i", soft("id"), record("mine"), soft("twice"), record("thrice"))).OK)
	require.True(e, e.apply(settle("i", record("twice"), soft("thrice"))).OK)
	e.outlive()
	assert.Equal(e, []string{"id", "thrice"}, e.holds("id", "mine", "twice", "thrice"), "as it was put last")
	e.must(event(txn.Task, "ended"), over())
	e.outlive()
	assert.Empty(e, e.holds("id", "thrice"), "they go with the task")
}

func keepAtWork(e *env) {
	require.True(e, e.apply(&txn.Txn{Agent: "a", Task: "t", Phase: txn.Park, Intent: "parked", Fence: 1, Owner: "A", Clauses: []txn.Clause{record("parked")}}).OK)
	require.True(e, e.apply(begin("t", "begun", record("begun"))).OK)
	e.outlive()
	assert.Equal(e, []string{"parked", "begun"}, e.holds("parked", "begun"))
	require.True(e, e.apply(begin("t", "parked")).OK)
	require.True(e, e.apply(settle("parked")).OK)
	require.True(e, e.apply(settle("begun")).OK)
	e.outlive()
	assert.Empty(e, e.holds("parked", "begun"))
}

func keepLast(e *env) {
	var keys []string
	e.inTime(func(i string) (int64, func()) {
		keys = []string{i + "/begun", i + "/ended", i + "/later"}
		from := e.now()
		e.life(i)
		if e.Keep > 0 {
			e.Advance(e.Keep - e.Keep/8)
		}
		before := e.now()
		put := e.apply(&txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain, Intent: i, Clauses: []txn.Clause{record(keys[2]), record(keys[1])}})
		if e.Keep > 0 {
			e.Advance(e.Keep / 4)
		}
		e.must(event(txn.Agent, "later"))
		held := e.holds(keys...)
		return max(put.Now-from, e.now()-before), func() {
			assert.True(e, put.OK)
			assert.Len(e, held, 3)
		}
	})
	e.outlive()
	assert.Empty(e, e.holds(keys...))
}

func keepKept(e *env) {
	e.life("i", txn.Clause{Op: txn.Expire, Scope: txn.Record, Key: "i", N: -1})
	e.outlive()
	assert.Len(e, e.holds("i/begun", "i/ended"), 2)
	assert.True(e, e.apply(settle("i")).Replay)
	ended := e.must(txn.Clause{Op: txn.Expire, Scope: txn.Record, Key: "i"}, txn.Clause{Op: txn.Expire, Scope: txn.Record, Key: "unknown", N: -1}).Now
	held := e.holds("i/begun", "i/ended")
	e.soon(ended, func() { assert.Len(e, held, 2, "not at once") })
	e.outlive()
	assert.Empty(e, e.holds("i/begun", "i/ended"))
}

func keepOthers(e *env) {
	e.life("i")
	require.True(e, e.apply(begin("t", "j", record("i/ended"))).OK)
	e.outlive()
	assert.Equal(e, []string{"i/ended"}, e.holds("i/begun", "i/ended"))
}

func keepPlain(e *env) {
	e.must(record("k"))
	e.life("i")
	e.outlive()
	assert.Equal(e, []string{"k"}, e.holds("k"))
}

func over() txn.Clause { return txn.Clause{Op: txn.Expire, Scope: txn.Task} }

func keepTask(e *env) {
	e.life("i")
	ended := e.must(append(written(), over())...).Now
	was := e.load(nil)
	books := e.records("t", 1, 100)
	e.soon(ended, func() { assert.NotEmpty(e, was.Task.Cells, "not at once") })
	e.outlive()
	s := e.load(was)
	assert.Greater(e, s.Task.Rev, was.Task.Rev)
	s.Task.Rev = 0
	assert.Equal(e, txn.NewSpace(), full(s.Task))
	assert.EqualValues(e, 1, s.Agent.Counters["n"], "the agent's own is not of the task")
	assert.Empty(e, e.holds("cell", "i/begun", "i/ended"))
	assert.Equal(e, books, e.records("t", 1, 100), "its ledger stays")
	for what, c := range map[string]txn.Clause{
		"a cell": {Op: txn.Put, Scope: txn.Task, Key: "k"}, "a record": record("k"), "an event": event(txn.Task, "e"),
		"a counter": {Op: txn.Count, Scope: txn.Task, Key: "n", N: 1, Max: 1}, "a token": {Op: txn.Set, Scope: txn.Task, Key: "k", To: "x"},
	} {
		r := e.plain(c)
		assert.False(e, r.OK, "%s: an id is not used twice", what)
		assert.Equal(e, -1, r.Failed, what)
		assert.NotNil(e, r.Fresh, what)
	}
	assert.False(e, e.apply(begin("t", "j")).OK)
	e.must(txn.Clause{Op: txn.Link, Scope: txn.Task, N: 2, Val: "link"})
	assert.Equal(e, "link", e.records("t", 2, 1)[0].Link)
}

func keepTaskAtWork(e *env) {
	require.True(e, e.apply(begin("t", "i", record("i"))).OK)
	e.life("unknown", txn.Clause{Op: txn.Expire, Scope: txn.Record, Key: "unknown", N: -1})
	e.must(txn.Clause{Op: txn.Put, Scope: txn.Task, Key: "k", Val: "v"}, over())
	e.outlive()
	assert.NotEmpty(e, e.load(nil).Task.Cells, "an intent runs and another is kept")
	require.True(e, e.apply(settle("i")).OK)
	e.outlive()
	assert.NotEmpty(e, e.load(nil).Task.Cells, "an intent is kept")
	ended := e.must(txn.Clause{Op: txn.Expire, Scope: txn.Record, Key: "unknown"}).Now
	cells := e.load(nil).Task.Cells
	e.soon(ended, func() { assert.NotEmpty(e, cells, "not at once") })
	e.outlive()
	assert.Empty(e, e.load(nil).Task.Cells)
	assert.False(e, e.plain(event(txn.Task, "e")).OK)
}

func keepTaskOpen(e *env) {
	e.must(txn.Clause{Op: txn.Put, Scope: txn.Task, Key: "k", Val: "v"})
	e.outlive()
	e.outlive()
	assert.NotEmpty(e, e.load(nil).Task.Cells)
	e.must(event(txn.Task, "e"))
}
