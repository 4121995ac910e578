package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func budgetCases() []Case {
	return []Case{
		{"C08", "N parallel calls read the same spend and all pass", "reserving is atomic: what is reserved and spent never exceeds a limit", []Variant{
			{"50 × 0.50 of 1.00", overspend(Limit{Money: UpTo(1)}, Cost{Money: 0.5}, 2, false)},
			{"50 × 0.30 of 1.00: the rest is too little", overspend(Limit{Money: UpTo(1)}, Cost{Money: 0.3}, 3, false)},
			{"tokens", overspend(Limit{Tokens: UpTo(1000)}, Cost{Tokens: 100}, 10, false)},
			{"calls, whatever they cost", overspend(Limit{Calls: UpTo(5)}, Cost{}, 5, false)},
			{"the tightest of several axes", overspend(Limit{Tokens: UpTo(1000), Money: UpTo(1), Calls: UpTo(40)}, Cost{Tokens: 250, Money: 0.01}, 4, false)},
			{"attempts are calls too", attemptsCount},
			{"a call that was refused or never started holds nothing", nothingHeld},
			{"two engines over one store", overspend(Limit{Money: UpTo(1)}, Cost{Money: 0.5}, 2, true)},
			{"each costs what its input says", overprice(false)},
			{"each costs what its input says, two engines over one store", overprice(true)},
		}},
		{"C10", "a NaN cost makes every comparison false and all calls pass", "costs are finite and not negative at every edge", []Variant{
			{"reported NaN", badSpend(math.NaN())},
			{"reported +Inf", badSpend(math.Inf(1))},
			{"reported -Inf", badSpend(math.Inf(-1))},
			{"reported beyond every integer", badSpend(1e300)},
			{"declared NaN", badEstimate(Cost{Tokens: math.NaN()})},
			{"declared +Inf", badEstimate(Cost{Money: math.Inf(1)})},
			{"a limit of NaN", badLimit(math.NaN())},
		}},
		{"C11", "a negative cost lowers the total", "negative costs are refused; what is spent only grows", []Variant{
			{"reported −1,000,000", badSpend(-1e6)},
			{"reported −1", badSpend(-1)},
			{"declared", badEstimate(Cost{Tokens: -1})},
			{"a negative limit", badLimit(-1)},
			{"two huge costs that overflow", overflowSpend},
		}},
		{"C27", "a halted run gets a fresh budget when its id is reused", "terminal is terminal and spent is spent, after a restart too", []Variant{
			{"exhaust, reuse the id", reusedID(false, false)},
			{"exhaust, restart, reuse the id", reusedID(true, false)},
			{"cancel, restart, reuse the id", reusedID(true, true)},
			{"a start whose reply is lost", startLost},
		}},
	}
}

// overspend has 50 calls at once, each of which holds its reservation until all have been decided.
func overspend(l Limit, c Cost, room int, peers bool) func(*T) {
	return func(t *T) {
		hold := newGate()
		var decided, most atomic.Int32
		var inside atomic.Int32
		buy := &spy{then: func(ctx context.Context, x Execution) (json.RawMessage, error) {
			n := inside.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			defer inside.Add(-1)
			if decided.Add(1) == 50 {
				hold.open()
			}
			hold.wait(ctx)
			return json.RawMessage(`{}`), x.Spend(c)
		}}
		task := t.open(Goal{Limit: l}, Action{Name: "buy", Effect: Idempotent, Cost: c, Do: buy.do})
		engines := []Subject{t.Subject}
		if peers {
			p, err := need[Peered](t).Peer()
			if err != nil {
				t.Fatalf("peer: %v", err)
			}
			engines = append(engines, p)
		}
		var ok, refused atomic.Int32
		together(50, func(i int) {
			// Losing a race for the store several times in a row is no verdict on the budget.
			for range 200 {
				o := engines[i%len(engines)].Propose(t.Context, task, Call{Action: "buy", Input: fmt.Sprintf(`{"n":%d}`, i)})
				switch o.Code {
				case action.OK:
					ok.Add(1)
				case action.Stale:
					continue
				case action.BudgetExhausted:
					refused.Add(1)
					if decided.Add(1) == 50 {
						hold.open()
					}
				default:
					t.Errorf("buy: %s %v%s", o.Code, orEmpty(o.Err), o.Told)
					hold.open()
				}
				return
			}
			t.Errorf("buy: stale for ever")
			hold.open()
		})
		if int(ok.Load()) != room || int(most.Load()) > room {
			t.Errorf("%d of 50 calls ran, %d at once; the budget has room for %d", ok.Load(), most.Load(), room)
		}
		if _, can := t.Subject.(Accountant); !can {
			return
		}
		a := t.account(task)
		if l.Money != nil && a.Spent.Money+a.Reserved.Money > *l.Money || l.Tokens != nil && a.Spent.Tokens+a.Reserved.Tokens > *l.Tokens {
			t.Errorf("spent and reserved %+v %+v, beyond the limit", a.Spent, a.Reserved)
		}
	}
}

// overprice has 40 calls at once, of which each costs as many tenths as its input says and holds them until all have been
// decided. What runs fits, and what is refused does not fit beside it.
func overprice(peers bool) func(*T) {
	tenths := func(raw json.RawMessage) int64 {
		var in struct{ N int64 }
		_ = json.Unmarshal(raw, &in) // made by the case
		return in.N
	}
	return func(t *T) {
		need[Pricer](t)
		hold := newGate()
		var decided atomic.Int32
		price := func(in json.RawMessage) Cost { return Cost{Money: float64(tenths(in)) / 10} }
		buy := &spy{then: func(ctx context.Context, x Execution) (json.RawMessage, error) {
			if decided.Add(1) == 40 {
				hold.open()
			}
			hold.wait(ctx)
			return json.RawMessage(`{}`), x.Spend(price(x.Input))
		}}
		task := t.open(Goal{Limit: Limit{Money: UpTo(2)}}, Action{Name: "buy", Effect: Idempotent, Cost: Cost{Money: 1.5}, Price: price, Do: buy.do})
		engines := []Subject{t.Subject}
		if peers {
			p, err := need[Peered](t).Peer()
			if err != nil {
				t.Fatalf("peer: %v", err)
			}
			engines = append(engines, p)
		}
		var ran atomic.Int64
		var refused [40]bool
		together(40, func(i int) {
			n := int64(1 + i%7)
			for range 200 { // losing a race for the store is no verdict on the budget
				o := engines[i%len(engines)].Propose(t.Context, task, Call{Action: "buy", Input: fmt.Sprintf(`{"n":%d,"of":%d}`, n, i)})
				switch o.Code {
				case action.OK:
					ran.Add(n)
				case action.Stale:
					continue
				case action.BudgetExhausted:
					refused[i] = true
					if decided.Add(1) == 40 {
						hold.open()
					}
				default:
					t.Errorf("buy: %s %v%s", o.Code, orEmpty(o.Err), o.Told)
					hold.open()
				}
				return
			}
			t.Errorf("buy: stale for ever")
			hold.open()
		})
		if ran.Load() > 20 {
			t.Errorf("calls that cost %d tenths ran, the limit is 20", ran.Load())
		}
		for i, no := range refused {
			if n := int64(1 + i%7); no && ran.Load()+n <= 20 {
				t.Errorf("a call that costs %d tenths was refused beside %d of 20", n, ran.Load())
			}
		}
		if a := t.account(task); a.Spent.Money+a.Reserved.Money > 2 {
			t.Errorf("spent and reserved %+v %+v, beyond the limit", a.Spent, a.Reserved)
		}
	}
}

// attemptsCount has 10 calls at once that fail and would be attempted again and again.
func attemptsCount(t *T) {
	put := &spy{then: fails("not yet")}
	task := t.open(Goal{Threshold: 5, Limit: Limit{Calls: UpTo(7)}}, Action{Name: "put", Effect: Idempotent, Retries: 20, Do: put.do})
	together(10, func(i int) { t.propose(task, "put", fmt.Sprintf(`{"n":%d}`, i)) })
	if n := put.runs(); n > 7 {
		t.Errorf("%d attempts ran, the limit is 7 calls", n)
	}
}

func nothingHeld(t *T) {
	pay, f := &spy{}, fails("not today")
	act := Action{Name: "pay", Schema: payment, Cost: Cost{Tokens: 10}, Do: pay.do}
	act.Before = func(ctx context.Context) error { _, err := f(ctx, Execution{}); return err }
	gated := Action{Name: "sign", Schema: payment, Gated: true, Cost: Cost{Tokens: 10}, Do: pay.do}
	task := t.open(Goal{Limit: Limit{Tokens: UpTo(100)}}, act, gated)
	t.want("a hook says no", t.propose(task, "pay", `{"amount":1}`), action.HookFailed)
	t.want("bad input", t.propose(task, "pay", `{}`), action.InputInvalid)
	t.asks(task, "sign", `{"amount":1}`)
	if a := t.account(task); a != (Account{}) {
		t.Errorf("nothing ran, and the budget stands at %+v", a)
	}
	t.ran("pay", pay, 0)
}

// badSpend reports a cost that is none, and then what can be paid and what cannot.
func badSpend(x float64) func(*T) {
	return func(t *T) {
		var first atomic.Bool
		var taken atomic.Int32
		buy := &spy{then: func(_ context.Context, e Execution) (json.RawMessage, error) {
			if first.CompareAndSwap(false, true) {
				for _, c := range []Cost{{Tokens: x}, {Money: x}} {
					if e.Spend(c) == nil {
						taken.Add(1)
					}
				}
				return json.RawMessage(`{}`), nil
			}
			return json.RawMessage(`{}`), e.Spend(Cost{Tokens: 60})
		}}
		task := t.open(Goal{Limit: Limit{Tokens: UpTo(100), Money: UpTo(1)}}, Action{Name: "buy", Effect: Idempotent, Cost: Cost{Tokens: 60}, Do: buy.do})
		t.propose(task, "buy", `{}`)
		if taken.Load() > 0 {
			t.Errorf("a cost of %v was accepted", x)
		}
		before := t.account(task)
		if !(before.Spent.Tokens >= 0 && before.Spent.Money >= 0 && before.Spent.Tokens <= 100) {
			t.Errorf("after a cost of %v, spent is %+v", x, before.Spent)
		}
		t.want("what the budget allows", t.propose(task, "buy", `{}`), action.OK)
		t.want("what it does not", t.propose(task, "buy", `{}`), action.BudgetExhausted)
		if after := t.account(task); !(after.Spent.Tokens >= before.Spent.Tokens && after.Spent.Tokens <= 100) {
			t.Errorf("spent went from %+v to %+v", before.Spent, after.Spent)
		}
	}
}

func badEstimate(c Cost) func(*T) {
	return func(t *T) {
		buy := &spy{}
		err := t.Declare(Agent{Name: clerk, Actions: []Action{{Name: "buy", Cost: c, Do: buy.do}}, Grants: []string{"buy"}})
		if err == nil {
			t.Errorf("an action of cost %+v was accepted", c)
		}
	}
}

func badLimit(x float64) func(*T) {
	return func(t *T) {
		buy := &spy{}
		t.declare(clerk, Action{Name: "buy", Do: buy.do})
		for _, l := range []Limit{{Tokens: &x}, {Money: &x}, {Calls: &x}} {
			if _, err := t.Start(t.Context, Goal{Agent: clerk, Limit: l}); err == nil {
				t.Errorf("a limit of %v was accepted", x)
			}
		}
	}
}

// overflowSpend adds up to more than an integer holds.
func overflowSpend(t *T) {
	huge := math.Ldexp(1, 52)
	buy := &spy{then: func(_ context.Context, x Execution) (json.RawMessage, error) {
		for range 5000 {
			if x.Spend(Cost{Tokens: huge}) != nil {
				break
			}
		}
		return json.RawMessage(`{}`), nil
	}}
	task := t.open(Goal{Limit: Limit{Tokens: UpTo(100)}}, Action{Name: "buy", Effect: Idempotent, Cost: Cost{Tokens: 1}, Do: buy.do})
	t.propose(task, "buy", `{}`)
	if a := t.account(task); a.Spent.Tokens < huge {
		t.Errorf("spent is %v after more than %v was used", a.Spent.Tokens, huge)
	}
	for range 3 {
		t.want("after the overrun", t.propose(task, "buy", `{}`), action.BudgetExhausted)
	}
	t.ran("buy", buy, 1)
}

func reusedID(restart, cancel bool) func(*T) {
	return func(t *T) {
		buy := &spy{then: func(_ context.Context, x Execution) (json.RawMessage, error) {
			return json.RawMessage(`{}`), x.Spend(Cost{Tokens: 100})
		}}
		goal := Goal{ID: "job-1", Limit: Limit{Tokens: UpTo(100)}}
		task := t.open(goal, Action{Name: "buy", Effect: Idempotent, Cost: Cost{Tokens: 100}, Do: buy.do})
		t.want("the first", t.propose(task, "buy", `{"n":1}`), action.OK)
		ended := action.BudgetExhausted
		if cancel {
			ended = action.Cancelled
			if err := t.Cancel(t.Context, task, "enough"); err != nil {
				t.Fatalf("cancel: %v", err)
			}
		}
		if restart {
			t.restart()
		}
		goal.Agent, goal.Approvers = clerk, []string{boss}
		if again, err := t.Start(t.Context, goal); err == nil {
			t.Errorf("the id of a task that exists was taken for another, %s", again)
			t.want("in the new task of the old id", t.propose(again, "buy", `{"n":2}`), ended)
		}
		t.want("in the old task", t.propose(task, "buy", `{"n":3}`), ended)
		t.ran("buy", buy, 1)
	}
}

// startLost loses replies while a task is started: it is started or it is not, and the caller knows which.
func startLost(t *T) {
	f := need[Faulty](t)
	t.declare(clerk, Action{Name: "buy", Do: answerBody})
	for from := 1; from <= 3; from++ {
		for _, reply := range []bool{false, true} {
			id := fmt.Sprintf("job-%d-%v", from, reply)
			f.FailStore(Fault{From: from, To: from, Reply: reply})
			task, err := t.Start(t.Context, Goal{Agent: clerk, ID: id})
			f.FailStore(Fault{})
			if err == nil {
				t.want("in the task", t.propose(task, "buy", `{}`), action.OK)
				continue
			}
			if _, err := t.Start(t.Context, Goal{Agent: clerk, ID: id}); err != nil {
				t.Errorf("access %d lost (reply %v): the task was not started, and cannot be: %v", from, reply, err)
			}
		}
	}
}
