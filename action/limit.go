package action

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Bound is an upper bound that may be absent. The zero value is absent: unlimited. Max(0) allows nothing.
type Bound struct {
	set bool
	n   int64
}

// Max returns a bound of n.
func Max(n int64) Bound { return Bound{set: true, n: n} }

// Get returns the bound and whether there is one.
func (b Bound) Get() (int64, bool) { return b.n, b.set }

// MarshalJSON writes the number, or null where there is no bound.
func (b Bound) MarshalJSON() ([]byte, error) {
	if !b.set {
		return []byte("null"), nil
	}
	return json.Marshal(b.n)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (b *Bound) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*b = Bound{}
		return nil
	}
	b.set = true
	return json.Unmarshal(text, &b.n)
}

// IsZero reports whether the bound is absent; it makes `omitzero` leave it out.
func (b Bound) IsZero() bool { return !b.set }

// Limit bounds a [Cost] axis by axis. An axis without a bound is unlimited; a bound of zero allows nothing.
type Limit struct {
	Tokens   Bound  `json:"tokens,omitzero"`
	Duration Bound  `json:"duration,omitzero"` // nanoseconds
	Calls    Bound  `json:"calls,omitzero"`
	Bytes    Bound  `json:"bytes,omitzero"`
	Money    Bound  `json:"money,omitzero"` // micro-units of Currency
	Currency string `json:"currency,omitempty"`
}

// With returns the limit with one axis at most n.
func (l Limit) With(a Axis, n int64) Limit {
	b := Max(n)
	switch a {
	case Tokens:
		l.Tokens = b
	case Duration:
		l.Duration = b
	case Calls:
		l.Calls = b
	case Bytes:
		l.Bytes = b
	case Money:
		l.Money = b
	}
	return l
}

// On returns the bound on one axis.
func (l Limit) On(a Axis) Bound {
	switch a {
	case Tokens:
		return l.Tokens
	case Duration:
		return l.Duration
	case Calls:
		return l.Calls
	case Bytes:
		return l.Bytes
	case Money:
		return l.Money
	}
	return Bound{}
}

// Amounts lists the axes that have a bound, as [Axis.Amount] writes them: "500 tokens, EUR 2.50"; "" where none has.
func (l Limit) Amounts() string {
	var out []string
	for a := range AxisCount {
		if n, ok := l.On(a).Get(); ok {
			out = append(out, a.Amount(n, l.Currency))
		}
	}
	return strings.Join(out, ", ")
}

// Check reports the first bound out of range, or a money bound without a currency.
func (l Limit) Check() error {
	for a := range AxisCount {
		if n, ok := l.On(a).Get(); ok && (n < 0 || n > MaxAmount) {
			return fmt.Errorf("limit %s is %d, want 0 to %d", a, n, MaxAmount)
		}
	}
	if _, ok := l.Money.Get(); ok && l.Currency == "" {
		return fmt.Errorf("limit money needs a currency")
	}
	return checkCurrency(l.Currency)
}
