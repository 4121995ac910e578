package delta_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// When a task ends, nobody is asked any more about what will not run.
func TestEndedTasksAskNobody(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *treasury) error
		code action.Code
	}{
		{"cancelled", func(w *treasury) error { return w.task.Cancel(t.Context(), "enough") }, action.Cancelled},
		{"done", func(w *treasury) error { return w.task.Done(t.Context(), "enough") }, action.TaskClosed},
		{"concluded", func(w *treasury) error { return w.task.Conclude(t.Context(), action.Reached, "enough") }, action.TaskClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTreasury(t, nil)
			waits := w.asks("pay", `{"to":"bo","cents":5}`)
			given := w.asks("tip", `{"to":"bo","cents":7}`)
			require.NoError(t, w.approve(given, "boss"))
			require.NoError(t, c.end(w))
			for _, id := range []string{waits, given} {
				a, err := w.engine.Approval(t.Context(), id)
				require.NoError(t, err)
				assert.Equal(t, approval.Revoked, a.State)
				out, ended, err := w.task.Outcome(t.Context(), a.Intent)
				require.NoError(t, err)
				require.True(t, ended, "the call that waited has ended too")
				assert.Equal(t, c.code, out.Code)
			}
			open, err := w.engine.Approvals(t.Context(), 9)
			require.NoError(t, err)
			assert.Empty(t, open)
			assert.Subset(t, w.types(), []ledger.Type{ledger.ApprovalRevoked})
			assert.Zero(t, w.paid.Load())
		})
	}
}

// A preview asks nobody, and does not say that it did.
func TestPreviewAsksNobody(t *testing.T) {
	w := newTreasury(t, nil)
	v, err := w.task.Preview(t.Context(), delta.Call{Action: "pay", Input: []byte(`{"to":"bo","cents":5}`)}, nil)
	require.NoError(t, err)
	assert.Equal(t, action.ApprovalRequired, v.Code)
	assert.Contains(t, v.Failure.Message, "would be asked")
	open, err := w.engine.Approvals(t.Context(), 9)
	require.NoError(t, err)
	assert.Empty(t, open)
}

// An id that is taken says by what.
func TestStartTwice(t *testing.T) {
	w := newTreasury(t, nil)
	again := func() *action.Failure {
		_, err := w.engine.Start(t.Context(), delta.Goal{ID: "t", Agent: w.agent})
		return action.FailureOf(err)
	}
	assert.Equal(t, action.InFlight, again().Code)
	assert.Contains(t, again().Message, "is running: open it")
	require.NoError(t, w.task.Done(t.Context(), ""))
	assert.Equal(t, action.TaskClosed, again().Code)
}
