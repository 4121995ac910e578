package delta_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// With one place for work, a call that waits for a child does not keep the child's own call from it.
func TestI18_WhoWaitsForAChildHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		write := spends("write", 1).RequireApproval().MustBuild()
		worker := delta.NewAgent("worker").Grant(write).MustBuild()
		plan := delta.Define("plan", func(ctx *delta.Context, in In) mo.Result[Out] {
			c, err := ctx.Delegate(delta.Goal{ID: "a", Agent: worker, Text: "write"})
			if err != nil {
				return mo.Err[Out](err)
			}
			task, err := c.Task(ctx)
			if err != nil {
				return mo.Err[Out](err)
			}
			if f := action.FailureOf(write.Do(ctx, task, In{ID: "x"}).Error()); f == nil || f.Code != action.ApprovalRequired {
				return mo.Err[Out](errors.New("nobody was asked"))
			}
			end, err := c.Wait(ctx)
			if err != nil {
				return mo.Err[Out](err)
			}
			return mo.Ok(Out{end.Ended})
		}).Describe("plan").Risk(1).Timeout(time.Hour).RequireApproval().MustBuild()
		lead := delta.NewAgent("lead").Grant(plan).MayDelegate(write).MustBuild()
		e := engineFor(t, delta.Config{Authenticator: anybody, Workers: 1, Poll: time.Second})
		task, err := e.Start(t.Context(), delta.Goal{Agent: lead, Approvers: []string{"*"}})
		require.NoError(t, err)
		boss, err := e.Authenticate(t.Context(), "boss")
		require.NoError(t, err)
		agent, err := e.Authenticate(t.Context(), "lead")
		require.NoError(t, err)
		f := action.FailureOf(plan.Do(t.Context(), task, In{ID: "x"}).Error())
		require.NotNil(t, f)
		require.NoError(t, e.Approve(t.Context(), f.Approval(), boss, ""))
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error)
		go func() { worked <- e.Work(ctx) }()
		time.Sleep(3 * time.Second)
		asked, err := e.Approvals(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, asked, 1, "the child's call")
		assert.ErrorContains(t, e.Approve(t.Context(), asked[0].ID, agent, ""), "for which the task works", "an ancestor decides nothing")
		require.NoError(t, e.Approve(t.Context(), asked[0].ID, boss, ""))
		time.Sleep(3 * time.Second)
		c, err := task.Child(t.Context(), "a")
		require.NoError(t, err)
		below, err := c.Task(t.Context())
		require.NoError(t, err)
		b, err := below.Budget(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 1, b.Spent.Calls, "the child's call ran while its parent's waited")
		require.NoError(t, below.Done(t.Context(), ""))
		time.Sleep(3 * time.Second)
		b, err = task.Budget(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 2, b.Spent.Calls, "and the parent's went on")
		stop()
		<-worked
	})
}

// An ended parent's child that was under way on an engine that died is ended by whoever works.
func TestI16_ACascadeIsFinishedByAnyWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Config{})
		w := newTeam(t, delta.Config{Store: store}, hundred())
		a := w.child("a", 10)
		stranger := engineFor(t, delta.Config{Store: store}) // does not know the worker
		require.NoError(t, stranger.Register(w.lead))
		task, err := stranger.Open(t.Context(), w.task.ID())
		require.NoError(t, err)
		require.NoError(t, task.Cancel(t.Context(), "enough"))
		f := action.FailureOf(w.find.Do(t.Context(), w.taskOf(a), In{ID: "x"}).Error())
		require.NotNil(t, f)
		assert.Equal(t, action.Cancelled, f.Code)
		_, reserved := w.tokens()
		assert.Zero(t, reserved)
	})
}
