package delta_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// sale asks, charges and then makes one more call, another one in each version.
func sale(version, then string) *workflow.Definition {
	return workflow.New("sale", version).
		Step(workflow.Execute("first", "look").Map("id", "input.id")).
		Step(workflow.AskPerson("ask").Needs("first").Hitl(workflow.Hitl{Who: []string{"ana"}, Intake: []byte("{}")})).
		Step(workflow.Execute("then", then).Needs("ask").Map("id", "input.id")).MustBuild()
}

func (w *floor) parked(e *delta.Engine, d *workflow.Definition, id string) *delta.Instance {
	run := w.start(e, d, delta.Goal{ID: id, Approvers: []string{"ana"}})
	s := w.run(run)
	require.Len(w.t, s.Waits(), 1)
	return run
}

func TestAnInstanceGoesOnByAnotherDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := t.Context(), newFloor(t)
		was, is := sale("1", "charge"), sale("2", "send")
		e := w.engine(was, is)
		defer func() { require.NoError(t, e.Close(ctx)) }()
		run := w.parked(e, was, "s")
		require.NoError(t, run.Migrate(ctx, w.ana(e), is, "charging is done elsewhere now"))
		require.NoError(t, run.Migrate(ctx, w.ana(e), is, "once more"), "a second time nothing happens")
		w.folds(run)
		require.NoError(t, run.Signal(ctx, "ask", w.ana(e), []byte("{}")), "who opened it before may still speak to it")
		s := w.run(run)
		require.Equal(t, workflow.Completed, s.Status, "%v", s.Failure)
		assert.Equal(t, []string{"look o1", "send o1"}, w.done())
		assert.Equal(t, "2", s.Version)
		w.folds(run)
		standing, err := run.Task().Standing(ctx)
		require.NoError(t, err)
		assert.Equal(t, "2", standing.Version)
		assert.Equal(t, 1, count(w.types(run), "workflow_migrated"))
		assert.ErrorIs(t, run.Migrate(ctx, w.ana(e), was, "back"), workflow.ErrIncompatible, "it has ended")
	})
}

func count(all []string, one string) (n int) {
	for _, x := range all {
		if x == one {
			n++
		}
	}
	return n
}

// What has begun must be the same: the step is named, and the instance goes on as it was.
func TestAnIncompatibleDefinitionIsRefusedWithTheStepNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := t.Context(), newFloor(t)
		was := sale("1", "charge")
		other := workflow.New("sale", "2").Step(workflow.Execute("first", "charge").Map("id", "input.id")).MustBuild()
		wants := workflow.New("sale", "3").Input(`{"type":"object","required":["more"],"properties":{"id":{"type":"string"},"more":{"type":"string"}}}`).
			Step(workflow.Execute("first", "look").Map("id", "input.id")).
			Step(workflow.AskPerson("ask").Needs("first").Hitl(workflow.Hitl{Who: []string{"ana"}, Intake: []byte("{}")})).MustBuild()
		alien := workflow.New("alien", "1").Step(workflow.Execute("first", "look").Map("id", "input.id")).MustBuild()
		unheld := workflow.New("sale", "8").Step(workflow.Execute("first", "charge").Map("id", "input.id")).MustBuild()
		e := w.engine(was, other, wants, alien)
		defer func() { require.NoError(t, e.Close(ctx)) }()
		run := w.parked(e, was, "s")
		before, err := run.State(ctx)
		require.NoError(t, err)
		for want, d := range map[string]*workflow.Definition{
			`step "first" has begun, and is another one in version 2`: other,
			`step "first" has begun, and is another one in version 8`: unheld,
			`what it began with does not pass the input schema`:       wants,
			`it is one of workflow "sale", not of "alien"`:            alien,
			`no live worker of agent "shop" holds workflow "sale" 9`:  sale("9", "send"),
		} {
			require.ErrorContains(t, run.Migrate(ctx, w.ana(e), d, "try"), want)
		}
		bo, err := e.Authenticate(ctx, "bo")
		require.NoError(t, err)
		require.Error(t, run.Migrate(ctx, bo, sale("1", "charge"), "try"), "who may not operate the task may not migrate it")
		after, err := run.State(ctx)
		require.NoError(t, err)
		assert.Equal(t, before, after)
	})
}

// An instance that nobody has begun begins by the other definition.
func TestAnInstanceThatHasNotBegunIsMigrated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := t.Context(), newFloor(t)
		was, is := sale("1", "charge"), sale("2", "send")
		e := w.engine(was, is)
		defer func() { require.NoError(t, e.Close(ctx)) }()
		run := w.start(e, was, delta.Goal{ID: "s", Approvers: []string{"ana"}})
		require.NoError(t, run.Migrate(ctx, w.ana(e), is, ""))
		w.run(run)
		require.NoError(t, run.Signal(ctx, "", w.ana(e), []byte("{}")))
		s := w.run(run)
		assert.Equal(t, "2", s.Version)
		assert.Equal(t, []string{"look o1", "send o1"}, w.done())
		w.folds(run)
	})
}

// A worker has it in hand, with a call under way: the call ends as it would, once, and what comes after is of the other version.
func TestAnInstanceThatIsAtWorkIsMigrated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := t.Context(), newFloor(t)
		w.slow = 2 * time.Second
		of := func(version, then string) *workflow.Definition {
			return workflow.New("sale", version).Step(workflow.Execute("first", "slow").Map("id", "input.id")).
				Step(workflow.Execute("then", then).Needs("first").Map("id", "input.id")).MustBuild()
		}
		was, is := of("1", "charge"), of("2", "send")
		e := w.engine(was, is)
		stop := work(t, e)
		run := w.start(e, was, delta.Goal{ID: "s", Approvers: []string{"ana"}})
		time.Sleep(time.Second)
		require.NoError(t, run.Migrate(ctx, w.ana(e), is, "while it works"))
		wait, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		s, err := run.Wait(wait)
		require.NoError(t, err)
		require.Equal(t, workflow.Completed, s.Status, "%v", s.Failure)
		assert.Equal(t, []string{"slow o1", "send o1"}, w.done())
		w.folds(run)
		stop()
		require.NoError(t, e.Close(ctx))
	})
}

// Two migrate it at a time, to different versions: it runs by one of them, and every record folds.
func TestTwoMigrationsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := t.Context(), newFloor(t)
		was, is, or := sale("1", "charge"), sale("2", "send"), sale("3", "pay")
		e := w.engine(was, is, or)
		defer func() { require.NoError(t, e.Close(ctx)) }()
		run := w.parked(e, was, "s")
		ana, done := w.ana(e), make(chan error, 2)
		go func() { done <- run.Migrate(ctx, ana, is, "a") }()
		go func() { done <- run.Migrate(ctx, ana, or, "b") }()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		require.NoError(t, run.Signal(ctx, "", ana, []byte("{}")))
		s := w.run(run)
		require.Equal(t, workflow.Completed, s.Status)
		assert.Equal(t, map[string]string{"2": "send o1", "3": "pay o1"}[s.Version], w.done()[1])
		w.folds(run)
	})
}

// A nested instance keeps its own definition, and is migrated by itself; its parent takes what it gives.
func TestANestedInstanceIsMigratedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := t.Context(), newFloor(t)
		was, is := sale("1", "charge"), sale("2", "send")
		up := func(version, then string) *workflow.Definition {
			return workflow.New("up", version).Step(workflow.Run("part", "sale").Map("id", "input.id")).
				Step(workflow.Execute("then", then).Needs("part").Map("id", "input.id")).MustBuild()
		}
		one := up("1", "charge")
		e := w.engine(is, was, one, up("2", "look"))
		defer func() { require.NoError(t, e.Close(ctx)) }()
		run := w.start(e, one, delta.Goal{ID: "s", Approvers: []string{"ana"}})
		w.run(run)
		tree, err := run.Tree(ctx)
		require.NoError(t, err)
		require.Len(t, tree.Nested, 1)
		nested, err := e.OpenWorkflow(ctx, tree.Nested[0].ID)
		require.NoError(t, err)
		require.NoError(t, nested.Migrate(ctx, w.ana(e), is, ""))
		require.NoError(t, run.Migrate(ctx, w.ana(e), up("2", "look"), ""))
		require.NoError(t, nested.Signal(ctx, "", w.ana(e), []byte("{}")))
		s := w.run(run)
		require.Equal(t, workflow.Completed, s.Status, "%v", s.Failure)
		assert.Equal(t, []string{"look o1", "send o1", "look o1"}, w.done())
		w.folds(run)
		w.folds(nested)
	})
}

// Somebody else migrates it, who has the store alone, while a worker has it in hand that knew it before.
func TestAWorkerLearnsOfAMigrationElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := t.Context(), newFloor(t)
		w.cfg.Store = looked{w.store.(*memory.InProcess)}
		was, is := sale("1", "charge"), sale("2", "send")
		works, desk := w.engine(was, is), w.engine()
		require.NoError(t, works.Register(w.agent)) // so that it is said at once who works for it
		stop := work(t, works)
		run := w.start(works, was, delta.Goal{ID: "s", Approvers: []string{"ana"}})
		time.Sleep(time.Second)
		require.NoError(t, desk.Adopt(ctx, "shop"))
		seen, err := desk.OpenWorkflow(ctx, run.ID())
		require.NoError(t, err)
		require.NoError(t, seen.Migrate(ctx, w.ana(desk), is, ""))
		require.NoError(t, seen.Signal(ctx, "", w.ana(desk), []byte("{}")))
		time.Sleep(time.Second)
		s, err := run.State(ctx)
		require.NoError(t, err)
		require.Equal(t, workflow.Completed, s.Status, "%v", s.Failure)
		assert.Equal(t, []string{"look o1", "send o1"}, w.done())
		w.folds(run)
		def, err := seen.Definition(ctx)
		require.NoError(t, err)
		assert.Equal(t, is.Digest(), def.Digest(), "as its ledger has it")
		stop()
		require.NoError(t, works.Close(ctx))
		require.NoError(t, desk.Close(ctx))
	})
}

// lossy is a store that does not answer from a call on, which takes effect or does not.
type lossy struct {
	memory.Store
	left  int
	takes bool
}

func (l *lossy) Apply(ctx context.Context, x *txn.Txn) (txn.Reply, error) {
	if l.left--; l.left >= 0 {
		return l.Store.Apply(ctx, x)
	}
	if l.left == -1 && l.takes {
		_, _ = l.Store.Apply(ctx, x)
	}
	return txn.Reply{}, errors.New("the line is cut")
}

// Whoever migrates it dies at whatever call, before or after that took effect: the instance runs by one of the two, wholly, and
// asked for once more it is migrated.
func TestAMigrationThatBreaksOff(t *testing.T) {
	for broken := 0; ; broken++ {
		over := false
		for _, takes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				ctx, w := t.Context(), newFloor(t)
				was, is := sale("1", "charge"), sale("2", "send")
				e := w.engine(was, is)
				defer func() { require.NoError(t, e.Close(ctx)) }()
				run := w.parked(e, was, "s")
				cut := &lossy{w.store, broken, takes}
				w.cfg.Store = cut
				dies := w.engine(was, is)
				require.NoError(t, dies.Register(w.agent))
				seen, err := dies.OpenWorkflow(ctx, run.ID())
				if err == nil {
					err = seen.Migrate(ctx, w.ana(dies), is, "")
				}
				over = over || err == nil
				cut.left = 1 << 30
				require.NoError(t, dies.Close(ctx))
				w.folds(run)
				require.NoError(t, run.Migrate(ctx, w.ana(e), is, ""))
				require.NoError(t, run.Signal(ctx, "", w.ana(e), []byte("{}")))
				require.Equal(t, workflow.Completed, w.run(run).Status)
				assert.Equal(t, []string{"look o1", "send o1"}, w.done())
				assert.Equal(t, 1, count(w.types(run), "workflow_migrated"))
				w.folds(run)
			})
		}
		if over {
			require.Positive(t, broken)
			return
		}
	}
}
