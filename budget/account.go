package budget

import (
	"fmt"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// GrantedKey returns the name of the counter of what is reserved or spent on an axis.
func GrantedKey(a action.Axis) string { return keys(a)[0] }

// SpentKey returns the name of the counter of what is spent on an axis.
func SpentKey(a action.Axis) string { return keys(a)[1] }

// ready holds the keys of every axis, which each call names.
var ready = func() (all [action.AxisCount][2]string) {
	for a := range action.AxisCount {
		all[a] = [2]string{"granted/" + a.String(), "spent/" + a.String()}
	}
	return all
}()

func keys(a action.Axis) [2]string {
	if a < action.AxisCount {
		return ready[a]
	}
	return [2]string{"granted/" + a.String(), "spent/" + a.String()}
}

// Account is what is known of a budget at one moment. Its zero value is unlimited and unused.
type Account struct {
	Limit   action.Limit
	Granted action.Cost // reserved and spent
	Spent   action.Cost
}

// FromCounters reads an account from counters named by GrantedKey and SpentKey; absent ones are zero. Amounts of money
// are in the currency of the limit, or where that has none in currency, which may be "" while no money was spent.
func FromCounters(limit action.Limit, counters map[string]int64, currency string) Account {
	if limit.Currency != "" {
		currency = limit.Currency
	}
	return Account{limit, costOf(counters, 0, currency), costOf(counters, 1, currency)}
}

// Granting reads of an account, as FromCounters does, what a decision to grant looks at: all but what is spent.
func Granting(limit action.Limit, counters map[string]int64) Account {
	return Account{Limit: limit, Granted: costOf(counters, 0, limit.Currency)}
}

// costOf reads one kind of the counters.
func costOf(counters map[string]int64, kind int, currency string) action.Cost {
	return action.Cost{
		Tokens: counters[ready[action.Tokens][kind]], Duration: time.Duration(counters[ready[action.Duration][kind]]),
		Calls: counters[ready[action.Calls][kind]], Bytes: counters[ready[action.Bytes][kind]], Money: counters[ready[action.Money][kind]],
		Currency: currency,
	}
}

// Reserved returns what is promised to calls that have not ended.
func (acc Account) Reserved() action.Cost {
	out := action.Cost{Currency: acc.Granted.Currency}
	for a := range action.AxisCount {
		out = out.With(a, acc.Granted.Amount(a)-acc.Spent.Amount(a))
	}
	return out
}

// Left returns what can still be granted on an axis, negative where it is overrun, and whether the axis is limited. An
// unlimited axis has left what counters can hold.
func (acc Account) Left(a action.Axis) (left int64, limited bool) { return acc.left(a) }

func (acc *Account) left(a action.Axis) (left int64, limited bool) {
	n, limited := acc.Limit.On(a).Get()
	if !limited {
		n = action.MaxAmount
	}
	return n - acc.Granted.Amount(a), limited
}

// Overrun returns the first axis on which more is granted than the limit, which blocks every grant.
func (acc Account) Overrun() (action.Axis, bool) {
	for a := range action.AxisCount {
		if left, _ := acc.Left(a); left < 0 {
			return a, true
		}
	}
	return 0, false
}

// Share returns the largest share of any limit that is spent, 0 or more (1 is all of it), and on which axis; 0 where
// nothing is limited. Of a limit of nothing, anything is all.
func (acc Account) Share() (share float64, on action.Axis) {
	for a := range action.AxisCount {
		limit, limited := acc.Limit.On(a).Get()
		spent := acc.Spent.Amount(a)
		if !limited || spent == 0 {
			continue
		}
		s := 1.0
		if limit > 0 {
			s = float64(spent) / float64(limit)
		}
		if s > share {
			share, on = s, a
		}
	}
	return share, on
}

// Accepts reports a cost that cannot be charged here: out of range, or of another currency.
func (acc Account) Accepts(c action.Cost) error {
	if err := c.Check(); err != nil {
		return err
	}
	_, err := currency(acc.Limit.Currency, acc.Granted.Currency, moneyOf(c))
	return err
}

// Snapshot is a budget as a function sees it while it runs.
type Snapshot struct {
	Spent    action.Cost  `json:"spent,omitzero"`
	Reserved action.Cost  `json:"reserved,omitzero"` // the caller's own reservation included
	Limit    action.Limit `json:"limit,omitzero"`
	Left     action.Limit `json:"left,omitzero"` // of the limited axes; never below zero
}

// Snapshot returns the account as a value for functions.
func (acc Account) Snapshot() Snapshot {
	s := Snapshot{Spent: acc.Spent, Reserved: acc.Reserved(), Limit: acc.Limit, Left: action.Limit{Currency: acc.Limit.Currency}}
	for a := range action.AxisCount {
		if left, limited := acc.Left(a); limited {
			s.Left = s.Left.With(a, max(left, 0))
		}
	}
	return s
}

// moneyOf is the currency of an amount of money, "" where there is none: then no currency is meant.
func moneyOf(c action.Cost) string {
	if c.Money == 0 {
		return ""
	}
	return c.Currency
}

// currency returns the one currency among those that are not empty.
func currency(all ...string) (string, error) {
	one := ""
	for _, c := range all {
		if one == "" {
			one = c
		}
		if c != "" && c != one {
			return "", fmt.Errorf("%w: %s and %s", action.ErrCurrency, one, c)
		}
	}
	return one, nil
}
