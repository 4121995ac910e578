package delta_test

import (
	"math"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
)

type place struct {
	City string `json:"city"`
}

func visit(_ *delta.Context, in place) mo.Result[place] { return mo.Ok(in) }

// named is a declaration without a fault.
func named(name string) delta.Builder[place, place] {
	return delta.Define(name, visit).Describe("Visit a place").Effect(action.Idempotent)
}

// TestBuildNamesEveryFault: each fault is named, with the place and the way out, and one does not hide another.
func TestBuildNamesEveryFault(t *testing.T) {
	type channel struct {
		C chan int `json:"c"`
	}
	tests := []struct {
		name  string
		build func() error
		want  []string
	}{
		{"name ill-formed", func() error { _, err := named("a b").Build(); return err }, []string{`name "a b"`}},
		{"name empty", func() error { _, err := named("").Build(); return err }, []string{"name is empty"}},
		{"name reserved", func() error { _, err := named("delta.plan").Build(); return err }, []string{"reserved"}},
		{"description missing", func() error { _, err := named("a").Describe(" ").Build(); return err }, []string{"description is missing"}},
		{"risk below", func() error { _, err := named("a").Risk(0).Build(); return err }, []string{"risk is 0, want 1 to 5"}},
		{"risk above", func() error { _, err := named("a").Risk(6).Build(); return err }, []string{"risk is 6"}},
		{"rule out of range", func() error {
			_, err := named("a").RiskWhen("far", func(place) bool { return true }, 9).Build()
			return err
		}, []string{`rule "far"`, "level is 9"}},
		{"cost negative", func() error { _, err := named("a").Cost(action.Cost{Tokens: -1}).Build(); return err }, []string{"cost tokens is -1"}},
		{"cost overflowing", func() error { _, err := named("a").Cost(action.Cost{Bytes: math.MaxInt64}).Build(); return err }, []string{"cost bytes"}},
		{"money without currency", func() error { _, err := named("a").Cost(action.Cost{Money: 1}).Build(); return err }, []string{"needs a currency"}},
		{"estimate above maximum", func() error {
			_, err := named("a").Cost(action.Cost{Tokens: 9}).MaxCost(action.Limit{Tokens: action.Max(5)}).Build()
			return err
		}, []string{"above its maximum 5"}},
		{"bound field absent", func() error {
			_, err := named("a").Needs(delta.Named("b").On("cty")).Build()
			return err
		}, []string{"needs b", `cty`, "city"}},
		{"unsupported type", func() error {
			_, err := delta.Define("a", func(*delta.Context, channel) mo.Result[int] { return mo.Ok(1) }).Describe("x").Build()
			return err
		}, []string{"chan"}},
		{"input is no object", func() error {
			_, err := delta.Define("a", func(*delta.Context, string) mo.Result[int] { return mo.Ok(1) }).Describe("x").Build()
			return err
		}, []string{"object"}},
		{"keyword that would be ignored", func() error {
			_, err := delta.DefineRaw("a", []byte(`{"type":"object","dependentRequired":{"a":["b"]}}`), raw).Describe("x").Build()
			return err
		}, []string{"dependentRequired"}},
		{"function nil", func() error { _, err := delta.Define[place, place]("a", nil).Describe("x").Build(); return err }, []string{"function is nil"}},
		{"retry of an effect that may not be repeated", func() error {
			_, err := named("a").Effect(action.Irreversible).Retry(2).Build()
			return err
		}, []string{"idempotency key"}},
		{"timeout", func() error { _, err := named("a").Timeout(-time.Second).Build(); return err }, []string{"timeout is -1s"}},
		{"trust", func() error { _, err := named("a").RequireApproval(delta.UntilTrust(math.NaN())).Build(); return err }, []string{"until trust NaN"}},
		{"within", func() error { _, err := named("a").Needs(delta.Named("b").Within(-1)).Build(); return err }, []string{"within -1ns"}},
		{"hook timeout", func() error { _, err := named("a").Hooks(hooks.Hooks{Timeout: -time.Second}).Build(); return err }, []string{"hook timeout is negative"}},
		{"several at once", func() error {
			_, err := named("a b").Describe("").Risk(7).Cost(action.Cost{Calls: -3}).Build()
			return err
		},
			[]string{`name "a b"`, "description is missing", "risk is 7", "cost calls is -3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.build()
			require.Error(t, err)
			for _, w := range tt.want {
				require.ErrorContains(t, err, w)
			}
		})
	}
}

func raw(_ *delta.Context, _ action.Input) mo.Result[action.Output] {
	return mo.Ok(action.Output("1"))
}

// TestAgentBuildNamesEveryFault: what an action refers to is the agent's to check.
func TestAgentBuildNamesEveryFault(t *testing.T) {
	type numbered struct {
		City int `json:"city"`
	}
	byNumber := delta.Define("count", func(_ *delta.Context, in numbered) mo.Result[numbered] { return mo.Ok(in) }).Describe("x").MustBuild()
	a, b := named("alpha").MustBuild(), named("beta").MustBuild()
	tests := []struct {
		name  string
		agent delta.AgentBuilder
		want  []string
	}{
		{"name", delta.NewAgent("x y"), []string{`name "x y"`}},
		{"unknown prerequisite, with a suggestion", delta.NewAgent("x").Grant(a, named("c").Needs(delta.Named("alpah")).MustBuild()), []string{"alpah", "alpha"}},
		{"prerequisite not held", delta.NewAgent("x").Grant(named("c").Needs(a).MustBuild()), []string{"alpha", "not hold"}},
		{"itself", delta.NewAgent("x").Grant(named("c").Needs(delta.Named("c")).MustBuild()), []string{"c"}},
		{"cycle", delta.NewAgent("x").Grant(named("p").Needs(delta.Named("q")).MustBuild(), named("q").Needs(delta.Named("p")).MustBuild()), []string{"cycle", "p → q → p"}},
		{"two of one name", delta.NewAgent("x").Grant(a, named("alpha").MustBuild()), []string{`two actions are named "alpha"`}},
		{"names that read alike", delta.NewAgent("x").Grant(named("pay-l").MustBuild(), named("pay-1").MustBuild()), []string{"could be taken for each other"}},
		{"another action of that name", delta.NewAgent("x").Grant(named("alpha").MustBuild(), named("c").Needs(a).MustBuild()), []string{"another action of that name"}},
		{"bound field absent there", delta.NewAgent("x").Grant(b, named("c").Needs(b.OnAs("city", "town")).MustBuild()), []string{"town"}},
		{"bound fields of different types", delta.NewAgent("x").Grant(byNumber, named("c").Needs(byNumber.On("city")).MustBuild()), []string{"city", "integer", "string"}},
		{"two currencies", delta.NewAgent("x").Grant(named("c").Cost(action.Cost{Money: 1, Currency: "EUR"}).MustBuild(), named("d").Cost(action.Cost{Money: 1, Currency: "USD"}).MustBuild()), []string{"currencies differ"}},
		{"nil action", delta.NewAgent("x").Grant(nil), []string{"action is nil"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.agent.Build()
			require.Error(t, err)
			for _, w := range tt.want {
				require.ErrorContains(t, err, w)
			}
		})
	}
}

// TestBuildersShareNothing: a builder that is forked does not change its origin.
func TestBuildersShareNothing(t *testing.T) {
	base := named("alpha").Tags("one").Needs(delta.Named("root"))
	left, right := base.Tags("left").Risk(5), base.Tags("right").Needs(delta.Named("other"))
	require.Contains(t, left.MustBuild().String(), "risk 5")
	require.Contains(t, right.MustBuild().String(), "risk 3")
	root, other := named("root").MustBuild(), named("other").MustBuild()
	for name, d := range map[string]delta.Definition{"base": base.MustBuild(), "left": left.MustBuild()} {
		_, err := delta.NewAgent("x").Grant(root, d).Build()
		require.NoError(t, err, "%s grew a need of its fork", name)
	}
	_, err := delta.NewAgent("x").Grant(root, right.MustBuild()).Build()
	require.ErrorContains(t, err, "other")

	agents := delta.NewAgent("x").Grant(root)
	one, two := agents.Grant(other), agents.Grant(named("third").MustBuild())
	require.Equal(t, []string{"root", "other"}, one.MustBuild().Actions())
	require.Equal(t, []string{"root", "third"}, two.MustBuild().Actions())
}
