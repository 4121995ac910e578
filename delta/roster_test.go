package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// till is a workflow that charges a card, as an agent does that only its workers have.
func till(version string) (*delta.Agent, *workflow.Definition) {
	charge := delta.Define("charge", func(_ *delta.Context, in payment) mo.Result[bill] { return mo.Ok(bill{in.Order}) }).
		Describe("Charge a card").Risk(2).Effect(action.Idempotent).MustBuild()
	def := workflow.New("sale", version).Input(`{"type":"object","required":["order","card"],"properties":{"order":{"type":"string"},"card":{"type":"string"}}}`).
		Step(workflow.Execute("pay", "charge").Map("order", "input.order").Map("card", "input.card")).MustBuild()
	return delta.NewAgent("till").Grant(charge).MustBuild(), def
}

// apart are an engine that has the functions, and one that has the store alone, in a bubble.
func apart(t *testing.T, defs ...*workflow.Definition) (works, desk *delta.Engine, store looked) {
	store = looked{memory.New(memory.Config{})}
	works, err := delta.New(delta.Config{Store: store, Workflows: delta.Workflows{Definitions: defs}})
	require.NoError(t, err)
	desk, err = delta.New(delta.Config{Store: store})
	require.NoError(t, err)
	return works, desk, store
}

// work has an engine work until the function that is returned is called.
func work(t *testing.T, e *delta.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Work(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	}
}

func TestAWorkflowIsStartedForWorkersElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		agent, def := till("1")
		works, desk, store := apart(t, def)
		defer func() { require.NoError(t, errors.Join(works.Close(ctx), desk.Close(ctx), store.Close())) }()
		require.NoError(t, works.Register(agent))

		input := json.RawMessage(`{"order":"o1","card":"4111-1111"}`)
		_, err := desk.StartWorkflowFor(ctx, "till", def, delta.Goal{}, input)
		var nobody *delta.NoWorkerError
		require.ErrorAs(t, err, &nobody)
		assert.Equal(t, 0, nobody.Live)
		assert.Equal(t, []string{"charge"}, nobody.Actions)

		stop := work(t, works)
		live, err := desk.Workers(ctx, "till")
		require.NoError(t, err)
		require.Len(t, live, 1)
		assert.Equal(t, []string{"charge"}, live[0].Actions)
		assert.Equal(t, []delta.WorkerWorkflow{{Name: "sale", Version: "1", Digest: def.Digest()}}, live[0].Workflows)

		_, err = desk.StartWorkflowFor(ctx, "till", def, delta.Goal{}, json.RawMessage(`{"order":5}`))
		require.Error(t, err, "the input is held to the schema before anything is started")
		run, err := desk.StartWorkflowFor(ctx, "till", def, delta.Goal{ID: "t1", Requester: "bo"}, input)
		require.NoError(t, err)
		s, err := run.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, workflow.Completed, s.Status, "%v", s.Failure)
		assert.NotContains(t, everything(t, store, "till", "t1"), "4111-1111", "what the worker's action takes as a secret is sealed by who starts it")

		again, err := desk.DefinitionOf(ctx, "till", "sale")
		require.NoError(t, err)
		assert.Equal(t, def.Digest(), again.Digest())
		stop()
		live, err = desk.Workers(ctx, "till")
		require.NoError(t, err)
		assert.Empty(t, live, "it said that it goes")
	})
}

// everything is all that the ledger of a task and of its agent hold.
func everything(t *testing.T, store memory.Store, agent, task string) (out string) {
	for _, of := range []string{"", task} {
		records, err := store.Records(t.Context(), agent, of, 1, 1000)
		require.NoError(t, err)
		for _, r := range records {
			out += r.Val + "\n"
		}
	}
	return out
}

// A worker that disappears without a word is taken for gone after a while, and taken out by the next that comes.
func TestAWorkerThatDisappearsIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		agent, def := till("1")
		works, desk, store := apart(t, def)
		defer func() { require.NoError(t, errors.Join(desk.Close(ctx), store.Close())) }()
		require.NoError(t, works.Register(agent))
		cut := &severed{Store: store}
		lost, err := delta.New(delta.Config{Store: cut, Workflows: delta.Workflows{Definitions: []*workflow.Definition{def}}})
		require.NoError(t, err)
		require.NoError(t, lost.Register(agent))
		end := work(t, lost)
		cut.off.Store(true)
		end()
		require.NoError(t, lost.Close(ctx))
		live, err := desk.Workers(ctx, "till")
		require.NoError(t, err)
		assert.Len(t, live, 1, "nobody knows better")
		time.Sleep(16 * time.Second)
		live, err = desk.Workers(ctx, "till")
		require.NoError(t, err)
		assert.Empty(t, live)
		said, err := store.Queued(ctx, "till", "workers", queued{}, false, 10)
		require.NoError(t, err)
		assert.Len(t, said, 1)
		stop := work(t, works)
		said, err = store.Queued(ctx, "till", "workers", queued{}, false, 10)
		require.NoError(t, err)
		assert.Len(t, said, 1, "what is gone does not pile up")
		time.Sleep(time.Minute)
		live, err = desk.Workers(ctx, "till")
		require.NoError(t, err)
		assert.Len(t, live, 1, "it goes on saying so")
		stop()
		require.NoError(t, works.Close(ctx))
	})
}

// Who could not go on with an instance is told apart: nobody, others of that name, actions and nested workflows that are missing.
func TestWhatNoWorkerHoldsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		agent, def := till("1")
		works, desk, store := apart(t, def)
		defer func() { require.NoError(t, errors.Join(works.Close(ctx), desk.Close(ctx), store.Close())) }()
		require.NoError(t, works.Register(agent))
		defer work(t, works)()
		_, newer := till("2")
		other := workflow.New("other", "1").Step(workflow.Execute("a", "charge")).Step(workflow.Execute("b", "pack")).Step(workflow.Execute("c", "load")).
			Step(workflow.Run("d", "wrap")).Step(workflow.Run("e", "sale")).MustBuild()
		plain := workflow.New("plain", "1").Step(workflow.Execute("a", "charge")).MustBuild()
		for want, d := range map[string]*workflow.Definition{
			fmt.Sprintf(`no live worker of agent "till" holds workflow "sale" 2 (%.12s); one holds version 1 (%.12s)`, newer.Digest(), def.Digest()): newer,
			fmt.Sprintf(`no live worker of agent "till" holds workflow "other" 1 (%.12s); nobody has the actions: load, pack; nobody has the workflows that it runs: wrap`,
				other.Digest()): other,
			fmt.Sprintf(`no live worker of agent "till" holds workflow "plain" 1 (%.12s); all its actions are there: add the definition to their Config.Workflows`,
				plain.Digest()): plain,
		} {
			_, err := desk.StartWorkflowFor(ctx, "till", d, delta.Goal{}, nil)
			var nobody *delta.NoWorkerError
			require.ErrorAs(t, err, &nobody)
			assert.Equal(t, want, nobody.Error())
		}
		_, err := desk.DefinitionOf(ctx, "till", "sale")
		require.ErrorIs(t, err, delta.ErrNoWorkflow, "it never ran")
		_, err = desk.DefinitionOf(ctx, "till", "none")
		require.EqualError(t, err, `no live worker of agent "till" holds workflow "none" in any version; add its definition to their Config.Workflows`)
		_, err = desk.StartWorkflowFor(ctx, "nobody", plain, delta.Goal{}, nil)
		require.ErrorContains(t, err, "nobody works for the agent now")
	})
}

// An instance of a version that no worker holds any more waits for one, and says so.
func TestAnInstanceThatNoWorkerHoldsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		agent, def := till("1")
		_, newer := till("2")
		works, desk, store := apart(t, def)
		later, err := delta.New(delta.Config{Store: store, Workflows: delta.Workflows{Definitions: []*workflow.Definition{newer}}})
		require.NoError(t, err)
		defer func() {
			require.NoError(t, errors.Join(works.Close(ctx), later.Close(ctx), desk.Close(ctx), store.Close()))
		}()
		require.NoError(t, errors.Join(works.Register(agent), later.Register(agent)))
		_, err = works.StartWorkflow(ctx, def, delta.Goal{ID: "t1", Agent: agent}, json.RawMessage(`{"order":"o1","card":"4111"}`))
		require.NoError(t, err)
		require.NoError(t, desk.Adopt(ctx, "till"))
		run, err := desk.OpenWorkflow(ctx, "till~t1")
		require.NoError(t, err)
		lacks := func() *delta.NoWorkerError {
			live, err := desk.Workers(ctx, "till")
			require.NoError(t, err)
			return run.UnheldBy(live)
		}
		require.ErrorContains(t, lacks(), "nobody works for the agent now")
		stop := work(t, later)
		assert.EqualError(t, lacks(), fmt.Sprintf(`no live worker of agent "till" holds workflow "sale" 1 (%.12s); one holds version 2 (%.12s); `+
			`keep a version in Config.Workflows until its instances have ended, or migrate them`, def.Digest(), newer.Digest()))
		stop()
		defer work(t, works)()
		assert.Nil(t, lacks())
	})
}

type queued = txn.Queued

// severed is a store that a worker loses.
type severed struct {
	memory.Store
	off atomic.Bool
}

func (*severed) Shows() bool { return true }

func (s *severed) Apply(ctx context.Context, x *txn.Txn) (txn.Reply, error) {
	if s.off.Load() {
		return txn.Reply{}, errors.New("the line is cut")
	}
	return s.Store.Apply(ctx, x)
}
