package engine

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// handOn counts what a child is granted in the pools that the calls of the task's agent count in: what an agent hands on is
// its own spending, or it would get round its pools by having others work for it. Where the child's calls count in the same
// limit one by one, the grant does not: in a shared pool that its agent is in, or where it is the same agent.
func (r *round) handOn(limit *action.Limit, c *Child) *action.Failure {
	for _, p := range r.view.pools {
		if p.Counts(c.Agent) && (p.Shared || c.Agent == r.view.Task.Agent) || r.view.foreign(p) && r.rules.Observe {
			continue
		}
		if r.rules.Observe { // counted, and nothing refused
			id, _, _ := p.At(r.call.Now)
			c.Pools = append(c.Pools, id)
			continue
		}
		if r.view.foreign(p) {
			return r.foreignPool(p)
		}
		for a := range action.AxisCount {
			_, limited := p.Limit.On(a).Get()
			if _, bounded := limit.On(a).Get(); limited && !bounded {
				f := action.Fail(action.BudgetExhausted, "a budget that tasks share limits %s, so the child needs a limit of %s", a, a)
				return f.With(action.DetailAxis, a.String()).With(action.DetailRule, "budget pool "+p.Name)
			}
		}
		id, f := r.draw(p, c.Held, "a child like this")
		if f != nil {
			return f
		}
		c.Pools = append(c.Pools, id)
	}
	return nil
}

// Accepts reports a cost that cannot be charged to the task and to the pools that it counts in.
func (v *View) Accepts(c action.Cost) error {
	if err := v.Account().Accepts(c); err != nil {
		return err
	}
	for _, p := range v.pools {
		if c.Money > 0 && p.Foreign(c.Currency) {
			return fmt.Errorf("%w: it is in %s, the budget pool %q counts %s", action.ErrCurrency, c.Currency, p.Name, p.Limit.Currency)
		}
	}
	return nil
}
