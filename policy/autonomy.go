package policy

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Autonomy is how much an agent may do without a person, whatever it is permitted: it grants nothing, and no grant
// loosens it. The zero value is Act.
type Autonomy uint8

// The levels, from the loosest.
const (
	// Act lets the gates decide: a person is asked where risk or the action itself demands it.
	Act Autonomy = iota
	// ActOnGated lets the agent act alone where nothing is changed: every call of an action whose effect is not
	// [action.None] needs a person's consent.
	ActOnGated
	// ProposeOnly lets the agent propose: every call needs a person's consent, and where nobody can be asked there are none.
	ProposeOnly
)

var autonomyNames = [...]string{"act", "act-on-gated", "propose-only"}

// String returns the name of the level.
func (a Autonomy) String() string {
	if a.Valid() {
		return autonomyNames[a]
	}
	return fmt.Sprintf("autonomy(%d)", uint8(a))
}

// Valid reports whether a is one of the levels.
func (a Autonomy) Valid() bool { return int(a) < len(autonomyNames) }

// ParseAutonomy returns the level of that name.
func ParseAutonomy(s string) (Autonomy, error) {
	for i, n := range autonomyNames {
		if s == n {
			return Autonomy(i), nil
		}
	}
	return ProposeOnly, fmt.Errorf("autonomy %q: want act, act-on-gated or propose-only", s)
}

// MarshalText writes the name.
func (a Autonomy) MarshalText() ([]byte, error) {
	if !a.Valid() {
		return nil, fmt.Errorf("no such autonomy: %d", uint8(a))
	}
	return []byte(a.String()), nil
}

// UnmarshalText reads the name.
func (a *Autonomy) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAutonomy(string(text))
	return err
}

// Asks says why a call of the agent that changes this much needs a person's consent; "" where it does not. A level that
// does not exist is taken for the strictest.
func (a Autonomy) Asks(agent string, effect action.Effect) string {
	switch {
	case a == Act || a == ActOnGated && effect == action.None:
		return ""
	case a == ActOnGated:
		return fmt.Sprintf("agent %s acts alone only where nothing is changed", agent)
	}
	return fmt.Sprintf("agent %s may only propose", agent)
}
