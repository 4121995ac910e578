package delta

import (
	"context"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// CostOf declares that the input of a call says what it costs on some axes: that much is reserved there, no forecast and no
// estimate, a person who is asked is shown it as what the call will cost, and a call that costs more than is left is refused
// before anything runs. Axes that are not named stay as they are; of calls each is one, and cannot be named.
//
// The function must be pure: it is asked before anything else is decided, also for previews and for calls that do not run, and
// again when a parked call goes on. A person is asked anew where it says something else then. What a call begins with is kept:
// further attempts, on whatever worker, reserve the same. A cost that is out of range, on an axis that is not named, or above
// [Builder.MaxCost], a panic, and a function that takes too long are COST_INVALID: nothing is run. What it says stands in the
// ledger in the clear, whatever is secret in the input.
//
// What is charged is what the function of the action says it used ([Context.Spend]), as without it.
func (b Builder[In, Out]) CostOf(cost func(In) action.Cost, axes ...action.Axis) Builder[In, Out] {
	switch {
	case cost == nil:
		b.d.fault("cost of: function is nil")
		return b
	case b.d.price != nil:
		b.d.fault("cost of: it is declared twice")
	case len(axes) == 0:
		b.d.fault("cost of: name the axes on which the input says what a call costs, action.Money say")
	}
	for _, a := range axes {
		if a >= action.AxisCount || a == action.Calls {
			b.d.fault("cost of: axis %s: want tokens, duration, bytes or money", a)
			continue
		}
		b.d.priced[a] = true
	}
	b.d.price = func(raw action.Input) (action.Cost, error) {
		var in In
		if err := decodeInput(raw, &in); err != nil {
			return action.Cost{}, err
		}
		return cost(in), nil
	}
	return b
}

// priceOf asks what a call costs. User code is contained.
func (e *Engine) priceOf(ctx context.Context, d *declaration, in action.Input) (action.Limit, *action.Failure) {
	if d.price == nil {
		return action.Limit{}, nil
	}
	c, err := contain(ctx, &e.inputs, e.patience(d), 0, func(context.Context) (action.Cost, error) { return d.price(in) })
	if err != nil {
		return action.Limit{}, because(action.Fail(action.CostInvalid, "what this call of %q would cost cannot be told: %v; nothing was run", d.name, err), err)
	}
	return d.priceIn(c)
}

// priceIn checks what was said of the cost of a call against its declaration.
func (d *declaration) priceIn(c action.Cost) (l action.Limit, _ *action.Failure) {
	if err := c.Check(); err != nil {
		return l, action.Fail(action.CostInvalid, "what this call of %q would cost is not known: %v", d.name, err)
	}
	for a := range action.AxisCount {
		n := c.Amount(a)
		if !d.priced[a] {
			if n != 0 {
				return action.Limit{}, action.Fail(action.CostInvalid, "what this call of %q would cost is not known: it names %s, which CostOf does not", d.name, a)
			}
			continue
		}
		l = l.With(a, n)
	}
	if d.priced[action.Money] {
		l.Currency = c.Currency
	}
	for a := range action.AxisCount {
		n, _ := l.On(a).Get()
		m, bounded := d.maximum.On(a).Get()
		if !bounded || !d.priced[a] {
			continue
		}
		if a == action.Money && n > 0 && l.Currency != d.maximum.Currency {
			return action.Limit{}, action.Fail(action.CostInvalid, "this call of %q would cost %s, and what it may cost at most is in %s", d.name, l.Amounts(), d.maximum.Currency)
		}
		if n > m {
			return action.Limit{}, action.Fail(action.CostInvalid, "this call of %q would cost %s, and a call of it may cost at most %s",
				d.name, a.Amount(n, l.Currency), a.Amount(m, d.maximum.Currency)).With(action.DetailAxis, a.String())
		}
	}
	return l, nil
}
