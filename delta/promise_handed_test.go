package delta_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
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
