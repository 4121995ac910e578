package delta_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// counts is an action that counts how often it ran.
func counts(name string, ran *atomic.Int64) delta.Builder[In, Out] {
	return does(name, func(*delta.Context, In) mo.Result[Out] {
		ran.Add(1)
		return mo.Ok(Out{"ok"})
	}).Risk(1)
}

// TestOnlyRegisterReplacesAnAgent: nothing that is refused, and nobody who starts or delegates, puts other functions
// behind the name of an agent.
func TestOnlyRegisterReplacesAnAgent(t *testing.T) {
	var good, bad atomic.Int64
	pay := counts("pay", &good).RequireApproval().MustBuild()
	treasurer := delta.NewAgent("treasurer").Grant(pay).MustBuild()
	impostor := delta.NewAgent("treasurer").Grant(counts("pay", &bad).RequireApproval().MustBuild(), counts("drop", &bad).MustBuild()).MustBuild()
	clerk := delta.NewAgent("clerk").Grant(pay).MustBuild()
	e := engineFor(t, delta.Config{Authenticator: anybody, Poll: time.Millisecond})
	require.NoError(t, e.Register(treasurer, clerk))
	task, err := e.Start(t.Context(), delta.Goal{Agent: treasurer, Approvers: []string{"ana"}})
	require.NoError(t, err)
	asked := task.Do(t.Context(), call("pay", "x")).MustGet()
	other, err := e.Start(t.Context(), delta.Goal{Agent: clerk})
	require.NoError(t, err)

	for reason, try := range map[string]func() error{
		"a start":             func() error { _, err := e.Start(t.Context(), delta.Goal{Agent: impostor}); return err },
		"a delegation":        func() error { _, err := other.Delegate(t.Context(), delta.Goal{Agent: impostor}); return err },
		"one that is refused": func() error { _, err := e.Start(t.Context(), delta.Goal{Agent: impostor, Threshold: 9}); return err },
	} {
		assert.Error(t, try(), reason)
	}
	_, err = e.Start(t.Context(), delta.Goal{Agent: impostor})
	assert.ErrorContains(t, err, "Engine.Register", "the way out is named")

	again, err := e.Open(t.Context(), task.ID())
	require.NoError(t, err)
	assert.Equal(t, action.ActionUnknown, again.Do(t.Context(), call("drop", "x")).MustGet().Code)
	ana, err := e.Authenticate(t.Context(), "ana")
	require.NoError(t, err)
	require.NoError(t, e.Approve(t.Context(), asked.Failure.Approval(), ana, "yes"))
	ctx, stop := context.WithCancel(t.Context())
	done := background(func() error { return e.Work(ctx) })
	assert.Eventually(t, func() bool { return good.Load() == 1 }, 30*time.Second, time.Millisecond)
	stop()
	done()
	assert.Zero(t, bad.Load())

	require.NoError(t, e.Register(impostor), "whoever owns the engine may replace it")
	_, err = e.Start(t.Context(), delta.Goal{Agent: impostor})
	assert.NoError(t, err)
}

// TestWhatIsRefusedRegistersNobody: an agent is known from its first task on, not from a try.
func TestWhatIsRefusedRegistersNobody(t *testing.T) {
	var ran atomic.Int64
	pay := counts("pay", &ran).MustBuild()
	lead := delta.NewAgent("lead").Grant(pay).MustBuild()
	first := delta.NewAgent("help").Grant(counts("other", &ran).MustBuild()).MustBuild()
	second := delta.NewAgent("help").Grant(pay).MustBuild()
	e := engineFor(t, delta.Config{})
	task, err := e.Start(t.Context(), delta.Goal{ID: "t", Agent: lead})
	require.NoError(t, err)
	_, err = task.Delegate(t.Context(), delta.Goal{Agent: first})
	require.Equal(t, action.Denied, action.FailureOf(err).Code, "the lead may pass on none of its actions")
	_, err = e.Trust(t.Context(), "help")
	require.Error(t, err, "nobody knows it")
	_, err = task.Delegate(t.Context(), delta.Goal{Agent: second})
	assert.NoError(t, err)
	_, err = e.Trust(t.Context(), "help")
	assert.NoError(t, err)
	_, err = e.Start(t.Context(), delta.Goal{ID: "t", Agent: lead})
	assert.Error(t, err, "the id was used")
}

// TestStartsAtOnceAgreeOnAnAgent: of two agents of one name that are started at once, one is known and the other refused.
func TestStartsAtOnceAgreeOnAnAgent(t *testing.T) {
	var ran atomic.Int64
	e := engineFor(t, delta.Config{})
	for round := range 20 {
		name := fmt.Sprintf("a%d", round)
		one, two := delta.NewAgent(name).Grant(counts("one", &ran).MustBuild()).MustBuild(), delta.NewAgent(name).Grant(counts("two", &ran).MustBuild()).MustBuild()
		started := make(chan *delta.Task, 8)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if task, err := e.Start(t.Context(), delta.Goal{Agent: []*delta.Agent{one, two}[i%2]}); err == nil {
					started <- task
				}
			})
		}
		all.Wait()
		close(started)
		agents := map[*delta.Agent]bool{}
		for task := range started {
			agents[task.Agent()] = true
		}
		assert.Len(t, agents, 1)
	}
}

// TestI16_AStandInIsNotTheParentsAction: a child's action counts as its parent's only where everything that a gate looks at
// is the same.
func TestI16_AStandInIsNotTheParentsAction(t *testing.T) {
	var ran atomic.Int64
	strict := func() delta.Builder[In, Out] {
		return counts("pay", &ran).Risk(3).RequireApproval().Quorum(2).Tags("money").Context("case").Effect(action.Idempotent).Retry(1).Cost(action.Cost{Tokens: 5})
	}
	lead := delta.NewAgent("lead").Grant(strict().MustBuild()).MustBuild()
	e := engineFor(t, delta.Config{})
	task, err := e.Start(t.Context(), delta.Goal{Agent: lead, Context: []string{"case"}})
	require.NoError(t, err)
	plain := counts("pay", &ran).Risk(3)
	for reason, stand := range map[string]delta.Builder[In, Out]{
		"it is less risky":        strict().Risk(1),
		"no approval":             plain.Quorum(2).Tags("money").Context("case").Effect(action.Idempotent).Retry(1).Cost(action.Cost{Tokens: 5}),
		"no quorum":               plain.RequireApproval().Tags("money").Context("case").Effect(action.Idempotent).Retry(1).Cost(action.Cost{Tokens: 5}),
		"no tags":                 plain.RequireApproval().Quorum(2).Context("case").Effect(action.Idempotent).Retry(1).Cost(action.Cost{Tokens: 5}),
		"no context":              plain.RequireApproval().Quorum(2).Tags("money").Effect(action.Idempotent).Retry(1).Cost(action.Cost{Tokens: 5}),
		"it costs less":           strict().Cost(action.Cost{Tokens: 1}),
		"other retries":           strict().Retry(3),
		"another effect":          strict().Effect(action.None),
		"a rule of its own":       strict().RiskWhen("big", func(In) bool { return true }, 4),
		"a need of its own":       strict().Needs(delta.Named("ask")),
		"it calls others":         strict().Tools("ask"),
		"another version":         strict().Version("2"),
		"trust waives the demand": strict().RequireApproval(delta.UntilTrust(0.9)),
	} {
		ask := counts("ask", &ran).MustBuild()
		helper := delta.NewAgent("helper").Grant(ask, stand.MustBuild()).MustBuild()
		_, err := task.Delegate(t.Context(), delta.Goal{Agent: helper})
		if f := action.FailureOf(err); assert.NotNil(t, f, reason) {
			assert.Equal(t, action.Denied, f.Code, reason)
		}
	}
	_, err = task.Delegate(t.Context(), delta.Goal{Agent: delta.NewAgent("alike").Grant(strict().MustBuild()).MustBuild()})
	assert.NoError(t, err, "built alike, in another process say")
	assert.Zero(t, ran.Load())
}

// TestI16_AChildClaimsNoContextThatItsParentLacks: nor under the name of an attachment.
func TestI16_AChildClaimsNoContextThatItsParentLacks(t *testing.T) {
	var ran atomic.Int64
	pay := counts("pay", &ran).Context("consent").MustBuild()
	lead := delta.NewAgent("lead").Grant(pay).MustBuild()
	e := engineFor(t, delta.Config{})
	consent := []delta.Attachment{{ID: "consent", Data: []byte("yes")}}
	do := func(task *delta.Task, g delta.Goal) (action.Code, error) {
		g.Agent = lead
		c, err := task.Delegate(t.Context(), g)
		if err != nil {
			return "", err
		}
		child, err := c.Task(t.Context())
		require.NoError(t, err)
		return child.Do(t.Context(), call("pay", "x")).MustGet().Code, nil
	}
	without, err := e.Start(t.Context(), delta.Goal{Agent: lead})
	require.NoError(t, err)
	with, err := e.Start(t.Context(), delta.Goal{Agent: lead, Context: []string{"consent"}})
	require.NoError(t, err)

	_, err = do(without, delta.Goal{Context: []string{"consent"}})
	assert.ErrorContains(t, err, `it claims the context "consent"`)
	code, err := do(without, delta.Goal{Attachments: consent})
	require.NoError(t, err, "it may be given something to read")
	assert.Equal(t, action.ContextMissing, code)
	assert.Zero(t, ran.Load())
	code, err = do(with, delta.Goal{})
	require.NoError(t, err)
	assert.Equal(t, action.ContextMissing, code, "it has what it is given")
	for reason, g := range map[string]delta.Goal{"a name": {Context: []string{"consent"}}, "an attachment": {Attachments: consent}} {
		code, err = do(with, g)
		require.NoError(t, err, reason)
		assert.Equal(t, action.OK, code, reason)
	}
}

// TestCallsWithinHaveIDsOfTheirOwn: a planner neither makes a function's call in its place nor blocks its id.
func TestCallsWithinHaveIDsOfTheirOwn(t *testing.T) {
	for reason, first := range map[string]string{"the same input": "x", "another input": "y"} {
		var checks atomic.Int64
		check := counts("check", &checks).MustBuild()
		var inner []action.Outcome
		pay := does("pay", func(ctx *delta.Context, in In) mo.Result[Out] {
			for range 2 {
				inner = append(inner, ctx.Tool("check").ID("once").Call(in).MustGet())
			}
			return mo.Ok(Out{"paid"})
		}).RequireApproval().Tools("check").MustBuild()
		store := memory.New(memory.Config{})
		e := engineFor(t, delta.Config{Authenticator: anybody, Store: store})
		task, err := e.Start(t.Context(), delta.Goal{ID: "t", Agent: delta.NewAgent("a").Grant(pay, check).MustBuild(), Approvers: []string{"ana"}})
		require.NoError(t, err)
		c := call("pay", "x")
		c.ID = "one"
		out := task.Do(t.Context(), c).MustGet()
		require.Equal(t, action.ApprovalRequired, out.Code)
		taken := call("check", first)
		taken.ID = out.Intent + "/once" // as the ledger shows it
		require.True(t, task.Do(t.Context(), taken).MustGet().OK())
		ana, err := e.Authenticate(t.Context(), "ana")
		require.NoError(t, err)
		require.NoError(t, e.Approve(t.Context(), out.Failure.Approval(), ana, "yes"))
		require.True(t, task.Do(t.Context(), c).MustGet().OK(), reason)
		assert.EqualValues(t, 2, checks.Load(), "%s: the planner's, and the function's own, once", reason)
		require.Len(t, inner, 2)
		assert.True(t, inner[0].OK() && !inner[0].Recorded, reason)
		assert.True(t, inner[1].OK() && inner[1].Recorded, "%s: made again it returns what is recorded", reason)
		folds(t, store, "a", "t")
	}
}

// TestCallsWithinAreBoundedThroughAKeptContext: a function that calls through an outer function's context gets no deeper
// than calls may be under way at once.
func TestCallsWithinAreBoundedThroughAKeptContext(t *testing.T) {
	var outer *delta.Context
	var deep, most int
	var last action.Outcome
	again := does("again", func(ctx *delta.Context, in In) mo.Result[Out] {
		if outer == nil {
			outer = ctx
		}
		deep++
		most = max(most, deep)
		if most < 100 {
			if o := outer.Tool("again").Call(In{ID: "x"}).MustGet(); !o.OK() {
				last = o
			}
		}
		deep--
		return mo.Ok(Out{"ok"})
	}).Risk(1).Tools("again").MustBuild()
	e := engineFor(t, delta.Config{})
	task, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("a").Grant(again).MustBuild()})
	require.NoError(t, err)
	require.True(t, task.Do(t.Context(), call("again", "x")).MustGet().OK())
	assert.Equal(t, 17, most, "the call itself and sixteen within it")
	assert.Equal(t, action.ToolUnknown, last.Code)
}

// TestContextEndsWithItsAttempt: whoever kept it acts and reads no more, with or without a timeout, before the hooks that
// come after.
func TestContextEndsWithItsAttempt(t *testing.T) {
	for _, limit := range []time.Duration{time.Minute, delta.NoTimeout} {
		var kept *delta.Context
		var derived context.Context
		faults := map[string]error{}
		var lead *delta.Agent
		after := hooks.Hooks{After: func(context.Context, action.View) error {
			if kept == nil || len(faults) > 0 {
				return nil
			}
			_, faults["delegate"] = kept.Delegate(delta.Goal{Agent: lead})
			faults["remember"] = kept.Remember("planted", "x")
			_, faults["recall"] = kept.Recall("")
			_, faults["tool"] = kept.Tool("fn").Call(In{ID: "y"}).Get()
			_, faults["communicate"] = kept.Communicate("x", "y").Get()
			faults["escalate"] = kept.Escalate(action.ConcernLoop, "x")
			faults["conclude"] = kept.Conclude(action.Reached, "x")
			faults["phase"] = kept.SetPhase("x", "y")
			faults["spend"] = kept.Spend(action.Cost{Tokens: 1})
			_, faults["attachment"] = kept.Attachment("x")
			_, faults["skill"] = kept.Skill("x")
			_, faults["skill file"] = kept.SkillFile("x", "y")
			faults["context"], faults["derived"] = kept.Err(), derived.Err()
			return nil
		}}
		fn := does("fn", func(ctx *delta.Context, _ In) mo.Result[Out] {
			var cancel context.CancelFunc
			derived, cancel = context.WithCancel(ctx)
			t.Cleanup(cancel)
			kept = ctx
			return mo.Ok(Out{"ok"})
		}).Risk(1).Tools("fn").Timeout(limit).Hooks(after).MustBuild()
		lead = delta.NewAgent("lead").Grant(fn).MustBuild()
		e := engineFor(t, delta.Config{})
		task, err := e.Start(t.Context(), delta.Goal{Agent: lead})
		require.NoError(t, err)
		require.True(t, task.Do(t.Context(), call("fn", "x")).MustGet().OK())
		require.Len(t, faults, 14)
		for what, err := range faults {
			assert.Error(t, err, "%s, timeout %v", what, limit)
		}
		children, err := task.Children(t.Context())
		require.NoError(t, err)
		assert.Empty(t, children)
	}
}
