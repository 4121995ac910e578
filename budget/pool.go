package budget

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Period is how long a pool lasts before it starts anew, by the store's clock, in UTC.
type Period string

// The periods.
const (
	Forever Period = "" // it never starts anew
	Day     Period = "day"
	Month   Period = "month"
)

// Pool is a budget beyond that of a task: calls of all tasks of an agent count in it, beside their own task's. Where it is
// shared, those of several agents.
type Pool struct {
	// Name is by action.CheckName.
	Name string
	// Agents are those whose calls count; empty is every agent, which a shared pool cannot have.
	Agents []string
	Period Period
	// Limit is that of each agent in a period, or where the pool is shared of all of them.
	Limit action.Limit
	// Shared makes the agents draw on one limit.
	Shared bool
}

// Check reports what is wrong with the declaration of a pool.
func (p Pool) Check() error {
	var faults []error
	if err := action.CheckName(p.Name); err != nil {
		faults = append(faults, err)
	}
	for _, a := range p.Agents {
		if err := action.CheckName(a); err != nil {
			faults = append(faults, fmt.Errorf("agent: %w", err))
		}
	}
	if p.Period != Forever && p.Period != Day && p.Period != Month {
		faults = append(faults, fmt.Errorf("period is %q, want %q, %q or nothing", p.Period, Day, Month))
	}
	if err := p.Limit.Check(); err != nil {
		faults = append(faults, err)
	}
	limited := false
	for a := range action.AxisCount {
		_, has := p.Limit.On(a).Get()
		limited = limited || has
	}
	if !limited {
		faults = append(faults, errors.New("nothing is limited; set an axis of Limit"))
	}
	if p.Shared && len(p.Agents) == 0 {
		faults = append(faults, errors.New("a shared pool must name its agents"))
	}
	if len(faults) > 0 {
		return fmt.Errorf("pool %q: %w", p.Name, errors.Join(faults...))
	}
	return nil
}

// Counts reports whether calls of the agent count in the pool.
func (p Pool) Counts(agent string) bool {
	return len(p.Agents) == 0 || slices.Contains(p.Agents, agent)
}

// Foreign reports whether the pool counts money of another currency than the one given; "" is none, which no pool minds.
func (p Pool) Foreign(currency string) bool {
	return p.Limit.Currency != "" && currency != "" && p.Limit.Currency != currency
}

// At returns the id of the pool in the period that store time now (µs since 1970) lies in, and from when until when that
// lasts: now is at least from and below until, which is 0 for ever.
func (p Pool) At(now int64) (id string, from, until int64) {
	t := time.UnixMicro(now).UTC()
	switch p.Period {
	case Day:
		start := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
		return p.Name + "@" + start.Format("2006-01-02"), start.UnixMicro(), start.AddDate(0, 0, 1).UnixMicro()
	case Month:
		start := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
		return p.Name + "@" + start.Format("2006-01"), start.UnixMicro(), start.AddDate(0, 1, 0).UnixMicro()
	}
	return p.Name, 0, 0
}

// PoolName returns the name of the pool out of an id that At returned.
func PoolName(id string) string {
	name, _, _ := strings.Cut(id, "@")
	return name
}

// PoolKey returns the name of a counter of a pool, from its id and GrantedKey or SpentKey.
func PoolKey(id, counter string) string { return "pool/" + id + "/" + counter }

// PoolID returns the id of a pool out of the name of one of its counters, which PoolKey returned; false for other counters.
func PoolID(key string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(key, "pool/")
	if !ok {
		return "", false
	}
	id, _, ok = strings.Cut(rest, "/")
	return id, ok
}

// PoolOf returns what an id that At returned tells of a pool: its name and its period.
func PoolOf(id string) Pool {
	name, period, dated := strings.Cut(id, "@")
	p := Pool{Name: name}
	switch {
	case dated && len(period) == len("2006-01"):
		p.Period = Month
	case dated:
		p.Period = Day
	}
	return p
}

// PoolAccount reads the account of a pool under a limit from an agent's counters. A pool without a currency counts no money:
// its agents may be paid in several.
func PoolAccount(id string, limit action.Limit, counters map[string]int64) Account {
	acc := Account{Limit: limit}
	acc.Granted.Currency, acc.Spent.Currency = limit.Currency, limit.Currency
	for a := range action.AxisCount {
		if a == action.Money && limit.Currency == "" {
			continue
		}
		acc.Granted = acc.Granted.With(a, counters[PoolKey(id, GrantedKey(a))])
		acc.Spent = acc.Spent.With(a, counters[PoolKey(id, SpentKey(a))])
	}
	return acc
}

// Fits reports whether a reservation fits into an account as it is; what it needs is not bargained about.
func (acc Account) Fits(want action.Cost) *Refusal {
	if _, err := currency(acc.Limit.Currency, moneyOf(want)); err != nil {
		return &Refusal{Axis: action.Money, Message: err.Error()}
	}
	for a := range action.AxisCount {
		left, limited := acc.Left(a)
		if n := want.Amount(a); limited && n > left {
			return &Refusal{a, n, n, left, fmt.Sprintf("the call may need %s, %s left", a.Amount(n, acc.Limit.Currency), a.Amount(left, acc.Limit.Currency))}
		}
	}
	return nil
}

// Bounded is the limit that an amount is, on the axes that another limit bounds.
func Bounded(c action.Cost, on action.Limit) action.Limit {
	out := action.Limit{Currency: on.Currency}
	for a := range action.AxisCount {
		if _, has := on.On(a).Get(); has {
			out = out.With(a, c.Amount(a))
		}
	}
	return out
}
