package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// floor is a small world of actions that count their effects, and workflows over them.
type floor struct {
	t     *testing.T
	store memory.Store
	agent *delta.Agent
	cfg   delta.Config

	mu      sync.Mutex
	effects []string
	fail    map[string]error // what the action of that name answers
	enter   func(name string)
	slow    time.Duration // of the action slow, which obeys its context
}

type item struct {
	ID string `json:"id"`
}

func newFloor(t *testing.T) *floor {
	w := &floor{t: t, fail: map[string]error{}}
	do := func(name string) func(*delta.Context, item) mo.Result[item] {
		return func(_ *delta.Context, in item) mo.Result[item] {
			if w.enter != nil {
				w.enter(name)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if err := w.fail[name]; err != nil {
				return mo.Err[item](err)
			}
			w.effects = append(w.effects, name+" "+in.ID)
			return mo.Ok(in)
		}
	}
	undo := delta.Define("undo", do("undo")).Describe("Undo").Risk(1).Effect(action.Idempotent).MustBuild()
	back := func(in, _ item) any { return in }
	charge := delta.Define("charge", do("charge")).Describe("Charge").Risk(2).Effect(action.Compensatable).Undo(undo, back).MustBuild()
	send := delta.Define("send", do("send")).Describe("Send").Risk(2).Effect(action.Compensatable).Undo(undo, back).MustBuild()
	danger := delta.Define("danger", do("danger")).Describe("Dangerous").Risk(5).Effect(action.Idempotent).MustBuild()
	act := do("slow")
	slow := delta.Define("slow", func(ctx *delta.Context, in item) mo.Result[item] {
		select {
		case <-ctx.Done():
			return mo.Err[item](ctx.Err())
		case <-time.After(w.slow):
			return act(ctx, in)
		}
	}).Describe("Slow").Risk(1).Effect(action.Idempotent).Timeout(24 * time.Hour).MustBuild()
	pay := delta.Define("pay", do("pay")).Describe("Pay").Risk(1).Effect(action.Irreversible).MustBuild()
	look := delta.Define("look", do("look")).Describe("Look").Risk(1).Effect(action.None).MustBuild()
	w.agent = delta.NewAgent("shop").Grant(charge, send, danger, undo, slow, pay, look).MustBuild()
	w.store = memory.New(memory.Config{})
	t.Cleanup(func() { _ = w.store.Close() })
	w.cfg = delta.Config{Authenticator: anybody, Store: w.store, Poll: 10 * time.Millisecond, Lease: 10 * time.Second}
	return w
}

// breaks makes the action of that name fail from now on.
func (w *floor) breaks(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail[name] = errors.New("broken")
}

func (w *floor) done() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.effects...)
}

func (w *floor) engine(defs ...*workflow.Definition) *delta.Engine {
	cfg := w.cfg
	cfg.Workflows.Definitions = defs
	return engineFor(w.t, cfg)
}

func (w *floor) start(e *delta.Engine, d *workflow.Definition, g delta.Goal) *delta.Instance {
	g.Agent = w.agent
	run, err := e.StartWorkflow(w.t.Context(), d, g, json.RawMessage(`{"id":"o1"}`))
	require.NoError(w.t, err)
	return run
}

func (w *floor) run(i *delta.Instance) workflow.State {
	s, err := i.Run(w.t.Context())
	require.NoError(w.t, err)
	return s
}

func (w *floor) ana(e *delta.Engine) delta.Identity {
	id, err := e.Authenticate(w.t.Context(), "ana")
	require.NoError(w.t, err)
	return id
}

// folds checks that the state is what the ledger's events come to.
func (w *floor) folds(i *delta.Instance) {
	records, report, err := i.Task().Ledger(w.t.Context())
	require.NoError(w.t, err)
	_ = report
	s, is, err := engine.FoldFlow(records)
	require.NoError(w.t, err)
	require.True(w.t, is)
	have, err := i.State(w.t.Context())
	require.NoError(w.t, err)
	a, _ := json.Marshal(s)
	b, _ := json.Marshal(have)
	assert.JSONEq(w.t, string(b), string(a), "I14: the state is the fold of the ledger")
	same, err := engine.CompareFlow(records, &engine.FlowKnown{Ver: 1, State: have})
	require.NoError(w.t, err)
	assert.Empty(w.t, same)
	have.Status = "tampered"
	other, err := engine.CompareFlow(records, &engine.FlowKnown{Ver: 1, State: have})
	require.NoError(w.t, err)
	assert.Len(w.t, other, 1, "what is not what the events come to is found")
}

func (w *floor) types(i *delta.Instance) (out []string) {
	records, _, err := i.Task().Ledger(w.t.Context())
	require.NoError(w.t, err)
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		require.NoError(w.t, err)
		if e.Flow != nil {
			out = append(out, string(e.Type))
		}
	}
	return out
}

func execute(name, act string, needs ...string) workflow.StepBuilder {
	s := workflow.Execute(name, act).Map("id", "input.id")
	if len(needs) > 0 {
		s = s.Needs(needs...)
	}
	return s
}

func one(steps ...workflow.StepBuilder) *workflow.Definition {
	b := workflow.New("sop", "1").Input(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`).Owners("ana")
	for _, s := range steps {
		b = b.Step(s)
	}
	return b.MustBuild()
}

func TestI14_AWorkflowIsTheFoldOfItsLedger(t *testing.T) {
	w := newFloor(t)
	d := one(execute("pay", "charge"), execute("ship", "send", "pay"))
	i := w.start(w.engine(d), d, delta.Goal{})
	s := w.run(i)
	assert.Equal(t, workflow.Completed, s.Status, "%+v", s.Failure)
	assert.Equal(t, []string{"charge o1", "send o1"}, w.done())
	w.folds(i)
	types := w.types(i)
	for _, want := range []string{"workflow_start", "step_start", "policy_eval", "tool_call", "step_complete", "checkpoint", "workflow_end"} {
		assert.Contains(t, types, want)
	}
	v, is, err := i.Task().Conclusion(t.Context())
	require.NoError(t, err)
	assert.True(t, is && v.Verdict == action.Reached)
}

func TestAWorkflowMakesTheCallsOfItsTask(t *testing.T) {
	w := newFloor(t)
	d := one(workflow.AskPerson("ask").Hitl(workflow.Hitl{Intake: json.RawMessage(`{"type":"object"}`)}), execute("pay", "charge", "ask"))
	i := w.start(w.engine(d), d, delta.Goal{})
	w.run(i)
	for _, id := range []string{"", "mine", "delta.flow/sop"} {
		out, err := i.Task().Do(t.Context(), delta.Call{ID: id, Action: "charge", Input: []byte(`{"id":"x"}`)}).Get()
		require.NoError(t, err)
		assert.Contains(t, []action.Code{action.NotLegal, action.InputMalformed}, out.Code)
	}
	assert.Empty(t, w.done())
}

func TestHumanStepTakesOneIntakeOfWhoIsAsked(t *testing.T) {
	w := newFloor(t)
	d := one(workflow.AskPerson("ask").Hitl(workflow.Hitl{Who: []string{"ana"}, Intake: json.RawMessage(`{"type":"object","required":["ok"]}`), Reprompts: 1}),
		execute("pay", "charge", "ask"))
	e := w.engine(d)
	i := w.start(e, d, delta.Goal{})
	ana := w.ana(e)
	require.Error(t, i.Signal(t.Context(), "ask", ana, []byte(`{"ok":1}`)), "it has not begun")
	s := w.run(i)
	require.True(t, s.Parked())
	bob, err := e.Authenticate(t.Context(), "bob")
	require.NoError(t, err)
	require.Error(t, i.Signal(t.Context(), "ask", bob, []byte(`{"ok":1}`)), "he is not asked")
	require.Error(t, i.Signal(t.Context(), "ask", ana, []byte(`{"ok":1`)), "no JSON")
	require.NoError(t, i.Signal(t.Context(), "ask", ana, []byte(`{"no":1}`)))
	s = w.run(i)
	require.True(t, s.Parked(), "it asks again")
	require.Empty(t, w.done())
	require.NoError(t, i.Signal(t.Context(), "ask", ana, []byte(`{"ok":1}`)))
	require.Error(t, i.Signal(t.Context(), "ask", ana, []byte(`{"ok":2}`)), "it is consumed once")
	s = w.run(i)
	assert.Equal(t, workflow.Completed, s.Status)
	assert.Equal(t, []string{"charge o1"}, w.done())
	w.folds(i)
}

// Whoever only hands in an answer may not have the conditions that the workflow names: they are evaluated by who runs it.
func TestAnAnswerIsTakenWhereTheConditionsAreNot(t *testing.T) {
	w := newFloor(t)
	d := one(workflow.AskPerson("ask").Hitl(workflow.Hitl{Who: []string{"ana"}, Intake: json.RawMessage(`{"type":"object"}`)}),
		execute("pay", "charge", "ask").Guard("due"))
	w.cfg.Workflows.Guards = map[string]delta.Guard{"due": func(context.Context, json.RawMessage) (bool, error) { return true, nil }}
	runs := w.engine(d)
	i := w.start(runs, d, delta.Goal{})
	require.True(t, func() bool { s := w.run(i); return s.Parked() }())

	answers := engineFor(t, delta.Config{Authenticator: anybody, Store: w.store})
	require.NoError(t, answers.Adopt(t.Context(), "shop"))
	elsewhere, err := answers.OpenWorkflow(t.Context(), i.ID())
	require.NoError(t, err)
	require.NoError(t, elsewhere.Signal(t.Context(), "ask", w.ana(answers), []byte(`{}`)))

	s := w.run(i)
	assert.Equal(t, workflow.Completed, s.Status, "%+v", s.Failure)
	assert.Equal(t, []string{"charge o1"}, w.done())
	w.folds(i)
}

func TestExecutionParksOnApprovalAndGoesOn(t *testing.T) {
	for _, verb := range []string{"approve", "reject"} {
		t.Run(verb, func(t *testing.T) {
			w := newFloor(t)
			d := one(execute("risk", "danger"))
			e := w.engine(d)
			i := w.start(e, d, delta.Goal{Approvers: []string{"ana"}})
			s := w.run(i)
			require.True(t, s.Parked())
			require.Equal(t, workflow.WaitApproval, s.Waits()[0].For)
			assert.Empty(t, s.Waits()[0].Who, "the machine does not know who may approve")
			tree, err := i.Tree(t.Context())
			require.NoError(t, err)
			assert.Equal(t, []string{"ana"}, tree.Waits()[0].Who)
			id := s.Waits()[0].Approval
			if verb == "approve" {
				require.NoError(t, e.Approve(t.Context(), id, w.ana(e), "fine"))
				s = w.run(i)
				assert.Equal(t, workflow.Completed, s.Status, "%+v", s)
				assert.Equal(t, []string{"danger o1"}, w.done())
			} else {
				require.NoError(t, e.Reject(t.Context(), id, w.ana(e), "no"))
				s = w.run(i)
				assert.NotEqual(t, workflow.Completed, s.Status)
				assert.Empty(t, w.done())
			}
			w.folds(i)
		})
	}
}

// Rules that say themselves which they are, that hand out those in force, or both, as a file that is read again does.
func TestDeniedStepWaitsForOtherRules(t *testing.T) {
	for name, of := range map[string]func(*reloaded) policy.Policy{
		"named":           func(r *reloaded) policy.Policy { return r },
		"changing, named": func(r *reloaded) policy.Policy { return spoken{handed{r}} },
		"changing":        func(r *reloaded) policy.Policy { return handed{r} },
		"one of several":  func(r *reloaded) policy.Policy { return policy.All(spoken{handed{r}}) },
	} {
		t.Run(name, func(t *testing.T) { testOtherRules(t, of) })
	}
}

// handed hands out the rules in force.
type handed struct{ of *reloaded }

func (h handed) Decide(r policy.Request) (policy.Decision, error) { return h.of.Decide(r) }

func (h handed) Current() policy.Policy {
	v := h.of.Version()
	return &reloaded{version: v[1:]}
}

// spoken says which they are, too.
type spoken struct{ handed }

func (n spoken) Version() string { return n.of.Version() }

func testOtherRules(t *testing.T, of func(*reloaded) policy.Policy) {
	w := newFloor(t)
	rules := &reloaded{}
	w.cfg.Policy = of(rules)
	d := one(execute("pay", "charge"))
	e := w.engine(d)
	i := w.start(e, d, delta.Goal{Approvers: []string{"ana"}})
	s := w.run(i)
	require.True(t, s.Parked())
	require.Equal(t, workflow.WaitPolicy, s.Waits()[0].For)
	require.Contains(t, s.Waits()[0].Reason, "; rule: by the test")
	require.Error(t, i.Resume(t.Context(), "pay", w.ana(e), true, "I say so"), "no person overrides a forbid")
	s = w.run(i)
	require.True(t, s.Parked())
	rules.permit("2")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Work(ctx) }()
	require.Eventually(t, func() bool {
		s, err := i.State(t.Context())
		return err == nil && s.Status == workflow.Completed
	}, 30*time.Second, 5*time.Millisecond)
	stop()
	<-ended
	assert.Equal(t, []string{"charge o1"}, w.done())
}

// reloaded is a policy that denies until it is told another version.
type reloaded struct {
	mu      sync.Mutex
	version string
}

func (p *reloaded) permit(v string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = v
}

func (p *reloaded) Version() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "v" + p.version
}

func (p *reloaded) Decide(policy.Request) (policy.Decision, error) {
	v := p.Version()
	return policy.Decision{Permit: v != "v", Forbid: v == "v", Reason: "by the test", Version: v}, nil
}

func TestC29_AFailingStepUnwindsInStrictReverse(t *testing.T) {
	w := newFloor(t)
	w.breaks("danger")
	d := one(execute("pay", "charge"), execute("ship", "send", "pay"),
		execute("last", "danger", "ship").Limits(workflow.Limits{Attempts: 1, Iterations: 1}).Ladder(workflow.Rung{Kind: workflow.RungRetry, Attempts: 1}))
	e := w.engine(d)
	i := w.start(e, d, delta.Goal{Approvers: []string{"ana"}})
	s := w.run(i)
	require.True(t, s.Parked(), "%+v", s)
	require.NoError(t, e.Approve(t.Context(), s.Waits()[0].Approval, w.ana(e), ""))
	s = w.run(i)
	for s.Parked() && len(s.Waits()) > 0 && s.Waits()[0].For == workflow.WaitApproval { // another try asks again
		require.NoError(t, e.Approve(t.Context(), s.Waits()[0].Approval, w.ana(e), ""))
		s = w.run(i)
	}
	assert.Equal(t, workflow.Failed, s.Status, "%+v", s)
	assert.Equal(t, []string{"charge o1", "send o1", "undo o1", "undo o1"}, w.done())
	w.folds(i)
	types := w.types(i)
	assert.Contains(t, types, "compensated")
}

// A list of tasks says which workflow each runs, and for which other one; a word that nobody waits for says so.
func TestStandingNamesTheWorkflow(t *testing.T) {
	child := workflow.New("child", "3").Step(workflow.AskPerson("ask").Hitl(workflow.Hitl{Who: []string{"ana"}, Prompt: "Well?", Intake: json.RawMessage(`{"type":"integer"}`)})).MustBuild()
	w := newFloor(t)
	d := one(workflow.Run("sub", "child"))
	e := w.engine(d, child)
	i := w.start(e, d, delta.Goal{ID: "parent"})
	w.run(i)
	page, err := e.Tasks(t.Context(), delta.TaskQuery{})
	require.NoError(t, err)
	require.Len(t, page.Tasks, 2)
	byName := map[string]delta.TaskStanding{}
	for _, s := range page.Tasks {
		byName[s.Workflow] = s
	}
	assert.Equal(t, "1", byName["sop"].Version)
	assert.Empty(t, byName["sop"].Parent)
	assert.Equal(t, "3", byName["child"].Version)
	assert.Equal(t, "shop~parent", byName["child"].Parent)

	err = i.Signal(t.Context(), "", w.ana(e), []byte("1"))
	require.ErrorIs(t, err, delta.ErrNotWaiting, "its child asks, it does not")
	require.ErrorContains(t, err, "nested in it waits step \"ask\" of "+byName["child"].ID)
	nested, err := e.OpenWorkflow(t.Context(), byName["child"].ID)
	require.NoError(t, err)
	bo, err := e.Authenticate(t.Context(), "bo")
	require.NoError(t, err)
	require.ErrorContains(t, nested.Signal(t.Context(), "ask", bo, []byte("1")), "this is for ana")
	require.NoError(t, nested.Signal(t.Context(), "ask", w.ana(e), []byte("1")))
	require.ErrorIs(t, nested.Signal(t.Context(), "ask", w.ana(e), []byte("1")), delta.ErrNotWaiting)
	assert.Equal(t, workflow.Completed, w.run(i).Status)
}

func TestNestedWorkflows(t *testing.T) {
	child := workflow.New("child", "1").Input(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`).Step(execute("ship", "send")).MustBuild()
	sub := workflow.Run("sub", "child").Map("id", "input.id").Limits(workflow.Limits{Attempts: 2}).Ladder(workflow.Rung{Kind: workflow.RungRetry})
	t.Run("the parent sees the artifacts", func(t *testing.T) {
		w := newFloor(t)
		d := one(execute("pay", "charge"), sub.Needs("pay"))
		i := w.start(w.engine(d, child), d, delta.Goal{Limit: action.Limit{Calls: action.Max(20)}})
		s := w.run(i)
		require.Equal(t, workflow.Completed, s.Status, "%+v", s)
		out, ok := s.Artifact("sub")
		require.True(t, ok)
		assert.JSONEq(t, `{"ship":{"id":"o1"}}`, string(out))
		assert.Equal(t, []string{"charge o1", "send o1"}, w.done())
		w.folds(i)
	})
	t.Run("what it completed is undone with the parent", func(t *testing.T) {
		w := newFloor(t)
		w.breaks("charge")
		d := one(sub, execute("pay", "charge", "sub").Limits(workflow.Limits{Attempts: 1, Iterations: 1}).Ladder(workflow.Rung{Kind: workflow.RungRetry, Attempts: 1}))
		i := w.start(w.engine(d, child), d, delta.Goal{})
		s := w.run(i)
		require.Equal(t, workflow.Failed, s.Status, "%+v", s)
		assert.Equal(t, []string{"send o1", "undo o1"}, w.done())
		w.folds(i)
	})
	t.Run("a child that fails is regenerated, up to its cap", func(t *testing.T) {
		w := newFloor(t)
		w.breaks("send")
		quick := workflow.New("child", "1").Input(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`).
			Step(execute("ship", "send").Limits(workflow.Limits{Attempts: 1, Iterations: 1}).Ladder(workflow.Rung{Kind: workflow.RungRetry, Attempts: 1})).MustBuild()
		d := one(sub.Backoff(workflow.Backoff{Base: time.Millisecond}))
		i := w.start(w.engine(d, quick), d, delta.Goal{})
		s := w.run(i)
		require.True(t, s.Status.Terminal() || s.Parked(), "%+v", s)
		assert.Equal(t, 2, s.Steps[0].Children, "%+v", s.Steps[0])
		kids, err := i.Task().Children(t.Context())
		require.NoError(t, err)
		assert.Len(t, kids, 2)
	})
}

// Two engines on one store run the same instances: each effect once, whoever stops in the middle.
func TestI09_WorkflowsOfManyWorkersDoEachEffectOnce(t *testing.T) {
	w := newFloor(t)
	d := one(execute("a", "charge"), execute("b", "send", "a"), execute("c", "charge", "b"))
	first, second := w.engine(d), w.engine(d)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, e := range []*delta.Engine{first, second} {
		require.NoError(t, e.Register(w.agent))
		all.Go(func() { _ = e.Work(ctx) })
	}
	const many = 24
	runs := make([]*delta.Instance, many)
	for n := range runs {
		run, err := first.StartWorkflow(t.Context(), d, delta.Goal{Agent: w.agent}, fmt.Appendf(nil, `{"id":"o%d"}`, n))
		require.NoError(t, err)
		runs[n] = run
	}
	for _, run := range runs {
		require.Eventually(t, func() bool {
			s, err := run.State(t.Context())
			return err == nil && s.Status == workflow.Completed
		}, 60*time.Second, 5*time.Millisecond)
	}
	stop()
	all.Wait()
	count := map[string]int{}
	for _, e := range w.done() {
		count[e]++
	}
	for n := range runs {
		assert.Equal(t, 1, count[fmt.Sprintf("send o%d", n)])
	}
}

// A deadline and a backoff are timers in the store: nothing waits for them here.
func TestI18_TimersOfWorkflowsAreInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFloor(t)
		w.cfg.Poll = time.Second
		d := one(workflow.AskPerson("ask").Hitl(workflow.Hitl{Intake: json.RawMessage(`{"type":"object"}`), Within: time.Hour, Reprompts: -1}))
		e := w.engine(d)
		ctx, stop := context.WithCancel(t.Context())
		require.NoError(t, e.Register(w.agent))
		ended := make(chan error, 1)
		go func() { ended <- e.Work(ctx) }()
		i := w.start(e, d, delta.Goal{})
		time.Sleep(time.Minute)
		s, err := i.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, workflow.WaitIntake, s.Waits()[0].For)
		time.Sleep(time.Hour)
		s, err = i.State(t.Context())
		require.NoError(t, err)
		assert.Equal(t, workflow.WaitOperator, s.Waits()[0].For, "%+v", s)
		stop()
		<-ended
	})
}

func TestATaskThatEndsTakesItsWorkflowAlong(t *testing.T) {
	w := newFloor(t)
	d := one(execute("pay", "charge"), workflow.AskPerson("ask").Needs("pay").Hitl(workflow.Hitl{Intake: json.RawMessage(`{"type":"object"}`)}))
	e := w.engine(d)
	i := w.start(e, d, delta.Goal{})
	require.True(t, func() bool { s := w.run(i); return s.Parked() }())
	require.NoError(t, i.Task().Cancel(t.Context(), "enough"))
	s := w.run(i)
	assert.Equal(t, workflow.Stopped, s.Status)
	assert.Equal(t, []string{"charge o1"}, w.done(), "nothing is undone")
}

func TestCancellingAWorkflowUndoesWhatCompleted(t *testing.T) {
	w := newFloor(t)
	d := one(execute("pay", "charge"), workflow.AskPerson("ask").Needs("pay").Hitl(workflow.Hitl{Intake: json.RawMessage(`{"type":"object"}`)}))
	e := w.engine(d)
	i := w.start(e, d, delta.Goal{})
	w.run(i)
	require.NoError(t, i.Cancel(t.Context(), w.ana(e), delta.CancelMode{}, "changed my mind"))
	s := w.run(i)
	assert.Equal(t, workflow.Stopped, s.Status, "%+v", s)
	assert.Equal(t, []string{"charge o1", "undo o1"}, w.done())
	assert.Equal(t, workflow.StageDone, s.Steps[0].Stage)
	assert.True(t, s.Steps[0].Undone, "it is done, and was undone")
	assert.False(t, s.Steps[1].Undone)
	w.folds(i)
}
