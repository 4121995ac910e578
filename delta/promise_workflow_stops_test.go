package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory/faulty"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// TestI08_AWorkflowWhoseWorkerStopsGoesOnElsewhere cuts a worker off from its store at one access after another, and has
// another go on. A normal run tries some of the accesses, a heavy one all.
func TestI08_AWorkflowWhoseWorkerStopsGoesOnElsewhere(t *testing.T) { stopsAt(t, 29) }

func stopsAt(t *testing.T, stride int) {
	for _, fails := range []bool{false, true} {
		total := 0
		synctest.Test(t, func(t *testing.T) { total = (&stopped{floor: newFloor(t), fails: fails}).play(0, faulty.None) })
		require.Greater(t, total, 20)
		for n := 1; n <= total; n += stride {
			for _, f := range []faulty.Fault{faulty.LostRequest, faulty.LostReply} {
				t.Run(fmt.Sprintf("fails=%v/%d of %d/%d", fails, n, total, f), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { (&stopped{floor: newFloor(t), fails: fails}).play(n, f) })
				})
			}
		}
	}
}

// stopped is a workflow of all types of steps on a worker that stops in the middle of it.
type stopped struct {
	*floor
	fails bool // the last step fails, and all is undone
	never bool // a person found that the charge, which had begun when the worker stopped, did not happen: its step fails
}

func (w *stopped) action(name string, e action.Effect) delta.Builder[item, item] {
	return delta.Define(name, func(ctx *delta.Context, in item) mo.Result[item] {
		if name == "last" && w.fails {
			return mo.Err[item](errors.New("broken"))
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.effects = append(w.effects, name+" "+ctx.ExecutionID())
		return mo.Ok(in)
	}).Describe("Has an effect").Risk(1).Effect(e)
}

func (w *stopped) definitions() (parent, child *workflow.Definition) {
	undo := w.action("undo", action.Idempotent).MustBuild()
	back := func(in, _ item) any { return in }
	w.agent = delta.NewAgent("shop").Grant(undo,
		w.action("charge", action.Compensatable).Undo(undo, back).MustBuild(),
		w.action("send", action.Compensatable).Undo(undo, back).MustBuild(),
		w.action("last", action.Idempotent).MustBuild()).MustBuild()
	w.cfg.Poll, w.cfg.Lease, w.cfg.Operators = time.Second, 5*time.Second, []string{"ana"}
	w.cfg.Workflows.Proposers = map[string]delta.Proposer{"p": delta.ProposerFunc(func(context.Context, delta.StepRequest) (delta.Draft, error) {
		return delta.Draft{Document: json.RawMessage(`{"id":"o1"}`)}, nil
	})}
	child = workflow.New("child", "1").Input(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`).Step(execute("ship", "send")).MustBuild()
	return one(
		workflow.AskPerson("ask").Hitl(workflow.Hitl{Who: []string{"ana"}, Intake: json.RawMessage(`{"type":"object","required":["ok"]}`)}),
		workflow.Reason("think", "p").Needs("ask").Output(`{"type":"object","required":["id"]}`),
		workflow.Execute("pay", "charge").Needs("think").Map("id", "steps.think.output.id"),
		workflow.Run("sub", "child").Needs("pay").Map("id", "input.id"),
		execute("end", "last", "sub").Limits(workflow.Limits{Attempts: 1, Iterations: 1}).Ladder(workflow.Rung{Kind: workflow.RungRetry, Attempts: 1}),
	), child
}

// play runs it on a worker whose store fails from its n-th access on, and then on another; it returns how many accesses the
// first one made.
func (w *stopped) play(n int, f faulty.Fault) (calls int) {
	parent, child := w.definitions()
	lost := faulty.New(w.store, nil)
	cfg := w.cfg
	cfg.Workflows.Definitions = []*workflow.Definition{child, parent}
	open := func(c delta.Config) *delta.Engine {
		e, err := delta.New(c)
		require.NoError(w.t, err)
		require.NoError(w.t, e.Register(w.agent))
		return e
	}
	desk := open(cfg)
	cfg.Store = lost
	first := open(cfg)
	i := w.start(first, parent, delta.Goal{Approvers: []string{"ana"}})
	seen, err := desk.OpenWorkflow(w.t.Context(), i.ID())
	require.NoError(w.t, err)
	before, _ := lost.Calls()
	if n > 0 {
		lost.Replan(func(call int) faulty.Fault {
			switch {
			case call < before+n:
				return faulty.None
			case call == before+n:
				return f
			}
			return faulty.LostRequest
		})
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- first.Work(ctx) }()
	for range 8 {
		time.Sleep(500 * time.Millisecond)
		w.person(desk, seen)
	}
	calls, _ = lost.Calls()
	second := open(w.with(parent, child))
	go func() { ended <- second.Work(ctx) }()
	var s workflow.State
	for range 400 {
		if s, err = seen.State(w.t.Context()); err == nil && s.Status.Terminal() {
			break
		}
		w.person(desk, seen)
		time.Sleep(time.Second)
	}
	want := map[bool]workflow.Status{false: workflow.Completed, true: workflow.Failed}[w.fails || w.never]
	text, _ := json.Marshal(s)
	assert.Equal(w.t, want, s.Status, "%s", text)
	w.folds(seen)
	stop()
	now, gone := context.WithCancel(context.Background())
	gone()
	_ = first.Close(now)
	<-ended
	<-ended
	assert.NoError(w.t, second.Close(context.Background()))
	assert.NoError(w.t, desk.Close(context.Background()))
	w.once()
	return calls - before
}

func (w *stopped) with(defs ...*workflow.Definition) delta.Config {
	cfg := w.cfg
	slices.Reverse(defs)
	cfg.Workflows.Definitions = defs
	return cfg
}

// person answers all that waits for people, here and in what is nested.
func (w *stopped) person(e *delta.Engine, i *delta.Instance) {
	ctx := w.t.Context()
	ana := w.ana(e)
	s, err := i.State(ctx)
	if err != nil || len(s.Steps) == 0 {
		return
	}
	for _, wait := range s.Waits() {
		switch wait.For {
		case workflow.WaitIntake:
			_ = i.Signal(ctx, wait.Step, ana, []byte(`{"ok":true}`))
		case workflow.WaitOperator:
			assert.Fail(w.t, "nobody should have to help", "%+v", wait)
		case workflow.WaitResolution:
			ok := slices.ContainsFunc(w.done(), func(e string) bool { return strings.HasSuffix(e, " "+wait.Intent) })
			w.never = w.never || !ok && wait.Step == "pay"
			var out []byte
			if ok {
				out = []byte(`{"id":"o1"}`)
			}
			_ = i.Task().Resolve(ctx, wait.Intent, ana, ok, out, action.Cost{}, "I looked")
		}
	}
	kids, err := i.Task().Children(ctx)
	if err != nil {
		return
	}
	for _, k := range kids {
		if c, err := e.OpenWorkflow(ctx, k.ID); err == nil {
			w.person(e, c)
		}
	}
}

// once demands each effect once, whoever had it; one that may be repeated may have been, under its own id.
func (w *stopped) once() {
	ids := map[string]map[string]bool{}
	for _, e := range w.done() {
		name, id, _ := strings.Cut(e, " ")
		if name != "undo" && name != "last" {
			assert.False(w.t, ids[name][id], "%s ran twice", e)
		}
		if ids[name] == nil {
			ids[name] = map[string]bool{}
		}
		ids[name][id] = true
	}
	want := map[string]int{"charge": 1, "send": 1, "last": 1}
	if w.fails {
		want = map[string]int{"charge": 1, "send": 1, "undo": 2}
	}
	if w.never {
		want = map[string]int{}
	}
	have := map[string]int{}
	for name, all := range ids {
		have[name] = len(all)
	}
	assert.Equal(w.t, want, have)
}
