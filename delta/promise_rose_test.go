package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// TestI05_RiskThatRoseWhileTheBeginWasOnItsWay: outcomes that another engine writes between decision and begin count. The
// call is given back unstarted, a person is asked, and the call's id stands for what then happens: it runs once.
func TestI05_RiskThatRoseWhileTheBeginWasOnItsWay(t *testing.T) {
	t.Run("folded by the other engine", func(t *testing.T) { riskRose(t, true) })
	t.Run("still pending", func(t *testing.T) { riskRose(t, false) })
}

func riskRose(t *testing.T, folds bool) {
	var runs, fail atomic.Int64
	work := delta.Define("work", func(_ *delta.Context, in In) mo.Result[Out] {
		if fail.Load() > 0 {
			return mo.Err[Out](errors.New("no"))
		}
		runs.Add(1)
		return mo.Ok(Out{"done"})
	}).Describe("Work").Risk(3).MustBuild()
	agent := delta.NewAgent("worker").Grant(work).MustBuild()
	store := &spy{Store: memory.New(memory.Config{})}
	auth := delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil })
	first, err := delta.New(delta.Config{Store: store, Authenticator: auth})
	require.NoError(t, err)
	defer first.Close(t.Context())
	theirs := &spy{Store: store.Store}
	theirs.before = func(x *txn.Txn) error {
		folding := slices.ContainsFunc(x.Clauses, func(c txn.Clause) bool { return c.Op == txn.Trim })
		if folding && !folds {
			return errDown
		}
		return nil
	}
	second, err := delta.New(delta.Config{Store: theirs})
	require.NoError(t, err)
	defer second.Close(t.Context())

	task, err := first.Start(t.Context(), delta.Goal{Agent: agent, ID: "one", Approvers: []string{"ana"}})
	require.NoError(t, err)
	other, err := second.Start(t.Context(), delta.Goal{Agent: agent, ID: "two", Threshold: 5, Approvers: []string{"ana"}})
	require.NoError(t, err)

	var once sync.Once
	store.set(func(s *spy) {
		s.before = func(x *txn.Txn) error {
			if x.Phase == txn.Begin {
				once.Do(func() {
					fail.Store(1)
					for _, id := range []string{"a", "b", "c"} {
						other.Do(t.Context(), delta.Call{Action: "work", Input: json.RawMessage(`{"id":"` + id + `"}`)})
					}
					fail.Store(0)
					if folds {
						require.NoError(t, second.Sync(t.Context()))
					}
				})
			}
			return nil
		}
	})
	call := delta.Call{ID: "call-1", Action: "work", Input: json.RawMessage(`{"id":"x"}`)}
	out := task.Do(t.Context(), call).MustGet()
	require.Equal(t, action.ApprovalRequired, out.Code, "%+v", out.Failure)
	require.Zero(t, runs.Load(), "nothing ran at a risk nobody approved")

	again := task.Do(t.Context(), call).MustGet()
	require.Equal(t, action.ApprovalRequired, again.Code, "the id stands for the parked call, not for the one given back")
	ana, err := first.Authenticate(t.Context(), "ana")
	require.NoError(t, err)
	require.NoError(t, first.Approve(t.Context(), again.Failure.Approval(), ana, "go on"))
	require.True(t, task.Do(t.Context(), call).MustGet().OK())
	recorded := task.Do(t.Context(), call).MustGet()
	require.True(t, recorded.OK())
	require.True(t, recorded.Recorded)
	require.EqualValues(t, 1, runs.Load())
}
