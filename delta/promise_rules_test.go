package delta_test

import (
	"context"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

// ruled compiles Cedar text.
func ruled(t *testing.T, cedar string) *policy.Bundle {
	t.Helper()
	b, err := policy.Sources{Policies: []policy.File{{Name: "t.cedar", Text: []byte(cedar)}}}.Compile()
	require.NoError(t, err)
	return b
}

func says(_ *delta.Context, in In) mo.Result[Out] { return mo.Ok(Out{in.ID}) }

func offeredAs(t *testing.T, task *delta.Task, name string) action.Status {
	t.Helper()
	o, err := task.Offer(t.Context())
	require.NoError(t, err)
	if a, ok := o.Find(name); ok {
		return a.Status
	}
	return action.Blocked
}

// What depends on the input is offered and decided at the call; what no input could be permitted is not offered.
func TestI03_RulesDecideWhatIsOffered(t *testing.T) {
	look, write := does("look", says).MustBuild(), does("write", says).Effect(action.Idempotent).MustBuild()
	agent := delta.NewAgent("a").Actions(look, write).MustBuild()
	rules := ruled(t, `
		@id("looks") permit (principal == Agent::"a", action == Action::"look", resource) when { context.input.n < 5 };
		@id("writes") permit (principal, action == Action::"write", resource) when { context.effect == "none" };`)
	_, task := started(t, delta.Config{Policy: rules}, delta.Goal{Agent: agent})
	assert.Equal(t, action.Legal, offeredAs(t, task, "look"))
	assert.Equal(t, action.Blocked, offeredAs(t, task, "write"))
	ok := task.Do(t.Context(), delta.Call{Action: "look", Input: inputOf(In{ID: "x", N: 4})}).MustGet()
	assert.True(t, ok.OK())
	no := task.Do(t.Context(), delta.Call{Action: "look", Input: inputOf(In{ID: "x", N: 5})}).MustGet()
	assert.Equal(t, action.Denied, no.Code)
	assert.NotContains(t, no.Failure.Error(), "policy", "what the rules say is for operators")
	events, err := task.Events(t.Context())
	require.NoError(t, err)
	for _, e := range events {
		if e.Type == ledger.Begun {
			assert.Equal(t, &ledger.PolicyShown{Version: "grants-" + e.Policy.Version[7:23] + "+" + rules.Version(), Reason: "permitted by looks"}, e.Policy)
		}
		if e.Type == ledger.Refused {
			assert.Contains(t, e.Policy.Version, rules.Version(), "which rules denied is recorded")
			assert.Equal(t, "a has no grant of look; no policy permits a to call look", e.Policy.Reason)
			assert.JSONEq(t, `{"id":"x","n":5}`, string(e.Input), "and what they denied")
		}
	}
}

// Rules see for whom a task works and what is left of its budget.
func TestRulesSeeTenantAndBudget(t *testing.T) {
	look := does("look", says).MustBuild()
	agent := delta.NewAgent("a").Grant(look).MustBuild()
	rules := ruled(t, `forbid (principal, action, resource) unless { context.tenant == "acme" && context.left.calls > 1 };`)
	_, task := started(t, delta.Config{Policy: rules}, delta.Goal{Agent: agent, Tenant: "acme", Limit: action.Limit{Calls: action.Max(3)}})
	for _, want := range []action.Code{action.OK, action.OK, action.Denied} {
		assert.Equal(t, want, task.Do(t.Context(), call("look", "x")).MustGet().Code)
	}
	assert.Equal(t, action.Blocked, offeredAs(t, task, "look"))
	e, other := started(t, delta.Config{Policy: rules}, delta.Goal{Agent: agent, Limit: action.Limit{Calls: action.Max(3)}})
	assert.Equal(t, action.Denied, other.Do(t.Context(), call("look", "x")).MustGet().Code, "nobody said for whom: the attribute is missing")
	_, err := e.Start(t.Context(), delta.Goal{Agent: agent, Tenant: "a b"})
	require.ErrorContains(t, err, "goal tenant")
}

// The resource is the tool that executes the action, and without one the action's own name.
func TestRulesSeeWhichToolExecutes(t *testing.T) {
	r := registered(t, tool.Tool{Contract: contract("oracle"), Invoke: answering(`"yes"`)})
	look := does("look", says).MustBuild()
	asks := delta.DefineTool("ask", contract("oracle")).Risk(1).MustBuild()
	agent := delta.NewAgent("a").Actions(asks, look).MustBuild()
	rules := ruled(t, `permit (principal, action, resource == Tool::"oracle"); permit (principal, action, resource == Tool::"look");`)
	_, task := started(t, delta.Config{Policy: rules, Tools: r}, delta.Goal{Agent: agent})
	assert.True(t, ask(t, task, "ask", `{"q":"a"}`).OK())
	assert.True(t, task.Do(t.Context(), call("look", "x")).MustGet().OK())
	_, task = started(t, delta.Config{Policy: ruled(t, `permit (principal, action, resource == Tool::"ask");`), Tools: r}, delta.Goal{Agent: agent})
	assert.Equal(t, action.Denied, ask(t, task, "ask", `{"q":"a"}`).Code)
}

// How much an agent may do alone is apart from what it is granted.
func TestI05_AutonomyAsksWhateverTheRisk(t *testing.T) {
	look, write := does("look", says).MustBuild(), does("write", says).Effect(action.Idempotent).MustBuild()
	for _, c := range []struct {
		level       policy.Autonomy
		look, write action.Status
	}{
		{policy.Act, action.Legal, action.Legal},
		{policy.ActOnGated, action.Legal, action.Gated},
		{policy.ProposeOnly, action.Gated, action.Gated},
	} {
		t.Run(c.level.String(), func(t *testing.T) {
			own := delta.NewAgent("a").Grant(look, write).Autonomy(c.level).MustBuild()
			plain := delta.NewAgent("a").Grant(look, write).MustBuild()
			set := policy.Sources{Autonomy: map[string]policy.Autonomy{"a": c.level}}.MustCompile()
			for how, w := range map[string]struct {
				agent *delta.Agent
				rules policy.Policy
			}{"of the agent": {own, nil}, "of the rules": {plain, set}} {
				cfg := delta.Config{Authenticator: anybody}
				if w.rules != nil {
					cfg.Policy = w.rules
				}
				e, task := started(t, cfg, delta.Goal{Agent: w.agent, Approvers: []string{"boss"}})
				assert.Equal(t, c.look, offeredAs(t, task, "look"), how)
				assert.Equal(t, c.write, offeredAs(t, task, "write"), how)
				out := task.Do(t.Context(), call("write", "x")).MustGet()
				if c.write == action.Legal {
					assert.True(t, out.OK(), how)
					continue
				}
				require.Equal(t, action.ApprovalRequired, out.Code, how)
				boss, err := e.Authenticate(t.Context(), "boss")
				require.NoError(t, err)
				require.NoError(t, e.Approve(t.Context(), out.Failure.Approval(), boss, "fine"))
				assert.True(t, task.Do(t.Context(), call("write", "x")).MustGet().OK(), how)

				_, alone := started(t, cfg, delta.Goal{Agent: w.agent})
				assert.Equal(t, action.Blocked, offeredAs(t, alone, "write"), "nobody can be asked: %s", how)
				assert.Equal(t, action.NoApprover, alone.Do(t.Context(), call("write", "x")).MustGet().Code, how)
			}
		})
	}
	_, err := delta.NewAgent("a").Autonomy(7).Build()
	require.ErrorContains(t, err, "autonomy(7) is no level")
}

// Trust that waives an action's own demand for approval waives no level of autonomy.
func TestAutonomyIsNotWaivedByTrust(t *testing.T) {
	write := does("write", says).RequireApproval(delta.UntilTrust(0.01)).MustBuild()
	agent := delta.NewAgent("a").Grant(write).Autonomy(policy.ProposeOnly).MustBuild()
	e, task := started(t, delta.Config{Authenticator: anybody}, delta.Goal{Agent: agent, Approvers: []string{"boss"}})
	boss, err := e.Authenticate(t.Context(), "boss")
	require.NoError(t, err)
	for _, id := range "abcdefg" {
		out := task.Do(t.Context(), call("write", string(id))).MustGet()
		require.Equal(t, action.ApprovalRequired, out.Code)
		require.NoError(t, e.Approve(t.Context(), out.Failure.Approval(), boss, "fine"))
		require.True(t, task.Do(t.Context(), call("write", string(id))).MustGet().OK())
	}
}

// A parent's forbids, level and tenant bound its children.
func TestI16_RulesOfAParentBoundItsChildren(t *testing.T) {
	look, write := does("look", says).MustBuild(), does("write", says).Effect(action.Idempotent).MustBuild()
	worker := delta.NewAgent("worker").Grant(look, write).MustBuild()
	child := func(t *testing.T, lead *delta.Agent, rules policy.Policy, g delta.Goal) (*delta.Task, error) {
		store := memory.New(memory.Config{})
		_, task := started(t, delta.Config{Policy: rules, Store: store, Authenticator: anybody}, delta.Goal{
			ID: "t", Agent: lead, Tenant: "acme", Approvers: []string{"boss"}, Delegation: delta.Delegation{Active: 1, Depth: 1},
		})
		g.Agent = worker
		c, err := task.Delegate(context.Background(), g)
		folds(t, store, "lead", "t")
		if err != nil {
			return nil, err
		}
		return c.Task(context.Background())
	}
	lead := delta.NewAgent("lead").Grant(look, write)
	none := ruled(t, "")
	t.Run("forbid", func(t *testing.T) {
		task, err := child(t, lead.MustBuild(), ruled(t, `@id("f") forbid (principal == Agent::"lead", action == Action::"look", resource) when { context.input.n == 7 };`), delta.Goal{})
		require.NoError(t, err)
		assert.True(t, task.Do(t.Context(), delta.Call{Action: "look", Input: inputOf(In{ID: "x", N: 6})}).MustGet().OK())
		out := task.Do(t.Context(), delta.Call{Action: "look", Input: inputOf(In{ID: "x", N: 7})}).MustGet()
		assert.Equal(t, action.Denied, out.Code)
		assert.Equal(t, "agent lead, for which it works: forbidden by f", out.Failure.Details[action.DetailRule])
	})
	t.Run("level", func(t *testing.T) {
		task, err := child(t, lead.Autonomy(policy.ProposeOnly).MustBuild(), none, delta.Goal{})
		require.NoError(t, err)
		assert.Equal(t, action.ApprovalRequired, task.Do(t.Context(), call("look", "x")).MustGet().Code)
	})
	t.Run("level of the rules", func(t *testing.T) {
		task, err := child(t, lead.MustBuild(), policy.Sources{Autonomy: map[string]policy.Autonomy{"lead": policy.ActOnGated}}.MustCompile(), delta.Goal{})
		require.NoError(t, err)
		assert.True(t, task.Do(t.Context(), call("look", "x")).MustGet().OK())
		assert.Equal(t, action.ApprovalRequired, task.Do(t.Context(), call("write", "x")).MustGet().Code)
	})
	t.Run("tenant", func(t *testing.T) {
		rules := ruled(t, `forbid (principal, action, resource) unless { context.tenant == "acme" };`)
		task, err := child(t, lead.MustBuild(), rules, delta.Goal{})
		require.NoError(t, err)
		assert.True(t, task.Do(t.Context(), call("look", "x")).MustGet().OK(), "the parent's")
		_, err = child(t, lead.MustBuild(), rules, delta.Goal{Tenant: "other"})
		require.ErrorContains(t, err, "tenant")
	})
}

// New rules count from the next decision on; those of one decision are one set.
func TestNewRulesCountFromTheNextDecision(t *testing.T) {
	look := does("look", says).MustBuild()
	agent := delta.NewAgent("a").Actions(look).MustBuild()
	rules := &swapped{}
	rules.now.Store(ruled(t, `permit (principal, action, resource);`))
	_, task := started(t, delta.Config{Policy: rules}, delta.Goal{Agent: agent})
	assert.True(t, task.Do(t.Context(), call("look", "x")).MustGet().OK())
	rules.now.Store(ruled(t, ""))
	assert.Equal(t, action.Blocked, offeredAs(t, task, "look"))
	assert.Equal(t, action.Denied, task.Do(t.Context(), call("look", "x")).MustGet().Code)
}
