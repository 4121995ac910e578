package delta_test

import (
	"context"
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
)

func money(n int64, currency string) action.Limit {
	return action.Limit{Money: action.Max(n), Currency: currency}
}

// buys declares an action that spends as much money as its input says.
func buys(currency string) *delta.Action[In, string] {
	return delta.Define("buy", func(ctx *delta.Context, in In) mo.Result[string] {
		if err := ctx.Spend(action.Cost{Money: int64(in.N), Currency: currency}); err != nil {
			return mo.Err[string](err)
		}
		return mo.Ok("bought")
	}).Describe("Buy").Risk(1).MustBuild()
}

// TestI07_APoolCountsMoneyOfItsCurrencyAlone: a task that counts in another currency is refused where it starts.
func TestI07_APoolCountsMoneyOfItsCurrencyAlone(t *testing.T) {
	buy := buys("EUR")
	lead, other := delta.NewAgent("lead").Grant(buy).MustBuild(), delta.NewAgent("other").Grant(buy).MustBuild()
	e := engineFor(t, delta.Config{Pools: []delta.Pool{
		{Name: "yen", Agents: []string{"lead"}, Limit: money(100, "JPY")},
		{Name: "all", Limit: action.Limit{Calls: action.Max(9)}},
	}})
	_, err := e.Start(t.Context(), delta.Goal{Agent: lead, Limit: money(1000, "EUR")})
	require.ErrorIs(t, err, action.ErrCurrency)
	task, err := e.Start(t.Context(), delta.Goal{Agent: other, Limit: money(1000, "EUR")})
	require.NoError(t, err)
	require.NoError(t, buy.Do(t.Context(), task, In{ID: "x", N: 5}).Error())
	p, err := e.Pool(t.Context(), "all")
	require.NoError(t, err)
	assert.Equal(t, action.Cost{Calls: 1}, onlyCalls(p.Spent()), "a pool without a currency counts no money")
	assert.Zero(t, p.Spent().Money)

	// A child counts in its parent's currency, which the pool of its own agent does not.
	c, err := task.Delegate(t.Context(), delta.Goal{ID: "c", Agent: lead, Limit: money(10, "")})
	if err == nil {
		child, err := c.Task(t.Context())
		require.NoError(t, err)
		f := action.FailureOf(buy.Do(t.Context(), child, In{ID: "x", N: 5}).Error())
		require.NotNil(t, f)
		assert.Equal(t, action.BudgetExhausted, f.Code)
		assert.Contains(t, f.Explain(), "yen")
	}
	p, err = e.Pool(t.Context(), "yen")
	require.NoError(t, err)
	assert.Zero(t, p.Spent().Money)
}

func onlyCalls(c action.Cost) action.Cost { return action.Cost{Calls: c.Calls} }

// TestI16_WhatIsHandedOnCountsInTheParentsPools: having others work is spending; what they leave is given back, and where
// both agents are in a pool nothing counts twice.
func TestI16_WhatIsHandedOnCountsInTheParentsPools(t *testing.T) {
	for _, shared := range []bool{false, true} {
		buy := buys("EUR")
		lead, mate, outside := delta.NewAgent("lead").Grant(buy).MustBuild(), delta.NewAgent("mate").Grant(buy).MustBuild(), delta.NewAgent("outside").Grant(buy).MustBuild()
		e := engineFor(t, delta.Config{Pools: []delta.Pool{{Name: "day", Agents: []string{"lead", "mate"}, Period: delta.Day, Limit: money(100, "EUR"), Shared: shared}}})
		require.NoError(t, e.Register(lead, mate, outside))
		task, err := e.Start(t.Context(), delta.Goal{Agent: lead, Limit: money(1000, "EUR")})
		require.NoError(t, err)
		pool := func() (spent, reserved int64) {
			p, err := e.Pool(t.Context(), "day")
			require.NoError(t, err)
			for _, a := range p.Agents {
				spent, reserved = spent+a.Spent.Money, reserved+a.Reserved.Money
			}
			return spent, reserved
		}
		_, err = task.Delegate(t.Context(), delta.Goal{ID: "much", Agent: outside, Limit: money(101, "EUR")})
		f := action.FailureOf(err)
		require.NotNil(t, f)
		assert.Equal(t, action.BudgetExhausted, f.Code)

		c, err := task.Delegate(t.Context(), delta.Goal{ID: "some", Agent: outside, Limit: money(90, "EUR")})
		require.NoError(t, err)
		_, reserved := pool()
		assert.EqualValues(t, 90, reserved)
		_, err = task.Delegate(t.Context(), delta.Goal{ID: "more", Agent: outside, Limit: money(11, "EUR")})
		require.Error(t, err, "the grant is counted before anything is spent")
		child, err := c.Task(t.Context())
		require.NoError(t, err)
		require.NoError(t, buy.Do(t.Context(), child, In{ID: "x", N: 30}).Error())
		require.NoError(t, child.Done(t.Context(), ""))
		spent, reserved := pool()
		assert.Equal(t, [2]int64{30, 0}, [2]int64{spent, reserved}, "what was left is given back")

		c, err = task.Delegate(t.Context(), delta.Goal{ID: "mate", Agent: mate, Limit: money(60, "EUR")})
		require.NoError(t, err)
		child, err = c.Task(t.Context())
		require.NoError(t, err)
		require.NoError(t, buy.Do(t.Context(), child, In{ID: "x", N: 20}).Error())
		require.NoError(t, child.Done(t.Context(), ""))
		spent, reserved = pool()
		want := int64(50)
		if !shared {
			want = 70 // in the lead's limit and in the mate's
		}
		assert.Equal(t, [2]int64{want, 0}, [2]int64{spent, reserved}, "calls of an agent in a shared pool count once")
		_, err = task.Delegate(t.Context(), delta.Goal{ID: "beyond", Agent: mate, Limit: money(60, "EUR")})
		require.Equal(t, !shared, err != nil, "of 100 the lead has used 50: it does not get round its own limit")
	}
}

// TestI16_ASharedPoolIsToldOfOverruns: what one agent used beyond what it had been lent keeps the others' calls from starting,
// as it does in a pool that is not shared; at once where the call was made, and of what is told later when Work looks.
func TestI16_ASharedPoolIsToldOfOverruns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := t.Context()
		use := delta.Define("use", func(ctx *delta.Context, in In) mo.Result[Out] {
			if err := ctx.Spend(action.Cost{Tokens: int64(in.N)}); err != nil {
				return mo.Err[Out](err)
			}
			if in.ID == "lost" {
				return mo.Err[Out](action.Unknown(errors.New("no answer")))
			}
			return mo.Ok(Out{Said: "used"})
		}).Describe("Use").Risk(1).MustBuild()
		a, b := delta.NewAgent("a").Grant(use).MustBuild(), delta.NewAgent("b").Grant(use).MustBuild()
		e := engineFor(t, delta.Config{Operators: []string{"op"}, Authenticator: anybody, Poll: time.Second,
			Pools: []delta.Pool{{Name: "team", Shared: true, Agents: []string{"a", "b"}, Limit: action.Limit{Tokens: action.Max(1000)}}}})
		require.NoError(t, e.Register(a, b))
		ta, err := e.Start(ctx, delta.Goal{ID: "ta", Agent: a})
		require.NoError(t, err)
		tb, err := e.Start(ctx, delta.Goal{ID: "tb", Agent: b})
		require.NoError(t, err)
		made := 0
		more := func(n int64) action.Code {
			made++ // the same call again and again would be brought before a person as a loop
			out, err := tb.Do(ctx, delta.Call{Action: "use", Input: inputOf(In{ID: fmt.Sprint("b", made), N: n})}).Get()
			require.NoError(t, err)
			return out.Code
		}
		team := func() (spent, lent int64) {
			p, err := e.Pool(ctx, "team")
			require.NoError(t, err)
			return p.Spent().Tokens, p.Lent.Tokens
		}
		lost, err := ta.Do(ctx, delta.Call{Action: "use", Input: inputOf(In{ID: "lost", N: 1})}).Get()
		require.NoError(t, err)
		require.Equal(t, action.StartedUnknown, lost.Code)
		require.NoError(t, use.Do(ctx, ta, In{ID: "a", N: 600}).Error())
		spent, lent := team()
		assert.GreaterOrEqual(t, lent, spent, "the pool knows at once")
		require.Equal(t, action.OK, more(1))

		op, err := e.Authenticate(ctx, "op")
		require.NoError(t, err)
		require.NoError(t, ta.Resolve(ctx, lost.Intent, op, false, nil, action.Cost{Tokens: 5000}, "it burnt them"))
		working, stop := context.WithCancel(ctx)
		done := background(func() error { return e.Work(working) })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		stop()
		require.ErrorIs(t, done(), context.Canceled)
		spent, lent = team()
		assert.GreaterOrEqual(t, lent, spent, "and what an operator told, with the next look")
		code := action.OK
		for n := 0; code == action.OK && n < 300; n++ {
			code = more(1)
		}
		assert.Equal(t, action.BudgetExhausted, code, "what b was lent before is used up, and there is no more")
	})
}
