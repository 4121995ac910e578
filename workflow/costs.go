package workflow

import (
	"cmp"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

// charge counts what an event says was spent.
func (m *machine) charge(i int, e Event) {
	c := e.Cost
	if e.Outcome != nil {
		c = e.Outcome.Cost
	}
	if c.IsZero() {
		return
	}
	st := &m.s.Steps[i]
	st.Cost, st.RungCost = plus(st.Cost, c), plus(st.RungCost, c)
	m.s.Cost, m.s.Used = plus(m.s.Cost, c), plus(m.s.Used, c)
}

// plus adds a cost that somebody else reports: what is negative counts as nothing, what is too much as the most there is.
// Of two currencies the first stays; a limit in it is then the stricter for it.
func plus(a, b action.Cost) action.Cost {
	sum := action.Cost{Currency: cmp.Or(a.Currency, b.Currency)}
	for x := range action.AxisCount {
		n := min(max(a.Amount(x), 0), action.MaxAmount) + min(max(b.Amount(x), 0), action.MaxAmount)
		sum = sum.With(x, min(n, action.MaxAmount))
	}
	return sum
}

// exceeded reports whether an axis of a limit is used up.
func exceeded(c action.Cost, l action.Limit) bool {
	for x := range action.AxisCount {
		if n, bounded := l.On(x).Get(); bounded && c.Amount(x) >= n {
			return true
		}
	}
	return false
}

// overspent says that a step, or the instance, may spend no more.
func (m *machine) overspent(i int) *action.Failure {
	switch {
	case exceeded(m.s.Used, m.d.spec.Limits.Cost):
		return notRun(action.BudgetExhausted, "the workflow has used up what it may spend")
	case exceeded(m.s.Steps[i].Cost, m.d.nodes[i].Limits.Cost):
		return notRun(action.BudgetExhausted, "step %s has used up what it may spend", m.s.Steps[i].Name)
	}
	return nil
}

// left is what a step may still spend.
func (m *machine) left(i int) (l action.Limit) {
	own, all := m.d.nodes[i].Limits.Cost, m.d.spec.Limits.Cost
	for x := range action.AxisCount {
		var b action.Bound
		for _, one := range [...]struct {
			l action.Limit
			c action.Cost
		}{{own, m.s.Steps[i].Cost}, {all, m.s.Used}} {
			n, bounded := one.l.On(x).Get()
			if !bounded {
				continue
			}
			n = max(n-one.c.Amount(x), 0)
			if have, already := b.Get(); !already || n < have {
				b = action.Max(n)
			}
		}
		if n, bounded := b.Get(); bounded {
			l = l.With(x, n)
		}
	}
	l.Currency = cmp.Or(own.Currency, all.Currency)
	return l
}

// notRun is a failure of something that did not execute anything.
func notRun(code action.Code, format string, args ...any) *action.Failure {
	f := action.Fail(code, format, args...)
	f.Executed = action.No
	return f
}
