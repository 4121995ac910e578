package budget_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
)

func tokens(p95, n int64) (f budget.Forecast) {
	f.On[action.Tokens] = budget.Learned{P95: p95, N: n}
	return f
}

func TestReserve(t *testing.T) {
	limit := action.Limit{Tokens: action.Max(100)}
	for _, c := range []struct {
		name    string
		granted int64
		ask     budget.Ask
		want    int64 // tokens; -1 refused
		marks   []string
		short   []string
	}{
		{"the estimate, while little is known", 0, budget.Ask{Estimate: action.Cost{Tokens: 40}, Forecast: tokens(90, 4)}, 40, nil, nil},
		{"what was learned, after five", 0, budget.Ask{Estimate: action.Cost{Tokens: 40}, Forecast: tokens(90, 5)}, 90, nil, nil},
		{"what was learned, be it less", 0, budget.Ask{Estimate: action.Cost{Tokens: 40}, Forecast: tokens(10, 5)}, 10, nil, nil},
		{"never above the declared maximum", 0, budget.Ask{Estimate: action.Cost{Tokens: 40}, Forecast: tokens(90, 5), Max: action.Limit{Tokens: action.Max(60)}}, 60, nil, nil},
		{"an estimate above it neither", 0, budget.Ask{Estimate: action.Cost{Tokens: 90}, Max: action.Limit{Tokens: action.Max(60)}}, 60, nil, nil},
		{"exactly what is left", 60, budget.Ask{Estimate: action.Cost{Tokens: 40}}, 40, nil, nil},
		{"one too many", 61, budget.Ask{Estimate: action.Cost{Tokens: 40}}, -1, nil, nil},
		{"the remainder, where only the estimate fits", 50, budget.Ask{Estimate: action.Cost{Tokens: 40}, Forecast: tokens(90, 9)}, 50, nil, []string{"tokens"}},
		{"no estimate, so no remainder", 50, budget.Ask{Forecast: tokens(90, 9)}, -1, nil, nil},
		{"neither estimate nor history", 50, budget.Ask{}, 0, []string{"tokens"}, nil},
		{"too little history is none", 50, budget.Ask{Forecast: tokens(90, 4)}, 0, []string{"tokens"}, nil},
		{"nothing known and nothing left", 100, budget.Ask{}, 0, []string{"tokens"}, nil},
		{"overrun: not even a call that reserves nothing", 101, budget.Ask{}, -1, nil, nil},
		{"what it costs, whatever was learned and declared", 0, budget.Ask{Estimate: action.Cost{Tokens: 40}, Forecast: tokens(90, 9), Exact: action.Limit{Tokens: action.Max(7)}}, 7, nil, nil},
		{"nothing, where it costs nothing", 100, budget.Ask{Estimate: action.Cost{Tokens: 40}, Forecast: tokens(90, 9), Exact: action.Limit{Tokens: action.Max(0)}}, 0, nil, nil},
		{"all that is left, where it costs that", 60, budget.Ask{Exact: action.Limit{Tokens: action.Max(40)}}, 40, nil, nil},
		{"no remainder of what it costs", 61, budget.Ask{Estimate: action.Cost{Tokens: 1}, Exact: action.Limit{Tokens: action.Max(40)}}, -1, nil, nil},
		{"an axis of which it says nothing", 0, budget.Ask{Estimate: action.Cost{Tokens: 40}, Exact: action.Limit{Bytes: action.Max(0)}}, 40, nil, nil},
		{"a forecast below zero reserves nothing", 0, budget.Ask{Forecast: tokens(-5, 9)}, 0, nil, nil},
		{"a forecast beyond all counters", 0, budget.Ask{Estimate: action.Cost{Tokens: 1}, Forecast: tokens(math.MaxInt64, 9)}, 100, nil, []string{"tokens"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, no := budget.Reserve(budget.Account{Limit: limit, Granted: action.Cost{Tokens: c.granted}}, c.ask)
			if c.want < 0 {
				require.NotNil(t, no)
				assert.Equal(t, action.Tokens, no.Axis)
				assert.Equal(t, 100-c.granted, no.Left)
				assert.Zero(t, g)
				return
			}
			require.Nil(t, no)
			assert.Equal(t, action.Cost{Tokens: c.want, Calls: 1}, g.Reserved)
			assert.Equal(t, c.marks, g.Unforecast)
			assert.Equal(t, c.short, g.Short)
		})
	}
}

func TestReserveCountsCallsAndUnlimitedAxes(t *testing.T) {
	acc := budget.Account{Limit: action.Limit{Calls: action.Max(2)}, Granted: action.Cost{Calls: 1}}
	g, no := budget.Reserve(acc, budget.Ask{Estimate: action.Cost{Tokens: 1e9}})
	require.Nil(t, no)
	assert.Equal(t, action.Cost{Tokens: 1e9, Calls: 1}, g.Reserved)
	acc.Granted.Calls = 2
	_, no = budget.Reserve(acc, budget.Ask{})
	require.NotNil(t, no)
	assert.Equal(t, &budget.Refusal{Axis: action.Calls, Want: 1, Least: 1, Left: 0, Message: "the call may need 1 call, 0 calls left"}, no)

	acc = budget.Account{Granted: action.Cost{Tokens: action.MaxAmount}}
	_, no = budget.Reserve(acc, budget.Ask{Estimate: action.Cost{Tokens: 1}})
	assert.NotNil(t, no, "unlimited ends where counters do")

	_, no = budget.Reserve(budget.Account{Limit: action.Limit{Money: action.Max(0), Currency: "EUR"}}, budget.Ask{Estimate: action.Cost{Money: 1, Currency: "EUR"}})
	require.NotNil(t, no, "a limit of zero is none, not unlimited")
	assert.Equal(t, action.Money, no.Axis)
}

// No mixing and nothing negative, wherever it comes from.
func TestI07_BadCostsAreRefused(t *testing.T) {
	eur := budget.Account{Limit: action.Limit{Money: action.Max(100), Currency: "EUR"}}
	usd := action.Cost{Money: 1, Currency: "USD"}
	_, no := budget.Reserve(eur, budget.Ask{Estimate: usd})
	require.NotNil(t, no)
	assert.Equal(t, action.Money, no.Axis)
	assert.Contains(t, no.Message, "EUR and USD")
	_, no = budget.Reserve(eur, budget.Ask{Estimate: action.Cost{Tokens: -1}})
	assert.NotNil(t, no)
	for reason, ask := range map[string]budget.Ask{
		"another currency":   {Exact: action.Limit{Money: action.Max(1), Currency: "USD"}},
		"no currency":        {Exact: action.Limit{Money: action.Max(1)}},
		"less than nothing":  {Exact: action.Limit{Tokens: action.Max(-1)}},
		"beyond 2^53":        {Exact: action.Limit{Bytes: action.Max(1 << 53)}},
		"more than one call": {Exact: action.Limit{Calls: action.Max(2)}},
		"above its maximum":  {Exact: action.Limit{Tokens: action.Max(2)}, Max: action.Limit{Tokens: action.Max(1)}},
	} {
		_, no := budget.Reserve(eur, ask)
		assert.NotNil(t, no, reason)
	}
	_, no = budget.Reserve(eur, budget.Ask{Exact: action.Limit{Money: action.Max(0), Currency: "USD"}})
	assert.Nil(t, no, "nothing is of no currency")
	_, err := budget.Settle(eur, action.Cost{}, usd)
	assert.ErrorIs(t, err, action.ErrCurrency)
	_, err = budget.Settle(eur, action.Cost{}, action.Cost{Tokens: -1})
	assert.Error(t, err)
	assert.ErrorIs(t, eur.Accepts(usd), action.ErrCurrency)
	assert.Error(t, eur.Accepts(action.Cost{Bytes: -1}))
	assert.NoError(t, eur.Accepts(action.Cost{Money: 1, Currency: "EUR"}))
	assert.ErrorIs(t, budget.FromCounters(action.Limit{}, nil, "EUR").Accepts(usd), action.ErrCurrency, "the first money spent sets the currency")
}

func TestSettleAndRelease(t *testing.T) {
	acc := budget.Account{Limit: action.Limit{Tokens: action.Max(100)}, Granted: action.Cost{Tokens: 60, Bytes: 1}, Spent: action.Cost{Tokens: 10}}
	s, err := budget.Settle(acc, action.Cost{Tokens: 50, Calls: 1}, action.Cost{Tokens: 30, Calls: 1})
	require.NoError(t, err)
	assert.Equal(t, budget.Settlement{Granted: [action.AxisCount]int64{-20}, Spent: [action.AxisCount]int64{action.Tokens: 30, action.Calls: 1}}, s)
	s, err = budget.Settle(acc, action.Cost{Tokens: 50}, action.Cost{Tokens: 95, Bytes: 7})
	require.NoError(t, err)
	assert.Equal(t, int64(45), s.Granted[action.Tokens], "settled in full, beyond the limit")
	assert.Equal(t, []string{"tokens"}, s.Overrun, "bytes are not limited: nothing is overrun there")
	assert.Equal(t, budget.Settlement{Granted: [action.AxisCount]int64{-50}}, budget.Release(action.Cost{Tokens: 50}))

	full := budget.Account{Granted: action.Cost{Tokens: action.MaxAmount}, Spent: action.Cost{Tokens: action.MaxAmount}}
	s, err = budget.Settle(full, action.Cost{}, action.Cost{Tokens: 9})
	require.NoError(t, err)
	assert.Equal(t, budget.Settlement{}, s, "counters stay countable")
}

func TestAccount(t *testing.T) {
	acc := budget.FromCounters(action.Limit{Tokens: action.Max(100), Money: action.Max(5), Currency: "EUR"},
		map[string]int64{"granted/tokens": 120, "spent/tokens": 50, "granted/calls": 3}, "")
	assert.Equal(t, action.Cost{Tokens: 70, Calls: 3, Currency: "EUR"}, acc.Reserved())
	left, limited := acc.Left(action.Tokens)
	assert.Equal(t, int64(-20), left)
	assert.True(t, limited)
	on, over := acc.Overrun()
	assert.True(t, over)
	assert.Equal(t, action.Tokens, on)
	snap := acc.Snapshot()
	assert.Equal(t, action.Limit{Tokens: action.Max(0), Money: action.Max(5), Currency: "EUR"}, snap.Left)
	share, on := acc.Share()
	assert.Equal(t, 0.5, share)
	assert.Equal(t, action.Tokens, on)
	_, over = budget.Account{}.Overrun()
	assert.False(t, over)
}

// What an action cost in tasks of one currency neither refuses nor reserves anything in a task of another.
func TestForeignForecastIsIgnored(t *testing.T) {
	eur := budget.Account{Limit: action.Limit{Money: action.Max(100), Tokens: action.Max(100), Currency: "EUR"}}
	f := tokens(7, 9)
	f.On[action.Money], f.Currency = budget.Learned{P95: 1000, N: 9}, "USD"
	g, no := budget.Reserve(eur, budget.Ask{Forecast: f})
	require.Nil(t, no)
	assert.Equal(t, action.Cost{Tokens: 7, Calls: 1, Currency: "EUR"}, g.Reserved, "what was learned on other axes holds")
	assert.Equal(t, []string{"money"}, g.Unforecast)
	g, no = budget.Reserve(eur, budget.Ask{Estimate: action.Cost{Money: 5, Currency: "EUR"}, Forecast: f})
	require.Nil(t, no)
	assert.Equal(t, int64(5), g.Reserved.Money, "the estimate is what is known")
	g, no = budget.Reserve(budget.Account{}, budget.Ask{Forecast: f})
	require.Nil(t, no)
	assert.Zero(t, g.Reserved.Money, "a task without a currency spends no money")
	f.Currency = "EUR"
	_, no = budget.Reserve(eur, budget.Ask{Forecast: f})
	require.NotNil(t, no)
	assert.Equal(t, action.Money, no.Axis)
}

// A currency beside no money is not meant: it changes nothing.
func TestCurrencyOfNothing(t *testing.T) {
	eur := budget.Account{Limit: action.Limit{Money: action.Max(100), Currency: "EUR"}}
	nothing := action.Cost{Tokens: 1, Currency: "USD"}
	assert.NoError(t, eur.Accepts(nothing))
	_, no := budget.Reserve(eur, budget.Ask{Estimate: nothing})
	assert.Nil(t, no)
	_, err := budget.Settle(eur, nothing, nothing)
	assert.NoError(t, err)
	sum, err := nothing.Add(action.Cost{Money: 5, Currency: "EUR"})
	require.NoError(t, err)
	assert.Equal(t, action.Cost{Tokens: 1, Money: 5, Currency: "EUR"}, sum)
}

// naive keeps every reservation and every cost in lists and adds them up anew each time.
type naive struct{ live, spent []int64 }

func sum(xs []int64) (s int64) {
	for _, x := range xs {
		s += x
	}
	return s
}

func (n *naive) granted() int64 { return sum(n.live) + sum(n.spent) }

// Any sequence of reserve, settle, release and overrun, against lists added up by hand.
func TestI07_NoGrantExceedsALimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(0, 200).Draw(t, "limit")
		counters := map[string]int64{}
		model := naive{}
		var held []action.Cost
		account := func() budget.Account {
			return budget.FromCounters(action.Limit{Tokens: action.Max(limit)}, counters, "")
		}
		apply := func(s budget.Settlement) {
			for a := range action.AxisCount {
				require.GreaterOrEqual(t, s.Spent[a], int64(0), "spent never falls")
				counters[budget.GrantedKey(a)] += s.Granted[a]
				counters[budget.SpentKey(a)] += s.Spent[a]
			}
		}
		take := func() (action.Cost, bool) {
			if len(held) == 0 {
				return action.Cost{}, false
			}
			i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
			r := held[i]
			held = append(held[:i:i], held[i+1:]...)
			model.live = append(model.live[:i:i], model.live[i+1:]...)
			return r, true
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				ask := budget.Ask{
					Estimate: action.Cost{Tokens: rapid.Int64Range(0, 80).Draw(t, "estimate")},
					Forecast: tokens(rapid.Int64Range(-10, 120).Draw(t, "p95"), rapid.Int64Range(0, 9).Draw(t, "n")),
				}
				if rapid.Bool().Draw(t, "priced") {
					ask.Exact = action.Limit{Tokens: action.Max(rapid.Int64Range(0, 120).Draw(t, "exact"))}
				}
				g, no := budget.Reserve(account(), ask)
				if n, ok := ask.Exact.Tokens.Get(); ok && no == nil {
					require.Equal(t, n, g.Reserved.Tokens, "what it costs is what is reserved")
				}
				if model.granted() > limit {
					require.NotNil(t, no, "an overrun axis grants nothing")
				}
				if no != nil {
					return
				}
				apply(budget.Settlement{Granted: [action.AxisCount]int64{g.Reserved.Tokens, 0, g.Reserved.Calls}})
				held, model.live = append(held, g.Reserved), append(model.live, g.Reserved.Tokens)
				require.LessOrEqual(t, model.granted(), limit, "no grant exceeds the limit")
			},
			"settle": func(t *rapid.T) {
				r, ok := take()
				if !ok {
					return
				}
				used := action.Cost{Tokens: rapid.Int64Range(0, 150).Draw(t, "used"), Calls: 1}
				s, err := budget.Settle(account(), r, used)
				require.NoError(t, err)
				require.Equal(t, used.Tokens > r.Tokens, len(s.Overrun) > 0)
				apply(s)
				model.spent = append(model.spent, used.Tokens)
			},
			"release": func(t *rapid.T) {
				if r, ok := take(); ok {
					apply(budget.Release(r))
				}
			},
			"": func(t *rapid.T) {
				acc := account()
				require.Equal(t, model.granted(), acc.Granted.Tokens)
				require.Equal(t, sum(model.spent), acc.Spent.Tokens)
				require.Equal(t, sum(model.live), acc.Reserved().Tokens)
			},
		})
	})
}

func TestFriction(t *testing.T) {
	for _, c := range []struct {
		name   string
		p      budget.Progress
		want   float64
		advice budget.Advice
	}{
		{"too early to tell", budget.Progress{Share: 0.9, Attempts: 4}, 0, budget.Quiet},
		{"nothing limited, or nothing spent", budget.Progress{Attempts: 50}, 0, budget.Quiet},
		{"a fact for every attempt", budget.Progress{Share: 0.9, Attempts: 5, Facts: 5}, 0.9, budget.Quiet},
		{"more facts than attempts is all of it", budget.Progress{Share: 0.5, Attempts: 5, Facts: 9}, 0.5, budget.Quiet},
		{"exactly at the bound", budget.Progress{Share: 0.75, Attempts: 6, Facts: 3}, 1.5, budget.Quiet},
		{"little for much", budget.Progress{Share: 0.5, Attempts: 8, Facts: 2}, 2, budget.Guide},
		{"nothing at all counts as one", budget.Progress{Share: 0.5, Attempts: 5}, 2.5, budget.Guide},
		{"nothing for most of it", budget.Progress{Share: 0.75, Attempts: 8}, 6, budget.Escalate},
		{"the workflow's own position", budget.Progress{Share: 0.5, Attempts: 9, Facts: 0, Position: 2, Steps: 4}, 1, budget.Quiet},
		{"at the start of it", budget.Progress{Share: 0.5, Attempts: 9, Facts: 9, Steps: 4}, 2, budget.Guide},
		{"a share that is no number", budget.Progress{Share: math.NaN(), Attempts: 9}, 0, budget.Quiet},
	} {
		got, advice := budget.Friction(c.p)
		assert.InDelta(t, c.want, got, 1e-12, c.name)
		assert.Equal(t, c.advice, advice, c.name)
	}
}

func TestGuidance(t *testing.T) {
	acc := budget.Account{Limit: action.Limit{Tokens: action.Max(100), Calls: action.Max(10), Bytes: action.Max(10), Duration: action.Max(0)},
		Granted: action.Cost{Tokens: 90, Calls: 10, Bytes: 8}}
	lines := budget.Guidance(acc, budget.Progress{Share: 0.9, Attempts: 9}, 3)
	assert.Equal(t, []string{
		"Budget: 10 tokens left of 100 tokens.",
		"Budget: no calls left.",
		"Much effort for little progress: stop and ask for help, or finish with what there is.",
		"The same call was made 3 times and nothing new came of it: do something else.",
	}, lines)
	assert.Empty(t, budget.Guidance(budget.Account{}, budget.Progress{}, 2))
}

func TestLoop(t *testing.T) {
	type step struct {
		digest string
		facts  int
		want   int
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"three times the same", []step{{"a", 0, 1}, {"a", 0, 2}, {"a", 0, 3}}},
		{"a circle of two", []step{{"a", 1, 1}, {"b", 1, 1}, {"a", 1, 2}, {"b", 1, 2}, {"a", 1, 3}}},
		{"a new fact breaks it", []step{{"a", 0, 1}, {"a", 0, 2}, {"a", 1, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l budget.Loop
			for _, s := range c.steps {
				var n int
				l, n = l.Push(s.digest, s.facts)
				assert.Equal(t, s.want, n)
			}
		})
	}
	var l budget.Loop
	for i := range 100 {
		l, _ = l.Push(fmt.Sprint(i), 0)
	}
	assert.LessOrEqual(t, len(l.Seen), 32, "bounded")
	before := fmt.Sprint(l)
	l.Push("99", 0)
	assert.Equal(t, before, fmt.Sprint(l), "pushing leaves the old value alone")
}

func ExampleReserve() {
	acc := budget.Account{Limit: action.Limit{Tokens: action.Max(1000)}, Granted: action.Cost{Tokens: 700}}
	g, no := budget.Reserve(acc, budget.Ask{Estimate: action.Cost{Tokens: 250}})
	fmt.Println(g.Reserved.Tokens, no == nil)
	_, no = budget.Reserve(acc, budget.Ask{Estimate: action.Cost{Tokens: 400}})
	fmt.Println(no.Message)
	// Output:
	// 250 true
	// the call may need 400 tokens, 300 tokens left
}

// Note is Push in place: the same counts, whatever is pushed.
func TestNoteCountsAsPushDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pushed, noted budget.Loop
		for range rapid.IntRange(1, 120).Draw(t, "calls") {
			digest := rapid.StringMatching("[a-z]").Draw(t, "digest") + rapid.StringMatching("[a-c]").Draw(t, "more")
			facts := rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}).Draw(t, "facts")
			var want int
			pushed, want = pushed.Push(digest, facts)
			require.Equal(t, want, noted.Note(digest, facts))
			require.Equal(t, pushed, noted)
		}
	})
}
