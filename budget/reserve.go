package budget

import (
	"fmt"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Settled is how many costs of an action must have settled before what was learned replaces what was declared.
const Settled = 5

// Learned is what history says about the cost of an action on one axis.
type Learned struct {
	P95 int64 // the 95th percentile of the next cost
	N   int64 // settled costs it rests on
}

// Forecast is what history says on every axis. The zero value is no history.
type Forecast struct {
	On       [action.AxisCount]Learned
	Currency string // of the money axis
}

// Ask is what is known about the cost of a call before it runs.
type Ask struct {
	Estimate action.Cost  // as declared; zero on an axis says nothing about it
	Max      action.Limit // as declared: a reservation is never more
	Forecast Forecast
	// Exact is what this very call costs on the axes on which it has an amount: there neither estimate nor forecast counts.
	Exact action.Limit
}

// Grant is what a call reserves.
type Grant struct {
	Reserved   action.Cost
	Unforecast []string // limited axes of which nothing is known: nothing is reserved there
	Short      []string // limited axes where the estimate fits but the forecast does not: the remainder is reserved
}

// Refusal says why nothing was granted.
type Refusal struct {
	Axis    action.Axis
	Want    int64 // what the call would have reserved
	Least   int64 // what left must be at least for it to be granted
	Left    int64 // what there is, negative where the axis is overrun
	Message string
}

// Reserve decides what a call reserves, or refuses it as a whole: on an axis that has no room for it, on one that is
// overrun (even a call that reserves nothing there), and where declared currencies mix. On every axis the reservation is
//
//	the estimate                    until 5 costs have settled
//	the learned 95th percentile     from then on
//	the remainder                   where the estimate fits but the percentile does not
//	nothing, and it is marked       where there is neither estimate nor history
//	the exact cost                  where it is known, whatever else is: no less will do
//
// never above the declared maximum; and at least one call is one call. What was learned about money in another currency
// says nothing about this one: other tasks of the agent may have been paid in it.
func Reserve(acc Account, ask Ask) (Grant, *Refusal) {
	if err := ask.Estimate.Check(); err != nil {
		return Grant{}, &Refusal{Message: "estimate: " + err.Error()}
	}
	if err := ask.checkExact(); err != nil {
		return Grant{}, &Refusal{Message: "exact: " + err.Error()}
	}
	cur, err := currency(acc.Limit.Currency, acc.Granted.Currency, moneyOf(ask.Estimate), ask.Max.Currency, ask.exactCurrency())
	if err != nil {
		return Grant{}, &Refusal{Axis: action.Money, Message: err.Error()}
	}
	if ask.Forecast.Currency != cur {
		ask.Forecast.On[action.Money] = Learned{}
	}
	var g Grant
	var reserved [action.AxisCount]int64
	for a := range action.AxisCount {
		left, limited := acc.left(a)
		estimate, want, known := ask.on(a)
		switch {
		case left < 0:
			return Grant{}, &Refusal{a, want, least(estimate, want), left, fmt.Sprintf("%s overrun: %s more than the limit is spent or reserved", a, a.Amount(-left, cur))}
		case want <= left:
		case estimate > 0 && estimate <= left:
			want = left
			g.Short = append(g.Short, a.String())
		case ask.exact(a):
			return Grant{}, &Refusal{a, want, want, left, fmt.Sprintf("the call costs %s, %s left", a.Amount(want, cur), a.Amount(left, cur))}
		default:
			return Grant{}, &Refusal{a, want, least(estimate, want), left, fmt.Sprintf("the call may need %s, %s left", a.Amount(want, cur), a.Amount(left, cur))}
		}
		if limited && !known {
			g.Unforecast = append(g.Unforecast, a.String())
		}
		reserved[a] = want
	}
	g.Reserved = action.Cost{
		Tokens: reserved[action.Tokens], Duration: time.Duration(reserved[action.Duration]), Calls: reserved[action.Calls],
		Bytes: reserved[action.Bytes], Money: reserved[action.Money], Currency: cur,
	}
	return g, nil
}

// least is the room that a grant needs: with an estimate, a call may begin that the forecast alone would not let.
func least(estimate, want int64) int64 {
	if estimate > 0 {
		return min(estimate, want)
	}
	return want
}

// exactCurrency is that of an exact cost in money, "" of one that is nothing.
func (k *Ask) exactCurrency() string {
	if n, _ := k.Exact.Money.Get(); n > 0 {
		return k.Exact.Currency
	}
	return ""
}

func (k *Ask) exact(a action.Axis) bool {
	_, ok := k.Exact.On(a).Get()
	return ok
}

// checkExact reports an exact cost that is none, or more than was declared that a call may cost. Of calls nothing but one call
// is exact.
func (k *Ask) checkExact() error {
	for a := range action.AxisCount {
		n, ok := k.Exact.On(a).Get()
		m, bounded := k.Max.On(a).Get()
		switch {
		case !ok:
		case a == action.Calls && n != 1, n < 0, n > action.MaxAmount:
			return fmt.Errorf("cost %s is %d", a, n)
		case a == action.Money && n > 0 && k.Exact.Currency == "":
			return fmt.Errorf("cost money needs a currency")
		case bounded && n > m:
			return fmt.Errorf("the call costs %s, at most %s may be reserved", a.Amount(n, k.Exact.Currency), a.Amount(m, k.Max.Currency))
		}
	}
	return nil
}

// on returns the declared estimate on an axis, what to reserve if there is room, and whether anything is known at all.
func (k *Ask) on(a action.Axis) (estimate, want int64, known bool) {
	if n, ok := k.Exact.On(a).Get(); ok {
		return n, n, true
	}
	estimate = k.Estimate.Amount(a)
	if a == action.Calls {
		estimate = max(estimate, 1)
	}
	want, known = estimate, estimate > 0
	if f := k.Forecast.On[a]; f.N >= Settled {
		want, known = min(max(f.P95, 0), action.MaxAmount), true
	}
	if m, ok := k.Max.On(a).Get(); ok {
		estimate, want = min(estimate, m), min(want, m)
	}
	if a == action.Calls {
		estimate, want = max(estimate, 1), max(want, 1)
	}
	return estimate, want, known
}

// Settlement is what the end of a call changes in the counters.
type Settlement struct {
	Granted [action.AxisCount]int64 // differences, of either sign
	Spent   [action.AxisCount]int64 // differences, never negative
	Overrun []string                // limited axes on which more was used than reserved
}

// Settle ends a reservation with what was actually used. It is an error where the cost is out of range or of another
// currency; check with [Account.Accepts] when a function reports it. The differences keep the counters within
// [action.MaxAmount]: an amount beyond it is not counted.
func Settle(acc Account, reserved, actual action.Cost) (Settlement, error) {
	if err := actual.Check(); err != nil {
		return Settlement{}, err
	}
	if _, err := currency(acc.Limit.Currency, acc.Granted.Currency, moneyOf(reserved), moneyOf(actual)); err != nil {
		return Settlement{}, err
	}
	var s Settlement
	for a := range action.AxisCount {
		held, used := reserved.Amount(a), actual.Amount(a)
		s.Granted[a] = max(min(used, action.MaxAmount-(acc.Granted.Amount(a)-held)), 0) - held
		s.Spent[a] = max(min(used, action.MaxAmount-acc.Spent.Amount(a)), 0)
		if _, limited := acc.Limit.On(a).Get(); limited && used > held {
			s.Overrun = append(s.Overrun, a.String())
		}
	}
	return s, nil
}

// Release ends a reservation of a call that never started: all of it is given back.
func Release(reserved action.Cost) Settlement {
	var s Settlement
	for a := range action.AxisCount {
		s.Granted[a] = -reserved.Amount(a)
	}
	return s
}
