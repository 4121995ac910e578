package delta_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// An instance that no worker has begun: who has the store alone can cancel it, and is told why nothing else can be said to it.
func TestAnInstanceThatNobodyBeganCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		pay := delta.Define("pay", func(*delta.Context, bill) mo.Result[string] { return mo.Ok("paid") }).Describe("Pay").Risk(1).MustBuild()
		agent := delta.NewAgent("till").Grant(pay).MustBuild()
		def := workflow.New("sale", "1").Owners("ana").Step(workflow.AskPerson("which").Hitl(workflow.Hitl{
			Who: []string{"ana"}, Intake: []byte(`{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}`)})).MustBuild()
		store := looked{memory.New(memory.Config{})}
		names := delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil })
		works, err := delta.New(delta.Config{Store: store, Authenticator: names, Workflows: delta.Workflows{Definitions: []*workflow.Definition{def}}})
		require.NoError(t, err)
		desk, err := delta.New(delta.Config{Store: store, Authenticator: names})
		require.NoError(t, err)
		defer func() { require.NoError(t, errors.Join(works.Close(ctx), desk.Close(ctx), store.Close())) }()
		run, err := works.StartWorkflow(ctx, def, delta.Goal{ID: "s1", Agent: agent}, nil)
		require.NoError(t, err)

		require.NoError(t, desk.Adopt(ctx, "till"))
		seen, err := desk.OpenWorkflow(ctx, run.ID())
		require.NoError(t, err)
		ana, err := desk.Authenticate(ctx, "ana")
		require.NoError(t, err)
		err = seen.Signal(ctx, "which", ana, []byte(`{"order":"o1"}`))
		require.ErrorIs(t, err, delta.ErrNoWorkflow)
		assert.ErrorContains(t, err, "no worker has begun it yet")
		assert.NotContains(t, err.Error(), "Config.Workflows", "an operator has none")
		require.NoError(t, seen.Cancel(ctx, ana, delta.CancelMode{}, "not wanted"))

		status, why, err := run.Task().Status(ctx)
		require.NoError(t, err)
		assert.Equal(t, []string{"cancelled", "not wanted"}, []string{status, why})
		stop := work(t, works)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		stop()
		s, err := run.State(ctx)
		require.NoError(t, err)
		assert.Equal(t, workflow.Status("cancelled"), s.Status)
		text := everything(t, store, "till", "s1")
		assert.NotContains(t, text, "workflow_start", "it never began, and its ledger says nothing else")
		assert.NotContains(t, text, "hitl_escalation")
		left, err := store.Queued(ctx, "till", "flows", queued{}, false, 10)
		require.NoError(t, err)
		assert.Empty(t, left)
	})
}

// meddled is a store that has something done before and after what is written of a task.
type meddled struct {
	memory.Store
	meddle func(x *txn.Txn, before bool)
}

func (m meddled) Apply(ctx context.Context, x *txn.Txn) (txn.Reply, error) {
	m.meddle(x, true)
	r, err := m.Store.Apply(ctx, x)
	m.meddle(x, false)
	return r, err
}

// A nested instance whose task is ended before anybody began it: it is not begun, and its parent goes on, whoever drives it.
func TestANestedInstanceThatNobodyBeganIsNotBegun(t *testing.T) {
	for name, before := range map[string]bool{"when it is taken in hand": true, "as soon as it is started": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, w := t.Context(), newFloor(t)
				part := sale("1", "charge")
				whole := workflow.New("whole", "1").Step(workflow.Run("part", "sale").Map("id", "input.id").
					Ladder(workflow.Rung{Kind: workflow.RungRetry, Attempts: 1})).MustBuild()
				var e *delta.Engine
				done := ""
				w.cfg.Store = meddled{w.store, func(x *txn.Txn, b bool) {
					holds := slices.ContainsFunc(x.Clauses, func(c txn.Clause) bool { return c.Key == "flow-hold" })
					if done != "" || !strings.HasPrefix(x.Task, "s.") || b != before || holds != before {
						return
					}
					done = x.Task
					child, err := e.Open(ctx, "shop~"+x.Task)
					require.NoError(t, err)
					require.NoError(t, child.Cancel(ctx, "not wanted"))
				}}
				e = w.engine(part, whole)
				defer func() { require.NoError(t, e.Close(ctx)) }()
				run := w.start(e, whole, delta.Goal{ID: "s", Approvers: []string{"ana"}})
				s, err := run.Run(ctx)
				require.NoError(t, err)
				require.NotEmpty(t, done)
				assert.Equal(t, workflow.Failed, s.Status)
				assert.ErrorContains(t, s.Failure, "not wanted")
				assert.NotContains(t, everything(t, w.store, "shop", done), "workflow_start")
				w.folds(run)
			})
		})
	}
}
