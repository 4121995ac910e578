package action

import "fmt"

// Effect is the side-effect class of an action: what is at stake when an attempt may have happened. The zero value is
// Irreversible, the safest assumption about an action that does not say.
type Effect uint8

// The side-effect classes.
const (
	Irreversible  Effect = iota // cannot be undone; never repeated without an idempotency key
	Compensatable               // can be undone by another action; never repeated without an idempotency key
	Idempotent                  // repeating it changes nothing more
	None                        // reads only
)

var effectNames = [...]string{"irreversible", "compensatable", "idempotent", "none"}

// String returns the lower-case name of the class.
func (e Effect) String() string {
	if int(e) < len(effectNames) {
		return effectNames[e]
	}
	return fmt.Sprintf("effect(%d)", uint8(e))
}

// ParseEffect returns the class of that name.
func ParseEffect(s string) (Effect, error) {
	for i, n := range effectNames {
		if s == n {
			return Effect(i), nil
		}
	}
	return Irreversible, fmt.Errorf("effect %q: want none, idempotent, compensatable or irreversible", s)
}

// Repeatable reports whether an attempt of unknown outcome may be made again without an idempotency key.
func (e Effect) Repeatable() bool { return e == None || e == Idempotent }

// Valid reports whether e is one of the four classes.
func (e Effect) Valid() bool { return int(e) < len(effectNames) }

// MarshalText writes the name.
func (e Effect) MarshalText() ([]byte, error) {
	if !e.Valid() {
		return nil, fmt.Errorf("no such effect: %d", uint8(e))
	}
	return []byte(e.String()), nil
}

// UnmarshalText reads the name.
func (e *Effect) UnmarshalText(text []byte) (err error) {
	*e, err = ParseEffect(string(text))
	return err
}
