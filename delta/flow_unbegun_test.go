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

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
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
	})
}
