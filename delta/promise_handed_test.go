package delta_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// TestI16_AChildRepeatsNothingThatItsParentMustNot: what a person rejected in a task, and what may have happened there, is
// not done by children of it, nor by theirs.
func TestI16_AChildRepeatsNothingThatItsParentMustNot(t *testing.T) {
	var ran, lines atomic.Int64
	pay := counts("pay", &ran).RequireApproval().MustBuild()
	send := does("send", func(*delta.Context, In) mo.Result[Out] {
		lines.Add(1)
		return mo.Err[Out](action.Unknown(errors.New("line went dead")))
	}).Risk(1).MustBuild()
	agent := delta.NewAgent("a").Grant(pay, send).MustBuild()
	e := engineFor(t, delta.Config{Authenticator: anybody, Operators: []string{"op"}})
	task, err := e.Start(t.Context(), delta.Goal{ID: "t", Agent: agent, Approvers: []string{"ana"}})
	require.NoError(t, err)
	ana, err := e.Authenticate(t.Context(), "ana")
	require.NoError(t, err)
	require.NoError(t, e.Reject(t.Context(), task.Do(t.Context(), call("pay", "x")).MustGet().Failure.Approval(), ana, "no"))
	lost := task.Do(t.Context(), call("send", "x")).MustGet()
	require.Equal(t, action.StartedUnknown, lost.Code)

	child := func(of *delta.Task) *delta.Task {
		c, err := of.Delegate(t.Context(), delta.Goal{Agent: agent})
		require.NoError(t, err)
		sub, err := c.Task(t.Context())
		require.NoError(t, err)
		return sub
	}
	sub := child(task)
	for reason, of := range map[string]*delta.Task{"a child": sub, "a grandchild": child(sub)} {
		assert.Equal(t, action.ApprovalRejected, of.Do(t.Context(), call("pay", "x")).MustGet().Code, reason)
		assert.Equal(t, action.NotLegal, of.Do(t.Context(), call("send", "x")).MustGet().Code, reason)
		assert.Equal(t, action.ApprovalRequired, of.Do(t.Context(), call("pay", "y")).MustGet().Code, "%s: another call", reason)
	}
	assert.EqualValues(t, 1, lines.Load())
	assert.Zero(t, ran.Load())
	require.NoError(t, task.Resolve(t.Context(), lost.Intent, ana, false, nil, action.Cost{}, "it did not arrive"))
	assert.Equal(t, action.StartedUnknown, child(task).Do(t.Context(), call("send", "x")).MustGet().Code, "resolved, it may be made again")
}

// TestI16_AParentRepeatsNothingThatItsChildrenMustNot: what a person rejected in a child that has ended, and what may have happened
// there, is not done by its parent, by the children after it, or above its parent; until somebody finds out.
func TestI16_AParentRepeatsNothingThatItsChildrenMustNot(t *testing.T) {
	var ran, lines atomic.Int64
	pay := counts("pay", &ran).RequireApproval().MustBuild()
	send := does("send/out", func(*delta.Context, In) mo.Result[Out] {
		lines.Add(1)
		return mo.Err[Out](action.Unknown(errors.New("line went dead")))
	}).Risk(1).MustBuild()
	agent, worker := delta.NewAgent("a").Grant(pay, send).MustBuild(), delta.NewAgent("b").Grant(pay, send).MustBuild()
	store := memory.New(memory.Config{})
	e := engineFor(t, delta.Config{Store: store, Authenticator: anybody, Operators: []string{"op"}, Poll: time.Millisecond})
	task, err := e.Start(t.Context(), delta.Goal{ID: "t", Agent: agent, Approvers: []string{"ana"}})
	require.NoError(t, err)
	ana, err := e.Authenticate(t.Context(), "ana")
	require.NoError(t, err)
	child := func(of *delta.Task) (*delta.Child, *delta.Task) {
		c, err := of.Delegate(t.Context(), delta.Goal{Agent: worker})
		require.NoError(t, err)
		sub, err := c.Task(t.Context())
		require.NoError(t, err)
		return c, sub
	}
	do := func(of *delta.Task, name, order string) action.Outcome {
		return of.Do(t.Context(), call(name, order)).MustGet()
	}
	first, sub := child(task)
	below, subsub := child(sub)
	require.NoError(t, e.Reject(t.Context(), do(sub, "pay", "x").Failure.Approval(), ana, "no"))
	lost := do(subsub, "send/out", "x")
	require.Equal(t, action.StartedUnknown, lost.Code)
	require.NoError(t, subsub.Done(t.Context(), "done"))
	_, err = below.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, action.NotLegal, do(sub, "send/out", "x").Code, "the one above")
	require.NoError(t, sub.Done(t.Context(), "done"))
	_, err = first.Wait(t.Context())
	require.NoError(t, err)

	_, sibling := child(task)
	for reason, of := range map[string]*delta.Task{"its parent": task, "the child after it": sibling} {
		assert.Equal(t, action.ApprovalRejected, do(of, "pay", "x").Code, reason)
		out := do(of, "send/out", "x")
		assert.Equal(t, action.NotLegal, out.Code, reason)
		assert.NotEmpty(t, out.Failure.Details[action.DetailReason], "whose it was is said: %v", out.Failure)
		assert.Equal(t, action.ApprovalRequired, do(of, "pay", "y").Code, "%s: another call", reason)
	}
	assert.EqualValues(t, 1, lines.Load())
	assert.Zero(t, ran.Load())
	folds(t, store, "a", "t")

	require.NoError(t, subsub.Resolve(t.Context(), lost.Intent, ana, false, nil, action.Cost{}, "it did not arrive"))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Work(ctx) }()
	require.Eventually(t, func() bool { return do(task, "send/out", "x").Code == action.StartedUnknown }, 30*time.Second, 5*time.Millisecond, "once it is known, it may be made")
	stop()
	<-ended
}
