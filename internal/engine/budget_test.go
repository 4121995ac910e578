package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
)

// books is the naive model of a budget: what runs holds what it reserved, what ended counts what it used.
type books struct {
	holds map[*Run]action.Cost
	spent [action.AxisCount]int64
}

func (b *books) granted(a action.Axis) int64 {
	n := b.spent[a]
	for _, c := range b.holds {
		n += c.Amount(a)
	}
	return n
}

// Whatever calls and proposals begin, are refused, end and are resolved, in any order and at any cost: no grant exceeds a
// limit on any axis, spent never falls, and the counters are those of the naive model.
func TestI07_NoGrantExceedsALimit(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { noGrantExceedsALimit(r, 40) })
}

func noGrantExceedsALimit(r *rapid.T, n int) {
	s := plain()
	bound := func(name string, most int64) action.Bound {
		if rapid.Bool().Draw(r, name) {
			return action.Bound{}
		}
		return action.Max(rapid.Int64Range(0, most).Draw(r, name))
	}
	s.Limit = action.Limit{
		Tokens: bound("tokens", 400), Calls: bound("calls", 15), Bytes: bound("bytes", 300), Money: bound("money", 200), Currency: "EUR",
	}
	d := open(r, s)
	for _, name := range []string{"list", "confirm"} {
		a := d.agent.Actions[name]
		a.Effect = action.Idempotent
		a.Estimate = anyCost(r, 30)
		if rapid.Bool().Draw(r, "capped") {
			a.Maximum = action.Limit{Tokens: action.Max(rapid.Int64Range(a.Estimate.Tokens, 60).Draw(r, "max"))}
		}
	}
	b := &books{holds: map[*Run]action.Cost{}}
	var running []*Run
	for range n {
		before := d.look().Account()
		switch rapid.IntRange(0, 3).Draw(r, "what") {
		case 0, 1:
			name := rapid.SampledFrom([]string{"list", "confirm"}).Draw(r, "action")
			c := d.call(name, map[string]string{"list": `{}`, "confirm": `{"order":"A"}`}[name])
			dec := d.propose(c)
			if dec.Begun == nil {
				if dec.Refusal.Code == action.BudgetExhausted {
					checkRefusal(d, before, d.agent.Actions[name])
				}
				continue
			}
			x := d.run(c, dec)
			running, b.holds[x] = append(running, x), dec.Begun.Reserved
			for a := range action.AxisCount {
				if limit, ok := s.Limit.On(a).Get(); ok {
					require.LessOrEqual(r, b.granted(a), limit, "granted %s", a)
				}
			}
		case 2:
			if x, ok := one(r, &running); ok {
				code := rapid.SampledFrom([]action.Code{action.OK, action.Failed, action.NotStarted, action.Interrupted}).Draw(r, "end")
				if x.Begun.Attempt > 1 {
					code = action.Failed // it has started
				}
				used := anyCost(r, 80)
				d.must(x.Settle(d.end(code, `{}`, used)))
				delete(b.holds, x)
				for a := range action.AxisCount {
					if code.Info().Charge == action.ChargeActual {
						b.spent[a] += used.Amount(a)
					}
				}
			}
		case 3:
			if len(running) > 0 {
				x := running[0]
				end := d.end(action.Failed, "", anyCost(r, 80))
				if d.attempt(x, end) { // charged, and everything reserved once more
					b.holds[x] = x.Begun.Reserved
					for a := range action.AxisCount {
						b.spent[a] += end.Cost.Amount(a)
						limit, limited := s.Limit.On(a).Get()
						require.True(r, !limited || b.granted(a) <= limit, "granted %s to an attempt", a)
					}
				}
			}
		}
		acc := d.look().Account()
		for a := range action.AxisCount {
			require.GreaterOrEqual(r, acc.Spent.Amount(a), before.Spent.Amount(a), "spent %s fell", a)
			require.Equal(r, b.granted(a), acc.Granted.Amount(a), "granted %s", a)
		}
	}
}

func anyCost(r *rapid.T, most int64) action.Cost {
	amount := func(name string) int64 { return rapid.Int64Range(0, most).Draw(r, name) }
	return action.Cost{Tokens: amount("tokens"), Bytes: amount("bytes"), Money: amount("money"), Currency: "EUR"}
}

// checkRefusal reports a refusal for want of budget where every axis had room for all that could be reserved.
func checkRefusal(d *desk, acc budget.Account, a *Action) {
	f := model.Forecast(d.look().Beliefs, a.Declaration())
	for x := range action.AxisCount {
		want := max(a.Estimate.Amount(x), f.On(x).P95, 1)
		if left, limited := acc.Left(x); limited && left < want {
			return
		}
	}
	require.Fail(d, "refused although every axis had room")
}

// An overrun settles in full, is recorded, and blocks what follows until there is room again.
func TestI07_OverrunBlocks(t *testing.T) {
	s := plain()
	s.Limit.Tokens = action.Max(50)
	d := open(t, s)
	d.must(d.begin(d.call("list", `{}`)).Settle(d.end(action.OK, `{}`, action.Cost{Calls: 1, Tokens: 70})))
	last := d.records(d.task)
	assert.Contains(t, last[len(last)-1].Val, `"overrun":true`)
	assert.Equal(t, int64(70), d.look().Account().Spent.Tokens)
	for _, name := range []string{"list", "confirm", "audit"} { // audit reserves no tokens at all
		input := map[bool]string{true: `{"order":"A"}`, false: `{}`}[name == "confirm"]
		dec := d.propose(d.call(name, input))
		require.Equal(t, action.BudgetExhausted, dec.Refusal.Code, name)
		assert.Equal(t, "tokens", dec.Refusal.Details[action.DetailAxis])
	}
	d.change(func(s *TaskState) { s.Limit.Tokens = action.Max(100) })
	assert.Equal(t, action.OK, d.code("list", `{}`))
}

// Money of two currencies never meets.
func TestI07_CurrenciesDoNotMix(t *testing.T) {
	s := plain()
	s.Limit = action.Limit{Money: action.Max(100), Currency: "EUR"}
	d := open(t, s)
	d.agent.Actions["list"].Estimate = action.Cost{Money: 1, Currency: "USD"}
	dec := d.propose(d.call("list", `{}`))
	require.Equal(t, action.BudgetExhausted, dec.Refusal.Code)
	assert.Equal(t, "money", dec.Refusal.Details[action.DetailAxis])
	assert.Equal(t, action.OK, d.code("confirm", `{"order":"A"}`), "another action is not concerned")
}

// A cost that the model of costs cannot take must not keep the outcome itself from being learned.
func TestI13_ForeignMoneyStillTeaches(t *testing.T) {
	d := open(t, plain())
	d.agent.Actions["list"].Estimate = action.Cost{Money: 5, Currency: "EUR"}
	x := d.begin(d.call("list", `{}`))
	d.must(x.Settle(d.end(action.Failed, "", action.Cost{Calls: 1, Money: 3, Currency: "USD"})))
	d.fold()
	assert.Equal(t, int64(1), model.Risk(d.look().Beliefs, d.agent.Actions["list"].Declaration()).Errs)
	(&shift{desk: d}).checkBeliefs()
}

// After five settled costs the reservation is what was learned.
func TestReservationLearns(t *testing.T) {
	d := open(t, plain())
	reserved := func() int64 {
		dec := d.decide(d.call("list", `{}`))
		return dec.Begun.Reserved.Tokens
	}
	for range budget.Settled {
		assert.Equal(t, int64(5), reserved(), "as declared")
		d.must(d.begin(d.call("list", `{}`)).Settle(d.end(action.OK, `{}`, action.Cost{Calls: 1, Tokens: 100})))
	}
	assert.Greater(t, reserved(), int64(50))
	d.agent.Actions["list"].Maximum.Tokens = action.Max(40)
	assert.Equal(t, int64(40), reserved(), "never above the declared maximum")
	left := d.look().Account().Granted.Tokens + 20
	d.change(func(s *TaskState) { s.Limit.Tokens = action.Max(left) })
	assert.Equal(t, int64(20), reserved(), "the estimate fits: the remainder is reserved")
}
