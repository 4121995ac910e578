package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// tokensOf says that a call costs as many tokens as its input names.
func tokensOf(in In) action.Cost { return action.Cost{Tokens: in.N} }

// meter is a task whose actions "buya" and "buyb" cost In.N tokens by their input, and spend that.
func meter(tb rapid.TB, limit action.Limit) (*delta.Engine, *delta.Task) {
	b := delta.NewAgent("shopper")
	for _, name := range []string{"buya", "buyb"} {
		b = b.Grant(delta.Define(name, func(ctx *delta.Context, in In) mo.Result[Out] {
			switch in.ID {
			case "err":
				return mo.Err[Out](errors.Join(errors.New("no"), ctx.Spend(tokensOf(in))))
			case "unknown":
				return mo.Err[Out](action.Unknown(nil))
			}
			if err := ctx.Spend(tokensOf(in)); err != nil {
				return mo.Err[Out](err)
			}
			return mo.Ok(Out{"bought"})
		}).Describe("buy").Risk(1).Cost(action.Cost{Tokens: 500}).CostOf(tokensOf, action.Tokens).MustBuild())
	}
	e, err := delta.New(delta.Config{Store: memory.New(memory.Config{}), Risk: unmoved()})
	require.NoError(tb, err)
	task, err := e.Start(context.Background(), delta.Goal{Agent: b.MustBuild(), Limit: limit, Approvers: []string{"*"}, Threshold: 5})
	require.NoError(tb, err)
	return e, task
}

// begun returns the begins, and the further attempts, of a task.
func begun(tb rapid.TB, task *delta.Task) (out []ledger.Event) {
	records, _, err := task.Ledger(context.Background())
	require.NoError(tb, err)
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		require.NoError(tb, err)
		if e.Type == ledger.Begun || e.Type == ledger.Attempt {
			out = append(out, e)
		}
	}
	return out
}

// TestI07_PricesKeepEveryLimit: a call begins exactly where what its input says that it costs is left, whatever calls before
// it cost and whatever is declared, and that much is reserved.
func TestI07_PricesKeepEveryLimit(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tokens := rapid.Int64Range(0, 300).Draw(r, "tokens")
		limit := action.Limit{Tokens: action.Max(tokens)}
		e, task := meter(r, limit)
		defer e.Close(context.Background())
		var used int64
		var granted []int64
		hows := []string{"ok", "ok", "unknown", "err"}
		for i := range 10 {
			in := In{ID: rapid.SampledFrom(hows[:4-min(i/3, 1)]).Draw(r, "how"), N: rapid.Int64Range(0, 60).Draw(r, "costs")} // so few failures that nobody is asked
			c := delta.Call{Action: rapid.SampledFrom([]string{"buya", "buyb"}).Draw(r, "action"), Input: inputOf(in)}
			v, err := task.Preview(context.Background(), c, nil)
			require.NoError(r, err)
			o, err := task.Do(context.Background(), c).Get()
			require.NoError(r, err)
			if o.Code == action.NotLegal { // the same call is of unknown outcome
				continue
			}
			fits := used+in.N <= tokens
			require.Equal(r, fits, o.Code != action.BudgetExhausted, "%d of %d tokens, it costs %d: %v", used, tokens, in.N, o.Failure)
			require.Equal(r, fits, v.OK(), "a preview says the same: %v %v", v.Failure, o.Failure)
			if !fits {
				require.Contains(r, o.Failure.Error(), fmt.Sprintf("the call costs %s, %s left", action.Tokens.Amount(in.N, ""), action.Tokens.Amount(tokens-used, "")))
				continue
			}
			used, granted = used+in.N, append(granted, in.N)
		}
		var reserved []int64
		for _, e := range begun(r, task) {
			require.Equal(r, action.Limit{Tokens: action.Max(e.Reserved.Tokens)}, e.Priced)
			reserved = append(reserved, e.Reserved.Tokens)
		}
		require.Equal(r, granted, reserved)
		require.Equal(r, used, audit(r, task, limit).granted.Tokens)
	})
}

// However many are made at once, what was granted of what they cost is never more than there is.
func TestI07_PricesAtOnce(t *testing.T) {
	limit := action.Limit{Tokens: action.Max(400)}
	e, task := meter(t, limit)
	defer e.Close(context.Background())
	var all sync.WaitGroup
	var granted atomic.Int64
	for g := range 32 {
		all.Go(func() {
			for i := range 4 {
				in := In{ID: "ok", N: int64(7*g+13*i) % 41}
				o, err := task.Do(context.Background(), delta.Call{Action: "buya", Input: inputOf(in)}).Get()
				if assert.NoError(t, err) && o.OK() {
					granted.Add(in.N)
				}
			}
		})
	}
	all.Wait()
	a := audit(t, task, limit)
	assert.Equal(t, granted.Load(), a.granted.Tokens, "what ran is what it cost")
	for _, e := range begun(t, task) {
		n, ok := e.Priced.Tokens.Get()
		assert.True(t, ok && n == e.Reserved.Tokens)
	}
}

// What it began with is what every further attempt reserves, whatever the function says by then.
func TestI07_FurtherAttemptsReserveTheSame(t *testing.T) {
	var says, tries atomic.Int64
	buy := delta.Define("buy", func(ctx *delta.Context, in In) mo.Result[Out] {
		tries.Add(1)
		says.Store(1000)
		return mo.Err[Out](errors.Join(errors.New("sold out"), ctx.Spend(action.Cost{Tokens: 10})))
	}).Describe("Buy").Risk(1).Effect(action.Idempotent).Retry(9).CostOf(func(In) action.Cost { return action.Cost{Tokens: says.Load()} }, action.Tokens).MustBuild()
	engine, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	says.Store(10)
	task, err := engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("buyer").Grant(buy).MustBuild(), Limit: action.Limit{Tokens: action.Max(25)}})
	require.NoError(t, err)
	require.Equal(t, action.Failed, task.Do(t.Context(), call("buy", "x")).MustGet().Code)
	require.EqualValues(t, 2, tries.Load(), "there is room for two")
	for _, e := range begun(t, task) {
		assert.Equal(t, int64(10), e.Reserved.Tokens)
	}
	audit(t, task, action.Limit{Tokens: action.Max(25)})
}

// A consent is to a cost, too: where the function says something else by the time the call goes on, a person is asked anew. A
// worker that took over the same code reserves what was approved.
func TestI06_AConsentIsToWhatItCosts(t *testing.T) {
	store := memory.New(memory.Config{})
	worker := func(rate int64) (*delta.Engine, *delta.Agent) {
		pay := delta.Define("pay", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"paid"}) }).Describe("Pay").Risk(1).RequireApproval().
			CostOf(func(in In) action.Cost { return action.Cost{Money: rate * in.N, Currency: "EUR"} }, action.Money).MustBuild()
		e, err := delta.New(delta.Config{Store: store, Authenticator: anybody})
		require.NoError(t, err)
		t.Cleanup(func() { _ = e.Close(context.Background()) })
		a := delta.NewAgent("payer").Grant(pay).MustBuild()
		require.NoError(t, e.Register(a))
		return e, a
	}
	first, agent := worker(1_000_000)
	task, err := first.Start(t.Context(), delta.Goal{ID: "t", Agent: agent, Approvers: []string{"boss"}, Limit: action.Limit{Money: action.Max(9_000_000), Currency: "EUR"}})
	require.NoError(t, err)
	c := delta.Call{ID: "c", Action: "pay", Input: inputOf(In{ID: "a", N: 4})}
	id := task.Do(t.Context(), c).MustGet().Failure.Approval()
	boss, err := first.Authenticate(t.Context(), "boss")
	require.NoError(t, err)
	asked, err := first.Approval(t.Context(), id)
	require.NoError(t, err)
	assert.Contains(t, asked.Explain(), "will cost EUR 4.00, by its input; 1 call (forecast)")
	require.NoError(t, first.Approve(t.Context(), id, boss, "fine"))

	second, _ := worker(2_000_000)
	there, err := second.Open(t.Context(), task.ID())
	require.NoError(t, err)
	o := there.Do(t.Context(), c).MustGet()
	require.Equal(t, action.ApprovalRequired, o.Code)
	require.NotEqual(t, id, o.Failure.Approval())
	a, err := second.Approval(t.Context(), o.Failure.Approval())
	require.NoError(t, err)
	assert.Contains(t, a.Explain(), "will cost EUR 8.00")
	boss, err = second.Authenticate(t.Context(), "boss")
	require.NoError(t, err)
	require.NoError(t, second.Approve(t.Context(), a.ID, boss, "all right"))
	third, _ := worker(2_000_000)
	there, err = third.Open(t.Context(), task.ID())
	require.NoError(t, err)
	require.True(t, there.Do(t.Context(), c).MustGet().OK())
	all := begun(t, task)
	require.Len(t, all, 1)
	assert.Equal(t, action.Limit{Money: action.Max(8_000_000), Currency: "EUR"}, all[0].Priced)
	assert.Equal(t, int64(8_000_000), all[0].Reserved.Money)
}

// Approved together, each call costs what its own input says.
func TestI07_ABatchCostsWhatEachSays(t *testing.T) {
	pay := delta.Define("pay", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"paid"}) }).Describe("Pay").Risk(1).RequireApproval().
		CostOf(tokensOf, action.Tokens).MustBuild()
	e := engineFor(t, delta.Config{Authenticator: anybody})
	task, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("payer").Grant(pay).MustBuild(), Approvers: []string{"boss"}, Limit: action.Limit{Tokens: action.Max(50)}})
	require.NoError(t, err)
	var ids []string
	calls := []delta.Call{}
	for _, n := range []int64{20, 40} {
		c := delta.Call{Action: "pay", Input: inputOf(In{ID: "a", N: n})}
		calls, ids = append(calls, c), append(ids, task.Do(t.Context(), c).MustGet().Failure.Approval())
	}
	boss, err := e.Authenticate(t.Context(), "boss")
	require.NoError(t, err)
	_, err = e.ApproveBatch(t.Context(), ids, boss, []string{"n"}, "both")
	require.ErrorContains(t, err, "will cost 40 tokens, the first 20 tokens")
	_, err = e.ApproveBatch(t.Context(), []string{ids[1], ids[0]}, boss, []string{"n"}, "both")
	require.NoError(t, err)
	require.True(t, task.Do(t.Context(), calls[0]).MustGet().OK())
	require.NotEmpty(t, begun(t, task))
	assert.Equal(t, int64(20), begun(t, task)[0].Reserved.Tokens)
	// The first settled at nothing: its function said nothing. So there is room for the second.
	require.True(t, task.Do(t.Context(), calls[1]).MustGet().OK())
	assert.Equal(t, int64(40), begun(t, task)[1].Reserved.Tokens)
}

// Whatever the function does, nothing is run for it.
func TestI15_PricesAreContained(t *testing.T) {
	for _, c := range []struct {
		reason string
		price  func(In) action.Cost
		says   string
	}{
		{"it panics", func(In) action.Cost { panic("secret words") }, "it panicked"},
		{"another axis", func(In) action.Cost { return action.Cost{Bytes: 1} }, "names bytes"},
		{"of the same kind it has not", func(In) action.Cost { return action.Cost{Calls: 1} }, "names calls"},
		{"less than nothing", func(In) action.Cost { return action.Cost{Tokens: -1} }, "cost tokens is -1"},
		{"beyond all counters", func(In) action.Cost { return action.Cost{Tokens: 1 << 53} }, "cost tokens is"},
		{"money without a currency", func(In) action.Cost { return action.Cost{Money: 1} }, "needs a currency"},
		{"above its maximum", func(In) action.Cost { return action.Cost{Tokens: 101} }, "would cost 101 tokens, and a call of it may cost at most 100 tokens"},
		{"in another currency than its maximum", func(In) action.Cost { return action.Cost{Money: 1, Currency: "USD"} }, "at most is in EUR"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var ran atomic.Bool
			buy := delta.Define("buy", func(*delta.Context, In) mo.Result[Out] {
				ran.Store(true)
				return mo.Ok(Out{"bought"})
			}).Describe("Buy").Risk(1).CostOf(c.price, action.Tokens, action.Money).
				MaxCost(action.Limit{Tokens: action.Max(100), Money: action.Max(100), Currency: "EUR"}).MustBuild()
			e := engineFor(t, delta.Config{})
			task, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("buyer").Grant(buy).MustBuild()})
			require.NoError(t, err)
			o := task.Do(t.Context(), call("buy", "a")).MustGet()
			require.Equal(t, action.CostInvalid, o.Code)
			assert.Contains(t, o.Failure.Error(), c.says)
			assert.NotContains(t, o.Failure.Error(), "secret words")
			assert.False(t, ran.Load())
			assert.Empty(t, begun(t, task))
			b, err := task.Budget(t.Context())
			require.NoError(t, err)
			assert.True(t, b.Reserved.IsZero() && b.Spent.IsZero())
		})
	}
}

// Where all is only observed, what would have been refused is recorded, and the call runs.
func TestI15_PricesAreObserved(t *testing.T) {
	e := engineFor(t, delta.Config{Observe: true})
	buy := delta.Define("buy", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"bought"}) }).Describe("Buy").Risk(1).
		CostOf(tokensOf, action.Tokens).MaxCost(action.Limit{Tokens: action.Max(100)}).MustBuild()
	task, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("buyer").Grant(buy).MustBuild(), Limit: action.Limit{Tokens: action.Max(50)}})
	require.NoError(t, err)
	for _, n := range []int64{60, 101} {
		require.True(t, task.Do(t.Context(), delta.Call{Action: "buy", Input: inputOf(In{ID: "a", N: n})}).MustGet().OK())
	}
	var codes []action.Code
	for _, e := range begun(t, task) {
		for _, f := range e.Waived {
			codes = append(codes, f.Code)
		}
	}
	assert.Equal(t, []action.Code{action.BudgetExhausted, action.CostInvalid}, codes)
}

// One that hangs is given up.
func TestI15_APriceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		buy := delta.Define("buy", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"bought"}) }).Describe("Buy").Risk(1).
			CostOf(func(In) action.Cost { <-release; return action.Cost{} }, action.Tokens).MustBuild()
		e, err := delta.New(delta.Config{})
		require.NoError(t, err)
		task, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("buyer").Grant(buy).MustBuild()})
		require.NoError(t, err)
		began := time.Now()
		o := task.Do(t.Context(), call("buy", "a")).MustGet()
		require.Equal(t, action.CostInvalid, o.Code)
		assert.Contains(t, o.Failure.Error(), "it took too long")
		assert.LessOrEqual(t, time.Since(began), time.Minute)
		close(release)
		require.NoError(t, e.Close(context.Background()))
	})
}

// An action is offered though most calls of it would not be affordable: one may be. Undoing and steps of workflows cost what
// their input says like any other call.
func TestI07_EveryCallIsPriced(t *testing.T) { synctest.Test(t, everyCallIsPriced) }

func everyCallIsPriced(t *testing.T) {
	back := delta.Define("back", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"back"}) }).Describe("Give back").Risk(1).Effect(action.Idempotent).
		CostOf(tokensOf, action.Tokens).MustBuild()
	take := delta.Define("take", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"taken"}) }).Describe("Take").Risk(1).Effect(action.Compensatable).
		Cost(action.Cost{Tokens: 100}).CostOf(tokensOf, action.Tokens).Undo(back, func(in In, _ Out) any { return In{in.ID, in.N + 1} }).MustBuild()
	sop := workflow.New("taking", "1").Step(workflow.Execute("take", "take").Map("id", "input.id").Map("n", "input.n")).MustBuild()
	e := engineFor(t, delta.Config{Workflows: delta.Workflows{Definitions: []*workflow.Definition{sop}}})
	agent := delta.NewAgent("taker").Grant(take, back).MustBuild()
	limit := action.Limit{Tokens: action.Max(50)}
	task, err := e.Start(t.Context(), delta.Goal{Agent: agent, Limit: limit})
	require.NoError(t, err)
	offer, err := task.Offer(t.Context())
	require.NoError(t, err)
	offered, ok := offer.Find("take")
	require.True(t, ok, "declared at 100 tokens, and 50 are left")
	assert.Equal(t, []string{"tokens"}, offered.Priced)
	assert.Equal(t, action.Cost{Calls: 1}, offered.Forecast)
	require.True(t, task.Do(t.Context(), delta.Call{Action: "take", Input: inputOf(In{ID: "a", N: 30})}).MustGet().OK())
	undone, err := task.Compensate(t.Context(), "it is off")
	require.NoError(t, err)
	require.Len(t, undone.Undone, 1)
	all := begun(t, task)
	require.Len(t, all, 2)
	assert.Equal(t, []int64{30, 31}, []int64{all[0].Reserved.Tokens, all[1].Reserved.Tokens})

	for n, want := range map[int]string{40: "completed", 60: "BUDGET_EXHAUSTED"} {
		run, err := e.StartWorkflow(t.Context(), sop, delta.Goal{Agent: agent, Limit: limit}, fmt.Appendf(nil, `{"id":"a","n":%d}`, n))
		require.NoError(t, err)
		s, err := run.Run(t.Context())
		require.NoError(t, err)
		text, err := json.Marshal(s)
		require.NoError(t, err)
		assert.Contains(t, string(s.Status)+" "+string(text), want)
		for _, b := range begun(t, run.Task()) {
			assert.Equal(t, int64(n), b.Reserved.Tokens)
		}
	}
}

func TestCostOf_Faults(t *testing.T) {
	b := delta.Define("buy", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("Buy")
	for reason, c := range map[string]struct {
		b    delta.Builder[In, Out]
		says string
	}{
		"no function":       {b.CostOf(nil, action.Tokens), "function is nil"},
		"no axis":           {b.CostOf(tokensOf), "name the axes"},
		"calls":             {b.CostOf(tokensOf, action.Calls), "axis calls"},
		"no such axis":      {b.CostOf(tokensOf, action.AxisCount), "axis axis(5)"},
		"declared twice":    {b.CostOf(tokensOf, action.Tokens).CostOf(tokensOf, action.Bytes), "declared twice"},
		"a fork is its own": {b.CostOf(tokensOf, action.Tokens), ""},
	} {
		_, err := c.b.Build()
		if c.says == "" {
			assert.NoError(t, err, reason)
			continue
		}
		assert.ErrorContains(t, err, c.says, reason)
	}
	_, err := b.Build()
	assert.NoError(t, err)
}
