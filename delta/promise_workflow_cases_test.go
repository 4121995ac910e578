package delta_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// nestedGate is a workflow whose child charges, and then makes a call that a person must approve.
func nestedGate() (parent, child *workflow.Definition) {
	child = workflow.New("child", "1").Input(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`).
		Step(execute("pay", "charge")).Step(execute("risk", "danger", "pay")).MustBuild()
	return one(workflow.Run("sub", "child").Map("id", "input.id"), execute("ship", "send")), child
}

// childOf opens the only nested instance.
func (w *floor) childOf(e *delta.Engine, i *delta.Instance) *delta.Instance {
	kids, err := i.Task().Children(w.t.Context())
	require.NoError(w.t, err)
	require.Len(w.t, kids, 1)
	c, err := e.OpenWorkflow(w.t.Context(), kids[0].ID)
	require.NoError(w.t, err)
	return c
}

// A nested workflow parks at a gate after it had an effect: another engine that goes on from there repeats neither it nor its
// sibling, and nothing of the gated call runs while nobody has answered.
func TestC05_C06_C07_ANestedWorkflowGoesOnAfterItsGate(t *testing.T) {
	w := newFloor(t)
	d, child := nestedGate()
	first := w.engine(child, d)
	i := w.start(first, d, delta.Goal{Approvers: []string{"ana"}})
	w.run(i)
	require.ElementsMatch(t, []string{"charge o1", "send o1"}, w.done())
	second := w.engine(child, d)
	require.NoError(t, second.Register(w.agent))
	again, err := second.OpenWorkflow(t.Context(), i.ID())
	require.NoError(t, err)
	for range 3 {
		w.run(again)
	}
	require.Len(t, w.done(), 2, "C06: nobody has answered")
	parked := w.state(w.childOf(second, again))
	gate := parked.Waits()[0]
	require.NoError(t, second.Approve(t.Context(), gate.Approval, w.ana(second), "fine"))
	s := w.run(again)
	assert.Equal(t, workflow.Completed, s.Status, "%+v", s)
	assert.ElementsMatch(t, []string{"charge o1", "send o1", "danger o1"}, w.done(), "C05, C07: each once")
	w.folds(again)
}

// Two steps that wait for a person each have a request of their own, and are answered in reverse.
func TestC04_AnswersReachTheStepThatAsked(t *testing.T) {
	w := newFloor(t)
	d := one(workflow.Execute("a", "danger").Const("id", `"1"`), workflow.Execute("b", "danger").Const("id", `"2"`))
	e := w.engine(d)
	i := w.start(e, d, delta.Goal{Approvers: []string{"ana"}})
	waits := map[string]string{}
	s := w.run(i)
	for _, wait := range s.Waits() {
		waits[wait.Step] = wait.Approval
	}
	require.Len(t, waits, 2)
	require.NotEqual(t, waits["a"], waits["b"])
	require.NoError(t, e.Approve(t.Context(), waits["b"], w.ana(e), "fine"))
	w.run(i)
	assert.Equal(t, []string{"danger 2"}, w.done())
	require.NoError(t, e.Approve(t.Context(), waits["a"], w.ana(e), "fine"))
	s = w.run(i)
	assert.Equal(t, workflow.Completed, s.Status)
	assert.Equal(t, []string{"danger 2", "danger 1"}, w.done())
}

// Waiting too long is no rejection: the step asks again, and the late answer to the first request counts for nothing.
func TestC16_AnExpiredApprovalOfAWorkflowIsNoRejection(t *testing.T) {
	for _, nested := range []bool{false, true} {
		t.Run(fmt.Sprint("nested=", nested), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFloor(t)
				w.cfg.Poll = time.Second
				d, child := one(execute("risk", "danger")), (*workflow.Definition)(nil)
				defs := []*workflow.Definition{d}
				if nested {
					d, child = nestedGate()
					defs = []*workflow.Definition{child, d}
				}
				e := w.engine(defs...)
				stop := w.working(e)
				i := w.start(e, d, delta.Goal{Approvers: []string{"ana"}, ApprovalTTL: time.Hour})
				gate := func() workflow.Wait {
					at := i
					if nested {
						at = w.childOf(e, i)
					}
					s := w.state(at)
					require.NotEmpty(t, s.Waits(), "%+v", s)
					return s.Waits()[0]
				}
				time.Sleep(time.Minute)
				before := gate()
				require.Equal(t, workflow.WaitApproval, before.For)
				time.Sleep(time.Hour + 10*time.Minute)
				after := gate()
				require.Equal(t, workflow.WaitApproval, after.For, "it asks again")
				require.NotEqual(t, before.Approval, after.Approval)
				require.Error(t, e.Approve(t.Context(), before.Approval, w.ana(e), "late"))
				require.NotContains(t, w.done(), "danger o1")
				require.NoError(t, e.Approve(t.Context(), after.Approval, w.ana(e), "fine"))
				time.Sleep(time.Minute)
				assert.Equal(t, workflow.Completed, w.state(i).Status)
				assert.Contains(t, w.done(), "danger o1")
				stop()
			})
		})
	}
}

// Who waits for an instance waits no longer than until the nested one rests, and is told what that waits for.
func TestI18_WaitingEndsWhereANestedWorkflowWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFloor(t)
		w.cfg.Poll = time.Second
		d, child := nestedGate()
		e := w.engine(child, d)
		stop := w.working(e)
		i := w.start(e, d, delta.Goal{Approvers: []string{"ana"}})
		s, err := i.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, workflow.Running, s.Status)
		require.Empty(t, s.Waits(), "the nested one does")
		tree, err := i.Tree(t.Context())
		require.NoError(t, err)
		assert.True(t, tree.Rests())
		assert.Equal(t, i.ID(), tree.ID)
		require.Len(t, tree.Nested, 1)
		assert.Equal(t, "sub", tree.Nested[0].Step)
		waits := tree.Waits()
		require.Len(t, waits, 1)
		assert.Equal(t, w.childOf(e, i).ID(), waits[0].ID)
		assert.Equal(t, workflow.WaitApproval, waits[0].For)
		require.NoError(t, e.Approve(t.Context(), waits[0].Approval, w.ana(e), "fine"))
		time.Sleep(time.Minute)
		s, err = i.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, workflow.Completed, s.Status)
		tree, err = i.Tree(t.Context())
		require.NoError(t, err)
		assert.True(t, tree.Rests())
		assert.Empty(t, tree.Nested)
		stop()
	})
}

// What a person says a call returned is held to what the step declares and its undo needs, while it can still be said better.
func TestAResolvedOutputFitsItsStep(t *testing.T) {
	back := workflow.Mapping{"id": {From: "call.output.id"}}
	for _, c := range []struct {
		name string
		step workflow.StepBuilder
		why  string
	}{
		{"its schema", execute("pay", "look").Output(`{"type":"object","required":["id"]}`), "id"},
		{"its undo", execute("pay", "look").Undo("undo", back), `step "pay" could not be undone: map "id": "call.output.id"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFloor(t)
			w.looks()
			d := one(c.step)
			e := w.engine(d)
			i := w.start(e, d, delta.Goal{Approvers: []string{"ana"}})
			s := w.run(i)
			require.Len(t, s.Waits(), 1)
			intent := s.Waits()[0].Intent
			err := i.Task().Resolve(t.Context(), intent, w.ana(e), true, []byte(`{"di":"o1"}`), action.Cost{}, "it is there")
			require.ErrorContains(t, err, c.why)
			assert.Equal(t, action.OutputInvalid, action.FailureOf(err).Code)
			require.NoError(t, i.Task().Resolve(t.Context(), intent, w.ana(e), true, []byte(`{"id":"o1"}`), action.Cost{}, "it is there"))
			s = w.run(i)
			assert.Equal(t, workflow.Completed, s.Status)
			w.folds(i)
		})
	}
}

// looks gives the agent an action whose outcome nobody knows and whose output has no schema to speak of.
func (w *floor) looks() {
	look := delta.Define("look", func(_ *delta.Context, _ item) mo.Result[map[string]any] {
		return mo.Err[map[string]any](action.Unknown(errors.New("the line broke")))
	}).Describe("Look").Risk(1).Effect(action.Compensatable).MustBuild()
	undo := delta.Define("undo", func(_ *delta.Context, in item) mo.Result[item] { return mo.Ok(in) }).Describe("Undo").Risk(1).Effect(action.Idempotent).MustBuild()
	w.agent = delta.NewAgent("shop").Grant(look, undo).MustBuild()
}

// An undo that waits for a person is made with another input, be it the step's or the action's own.
func TestC29_AParkedUndoIsAmended(t *testing.T) {
	for _, c := range []struct {
		name string
		step workflow.StepBuilder
	}{
		{"the step's", execute("pay", "charge").Undo("undo", workflow.Mapping{"id": {From: "call.input.id"}})},
		{"the action's", execute("pay", "charge")},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFloor(t)
			d := one(c.step, workflow.AskPerson("ask").Needs("pay").Hitl(workflow.Hitl{Prompt: "?", Who: []string{"ana"}, Intake: json.RawMessage(`{"type":"string"}`)}))
			e := w.engine(d)
			i := w.start(e, d, delta.Goal{Approvers: []string{"ana"}})
			w.run(i)
			w.breaks("undo")
			require.NoError(t, i.Cancel(t.Context(), w.ana(e), delta.CancelMode{}, "enough"))
			s := w.run(i)
			require.Equal(t, workflow.Unwinding, s.Status)
			require.Len(t, s.Waits(), 1)
			require.Equal(t, workflow.WaitOperator, s.Waits()[0].For)
			w.mends("undo")
			require.NoError(t, i.Amend(t.Context(), "pay", w.ana(e), json.RawMessage(`{"id":"o2"}`)))
			s = w.run(i)
			assert.Equal(t, workflow.Stopped, s.Status, "%+v", s)
			assert.Empty(t, s.Left)
			assert.Equal(t, []string{"charge o1", "undo o2"}, w.done())
			w.folds(i)
		})
	}
}

// mends undoes breaks.
func (w *floor) mends(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.fail, name)
}

// What a person rejected in a nested workflow is not put to them again by the one that is made in its place.
func TestI06_ARegeneratedChildDoesNotAskForWhatWasRejected(t *testing.T) {
	w := newFloor(t)
	child := workflow.New("child", "1").Input(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`).
		Step(execute("risk", "danger").Limits(workflow.Limits{Attempts: 1, Iterations: 1}).Ladder(workflow.Rung{Kind: workflow.RungRetry, Attempts: 1})).MustBuild()
	d := one(workflow.Run("sub", "child").Map("id", "input.id").Limits(workflow.Limits{Attempts: 3}).Backoff(workflow.Backoff{Base: time.Millisecond}).
		Ladder(workflow.Rung{Kind: workflow.RungRetry}))
	e := w.engine(child, d)
	i := w.start(e, d, delta.Goal{Approvers: []string{"ana"}})
	w.run(i)
	tree, err := i.Tree(t.Context())
	require.NoError(t, err)
	require.Len(t, tree.Waits(), 1)
	require.NoError(t, e.Reject(t.Context(), tree.Waits()[0].Approval, w.ana(e), "never"))
	w.run(i)
	kids, err := i.Task().Children(t.Context())
	require.NoError(t, err)
	require.Greater(t, len(kids), 1, "it was made again")
	tree, err = i.Tree(t.Context())
	require.NoError(t, err)
	for _, wait := range tree.Waits() {
		assert.NotEqual(t, workflow.WaitApproval, wait.For, "%+v", wait)
	}
	assert.Empty(t, w.done())
	w.folds(i)
}
