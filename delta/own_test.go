package delta

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// sharedStore is a store whose clock can be moved, for several engines.
type sharedStore struct {
	*memory.InProcess
	ahead atomic.Int64
}

func newSharedStore(t *testing.T) *sharedStore {
	s := &sharedStore{}
	s.InProcess = memory.New(memory.Config{Clock: func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (s *sharedStore) engine(t *testing.T, agent *Agent) *Engine {
	e, err := New(Config{Store: s.InProcess})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	require.NoError(t, e.Register(agent))
	return e
}

// A call that runs here has a worker, however long its lease has run out: who takes over is another engine.
func TestI17_NoEngineTakesOverFromItself(t *testing.T) {
	for _, own := range []bool{true, false} {
		started, release := make(chan string), make(chan struct{})
		act := Define("act", func(ctx *Context, _ struct{}) mo.Result[string] {
			started <- ctx.ExecutionID()
			<-release
			return mo.Ok("done")
		}).Describe("Act").Risk(1).MustBuild()
		agent := NewAgent("agent").Grant(act).MustBuild()
		store := newSharedStore(t)
		e := store.engine(t, agent)
		task, err := e.Start(t.Context(), Goal{ID: "t", Agent: agent})
		require.NoError(t, err)
		out := make(chan action.Outcome, 1)
		go func() { out <- task.Do(context.Background(), Call{Action: "act"}).MustGet() }()
		intent := <-started

		store.ahead.Store(int64(time.Hour))
		due, err := store.Queued(t.Context(), "agent", txn.Leases, txn.Queued{}, true, 9)
		require.NoError(t, err)
		require.Len(t, due, 1, "its lease has run out")
		worker := e
		if !own {
			worker = store.engine(t, agent)
		}
		require.NoError(t, worker.takeOver(t.Context(), worker.state(agent), due[0].Member))

		close(release)
		got := <-out
		assert.Equal(t, intent, got.Intent)
		if own {
			assert.True(t, got.OK(), "%v", got.Failure)
		} else {
			assert.Equal(t, action.Late, got.Code, "another engine cannot know")
		}
	}
}

// Reading one task anew says nothing of another: what that has missed stays marked until it is read itself.
func TestEachTaskKnowsItsOwnGap(t *testing.T) {
	act := Define("act", func(*Context, struct{}) mo.Result[string] { return mo.Ok("done") }).Describe("Act").Risk(1).MustBuild()
	then := Define("then", func(*Context, struct{}) mo.Result[string] { return mo.Ok("done") }).Describe("Then").Risk(1).Needs(act).MustBuild()
	agent := NewAgent("agent").Grant(act, then).MustBuild()
	store := newSharedStore(t)
	here, there := store.engine(t, agent), store.engine(t, agent)
	one, err := here.Start(t.Context(), Goal{ID: "one", Agent: agent})
	require.NoError(t, err)
	two, err := here.Start(t.Context(), Goal{ID: "two", Agent: agent})
	require.NoError(t, err)
	require.Equal(t, action.NotLegal, then.call1(t, one))
	require.NoError(t, two.refresh(t.Context(), true))

	elsewhere, err := there.Open(t.Context(), one.ID())
	require.NoError(t, err)
	require.Equal(t, action.OK, act.call1(t, elsewhere))
	one.state.mu.Lock()
	one.gap, one.state.gap = true, true // as a reply of that task would have told
	one.state.mu.Unlock()

	require.NoError(t, two.refresh(t.Context(), false))
	one.state.mu.Lock()
	assert.True(t, one.gap, "nobody has read it")
	assert.False(t, two.gap)
	assert.False(t, one.state.gap, "the agent has been read")
	one.state.mu.Unlock()
	require.NoError(t, one.refresh(t.Context(), false))
	assert.False(t, one.gap)
	held := one.snapshot(nil).Task.Tokens
	assert.NotEmpty(t, held, "what happened elsewhere is known")
	assert.Equal(t, action.OK, then.call1(t, one))
}

func (a *Action[In, Out]) call1(t *testing.T, task *Task) action.Code {
	out, err := task.Do(t.Context(), Call{Action: a.Name()}).Get()
	require.NoError(t, err)
	return out.Code
}

func TestIDsAndOwnersNeverRepeat(t *testing.T) {
	var ids idSource
	owners := ownerSource{engine: "engine"}
	seen := map[string]bool{}
	for range 3*idBatch + 1 {
		id, owner := ids.next(), owners.next()
		require.Len(t, id, idLen)
		require.Regexp(t, `^engine\.[0-9]+$`, owner)
		require.False(t, seen[id] || seen[owner])
		seen[id], seen[owner] = true, true
	}
}

// Children that do not come to be hold nothing in memory: neither those that are refused nor those that never began.
func TestNoAttachmentsOfChildrenThatAreNone(t *testing.T) {
	lead := NewAgent("lead").Grant(Define("pay", func(*Context, struct{}) mo.Result[string] { return mo.Ok("") }).Describe("pay").MustBuild()).MustBuild()
	e := newSharedStore(t).engine(t, lead)
	task, err := e.Start(t.Context(), Goal{Agent: lead, Limit: action.Limit{Calls: action.Max(100)}, Delegation: Delegation{Active: 1, Queued: 1}})
	require.NoError(t, err)
	kept := e.cfg.Attachments.(*inMemory)
	delegate := func(name string, calls int64) error {
		_, err := task.Delegate(t.Context(), Goal{ID: name, Agent: lead, Limit: action.Limit{Calls: action.Max(calls)}, Attachments: []Attachment{{ID: "x", Data: []byte(name)}}})
		return err
	}
	require.Error(t, delegate("dear", 500))
	assert.Empty(t, kept.of, "over the budget")
	require.NoError(t, delegate("one", 1))
	require.NoError(t, delegate("two", 1))
	require.Error(t, delegate("three", 1), "the queue is full")
	require.NoError(t, delegate("two", 1), "asked for again")
	assert.Len(t, kept.of, 2)
	require.NoError(t, task.Cancel(t.Context(), "stop"))
	assert.Empty(t, kept.of, "one ended, the other never began")
	assert.Empty(t, kept.content)
	require.Error(t, delegate("four", 1), "the task has ended")
	require.NoError(t, delegate("two", 1), "it was")
	assert.Empty(t, kept.of)
}
