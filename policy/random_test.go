package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/policy"
)

// Scopes and conditions that meet each other often.
var (
	principals = []string{"principal", `principal == Agent::"a"`, `principal == Agent::"b"`, `principal in Team::"t"`, `principal in Agent::"a"`, "principal is Agent", `principal is Agent in Team::"u"`, "principal is Team"}
	acts       = []string{"action", `action == Action::"x"`, `action == Action::"y"`, `action in Action::"g"`, `action in [Action::"x", Action::"g"]`, `action in [Action::"y"]`, `action in []`}
	resources  = []string{"resource", `resource == Tool::"x"`, `resource == Source::"s"`, "resource is Tool", "resource is Source", `resource in Toolset::"k"`, `resource is Tool in Toolset::"k"`}
	conditions = []string{
		"true", "false", "context.input.n > 1", "context.input has n && context.input.n == 2", "context.input.m == \"p\"", "context.input has m",
		"context.risk.declared > 2", `context.risk.effective.greaterThan(decimal("3.5"))`, `context.trust.lessThan(decimal("0.5"))`,
		"context.left.tokens > 10", "context.left has calls", `context.tenant == "x"`, "context has tenant", `context.effect == "none"`,
		`context.provenance has goal && context.provenance.goal == "q"`, `context.now < datetime("2026-01-01")`, "1 + 9223372036854775807 > 1",
		`context == context`, `context.input == {n: 2}`, `if context.input has n then context.input.n < 2 else context.risk.declared == 1`,
		`principal in Team::"t"`, `resource == Tool::"x" || context.input.n > 1`, `context.input.n > 1 && context.left.tokens > 10`, `!(context.input has n) || 1 < "a"`,
	}
	inputs = []string{`{}`, `{"n":1}`, `{"n":2}`, `{"n":3,"m":"p"}`, `{"n":"z"}`, `{"m":"q"}`, `{"m":null}`, `{"n":99999999999999999999}`}
)

func drawBundle(t *rapid.T) *policy.Bundle {
	var text strings.Builder
	for i := range rapid.IntRange(0, 12).Draw(t, "policies") {
		fmt.Fprintf(&text, "@id(\"p%d\") %s (%s, %s, %s)", i, rapid.SampledFrom([]string{"permit", "permit", "forbid"}).Draw(t, "effect"),
			rapid.SampledFrom(principals).Draw(t, "principal"), rapid.SampledFrom(acts).Draw(t, "action"), rapid.SampledFrom(resources).Draw(t, "resource"))
		for range rapid.IntRange(0, 2).Draw(t, "conditions") {
			fmt.Fprintf(&text, " %s { %s }", rapid.SampledFrom([]string{"when", "unless"}).Draw(t, "when"), rapid.SampledFrom(conditions).Draw(t, "condition"))
		}
		text.WriteString(";\n")
	}
	b, err := policy.Sources{
		Policies: []policy.File{{Name: "t", Text: []byte(text.String())}},
		Teams:    map[string][]string{"t": {"a"}, "u": {"a", "b"}}, Toolsets: map[string][]string{"k": {"x", "s"}},
	}.Compile()
	require.NoError(t, err)
	return b
}

func drawRequest(t *rapid.T) policy.Request {
	r := policy.Request{
		Agent: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "agent"), Action: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "action"),
		Declared: rapid.IntRange(1, 5).Draw(t, "declared"), Effective: rapid.SampledFrom([]float64{1, 3.5, 3.50001, 4}).Draw(t, "effective"),
		Trust: rapid.SampledFrom([]float64{0, 0.49999, 0.5, 1}).Draw(t, "trust"), Effect: rapid.SampledFrom([]action.Effect{action.None, action.Irreversible}).Draw(t, "side effect"),
		Tenant: rapid.SampledFrom([]string{"", "x"}).Draw(t, "tenant"), Now: rapid.SampledFrom([]int64{0, 1, 1_800_000_000_000_000}).Draw(t, "now"),
	}
	if rapid.Bool().Draw(t, "limited") {
		r.Left = action.Limit{Tokens: action.Max(rapid.Int64Range(9, 12).Draw(t, "tokens")), Calls: action.Max(1)}
	}
	return r
}

// given completes a request with an input and the planner's words.
func given(t *rapid.T, r policy.Request) policy.Request {
	d := json.NewDecoder(strings.NewReader(rapid.SampledFrom(inputs).Draw(t, "input")))
	d.UseNumber()
	require.NoError(t, d.Decode(&r.Input))
	r.Provenance.Goal = rapid.SampledFrom([]string{"", "q"}).Draw(t, "goal")
	return r
}

// The index decides what evaluating every policy decides, in the same words.
func TestIndexEqualsLinear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBundle(t)
		linear := b.Linear()
		for range 4 {
			r := drawRequest(t)
			full := given(t, r)
			require.Equal(t, policy.Evaluate(linear, full), policy.Evaluate(b, full))
			r.AnyInput = true
			require.Equal(t, policy.Evaluate(linear, r), policy.Evaluate(b, r))
		}
	})
}

// What no input could be permitted is all that is withheld: an input that is permitted was offered.
func TestI03_WhatIsPermittedForSomeInputIsOffered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBundle(t)
		for range 4 {
			r := drawRequest(t)
			open := r
			open.AnyInput, open.Raises = true, []int{4}
			offered := policy.Evaluate(b, open)
			if rapid.Bool().Draw(t, "raised") {
				r.Effective = max(r.Effective, 4)
			}
			if d := policy.Evaluate(b, given(t, r)); d.Permit {
				require.True(t, offered.Permit, "%s, but not offered: %s", d.Reason, offered.Reason)
			}
		}
	})
}

// Rules without conditions on the input are decided for every input.
func TestWhatDoesNotDependOnTheInputIsDecidedBefore(t *testing.T) {
	ask := func(cedar string, change func(*policy.Request)) policy.Decision {
		r := asked(`{}`)
		r.AnyInput, r.Input = true, nil
		if change != nil {
			change(&r)
		}
		return policy.Evaluate(rules(t, cedar), r)
	}
	for _, c := range []struct {
		name, cedar, reason string
		change              func(*policy.Request)
	}{
		{"no policy", "", "no policy permits support to call charge, whatever the input", nil},
		{"a forbid", permitAll + `@id("f") forbid (principal, action, resource) when { context.risk.declared == 3 };`, "forbidden by f", nil},
		{"a permit that does not apply", `permit (principal, action, resource) when { context.risk.declared < 3 && context.input.n < 5 };`, "no policy permits support to call charge, whatever the input", nil},
		{"an error", permitAll + `@id("f") forbid (principal, action, resource) when { context.tenant == "x" } when { context.input.n < 5 };`, "policy failed: f cannot be evaluated: record does not have the attribute `tenant`", nil},
		{"a forbid at every risk a rule may give it", permitAll + `@id("f") forbid (principal, action, resource) when { context.risk.effective.greaterThan(decimal("3.0")) };`, "forbidden by f",
			func(r *policy.Request) { r.Raises = []int{4, 5} }},
	} {
		d := ask(c.cedar, c.change)
		require.False(t, d.Permit, c.name)
		require.Contains(t, d.Reason, c.reason, c.name)
	}
	require.Equal(t, "permitted by p", ask(`@id("p") permit (principal, action, resource) when { context.input.n < 5 };`, nil).Reason)
	high := `permit (principal, action, resource) when { context.risk.effective.greaterThan(decimal("4.0")) };`
	require.False(t, ask(high, nil).Permit)
	require.True(t, ask(high, func(r *policy.Request) { r.Raises = []int{5} }).Permit, "an input can raise the risk")
}
