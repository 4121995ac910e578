package delta_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/faulty"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// newTill is a floor on which looking fails.
func newTill(t *testing.T) *floor {
	w := newFloor(t)
	w.breaks("look")
	return w
}

func paying(name string) workflow.Builder {
	return workflow.New(name, "1").Step(workflow.Execute("pay", "pay").Const("id", `"1"`)).
		Step(workflow.Execute("look", "look").Const("id", `"1"`).Needs("pay"))
}

// The children of a SUB_SOP are tried one after the other, but not behind one that paid: nothing undoes that.
func TestC29_NoChildRepeatsWhatAnotherLeft(t *testing.T) {
	w := newTill(t)
	child := paying("child").MustBuild()
	middle := workflow.New("middle", "1").Step(workflow.Run("sub", "child")).MustBuild()
	top := workflow.New("top", "1").Step(workflow.Run("sub", "middle")).MustBuild()
	e := w.engine(child, middle, top)
	i := w.start(e, top, delta.Goal{Approvers: []string{"ana"}})
	s := w.run(i)
	assert.Equal(t, workflow.Failed, s.Status)
	assert.Equal(t, []string{"pay 1"}, w.done(), "once, however many levels above would try again")
	require.Len(t, s.Left, 1)
	assert.Equal(t, action.Irreversible, s.Left[0].Effect)
	assert.Contains(t, s.Left[0].Why, "pay")
	w.folds(i)
}

// Whoever ends the task of a nested instance undoes nothing: what it did stands, and no other child does it again.
func TestC29_AChildWhoseTaskWasEndedIsNotRepeated(t *testing.T) {
	w := newTill(t)
	child := workflow.New("child", "1").Step(workflow.Execute("pay", "pay").Const("id", `"1"`)).
		Step(workflow.AskPerson("ask").Needs("pay").Hitl(workflow.Hitl{Who: []string{"ana"}, Prompt: "?", Intake: json.RawMessage(`{}`)})).MustBuild()
	top := workflow.New("top", "1").Step(workflow.Run("sub", "child")).MustBuild()
	e := w.engine(child, top)
	i := w.start(e, top, delta.Goal{})
	w.run(i)
	require.NoError(t, w.childOf(e, i).Task().Cancel(t.Context(), "away with it"))
	s := w.run(i)
	assert.Equal(t, workflow.Failed, s.Status, "%+v", s.Waits())
	assert.Equal(t, []string{"pay 1"}, w.done())
	assert.NotEmpty(t, s.Left)
}

func TestC29_APhaseIsNotRestartedWhereSomethingOfItStands(t *testing.T) {
	w := newTill(t)
	p := workflow.InPhase("p").OnFailure(workflow.SuperviseRestart, 3, "").Step(workflow.Execute("book", "charge").Const("id", `"1"`)).
		Step(workflow.Execute("pay", "pay").Const("id", `"1"`).Needs("book")).Step(workflow.Execute("look", "look").Const("id", `"1"`).Needs("pay"))
	d := workflow.New("w", "1").Phase(p).MustBuild()
	e := w.engine(d)
	i := w.start(e, d, delta.Goal{Approvers: []string{"ana"}})
	s := w.run(i)
	require.Len(t, s.Waits(), 1, "people look at it first")
	require.Equal(t, workflow.WaitOperator, s.Waits()[0].For)
	require.NoError(t, i.Resume(t.Context(), "look", w.ana(e), false, "let it fail"))
	s = w.run(i)
	assert.Equal(t, workflow.Failed, s.Status)
	assert.Equal(t, []string{"charge 1", "pay 1", "undo 1"}, w.done())
	require.Len(t, s.Left, 1)
	assert.Equal(t, "pay", s.Left[0].Action)
	w.folds(i)
}

// A call that was interrupted may have taken effect: it is undone where the step says how, and listed where it does not.
func TestC29_WhatMayHaveHappenedIsUndoneOrListed(t *testing.T) {
	for _, undo := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newFloor(t)
			w.slow = time.Hour
			st := workflow.Execute("put", "slow").Const("id", `"1"`).Limits(workflow.Limits{Time: time.Minute})
			if undo {
				st = st.Undo("undo", workflow.Mapping{"id": {From: "call.input.id"}})
			}
			d := workflow.New("w", "1").Step(st).MustBuild()
			e := w.engine(d)
			i := w.start(e, d, delta.Goal{})
			s := w.run(i)
			assert.Equal(t, workflow.Failed, s.Status)
			if undo {
				assert.Equal(t, []string{"undo 1"}, w.done())
				assert.Empty(t, s.Left)
			} else if assert.Len(t, s.Left, 1) {
				assert.True(t, s.Left[0].Maybe)
			}
			w.folds(i)
		})
	}
}

// threeSlow is a workflow of three slow calls, one after the other.
func threeSlow() *workflow.Definition {
	put := func(name string, needs ...string) workflow.StepBuilder {
		return workflow.Execute(name, "slow").Const("id", `"`+name+`"`).Needs(needs...)
	}
	return workflow.New("child", "1").Step(put("a")).Step(put("b", "a")).Step(put("c", "b")).MustBuild()
}

// A pause reaches those nested in the instance, at any depth, and so does its end.
func TestC28_APauseReachesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFloor(t)
		w.slow, w.cfg.Poll = time.Minute, time.Second
		child := threeSlow()
		middle := workflow.New("middle", "1").Step(workflow.Run("sub", "child")).MustBuild()
		top := workflow.New("top", "1").Step(workflow.Run("sub", "middle")).MustBuild()
		e := w.engine(child, middle, top)
		stop := w.working(e)
		defer stop()
		i := w.start(e, top, delta.Goal{Approvers: []string{"ana"}})
		time.Sleep(30 * time.Second)
		require.NoError(t, i.Pause(t.Context(), w.ana(e), "let me look"))
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"slow a"}, w.done(), "what was under way ends, and nothing begins")
		inner := w.childOf(e, w.childOf(e, i))
		require.Error(t, inner.Resume(t.Context(), "", w.ana(e), true, "on"), "it is not the child that was paused")
		require.NoError(t, i.Resume(t.Context(), "", w.ana(e), true, "on"))
		time.Sleep(time.Hour)
		assert.Equal(t, workflow.Completed, w.state(i).Status)
		assert.Equal(t, []string{"slow a", "slow b", "slow c"}, w.done())
		w.folds(i)
		w.folds(inner)
	})
}

// A call that is approved while its instance is paused waits for that, and then runs once.
func TestC28_AnApprovedCallOfAPausedInstanceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFloor(t)
		w.cfg.Poll = time.Second
		d := one(execute("risk", "danger"))
		e := w.engine(d)
		stop := w.working(e)
		defer stop()
		i := w.start(e, d, delta.Goal{Approvers: []string{"ana"}})
		time.Sleep(time.Minute)
		s := w.state(i)
		require.Len(t, s.Waits(), 1)
		require.NoError(t, i.Pause(t.Context(), w.ana(e), "let me look"))
		require.NoError(t, e.Approve(t.Context(), s.Waits()[0].Approval, w.ana(e), "fine"))
		time.Sleep(5 * time.Minute)
		assert.Empty(t, w.done())
		require.NoError(t, i.Resume(t.Context(), "", w.ana(e), true, "on"))
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"danger o1"}, w.done())
		assert.Equal(t, workflow.Completed, w.state(i).Status)
	})
}

// Who cancels an instance and keeps what it did keeps what those nested in it did.
func TestC28_KeepReachesDown(t *testing.T) {
	for _, keep := range []bool{true, false} {
		w := newFloor(t)
		child := workflow.New("child", "1").Step(workflow.Execute("book", "charge").Const("id", `"1"`)).
			Step(workflow.AskPerson("ask").Needs("book").Hitl(workflow.Hitl{Who: []string{"ana"}, Prompt: "?", Intake: json.RawMessage(`{}`)})).MustBuild()
		top := workflow.New("top", "1").Step(workflow.Run("sub", "child")).MustBuild()
		e := w.engine(child, top)
		i := w.start(e, top, delta.Goal{})
		w.run(i)
		require.NoError(t, i.Cancel(t.Context(), w.ana(e), delta.CancelMode{Keep: keep}, "enough"))
		s := w.run(i)
		assert.Equal(t, workflow.Stopped, s.Status)
		if keep {
			assert.Equal(t, []string{"charge 1"}, w.done())
			assert.Len(t, s.Left, 1, "what is kept is listed")
		} else {
			assert.Equal(t, []string{"charge 1", "undo 1"}, w.done())
			assert.Empty(t, s.Left)
		}
		w.folds(i)
	}
}

// An instance runs by the definition that it was started with, also where nobody has begun it yet: another one of the same
// name and version is not it.
func TestC28_AnInstanceThatWasNotBegunKeepsItsDefinition(t *testing.T) {
	w := newTill(t)
	d := workflow.New("w", "1").Step(workflow.AskPerson("ask").Hitl(workflow.Hitl{Who: []string{"ana"}, Prompt: "?", Intake: json.RawMessage(`{}`)})).MustBuild()
	other := workflow.New("w", "1").Step(workflow.Execute("pay", "pay").Const("id", `"1"`)).MustBuild()
	first, second := w.engine(d), w.engine(other)
	i := w.start(first, d, delta.Goal{})
	require.NoError(t, second.Register(w.agent))
	there, err := second.OpenWorkflow(t.Context(), i.ID())
	require.NoError(t, err)
	_, err = there.Run(t.Context())
	require.ErrorIs(t, err, delta.ErrNoWorkflow)
	w.run(i)
	require.NoError(t, there.Signal(t.Context(), "ask", w.ana(second), json.RawMessage(`{}`)), "a word is taken by the definition that the ledger has")
	assert.Equal(t, workflow.Completed, w.run(i).Status)
	assert.Empty(t, w.done())
}

// However long the names are, and however deep instances are nested, their ids are names.
func TestC05_LongNamesNest(t *testing.T) {
	w := newFloor(t)
	long := strings.Repeat("s", 48)
	d := workflow.New("w0", "1").Step(workflow.Execute(long, "charge").Const("id", `"1"`)).MustBuild()
	defs := []*workflow.Definition{d}
	for _, name := range []string{"w1", "w2", "w3"} {
		d = workflow.New(name, "1").Step(workflow.Run(long, d.Name())).MustBuild()
		defs = append(defs, d)
	}
	e := w.engine(defs...)
	i := w.start(e, d, delta.Goal{ID: strings.Repeat("i", workflow.MaxInstance)})
	assert.Equal(t, workflow.Completed, w.run(i).Status)
	_, err := e.StartWorkflow(t.Context(), d, delta.Goal{Agent: w.agent, ID: strings.Repeat("i", workflow.MaxInstance+1)}, nil)
	require.ErrorContains(t, err, "97 bytes")
}

func TestC05_WorkflowsThatRunEachOtherAreRefused(t *testing.T) {
	a := workflow.New("a", "1").Step(workflow.Run("s", "b")).MustBuild()
	b := workflow.New("b", "1").Step(workflow.Run("s", "a")).MustBuild()
	_, err := delta.New(delta.Config{Workflows: delta.Workflows{Definitions: []*workflow.Definition{a, b}}})
	require.ErrorContains(t, err, "a → b → a")
}

// Nobody but the workflow acts for, delegates from, or undoes the task of an instance, and who tries changes nothing.
func TestC28_TheTaskOfAnInstanceIsItsWorkflows(t *testing.T) {
	w := newFloor(t)
	d := workflow.New("w", "1").Step(workflow.Execute("book", "charge").Const("id", `"1"`)).
		Step(workflow.AskPerson("ask").Needs("book").Hitl(workflow.Hitl{Who: []string{"ana"}, Prompt: "?", Intake: json.RawMessage(`{}`)})).MustBuild()
	e := w.engine(d)
	i := w.start(e, d, delta.Goal{})
	w.run(i)
	_, compensated := i.Task().Compensate(t.Context(), "away with it")
	_, delegated := i.Task().Delegate(t.Context(), delta.Goal{Agent: w.agent, Text: "more"})
	_, started := i.Task().StartWorkflow(t.Context(), d, delta.Goal{Agent: w.agent, Text: "more"}, nil)
	for what, err := range map[string]error{"compensate": compensated, "delegate": delegated, "start": started} {
		f := action.FailureOf(err)
		require.NotNil(t, f, what)
		assert.Equal(t, action.NotLegal, f.Code, what)
	}
	status, _, err := i.Task().Status(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "running", string(status))
	kids, err := i.Task().Children(t.Context())
	require.NoError(t, err)
	assert.Empty(t, kids)
	assert.Equal(t, []string{"charge 1"}, w.done())
}

// An instance whose ledger the store lost does not run: who asks for it is told so each time, and waits for nothing.
func TestI15_AnInstanceThatWasLostIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFloor(t)
		r := faulty.NewRewinding(func(clock func() time.Time) memory.Store { return memory.New(memory.Config{Clock: clock}) })
		w.cfg.Store = r
		t.Cleanup(func() { _ = r.Close() })
		d := workflow.New("w", "1").Step(workflow.AskPerson("ask").Hitl(workflow.Hitl{Who: []string{"ana"}, Prompt: "?", Intake: json.RawMessage(`{}`)})).MustBuild()
		e := w.engine(d)
		i := w.start(e, d, delta.Goal{})
		w.run(i)
		require.NoError(t, e.Sync(t.Context()))
		require.NoError(t, r.Rewind(context.Background(), 0))
		for range 3 {
			_, err := i.State(t.Context())
			require.Error(t, err)
			_, err = i.Run(t.Context())
			require.Error(t, err)
			_ = e.Sync(t.Context())
		}
	})
}
