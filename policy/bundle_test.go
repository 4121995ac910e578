package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/policy"
)

// rules compiles Cedar text without declarations of actions.
func rules(t testing.TB, cedar string) *policy.Bundle {
	t.Helper()
	b, err := policy.Sources{Policies: []policy.File{{Name: "t.cedar", Text: []byte(cedar)}}}.Compile()
	require.NoError(t, err)
	return b
}

// asked is a request of support to charge with an input.
func asked(input string) policy.Request {
	r := policy.Request{Agent: "support", Action: "charge", Version: "1", Declared: 3, Effective: 3.2, Trust: 0.5, Now: 1_800_000_000_000_000}
	d := json.NewDecoder(strings.NewReader(input))
	d.UseNumber()
	if err := d.Decode(&r.Input); err != nil {
		panic(err)
	}
	return r
}

const permitAll = "permit (principal, action, resource);\n"

func TestBundleDecides(t *testing.T) {
	for _, c := range []struct {
		name, cedar, input string
		permit             bool
		reason             string
	}{
		{"nothing permits by silence", "", `{}`, false, "no policy permits support to call charge"},
		{"named by place", permitAll, `{}`, true, "permitted by t.cedar:1"},
		{"named by annotation", `@id("small") @reason("small sums are fine") permit (principal, action, resource) when { context.input.n < 5 };`, `{"n":4}`, true,
			"permitted by small (small sums are fine)"},
		{"a condition that does not hold", `@id("small") permit (principal, action, resource) when { context.input.n < 5 };`, `{"n":5}`, false, "no policy permits support to call charge"},
		{"a forbid wins", permitAll + `@id("never") forbid (principal, action == Action::"charge", resource);`, `{}`, false, "forbidden by never"},
		{"the resource is the action's own tool", `@id("x") permit (principal, action, resource == Tool::"charge");`, `{}`, true, "permitted by x"},
		{"an agent that is not meant", `permit (principal == Agent::"other", action, resource);`, `{}`, false, "no policy permits support to call charge"},
		{"risk is rounded upwards", `@id("x") permit (principal, action, resource) when { context.risk.effective.lessThanOrEqual(decimal("3.2")) && context.risk.declared == 3 };`, `{}`, true, "permitted by x"},
		{"trust", `@id("x") permit (principal, action, resource) when { context.trust.greaterThanOrEqual(decimal("0.5")) };`, `{}`, true, "permitted by x"},
		{"effect", `@id("x") permit (principal, action, resource) when { context.effect == "irreversible" };`, `{}`, true, "permitted by x"},
		{"fields within fields", `@id("x") permit (principal, action, resource) when { context.input.a.b.contains("c") };`, `{"a":{"b":["c"]}}`, true, "permitted by x"},
		{"time", `@id("x") permit (principal, action, resource) when { context.now > datetime("2026-01-01") };`, `{}`, true, "permitted by x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := policy.Evaluate(rules(t, c.cedar), asked(c.input))
			assert.Equal(t, c.permit, d.Permit)
			assert.Equal(t, c.reason, d.Reason)
			assert.Regexp(t, `^policy-[0-9a-f]{16}$`, d.Version)
		})
	}
}

// Whatever cannot be evaluated denies, and says which policy and why.
func TestI04_AnErrorOrAMissingAttributeDenies(t *testing.T) {
	for _, c := range []struct{ name, cedar, input, why string }{
		{"a field that is missing", `@id("a") permit (principal, action, resource) when { context.input.n < 5 };`, `{}`, "attribute `n`"},
		{"a null is missing", `@id("a") permit (principal, action, resource) when { context.input.n < 5 };`, `{"n":null}`, "attribute `n`"},
		{"beside a permit", permitAll + `@id("a") permit (principal, action, resource) when { context.input.n < 5 };`, `{}`, "attribute `n`"},
		{"a forbid, which Cedar would skip", permitAll + `@id("a") forbid (principal, action, resource) when { context.input.n > 5 };`, `{"m":1}`, "attribute `n`"},
		{"another type", permitAll + `@id("a") forbid (principal, action, resource) when { context.input.n > 5 };`, `{"n":"6"}`, "type error"},
		{"an overflow", permitAll + `@id("a") forbid (principal, action, resource) when { context.input.n + 1 > 5 };`, `{"n":9223372036854775807}`, "overflow"},
		{"the tenant", permitAll + `@id("a") forbid (principal, action, resource) when { context.tenant == "x" };`, `{}`, "attribute `tenant`"},
		{"what is left of an unlimited axis", permitAll + `@id("a") forbid (principal, action, resource) when { context.left.tokens < 5 };`, `{}`, "attribute `tokens`"},
		{"no condition at all", permitAll + `@id("a") forbid (principal, action, resource) when { context.input.n };`, `{"n":1}`, "type error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := policy.Evaluate(rules(t, c.cedar), asked(c.input))
			assert.False(t, d.Permit)
			assert.Contains(t, d.Reason, "policy failed: a cannot be evaluated: ")
			assert.Contains(t, d.Reason, c.why)
		})
	}
}

// Numbers that Cedar does not have: a rule that looks denies, a rule that does not look is not disturbed.
func TestNumbersCedarCannotHold(t *testing.T) {
	forbid := func(expr string) string {
		return permitAll + `@id("a") forbid (principal, action, resource) when { ` + expr + ` };`
	}
	for _, c := range []struct {
		name, cedar, input string
		permit             bool
	}{
		{"the largest long", forbid("context.input.n < 0"), `{"n":9223372036854775807}`, true},
		{"one more", forbid("context.input.n < 0"), `{"n":9223372036854775808}`, false},
		{"one more, unread", forbid("context.input.m < 0"), `{"n":9223372036854775808,"m":1}`, true},
		{"asked for with has, then compared", forbid("context.input has n && context.input.n > 100"), `{"n":1000000000000000000000}`, false},
		{"far below zero", forbid("context.input.n > 0"), `{"n":-9223372036854775809}`, false},
		{"four digits", forbid(`context.input.n.greaterThan(decimal("0.1234"))`), `{"n":0.1234}`, true},
		{"five digits", forbid(`context.input.n.greaterThan(decimal("0.1234"))`), `{"n":0.12345}`, false},
		{"zeros do not count", forbid(`context.input.n.greaterThan(decimal("0.1234"))`), `{"n":0.1234000}`, true},
		{"between -1 and 0", forbid(`context.input.n.greaterThan(decimal("-0.5"))`), `{"n":-0.5}`, true},
		{"between -1 and 0, greater", forbid(`context.input.n.greaterThan(decimal("-0.5"))`), `{"n":-0.4999}`, false},
		{"between -1 and 0, less", forbid(`context.input.n.lessThan(decimal("-0.5"))`), `{"n":-0.5001}`, false},
		{"an exponent", forbid(`context.input.n.greaterThan(decimal("1500.0"))`), `{"n":1.5e3}`, true},
		{"an exponent beyond", forbid(`context.input.n.greaterThan(decimal("1500.0"))`), `{"n":1e99}`, false},
		{"a decimal is no long", forbid("context.input.n > 5"), `{"n":5.5}`, false},
		{"null in a list is no element that a rule can name", forbid("context.input.n.contains(1)"), `{"n":[null,2]}`, true},
		{"null in a list is an element", permitAll + `forbid (principal, action, resource) unless { [2].containsAll(context.input.n) };`, `{"n":[null,2]}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := policy.Evaluate(rules(t, c.cedar), asked(c.input))
			assert.Equal(t, c.permit, d.Permit, d.Reason)
		})
	}
}

// Cedar gives reasons in the order of a map.
func TestReasonsAreSorted(t *testing.T) {
	var text strings.Builder
	for _, id := range []string{"z", "m", "a", "q"} {
		fmt.Fprintf(&text, "@id(%q) permit (principal, action, resource);\n@id(%q) forbid (principal, action, resource) when { context.input.n > 1 };\n", id, "no-"+id)
		fmt.Fprintf(&text, "@id(%q) forbid (principal, action, resource) when { context.input.m > 1 };\n", "bad-"+id)
	}
	b := rules(t, text.String())
	for range 20 {
		assert.Equal(t, "permitted by a, m, q, z", policy.Evaluate(b, asked(`{"n":1,"m":1}`)).Reason)
		assert.Equal(t, "forbidden by no-a, no-m, no-q, no-z", policy.Evaluate(b, asked(`{"n":2,"m":1}`)).Reason)
		assert.Regexp(t, "^policy failed: bad-a .*; bad-m .*; bad-q .*; bad-z ", policy.Evaluate(b, asked(`{"n":2}`)).Reason)
	}
}

func TestGrantsWithEndsAndConditions(t *testing.T) {
	at := time.UnixMicro(1_800_000_000_000_000)
	grant := func(change func(*policy.Grant)) policy.Policy {
		g := policy.Grant{Name: "g", Agent: "support", Actions: []string{"charge", "refund"}}
		change(&g)
		return policy.Sources{Grants: []policy.Grant{g}}.MustCompile()
	}
	for _, c := range []struct {
		name   string
		change func(*policy.Grant)
		permit bool
	}{
		{"as it is", func(*policy.Grant) {}, true},
		{"of another agent", func(g *policy.Grant) { g.Agent = "desk" }, false},
		{"of other actions", func(g *policy.Grant) { g.Actions = []string{"refund"} }, false},
		{"of no action", func(g *policy.Grant) { g.Actions = nil }, false},
		{"of the action's own tool", func(g *policy.Grant) { g.Tools = []string{"charge"} }, true},
		{"of another tool", func(g *policy.Grant) { g.Tools = []string{"stripe"} }, false},
		{"of no tool", func(g *policy.Grant) { g.Tools = []string{} }, false},
		{"until later", func(g *policy.Grant) { g.Until = at.Add(time.Millisecond) }, true},
		{"until now", func(g *policy.Grant) { g.Until = at }, false},
		{"under a condition", func(g *policy.Grant) { g.When = "context.input.n <= 5" }, true},
		{"under one that does not hold", func(g *policy.Grant) { g.When = "context.input.n < 5 // at most" }, false},
	} {
		assert.Equal(t, c.permit, policy.Evaluate(grant(c.change), asked(`{"n":5}`)).Permit, c.name)
	}
	unknown := asked(`{}`)
	unknown.Now = 0
	assert.Contains(t, policy.Evaluate(grant(func(g *policy.Grant) { g.Until = at }), unknown).Reason, "attribute `now`", "an end that cannot be checked")
}

// A condition is one expression and cannot become a policy of its own.
func TestGrantConditionsAreOneExpression(t *testing.T) {
	for _, when := range []string{
		"true }; permit (principal, action, resource) when { true", "true } when { true", "true } unless { false", "", "true };//", "/", `"`, strings.Repeat("(", 99),
	} {
		if when == "" {
			continue
		}
		_, err := policy.Sources{Grants: []policy.Grant{{Agent: "a", Actions: []string{"x"}, When: when}}}.Compile()
		require.ErrorContains(t, err, "grant 1: when: ", when)
	}
}

func TestAutonomyIsIndependentOfGrants(t *testing.T) {
	b := policy.Sources{
		Grants:   []policy.Grant{{Agent: "support", Actions: []string{"charge"}}},
		Autonomy: map[string]policy.Autonomy{"support": policy.ProposeOnly, "reader": policy.ActOnGated},
	}.MustCompile()
	d := policy.Evaluate(b, asked(`{}`))
	assert.True(t, d.Permit)
	assert.Equal(t, "agent support may only propose", d.Ask)
	r := asked(`{}`)
	r.Agent = "reader"
	d = policy.Evaluate(b, r)
	assert.False(t, d.Permit, "a level grants nothing")
	assert.Equal(t, "agent reader acts alone only where nothing is changed", d.Ask)
	r.Effect = action.None
	assert.Empty(t, policy.Evaluate(b, r).Ask)
	granted := policy.NewGrants(map[string][]string{"support": {"charge"}})
	assert.Equal(t, "agent support may only propose", policy.Evaluate(policy.Any(granted, b), asked(`{}`)).Ask, "no other policy loosens it")
	assert.Equal(t, "autonomy(9)", policy.Autonomy(9).String())
	assert.NotEmpty(t, policy.Autonomy(9).Asks("x", action.None), "a level that does not exist is the strictest")
}

var charging = map[string]policy.ActionType{
	"charge": {Tool: "stripe", Groups: []string{"payments"}, Input: json.RawMessage(`{"type":"object","required":["amount","order"],"properties":{
		"amount":{"type":"number"},"order":{"type":"string"},"note":{"type":["string","null"]},"lines":{"type":"array","items":{"$ref":"#/$defs/line"}},"any":{}},
		"$defs":{"line":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}}`)},
	"look": {Source: "crm"},
}

func TestPoliciesAreCheckedAgainstTheActions(t *testing.T) {
	for _, c := range []struct{ name, cedar, err string }{
		{"fits", `permit (principal, action == Action::"charge", resource) when { context.input.amount.lessThan(decimal("5.0")) && context.input.order like "ORD-*" };`, ""},
		{"a group", `permit (principal in Team::"night", action in Action::"payments", resource == Tool::"stripe");`, ""},
		{"an optional field, asked for", `permit (principal, action == Action::"charge", resource) when { context.input has note && context.input.note == "x" };`, ""},
		{"an optional field, not asked for", `permit (principal, action == Action::"charge", resource) when { context.input.note == "x" };`, "note"},
		{"an unknown action", `permit (principal, action == Action::"chrage", resource);`, "chrage"},
		{"an unknown field", `permit (principal, action == Action::"charge", resource) when { context.input.amuont == decimal("1.0") };`, "amuont"},
		{"a field without a type", `permit (principal, action == Action::"charge", resource) when { context.input.any == 1 };`, "any"},
		{"an integer for a number", `permit (principal, action == Action::"charge", resource) when { context.input.amount < 5 };`, "Long"},
		{"a field that one of several actions lacks", `permit (principal, action, resource) when { context.input.order == "x" };`, "order"},
		{"an unknown type", `permit (principal is User, action, resource);`, "User"},
		{"no part of the context", `permit (principal, action, resource) when { context.inputs.x == 1 };`, `the context has no "inputs"`},
		{"no part, asked for", `forbid (principal, action, resource) when { context has inputs };`, `the context has no "inputs"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := policy.Sources{Actions: charging, Policies: []policy.File{{Name: "t.cedar", Text: []byte(c.cedar)}}}.Compile()
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "t.cedar:1: ")
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}

// JSON writes 5 for a number and for an integer; the declaration says which it is.
func TestDeclaredNumbersAreDecimals(t *testing.T) {
	b, err := policy.Sources{Actions: charging, Policies: []policy.File{{Name: "t.cedar", Text: []byte(`
		@id("some") permit (principal, action == Action::"charge", resource == Tool::"stripe") when { context.input.amount.lessThanOrEqual(decimal("5.0")) };`)}}}.Compile()
	require.NoError(t, err)
	for input, permit := range map[string]bool{`{"amount":5}`: true, `{"amount":5.0}`: true, `{"amount":4.25}`: true, `{"amount":5.01}`: false, `{"amount":99999999999999999}`: false} {
		assert.Equal(t, permit, policy.Evaluate(b, asked(input)).Permit, input)
	}
}

func TestGroupsOfAgentsActionsAndTools(t *testing.T) {
	b := policy.Sources{
		Actions: charging, Teams: map[string][]string{"night": {"support"}}, Toolsets: map[string][]string{"money": {"stripe"}},
		Policies: []policy.File{{Name: "t.cedar", Text: []byte(`@id("x") permit (principal in Team::"night", action in [Action::"payments", Action::"look"], resource in Toolset::"money");`)}},
	}.MustCompile()
	r := asked(`{}`)
	assert.True(t, policy.Evaluate(b, r).Permit)
	r.Tool = "paypal"
	assert.False(t, policy.Evaluate(b, r).Permit, "another tool executes it")
	r = asked(`{}`)
	r.Agent = "desk"
	assert.False(t, policy.Evaluate(b, r).Permit)
	r.Agent, r.Action = "support", "look"
	assert.False(t, policy.Evaluate(b, r).Permit, "a data source that is not in the set")
}

func TestFaultsOfSourcesAreAllNamed(t *testing.T) {
	_, err := policy.Sources{
		Actions:  map[string]policy.ActionType{"a b": {}, "x": {Tool: "t", Source: "s"}},
		Teams:    map[string][]string{"": {"a"}},
		Autonomy: map[string]policy.Autonomy{"a": 7},
	}.Compile()
	for _, want := range []string{`name "a b"`, `"x" has a tool and a source`, "groups: name is empty", "autonomy of a: autonomy(7)"} {
		require.ErrorContains(t, err, want)
	}
	_, err = policy.Sources{Policies: []policy.File{{Name: "a", Text: []byte("permit (x")}, {Name: "b", Text: []byte("\xff")}}}.Compile()
	require.ErrorContains(t, err, "a: ")
	require.ErrorContains(t, err, "b: it is not UTF-8")
	_, err = policy.Sources{Policies: []policy.File{{Name: "a", Text: []byte(`@id("x") permit (principal, action, resource); @id("x") permit (principal, action, resource);`)}}}.Compile()
	require.ErrorContains(t, err, `two policies are named "x"`)
	_, err = policy.Sources{Actions: map[string]policy.ActionType{"x": {Groups: []string{"y"}}, "y": {}}}.Compile()
	require.ErrorContains(t, err, `"y" is an action and cannot be a group too`)
	_, err = policy.Sources{Actions: map[string]policy.ActionType{"x": {Input: json.RawMessage(`{"type":"string"}`)}}}.Compile()
	require.ErrorContains(t, err, "not an object")
}

// What nests without end would end the program in a parser that recurses.
func TestDeepTextIsRefused(t *testing.T) {
	for name, expr := range map[string]string{
		"brackets": strings.Repeat("(", 1<<20), "not": strings.Repeat("!", 1<<20) + "true", "minus": strings.Repeat("-", 1<<20) + "1",
		"if": strings.Repeat("if true then true else ", 1<<17) + "true", "and": strings.Repeat("true && ", 1<<18) + "true", "or": strings.Repeat("true||", 1<<18) + "true",
		"plus": strings.Repeat("1+", 1<<20) + "1", "access": "context" + strings.Repeat(".a", 1<<20),
	} {
		_, err := policy.Sources{Policies: []policy.File{{Name: "t", Text: []byte("permit (principal, action, resource) when { " + expr + " };")}}}.Compile()
		require.Error(t, err, name)
	}
}

func TestVersionNamesTheContent(t *testing.T) {
	v := func(s policy.Sources) string { return s.MustCompile().Version() }
	base := policy.Sources{Grants: []policy.Grant{{Agent: "a", Actions: []string{"x"}}}, Teams: map[string][]string{"t": {"a"}, "u": {"a"}}}
	assert.Equal(t, v(base), v(base))
	seen := map[string]bool{v(base): true}
	for i, change := range []func(*policy.Sources){
		func(s *policy.Sources) { s.Grants = nil },
		func(s *policy.Sources) { s.Teams = nil },
		func(s *policy.Sources) { s.Autonomy = map[string]policy.Autonomy{"a": policy.ProposeOnly} },
		func(s *policy.Sources) { s.Actions = map[string]policy.ActionType{"x": {}} },
		func(s *policy.Sources) { s.Label = "2026-11" },
		func(s *policy.Sources) { s.Policies = []policy.File{{Name: "p", Text: []byte(permitAll)}} },
	} {
		s := base
		change(&s)
		assert.False(t, seen[v(s)], "%d", i)
		seen[v(s)] = true
	}
	assert.Regexp(t, `^2026@policy-`, policy.Sources{Label: "2026"}.MustCompile().Version())
}

func TestWarnings(t *testing.T) {
	b := rules(t, permitAll+`@id("words") permit (principal, action == Action::"x", resource) when { context.provenance.goal == "help" };
		forbid (principal, action, resource) when { context.provenance has reason && context.provenance.reason like "*ignore*" };`)
	assert.Equal(t, []string{
		"t.cedar:1: it permits every agent every action",
		"words: it permits by what the planner says of itself (context.provenance), which proves nothing",
	}, b.Warnings())
}
