package delta_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

// auditor reads a task's ledger as a bookkeeper would, knowing nothing of the engine: it adds up what was granted and
// spent, record by record.
type auditor struct {
	limit          action.Limit
	granted, spent action.Cost
	held, charged  map[string]action.Cost // by intent: reserved for what runs, charged for attempts that failed
}

func (a *auditor) add(tb rapid.TB, e ledger.Event) {
	before := a.spent
	plus := func(c action.Cost, d action.Cost, sign int64) action.Cost {
		for x := range action.AxisCount {
			c = c.With(x, c.Amount(x)+sign*d.Amount(x))
		}
		return c
	}
	switch e.Type {
	case ledger.Begun, ledger.Attempt:
		if e.Type == ledger.Begun && e.Fence > 1 {
			return
		}
		a.granted = plus(plus(plus(a.granted, a.held[e.Intent], -1), e.Charged, 1), e.Reserved, 1)
		a.spent, a.charged[e.Intent] = plus(a.spent, e.Charged, 1), plus(a.charged[e.Intent], e.Charged, 1)
		a.held[e.Intent] = e.Reserved
		for x := range action.AxisCount {
			if n, ok := a.limit.On(x).Get(); ok {
				require.LessOrEqual(tb, a.granted.Amount(x), n, "%s granted beyond the limit by intent %s", x, e.Intent)
			}
		}
	case ledger.Settled, ledger.Resolved:
		if e.Code == action.StartedUnknown {
			return // stays reserved
		}
		last := plus(e.Charged, a.charged[e.Intent], -1) // attempts before were charged when they failed
		for x := range action.AxisCount {
			last = last.With(x, max(last.Amount(x), 0))
		}
		a.granted = plus(plus(a.granted, a.held[e.Intent], -1), last, 1)
		a.spent = plus(a.spent, last, 1)
		delete(a.held, e.Intent)
	case ledger.Late:
		a.granted, a.spent = plus(a.granted, e.Charged, 1), plus(a.spent, e.Charged, 1)
	}
	for x := range action.AxisCount {
		require.GreaterOrEqual(tb, a.spent.Amount(x), before.Amount(x), "%s: spent never falls", x)
	}
}

func audit(tb rapid.TB, task *delta.Task, limit action.Limit) *auditor {
	a := &auditor{limit: limit, held: map[string]action.Cost{}, charged: map[string]action.Cost{}}
	records, _, err := task.Ledger(context.Background())
	require.NoError(tb, err)
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		require.NoError(tb, err)
		a.add(tb, e)
	}
	b, err := task.Budget(context.Background())
	require.NoError(tb, err)
	for x := range action.AxisCount {
		require.Equal(tb, a.spent.Amount(x), b.Spent.Amount(x), "%s spent", x)
		require.Equal(tb, a.granted.Amount(x)-a.spent.Amount(x), b.Reserved.Amount(x), "%s reserved", x)
	}
	return a
}

// unmoved is a risk model that failures hardly move: what is limited here are budgets, so no call is to need a person only
// because of what failed before it, which depends on who was quicker.
func unmoved() risk.Config {
	const least = 1e-9
	still := risk.Change{Inflation: least, AgentInflation: least}
	return risk.Config{Members: []risk.Member{{Agent: least, Tag: least, Action: least}}, Slope: least, Worse: still, Better: still}
}

// purse is a task whose actions are estimated at 10 tokens and spend In.N.
func purse(tb rapid.TB, limit action.Limit) (*delta.Engine, *delta.Task) {
	e, err := delta.New(delta.Config{Store: memory.New(memory.Config{}), Risk: unmoved()})
	require.NoError(tb, err)
	task, err := e.Start(context.Background(), delta.Goal{Agent: buyer, Limit: limit, Approvers: []string{"*"}, Threshold: 5})
	require.NoError(tb, err)
	return e, task
}

var buyer = func() *delta.Agent {
	b := delta.NewAgent("clerk")
	for i := range 8 {
		b = b.Grant(delta.Define(fmt.Sprintf("buy%c", 'a'+i), func(ctx *delta.Context, in In) mo.Result[Out] {
			if err := ctx.Spend(action.Cost{Tokens: in.N}); err != nil {
				return mo.Err[Out](err)
			}
			switch in.ID {
			case "err":
				return mo.Err[Out](errors.New("no"))
			case "unknown":
				return mo.Err[Out](action.Unknown(nil))
			case "panic":
				panic("no")
			}
			return mo.Ok(Out{"bought"})
		}).Describe("buy").Risk(1).Cost(action.Cost{Tokens: 10}).MustBuild())
	}
	return b.MustBuild()
}()

// TestI07_GrantsKeepEveryLimit: call by call against a model that is one addition: while an action has fewer than five
// settled costs it reserves what it declares, so a call is granted exactly where that fits.
func TestI07_GrantsKeepEveryLimit(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tokens, calls := rapid.Int64Range(0, 120).Draw(r, "tokens"), rapid.Int64Range(0, 12).Draw(r, "calls")
		limit := action.Limit{Tokens: action.Max(tokens), Calls: action.Max(calls)}
		e, task := purse(r, limit)
		defer e.Close(context.Background())
		var usedTokens, usedCalls int64
		for i := range 16 { // no action is called five times
			n := rapid.Int64Range(0, 30).Draw(r, "spends")
			how := rapid.SampledFrom([]string{"ok", "err", "unknown", "panic"}).Draw(r, "how")
			in := In{ID: how, N: n}
			c := delta.Call{Action: fmt.Sprintf("buy%c", 'a'+i/4), Input: inputOf(in)}
			o, err := task.Do(context.Background(), c).Get()
			require.NoError(r, err)
			if o.Code == action.NotLegal { // the same call is of unknown outcome
				continue
			}
			fits := usedTokens+10 <= tokens && usedCalls+1 <= calls
			require.Equal(r, fits, o.Code != action.BudgetExhausted, "%d of %d tokens, %d of %d calls: %v", usedTokens, tokens, usedCalls, calls, o.Failure)
			switch {
			case !fits:
			case o.Code == action.StartedUnknown:
				usedTokens, usedCalls = usedTokens+10, usedCalls+1
			default:
				usedTokens, usedCalls = usedTokens+n, usedCalls+1
			}
		}
		a := audit(r, task, limit)
		require.Equal(r, usedTokens, a.granted.Tokens)
	})
}

func TestI07_SixtyFourAtOnce(t *testing.T) {
	limit := action.Limit{Tokens: action.Max(400), Calls: action.Max(100)}
	e, task := purse(t, limit)
	defer e.Close(context.Background())
	var all sync.WaitGroup
	codes := make([][]action.Code, 64)
	for g := range 64 {
		all.Go(func() {
			for i := range 4 {
				how := []string{"ok", "err", "unknown", "panic"}[(g+i)%4]
				in := In{ID: how, N: int64(g+i) % 25} // overruns too
				o, err := task.Do(context.Background(), delta.Call{Action: fmt.Sprintf("buy%c", 'a'+g%8), Input: inputOf(in)}).Get()
				if assert.NoError(t, err) {
					codes[g] = append(codes[g], o.Code)
				}
			}
		})
	}
	all.Wait()
	a := audit(t, task, limit)
	ran, counts := int64(0), map[action.Code]int{}
	for _, cs := range codes {
		for _, c := range cs {
			counts[c]++
			if c.Info().Executed != action.No {
				ran++
			}
		}
	}
	assert.Equal(t, a.granted.Calls, ran, "every executed call is granted, and no other")
	assert.Positive(t, counts[action.OK], "%v", counts)
	assert.Positive(t, counts[action.BudgetExhausted], "%v", counts)
	for c := range counts { // so many failures in a row may have a person asked
		assert.Contains(t, []action.Code{action.OK, action.Failed, action.Panicked, action.StartedUnknown, action.BudgetExhausted, action.NotLegal, action.Stale, action.ApprovalRequired}, c)
	}
}

// No amount that is negative, out of range or of another currency gets in, wherever it is offered.
func TestI07_ImpossibleCostsAreRefused(t *testing.T) {
	bad := map[string]action.Cost{
		"negative": {Tokens: -1}, "beyond 2^53": {Bytes: 1 << 53}, "the smallest int": {Tokens: math.MinInt64},
		"the largest int": {Tokens: math.MaxInt64}, "money without currency": {Money: 1}, "no such currency": {Money: 1, Currency: "euro"},
	}
	for name, c := range bad {
		t.Run(name, func(t *testing.T) {
			_, err := delta.Define("x", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"x"}) }).Describe("x").Cost(c).Build()
			assert.Error(t, err, "declared")

			w := newWorld(t)
			var refused error
			w.does(func(ctx *delta.Context, _ In) mo.Result[Out] {
				refused = ctx.Spend(c)
				return mo.Ok(Out{"x"})
			})
			require.True(t, w.do(call("act", "a")).OK())
			assert.Error(t, refused, "spent by a function")

			report := w.engine.Run(t.Context(), w.task, delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
				return delta.Proposal{Used: c, Done: true}, nil
			})).MustGet()
			assert.Equal(t, delta.RunFailed, report.Ended, "used by a planner")
			report = w.engine.Run(t.Context(), w.task, estimating{c}).MustGet()
			assert.Equal(t, delta.RunBudget, report.Ended, "estimated by a planner")

			w.does(func(*delta.Context, In) mo.Result[Out] { return mo.Err[Out](action.Unknown(nil)) })
			o := w.do(call("act", "b"))
			require.Equal(t, action.StartedUnknown, o.Code)
			assert.Error(t, w.task.Resolve(t.Context(), o.Intent, w.boss, false, nil, c, "found out"), "resolved")
			b, err := w.task.Budget(t.Context())
			require.NoError(t, err)
			assert.Zero(t, b.Spent.Tokens+b.Spent.Bytes+b.Spent.Money)
		})
	}
	for name, l := range map[string]action.Limit{
		"negative": {Tokens: action.Max(-1)}, "beyond 2^53": {Calls: action.Max(1 << 53)}, "money without currency": {Money: action.Max(1)},
	} {
		w := newWorld(t)
		_, err := w.engine.Start(t.Context(), delta.Goal{Agent: w.agent, Limit: l})
		assert.Error(t, err, name)
	}
}

type estimating struct{ cost action.Cost }

func (e estimating) EstimatePlan() action.Cost { return e.cost }

func (e estimating) Plan(context.Context, delta.Request) (delta.Proposal, error) {
	return delta.Proposal{Done: true}, nil
}

func TestI07_SpendIsSummedAndEnds(t *testing.T) {
	w := newWorld(t)
	var kept *delta.Context
	w.does(func(ctx *delta.Context, _ In) mo.Result[Out] {
		kept = ctx
		assert.NoError(t, ctx.Spend(action.Cost{Tokens: action.MaxAmount - 1}))
		assert.NoError(t, ctx.Spend(action.Cost{Tokens: 1}))
		assert.Error(t, ctx.Spend(action.Cost{Tokens: 1}), "the sum is out of range")
		assert.Error(t, ctx.Spend(action.Cost{Calls: 1}), "calls are counted by the engine")
		return mo.Ok(Out{"x"})
	})
	o := w.do(call("act", "a"))
	require.True(t, o.OK())
	assert.Equal(t, action.MaxAmount, o.Cost.Tokens)
	assert.Error(t, kept.Spend(action.Cost{Tokens: 1}), "the call has ended")
	_, err := kept.Recall("")
	assert.Error(t, err)
	assert.Error(t, kept.Remember("x", "note"))
	w.does(nil)
	assert.Equal(t, action.OK, w.do(call("look", "a")).Code, "tokens are not limited here")
}

// What overruns is charged in full and blocks until an operator makes room.
func TestI07_OverrunBlocks(t *testing.T) {
	limit := action.Limit{Tokens: action.Max(20)}
	e, task := purse(t, limit)
	defer e.Close(context.Background())
	do := func(in In) action.Outcome {
		return task.Do(context.Background(), delta.Call{Action: "buya", Input: inputOf(in)}).MustGet()
	}
	require.True(t, do(In{ID: "a", N: 25}).OK())
	assert.Equal(t, action.BudgetExhausted, do(In{ID: "b"}).Code)
	records, _, err := task.Ledger(context.Background())
	require.NoError(t, err)
	last, err := ledger.Decode(records[len(records)-2].Val)
	require.NoError(t, err)
	assert.True(t, last.Overrun)
	audit(t, task, limit)
}

// What counters cannot hold does not keep an end from being written: the amount is cut, the call is not unknown.
func TestI07_CountersThatAreFull(t *testing.T) {
	w := newWorld(t)
	w.does(func(ctx *delta.Context, in In) mo.Result[Out] {
		if err := ctx.Spend(action.Cost{Bytes: action.MaxAmount}); err != nil {
			return mo.Err[Out](err)
		}
		return mo.Ok(Out{"x"})
	})
	for i := range 3 {
		o := w.do(call("act", fmt.Sprint(i)))
		assert.Contains(t, []action.Code{action.OK, action.BudgetExhausted}, o.Code, "%v", o.Failure)
	}
	b, err := w.task.Budget(t.Context())
	require.NoError(t, err)
	assert.Equal(t, action.MaxAmount, b.Spent.Bytes)
	assert.Zero(t, b.Reserved.Bytes)
}

// The same agent works in tasks of two currencies, and a function that names a currency beside no money changes nothing.
func TestI07_CurrenciesOfOtherTasksDoNotBlock(t *testing.T) {
	engine, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	currency := "EUR"
	buy := delta.Define("buy", func(c *delta.Context, _ In) mo.Result[Out] {
		require.NoError(t, c.Spend(action.Cost{Currency: "JPY"}))
		require.NoError(t, c.Spend(action.Cost{Money: 5, Currency: currency}))
		return mo.Ok(Out{"bought"})
	}).Describe("Buy").Risk(1).MustBuild()
	agent := delta.NewAgent("buyer").Grant(buy).MustBuild()
	for _, currency = range []string{"EUR", "USD", "EUR"} {
		task, err := engine.Start(t.Context(), delta.Goal{Agent: agent, Limit: action.Limit{Money: action.Max(100), Currency: currency}})
		require.NoError(t, err)
		for range 6 { // more than a forecast needs
			require.NoError(t, buy.Do(t.Context(), task, In{ID: "a"}).Error(), currency)
		}
		b, err := task.Budget(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(30), b.Spent.Money)
		require.Equal(t, currency, b.Spent.Currency)
	}
}
