package delta_test

import (
	"testing"

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
		assert.Equal(t, [2]int64{50, 0}, [2]int64{spent, reserved}, "calls of an agent in the pool count once")
	}
}
