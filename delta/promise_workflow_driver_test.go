package delta_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// working runs Work of an engine, until the function that it returns is called.
func (w *floor) working(e *delta.Engine) (stop func()) {
	require.NoError(w.t, e.Register(w.agent))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Work(ctx) }()
	return func() { cancel(); <-ended }
}

func (w *floor) state(i *delta.Instance) workflow.State {
	s, err := i.State(w.t.Context())
	require.NoError(w.t, err)
	return s
}

// A word from elsewhere does not wait until a call ends that its worker makes.
func TestC28_CancellingAWorkflowReachesTheCallUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFloor(t)
		w.cfg.Poll = time.Second
		w.slow = time.Hour
		d := one(execute("pay", "charge"), execute("long", "slow", "pay"))
		stop := w.working(w.engine(d))
		desk := w.engine(d)
		i := w.start(desk, d, delta.Goal{})
		time.Sleep(time.Minute)
		require.Equal(t, workflow.StageExecute, w.state(i).Steps[1].Stage)
		require.NoError(t, i.Cancel(t.Context(), w.ana(desk), delta.CancelMode{}, "enough"))
		time.Sleep(30 * time.Second)
		s := w.state(i)
		assert.Equal(t, workflow.Stopped, s.Status, "%+v", s)
		assert.Equal(t, []string{"charge o1", "undo o1"}, w.done())
		w.folds(i)
		stop()
	})
}

func TestAnAnswerIsTakenUpBesideACallUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFloor(t)
		w.cfg.Poll = time.Second
		w.slow = time.Hour
		d := one(execute("long", "slow"), workflow.AskPerson("ask").Hitl(workflow.Hitl{Intake: json.RawMessage(`{"type":"object"}`)}), execute("pay", "charge", "ask"))
		stop := w.working(w.engine(d))
		desk := w.engine(d)
		i := w.start(desk, d, delta.Goal{})
		time.Sleep(time.Minute)
		require.NoError(t, i.Signal(t.Context(), "ask", w.ana(desk), []byte(`{}`)))
		time.Sleep(5 * time.Second)
		assert.Equal(t, []string{"charge o1"}, w.done())
		time.Sleep(time.Hour)
		assert.Equal(t, workflow.Completed, w.state(i).Status)
		stop()
	})
}

// A workflow sits out the halt of its agent, whatever step it is at.
func TestAHaltedWorkflowGoesOnWhenTheHaltIsLifted(t *testing.T) {
	for _, what := range []string{"call", "plan", "nested"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFloor(t)
				w.cfg.Poll, w.cfg.Operators = time.Second, []string{"ana"}
				w.cfg.Workflows.Proposers = map[string]delta.Proposer{"p": delta.ProposerFunc(func(context.Context, delta.StepRequest) (delta.Draft, error) {
					return delta.Draft{Document: json.RawMessage(`{}`)}, nil
				})}
				child := workflow.New("child", "1").Step(workflow.Execute("ship", "send").Map("id", "input.id")).MustBuild()
				step := map[string]workflow.StepBuilder{
					"call": execute("s", "send"), "plan": workflow.Reason("s", "p").Output(`{"type":"object"}`), "nested": workflow.Run("s", "child").Map("id", "input.id"),
				}[what]
				d := one(execute("pay", "charge"), step.Needs("pay"))
				e := w.engine(child, d)
				halted := false
				w.enter = func(name string) {
					if name == "charge" && !halted {
						halted = true
						assert.NoError(t, e.HaltAgent(context.Background(), "shop", w.ana(e), delta.HaltAfter, "look"))
					}
				}
				stop := w.working(e)
				i := w.start(e, d, delta.Goal{})
				time.Sleep(2 * time.Minute)
				s := w.state(i)
				require.Equal(t, workflow.Running, s.Status, "%+v", s.Failure)
				require.Equal(t, []string{"charge o1"}, w.done())
				require.NoError(t, e.LiftAgent(t.Context(), "shop", w.ana(e), "fine"))
				time.Sleep(time.Minute)
				s = w.state(i)
				assert.Equal(t, workflow.Completed, s.Status, "%+v", s)
				w.folds(i)
				stop()
			})
		})
	}
}

// What a workflow undoes when its task ends stays as it is: it ends, and spins about nothing.
func TestATaskThatEndsWhileItsWorkflowUnwinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFloor(t)
		w.cfg.Poll, w.cfg.Operators = time.Second, []string{"ana"}
		d := one(execute("pay", "charge"), execute("ship", "send", "pay"), workflow.AskPerson("ask").Needs("ship").Hitl(workflow.Hitl{Intake: json.RawMessage(`{"type":"object"}`)}))
		e := w.engine(d)
		stop := w.working(e)
		i := w.start(e, d, delta.Goal{})
		time.Sleep(10 * time.Second)
		w.breaks("undo")
		require.NoError(t, i.Cancel(t.Context(), w.ana(e), delta.CancelMode{}, "enough"))
		time.Sleep(time.Minute)
		require.Equal(t, workflow.Unwinding, w.state(i).Status)
		require.NoError(t, i.Task().Cancel(t.Context(), "really"))
		time.Sleep(time.Minute)
		s := w.state(i)
		assert.Equal(t, workflow.Stopped, s.Status, "%+v", s)
		assert.Len(t, s.Left, 2)
		w.folds(i)
		stop()
	})
}

// A worker that is told to go does so after the step that it is at.
func TestAWorkerLeavesAWorkflowAfterAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFloor(t)
		w.cfg.Poll = time.Second
		w.slow = time.Minute
		steps := []workflow.StepBuilder{execute("s0", "slow")}
		for n := 1; n < 9; n++ {
			steps = append(steps, execute(fmt.Sprint("s", n), "slow", fmt.Sprint("s", n-1)))
		}
		d := one(steps...)
		e := w.engine(d)
		stop := w.working(e)
		i := w.start(e, d, delta.Goal{})
		time.Sleep(90 * time.Second)
		stop()
		assert.Len(t, w.done(), 2, "the one under way ended, and no other began")
		again := w.working(e)
		time.Sleep(10 * time.Minute)
		assert.Len(t, w.done(), 9)
		assert.Equal(t, workflow.Completed, w.state(i).Status)
		again()
	})
}
