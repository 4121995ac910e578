package budget

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Carve decides what the limit of a child takes out of its parent's account, or refuses it as a whole. All that the child
// may spend is reserved, so that it is there when the child needs it and nobody else grants it meanwhile. On an axis that
// the parent limits the child must have a limit too, or nothing would bound it; one that the parent does not limit the
// child may limit for itself.
func Carve(acc Account, limit action.Limit) (action.Cost, *Refusal) {
	if err := limit.Check(); err != nil {
		return action.Cost{}, &Refusal{Message: err.Error()}
	}
	cur, err := currency(acc.Limit.Currency, acc.Granted.Currency, limit.Currency)
	if err != nil {
		return action.Cost{}, &Refusal{Axis: action.Money, Message: err.Error()}
	}
	out := action.Cost{Currency: cur}
	for a := range action.AxisCount {
		n, bounded := limit.On(a).Get()
		left, limited := acc.Left(a)
		switch {
		case limited && !bounded:
			return action.Cost{}, &Refusal{Axis: a, Left: left, Message: fmt.Sprintf("the parent limits %s, so the child needs a limit of %s", a, a)}
		case bounded && n > left, left < 0:
			return action.Cost{}, &Refusal{a, n, n, left, fmt.Sprintf("the child is to get %s, %s left", a.Amount(n, cur), a.Amount(left, cur))}
		}
		out = out.With(a, n)
	}
	return out, nil
}
