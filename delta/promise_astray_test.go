package delta_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

func as(t *testing.T, e *delta.Engine, name string) delta.Identity {
	id, err := e.Authenticate(t.Context(), name)
	require.NoError(t, err)
	return id
}

// TestI21_ATaskThatWentHidesNoRequest: what a queue names may be gone from the store; people still see all the rest, and
// Work takes it out.
func TestI21_ATaskThatWentHidesNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Config{})
		pay := spends("pay", 1).RequireApproval().MustBuild()
		desk := delta.NewAgent("desk").Grant(pay).MustBuild()
		e := engineFor(t, delta.Config{Authenticator: anybody, ApprovalTTL: 72 * time.Hour, Store: store})
		goal := delta.Goal{Agent: desk, Approvers: []string{"ana"}, Requester: "bo"}
		first, err := e.Start(t.Context(), goal)
		require.NoError(t, err)
		require.Error(t, pay.Do(t.Context(), first, In{ID: "x", N: 1}).Error())

		for _, q := range []string{engine.QueueDesk, engine.QueueAsks} { // as a worker leaves them that dies
			x := &txn.Txn{Agent: "desk", Phase: txn.Plain}
			x.Add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: q, Val: "desk~gone~id"}, txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: q, Val: "no id at all"})
			_, err := store.Apply(t.Context(), x)
			require.NoError(t, err)
		}
		for _, q := range []string{engine.QueueReady, engine.QueueGlass, engine.QueueTasks, engine.QueueEnds, engine.QueueReports, engine.QueueStarts, engine.QueueEscalations, engine.QueueUnknown} {
			x := &txn.Txn{Agent: "desk", Phase: txn.Plain}
			x.Add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: q, Val: "gone\nid"})
			_, err := store.Apply(t.Context(), x)
			require.NoError(t, err)
		}

		list, err := e.Approvals(t.Context(), 20)
		require.NoError(t, err)
		require.Len(t, list, 1)
		inbox, err := e.Inbox(t.Context(), as(t, e, "ana"))
		require.NoError(t, err)
		assert.Len(t, inbox, 1)
		_, err = e.Escalations(t.Context(), 20)
		require.NoError(t, err)
		_, err = e.Unresolved(t.Context(), 20)
		require.NoError(t, err)
		_, err = e.Tasks(t.Context(), delta.TaskQuery{})
		require.NoError(t, err)
		require.NoError(t, e.Approve(t.Context(), list[0].ID, as(t, e, "ana"), "fine"))

		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		require.ErrorIs(t, e.Work(ctx), context.DeadlineExceeded)
		for _, q := range []string{engine.QueueDesk, engine.QueueReady, engine.QueueGlass, engine.QueueEnds, engine.QueueReports, engine.QueueStarts, engine.QueueEscalations, engine.QueueUnknown} {
			members, err := store.Queued(t.Context(), "desk", q, txn.Queued{}, false, 20)
			require.NoError(t, err)
			for _, m := range members {
				assert.NotContains(t, m.Member, "gone", "queue %s", q)
			}
		}
	})
}

// failing loses loads while it is told to.
type failing struct {
	memory.Store
	loads atomic.Int64
}

func (f *failing) Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error) {
	if f.loads.Add(-1) >= 0 {
		return nil, errors.New("lost")
	}
	return f.Store.Load(ctx, agent, task, have)
}

// TestI21_AFaultOpensNoChannel: whether a task has a channel is decided by what the decision rests on, never by a look that
// can fail.
func TestI21_AFaultOpensNoChannel(t *testing.T) {
	for lost := range int64(4) {
		var sent atomic.Int64
		ch := delta.ChannelFunc(func(context.Context, delta.Message) error { sent.Add(1); return nil })
		store := &failing{Store: memory.New(memory.Config{})}
		desk := delta.NewAgent("desk").Grant(delta.Communicate().MustBuild()).MustBuild()
		e := engineFor(t, delta.Config{Store: store, Channels: map[string]delta.Channel{"ops": ch, "press": ch}})
		task, err := e.Start(t.Context(), delta.Goal{Agent: desk, Channels: []string{"ops"}})
		require.NoError(t, err)
		store.loads.Store(lost)
		o, err := task.Communicate(t.Context(), "press", "x").Get()
		assert.False(t, err == nil && o.OK())
		assert.Zero(t, sent.Load(), "%d loads were lost", lost)
		store.loads.Store(0)
		assert.Equal(t, action.ChannelUnknown, task.Communicate(t.Context(), "press", "x").MustGet().Code)
		assert.True(t, task.Communicate(t.Context(), "ops", "x").MustGet().OK())
	}
}

// TestApproversNobodyCanHear: an engine that vouches for nobody and shares its store with nobody asks nobody.
func TestApproversNobodyCanHear(t *testing.T) {
	pay := spends("pay", 1).RequireApproval().MustBuild()
	desk := delta.NewAgent("desk").Grant(pay).MustBuild()
	goal := delta.Goal{Agent: desk, Approvers: []string{"ana"}}
	for _, c := range []struct {
		reason string
		cfg    delta.Config
		want   action.Code
	}{
		{"nobody is vouched for, nowhere", delta.Config{}, action.NoApprover},
		{"another process may answer", delta.Config{Store: memory.New(memory.Config{})}, action.ApprovalRequired},
		{"people are vouched for", delta.Config{Authenticator: anybody}, action.ApprovalRequired},
	} {
		e := engineFor(t, c.cfg)
		task, err := e.Start(t.Context(), goal)
		require.NoError(t, err)
		f := action.FailureOf(pay.Do(t.Context(), task, In{ID: "x", N: 1}).Error())
		require.NotNil(t, f)
		assert.Equal(t, c.want, f.Code, c.reason)
		if c.want == action.NoApprover {
			assert.Contains(t, f.Explain(), "Config.Authenticator")
		}
	}
}
