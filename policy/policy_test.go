package policy_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/policy"
)

var charge = policy.Request{Agent: "support", Action: "charge", Version: "1", Declared: 3, Effective: 3, Trust: 0.5}

func always(d policy.Decision, err error) policy.Policy {
	return policy.Func(func(policy.Request) (policy.Decision, error) { return d, err })
}

var (
	yes    = always(policy.Decision{Permit: true, Reason: "yes", Version: "y"}, nil)
	no     = always(policy.Decision{Reason: "no", Version: "n"}, nil)
	forbid = always(policy.Decision{Permit: true, Forbid: true, Reason: "never", Version: "f"}, nil)
	fails  = always(policy.Decision{Permit: true, Version: "e"}, errors.New("backend away"))
	panics = policy.Func(func(policy.Request) (policy.Decision, error) { panic("index out of range") })
)

func TestI04_WhateverGoesWrongDenies(t *testing.T) {
	with := func(change func(*policy.Request)) policy.Request {
		r := charge
		change(&r)
		return r
	}
	for _, c := range []struct {
		name   string
		p      policy.Policy
		r      policy.Request
		reason string
	}{
		{"no policy", nil, charge, "there is no policy"},
		{"no grants", policy.Grants{}, charge, "support has no grant of charge"},
		{"an error, though it says permit", fails, charge, "policy failed: backend away"},
		{"a panic", panics, charge, "policy failed: it panicked: index out of range"},
		{"permit and forbid", forbid, charge, "never"},
		{"no agent", yes, with(func(r *policy.Request) { r.Agent = "" }), "the request has no agent"},
		{"no action", yes, with(func(r *policy.Request) { r.Action = "" }), "the request has no action"},
		{"no declared risk", yes, with(func(r *policy.Request) { r.Declared = 0 }), "the request has no declared risk of 1 to 5"},
		{"a risk that compares with nothing", yes, with(func(r *policy.Request) { r.Effective = math.NaN() }), "the request has no effective risk of 1 to 5"},
		{"a trust beyond all", yes, with(func(r *policy.Request) { r.Trust = math.Inf(1) }), "the request has no trust of 0 to 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := policy.Evaluate(c.p, c.r)
			assert.False(t, d.Permit)
			assert.Equal(t, c.reason, d.Reason)
		})
	}
	assert.True(t, policy.Evaluate(yes, charge).Permit)
	assert.Equal(t, "e", policy.Evaluate(fails, charge).Version, "the record says which rules failed")
}

// An empty list is nothing, not everything.
func TestC22_EmptyIsNone(t *testing.T) {
	for name, m := range map[string]map[string][]string{
		"nil map": nil, "absent": {"other": {"charge"}}, "nil list": {"support": nil}, "empty list": {"support": {}},
		"a star is a name": {"support": {"*"}}, "another case": {"support": {"Charge"}}, "a prefix": {"support": {"char"}},
	} {
		assert.False(t, policy.Evaluate(policy.NewGrants(m), charge).Permit, name)
	}
	d := policy.Evaluate(policy.NewGrants(map[string][]string{"support": {"charge"}}), charge)
	assert.True(t, d.Permit)
	assert.Equal(t, "support is granted charge", d.Reason)
}

func TestGrantsVersion(t *testing.T) {
	v := func(m map[string][]string) string { return policy.NewGrants(m).Version() }
	base := v(map[string][]string{"a": {"x", "y"}, "b": {"z"}})
	assert.Equal(t, base, v(map[string][]string{"b": {"z", "z"}, "a": {"y", "x"}, "c": {}}), "same permissions")
	assert.Regexp(t, `^grants-[0-9a-f]{16}$`, base)
	assert.Equal(t, policy.Grants{}.Version(), v(nil))
	seen := map[string]bool{base: true}
	for _, m := range []map[string][]string{nil, {"a": {"x", "y"}}, {"a": {"xy"}, "b": {"z"}}, {"a": {"x"}, "b": {"y", "z"}}} {
		assert.False(t, seen[v(m)], "%v", m)
		seen[v(m)] = true
	}
}

func TestGrantsKeepNothingOfTheirCaller(t *testing.T) {
	list := []string{"refund"}
	g := policy.NewGrants(map[string][]string{"support": list})
	list[0] = "charge"
	assert.False(t, policy.Evaluate(g, charge).Permit)
}

func TestCombinations(t *testing.T) {
	for _, c := range []struct {
		name     string
		of       []policy.Policy
		any, all bool
	}{
		{"none", nil, false, false},
		{"one yes", []policy.Policy{yes}, true, true},
		{"one no", []policy.Policy{no}, false, false},
		{"yes and no", []policy.Policy{no, yes}, true, false},
		{"a forbid wins", []policy.Policy{yes, forbid, yes}, false, false},
		{"an error might have been a forbid", []policy.Policy{yes, fails}, false, false},
		{"so might a panic", []policy.Policy{panics, yes}, false, false},
		{"and a nil", []policy.Policy{yes, nil}, false, false},
	} {
		assert.Equal(t, c.any, policy.Evaluate(policy.Any(c.of...), charge).Permit, "any: %s", c.name)
		assert.Equal(t, c.all, policy.Evaluate(policy.All(c.of...), charge).Permit, "all: %s", c.name)
	}
	d := policy.Evaluate(policy.Any(no, yes, forbid), charge)
	assert.Equal(t, policy.Decision{Forbid: true, Reason: "never", Version: "n+y+f"}, d)
	assert.Equal(t, "y+f+n", policy.Evaluate(policy.All(yes, forbid, no), charge).Version, "whoever answered first")
	assert.False(t, policy.Evaluate(policy.Any(yes, policy.Any(forbid)), charge).Permit, "a forbid wins from below")
}

// Against a model that is nothing but the sentence.
func TestI04_CombinationsAgainstTheSentence(t *testing.T) {
	kinds := []policy.Policy{yes, no, forbid, fails, panics}
	rapid.Check(t, func(t *rapid.T) {
		var of []policy.Policy
		permits, stops := 0, 0
		for _, k := range rapid.SliceOfN(rapid.IntRange(0, len(kinds)-1), 0, 5).Draw(t, "kinds") {
			of = append(of, kinds[k])
			if k == 0 {
				permits++
			}
			if k >= 2 {
				stops++
			}
		}
		require.Equal(t, permits > 0 && stops == 0, policy.Evaluate(policy.Any(of...), charge).Permit)
		require.Equal(t, permits > 0 && permits == len(of), policy.Evaluate(policy.All(of...), charge).Permit)
	})
}

func ExampleEvaluate() {
	grants := policy.NewGrants(map[string][]string{"support": {"lookup"}})
	hours := policy.Func(func(r policy.Request) (policy.Decision, error) {
		return policy.Decision{Forbid: r.Effective >= 4, Reason: "too risky for the night shift", Version: "night-1"}, nil
	})
	p := policy.Any(grants, hours)
	for _, risk := range []float64{2, 4.5} {
		d := policy.Evaluate(p, policy.Request{Agent: "support", Action: "lookup", Declared: 2, Effective: risk, Trust: 0.5})
		fmt.Println(d.Permit, d.Reason)
	}
	// Output:
	// true support is granted lookup
	// false too risky for the night shift
}
