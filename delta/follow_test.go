package delta

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// reality is a store, and a task of an engine that sends it transactions.
type reality struct {
	state   txn.State
	pending []txn.Pending
	seq     int64
	task    *Task
}

func newReality() *reality {
	e := &Engine{cfg: Config{Now: time.Now}}
	return &reality{state: txn.NewState(), task: &Task{engine: e, local: "t", facted: -1, state: &agentState{}}}
}

// write has the store accept a transaction.
func (w *reality) write(x *txn.Txn) txn.Reply {
	w.seq++
	w.state.Replay(x.Clauses, w.seq)
	inTask, inAgent := x.Raises()
	w.state.Task.Rev += one(inTask)
	w.state.Agent.Rev += one(inAgent)
	for i := range x.Clauses {
		if x.Clauses[i].Op == txn.Pend {
			w.pending = append(w.pending[:len(w.pending):len(w.pending)], txn.Pending{Seq: w.seq})
		}
	}
	return txn.Reply{OK: true, Now: w.seq, TaskRev: w.state.Task.Rev, AgentRev: w.state.Agent.Rev, Pending: w.pending}
}

func (w *reality) draw(t *rapid.T) *txn.Txn {
	x := &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain}
	for i := range rapid.IntRange(1, 3).Draw(t, "clauses") {
		sc := rapid.SampledFrom([]txn.Scope{txn.Task, txn.Agent}).Draw(t, "scope")
		key := fmt.Sprint(i, rapid.IntRange(0, 1).Draw(t, "key"))
		x.Add(rapid.SampledFrom([]txn.Clause{
			{Op: txn.Put, Scope: sc, Key: key, Val: fmt.Sprint(w.seq)},
			{Op: txn.Count, Scope: sc, Key: key, N: 1, Min: txn.NoMin, Max: txn.NoMax},
			{Op: txn.Take, Scope: sc, Key: key, From: "a", To: "b", Soft: true},
			{Op: txn.Set, Scope: sc, Key: key, To: "a"},
			{Op: txn.Pend},
			{Op: txn.Event, Scope: txn.Task},
		}).Draw(t, "clause"))
	}
	return x
}

// What is known is at every moment the store as it was at one revision of each space, in whatever order replies come; and
// once all have come nothing is missing, so that nothing was read.
func TestRepliesComeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newReality()
		was := map[txn.Scope]map[int64]txn.Space{txn.Task: {0: txn.NewSpace()}, txn.Agent: {0: txn.NewSpace()}}
		type sent struct {
			x *txn.Txn
			r txn.Reply
		}
		var flying []sent
		arrives := func(i int) {
			w.task.advance(flying[i].x, flying[i].r, nil)
			flying = append(flying[:i], flying[i+1:]...)
			a := w.task.state
			a.mu.Lock()
			defer a.mu.Unlock()
			require.False(t, w.task.lags(), "its own are on their way")
			require.False(t, a.lags())
			require.Equal(t, was[txn.Task][w.task.space.Rev], w.task.space.Clone())
			require.Equal(t, was[txn.Agent][a.space.Rev], a.space.Clone())
		}
		for range rapid.IntRange(1, 12).Draw(t, "transactions") {
			x := w.draw(t)
			w.task.state.sends(x)
			flying = append(flying, sent{x, w.write(x)})
			was[txn.Task][w.state.Task.Rev], was[txn.Agent][w.state.Agent.Rev] = w.state.Task.Clone(), w.state.Agent.Clone()
			for len(flying) > 0 && rapid.Bool().Draw(t, "arrives") {
				arrives(rapid.IntRange(0, len(flying)-1).Draw(t, "which"))
			}
		}
		for len(flying) > 0 {
			arrives(rapid.IntRange(0, len(flying)-1).Draw(t, "which"))
		}
		require.Equal(t, w.state.Task.Rev, w.task.space.Rev)
		require.Equal(t, w.state.Agent.Rev, w.task.state.space.Rev)
		require.Equal(t, w.pending, w.task.state.pending)
		require.Empty(t, w.task.flow.ahead)
		require.Empty(t, w.task.state.flow.ahead)
	})
}

// A revision that no transaction of this engine's own can have made is somebody else's, as soon as those have landed that
// were under way when it was noticed, however many are sent meanwhile; a reading mends it, and takes what waited.
func TestSomebodyElseWrote(t *testing.T) {
	w := newReality()
	task, a := w.task, w.task.state
	next := func() (*txn.Txn, txn.Reply) {
		x := &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{
			{Op: txn.Pend}, {Op: txn.Count, Scope: txn.Task, Key: "n", N: 1, Min: txn.NoMin, Max: txn.NoMax},
		}}
		a.sends(x)
		return x, w.write(x)
	}
	lag := func() [2]bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return [2]bool{task.lags(), a.lags()}
	}
	slow, late := next()
	w.write(&txn.Txn{Agent: "a", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Pend}}}) // of another engine, to the agent
	x, r := next()
	task.advance(x, r, nil)
	assert.Equal(t, [2]bool{false, false}, lag(), "the slow one may have made both")
	busy, answer := next()
	task.advance(slow, late, nil)
	x, r = next()
	assert.Equal(t, [2]bool{false, false}, lag(), "one may have been sent before it was known what is missing now")
	task.advance(busy, answer, nil)
	task.advance(x, r, nil)
	assert.Equal(t, [2]bool{false, true}, lag(), "the task knows all of its own")

	loaded := &txn.Snapshot{State: w.state.Clone(), Now: w.seq, Pending: w.pending}
	x, r = next()
	task.advance(x, r, nil)
	a.mu.Lock()
	told := [2]int64{task.flow.told, a.flow.told}
	require.True(t, task.take(loaded, told))
	a.mu.Unlock()
	assert.Equal(t, [2]bool{false, false}, lag())
	assert.Equal(t, w.state.Agent.Rev, a.space.Rev)
	assert.Equal(t, w.pending, a.pending)
	assert.Equal(t, w.state.Task, task.space.Clone())

	slow, _ = next()
	x, r = next()
	task.advance(x, r, nil)
	assert.Equal(t, [2]bool{false, false}, lag())
	a.landed(slow)
	assert.Equal(t, [2]bool{true, true}, lag(), "its answer was lost: what it did is to be read")
}
