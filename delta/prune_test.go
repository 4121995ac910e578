package delta_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// faint is a store that fails where a test wants it to: the next so many transactions pass, then none does.
type faint struct {
	*memory.InProcess
	passes  atomic.Int64
	forgets atomic.Int64
}

var errFaint = errors.New("the store is gone")

func (f *faint) Shows() bool { return true }

func (f *faint) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	if f.passes.Add(-1) < 0 {
		return txn.Reply{}, errFaint
	}
	return f.InProcess.Apply(ctx, t)
}

func (f *faint) Forget(ctx context.Context, agent, task string, records int64, head string) error {
	if f.forgets.Add(-1) < 0 {
		return errFaint
	}
	return f.InProcess.Forget(ctx, agent, task, records, head)
}

// old is an engine with tasks that ended long ago.
type old struct {
	*testing.T
	store  *faint
	engine *delta.Engine
	agent  *delta.Agent
	act    delta.Definition
	by     delta.Identity
	passed atomic.Int64
	start  time.Time
}

func (o *old) now() time.Time { return o.start.Add(time.Duration(o.passed.Load())) }

func newOld(t *testing.T, tasks int) *old {
	o := &old{T: t, start: time.Now()}
	o.store = &faint{InProcess: memory.New(memory.Config{Keep: time.Hour, Clock: o.now})}
	o.store.passes.Store(1 << 40)
	o.store.forgets.Store(1 << 40)
	var err error
	o.engine, err = delta.New(delta.Config{Store: o.store, Now: o.now,
		Authenticator: delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil })})
	require.NoError(t, err)
	t.Cleanup(func() {
		o.store.passes.Store(1 << 40)
		assert.NoError(t, o.engine.Close(context.Background()))
		assert.NoError(t, o.store.Close())
	})
	o.by, err = o.engine.Authenticate(t.Context(), "ana")
	require.NoError(t, err)
	act := delta.Define("act", func(_ *delta.Context, in bill) mo.Result[string] {
		if in.Order == "lost" {
			return mo.Err[string](action.Unknown(errors.New("no answer")))
		}
		return mo.Ok("done")
	}).Describe("Act").Risk(1).MustBuild()
	ask := delta.Define("ask", func(*delta.Context, bill) mo.Result[string] { return mo.Ok("done") }).
		Describe("Ask").Risk(1).RequireApproval().MustBuild()
	o.act, o.agent = act, delta.NewAgent("desk").Grant(act, ask).MustBuild()
	for i := range tasks {
		o.task(fmt.Sprint("t", i), "a", "b")
	}
	return o
}

// task runs a task to its end.
func (o *old) task(id string, orders ...string) {
	t, err := o.engine.Start(o.Context(), delta.Goal{ID: id, Agent: o.agent, Approvers: []string{"ana"}})
	require.NoError(o, err)
	for _, x := range orders {
		_, err := t.Do(o.Context(), delta.Call{Action: "act", Input: fmt.Appendf(nil, `{"order":%q}`, x)}).Get()
		require.NoError(o, err)
	}
	_, err = t.Do(o.Context(), delta.Call{Action: "ask", Input: []byte(`{"order":"a"}`)}).Get()
	require.NoError(o, err)
	require.NoError(o, t.Done(o.Context(), "done"))
	require.NoError(o, o.engine.Sync(o.Context()))
}

func (o *old) age(d time.Duration) {
	o.passed.Add(int64(d))
	for range 8 { // the store tidies up with later transactions of the agent
		_, err := o.store.InProcess.Apply(o.Context(), &txn.Txn{Agent: "desk", Phase: txn.Plain})
		require.NoError(o, err)
	}
}

func (o *old) prune(p delta.Pruning) (delta.PruneReport, error) {
	p.Agent, p.By = "desk", o.by
	if p.Before.IsZero() {
		p.Before = o.now().Add(-24 * time.Hour)
	}
	return o.engine.Prune(o.Context(), p)
}

// checkpoints are the tasks that the agent's own ledger says were pruned.
func (o *old) checkpoints() (tasks []string) {
	records, _, err := o.engine.Ledger(o.Context(), "desk")
	require.NoError(o, err)
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		require.NoError(o, err)
		if e.Type == ledger.TaskPruned {
			assert.Equal(o, "ana", e.Identity)
			assert.Len(o, e.Digest, 64)
			tasks = append(tasks, fmt.Sprint(e.Child, " ", e.ToSeq))
		}
	}
	return tasks
}

func TestPruneLeavesACheckpoint(t *testing.T) {
	o := newOld(t, 2)
	o.task("lost", "lost")
	o.age(48 * time.Hour)
	o.task("young", "a")
	before, _, err := o.engine.Ledger(t.Context(), "desk~t0")
	require.NoError(t, err)
	require.NotEmpty(t, before)

	exported := map[string]int{}
	report, err := o.prune(delta.Pruning{Reason: "old", Export: func(_ context.Context, task delta.Pruned, records []txn.Stored) error {
		exported[task.ID] = len(records)
		_, err := ledger.Verify(ledger.Genesis("desk", task.ID[len("desk~"):]), records)
		return err
	}})
	require.NoError(t, err)
	require.Len(t, report.Pruned, 2)
	assert.Equal(t, []string{"desk~lost"}, report.Kept, "an unknown outcome is for somebody to resolve")
	assert.Equal(t, map[string]int{"desk~t0": len(before), "desk~t1": len(before)}, exported)
	assert.Equal(t, []string{fmt.Sprint("t0 ", len(before)), fmt.Sprint("t1 ", len(before))}, o.checkpoints())

	left, _, err := o.engine.Ledger(t.Context(), "desk~t0")
	require.NoError(t, err)
	assert.Empty(t, left)
	page, err := o.engine.Tasks(t.Context(), delta.TaskQuery{Ended: true})
	require.NoError(t, err)
	var ids []string
	for _, s := range page.Tasks {
		ids = append(ids, s.ID)
	}
	assert.Equal(t, []string{"desk~lost", "desk~young"}, ids)
	history, err := o.engine.History(t.Context(), delta.HistoryQuery{Agent: "desk"})
	require.NoError(t, err)
	for _, h := range history.Outcomes {
		assert.NotContains(t, []string{"t0", "t1"}, h.Task)
	}
	asks, err := o.store.Queued(t.Context(), "desk", "asks", txn.Queued{}, false, 10)
	require.NoError(t, err)
	assert.Empty(t, asks, "requests end with their tasks")

	report, err = o.prune(delta.Pruning{})
	require.NoError(t, err)
	assert.Empty(t, report.Pruned)
	assert.Len(t, o.checkpoints(), 2, "once")
}

// Of a call that was approved in a task that was pruned is said that one was, and when; not that there was none.
func TestPruned_WhatWasApprovedLast(t *testing.T) {
	for _, tenant := range []string{"", "acme"} {
		o := newOld(t, 0)
		asks := func(id string) (*delta.Task, delta.Approval) {
			task, err := o.engine.Start(t.Context(), delta.Goal{ID: id, Tenant: tenant, Agent: o.agent, Approvers: []string{"ana"}})
			require.NoError(t, err)
			out := task.Do(t.Context(), delta.Call{Action: "ask", Input: []byte(`{"order":"a"}`)}).MustGet()
			a, err := o.engine.Approval(t.Context(), out.Failure.Approval())
			require.NoError(t, err)
			return task, a
		}
		task, a := asks("before")
		require.Nil(t, a.Last)
		require.NoError(t, o.engine.Approve(t.Context(), a.ID, o.by, "fine"))
		require.NoError(t, task.Done(t.Context(), "done"))
		require.NoError(t, o.engine.Sync(t.Context()))
		o.age(48 * time.Hour)
		report, err := o.prune(delta.Pruning{Reason: "old"})
		require.NoError(t, err)
		require.Len(t, report.Pruned, 1)
		_, a = asks("after")
		require.NotNil(t, a.Last, tenant)
		assert.True(t, a.Last.Gone, tenant)
		assert.False(t, a.Last.At.IsZero())
		assert.Contains(t, a.Explain(), "cannot be read any more")
	}
}

// A prune that breaks off anywhere is simply repeated: nothing is dropped without its checkpoint, none is written twice, and
// nothing is left behind.
func TestPruneBreaksOffAnywhere(t *testing.T) {
	for n := range int64(8) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			o := newOld(t, 2)
			o.age(48 * time.Hour)
			o.store.passes.Store(n / 2)
			o.store.forgets.Store(n % 2)
			_, err := o.prune(delta.Pruning{})
			require.Error(t, err)
			o.store.passes.Store(1 << 40)
			for i, left := range []string{"t0", "t1"} {
				records, _, err := o.engine.Ledger(t.Context(), "desk~"+left)
				require.NoError(t, err)
				if len(records) == 0 {
					assert.Greater(t, len(o.checkpoints()), i, "a ledger goes after its checkpoint is written")
				}
			}
			o.store.forgets.Store(1 << 40)
			report, err := o.prune(delta.Pruning{})
			require.NoError(t, err)
			assert.LessOrEqual(t, len(report.Pruned)+len(report.Resumed), 2)
			require.Len(t, o.checkpoints(), 2)
			for _, queue := range []string{"ended", "pruned", "history", "asks", "desk"} {
				left, err := o.store.Queued(t.Context(), "desk", queue, txn.Queued{}, false, 10)
				require.NoError(t, err)
				assert.Empty(t, left, queue)
			}
		})
	}
}

func TestPruneDropsNothingThatIsNotWhole(t *testing.T) {
	o := newOld(t, 1)
	o.age(48 * time.Hour)
	_, err := o.prune(delta.Pruning{Export: func(context.Context, delta.Pruned, []txn.Stored) error { return errors.New("the disk is full") }})
	require.ErrorContains(t, err, "the disk is full")
	records, _, err := o.engine.Ledger(t.Context(), "desk~t0")
	require.NoError(t, err)
	assert.NotEmpty(t, records)
	assert.Empty(t, o.checkpoints())
	_, err = o.engine.Prune(t.Context(), delta.Pruning{Agent: "desk", By: o.by})
	require.ErrorContains(t, err, "before when")
	_, err = o.engine.Prune(t.Context(), delta.Pruning{Agent: "nobody", By: o.by, Before: o.now()})
	require.ErrorContains(t, err, "not registered")
	_, err = o.engine.Prune(t.Context(), delta.Pruning{Agent: "desk", Before: o.now()})
	require.ErrorIs(t, err, delta.ErrNobody)
}
