package action

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Axis is one dimension of a [Cost].
type Axis uint8

// The axes, in the order in which they are printed, charged and refused.
const (
	Tokens   Axis = iota // model tokens
	Duration             // wall time, nanoseconds
	Calls                // executed attempts
	Bytes                // bytes moved
	Money                // micro-units of one ISO 4217 currency
	AxisCount
)

var axisNames = [AxisCount]string{"tokens", "duration", "calls", "bytes", "money"}

// String returns the name of the axis as it appears in counters, JSON and messages.
func (a Axis) String() string {
	if a < AxisCount {
		return axisNames[a]
	}
	return fmt.Sprintf("axis(%d)", uint8(a))
}

// MaxAmount is the largest amount on any axis. Redis scripts count in float64, which is exact below 2^53.
const MaxAmount = int64(1)<<53 - 1

// Cost is an exact amount on each axis; the zero value is free. There are no floats and no negatives: [Cost.Check]
// refuses them at every edge.
type Cost struct {
	Tokens   int64         `json:"tokens,omitempty"`
	Duration time.Duration `json:"duration,omitempty"` // nanoseconds
	Calls    int64         `json:"calls,omitempty"`
	Bytes    int64         `json:"bytes,omitempty"`
	Money    int64         `json:"money,omitempty"`    // micro-units: 2.50 EUR is 2_500_000
	Currency string        `json:"currency,omitempty"` // ISO 4217, needed where Money is not zero
}

// ErrCurrency is returned where amounts of two currencies meet.
var ErrCurrency = errors.New("currencies differ")

// Amount returns the amount on one axis.
func (c Cost) Amount(a Axis) int64 {
	switch a {
	case Tokens:
		return c.Tokens
	case Duration:
		return int64(c.Duration)
	case Calls:
		return c.Calls
	case Bytes:
		return c.Bytes
	case Money:
		return c.Money
	}
	return 0
}

// With returns c with the amount of one axis replaced.
func (c Cost) With(a Axis, n int64) Cost {
	switch a {
	case Tokens:
		c.Tokens = n
	case Duration:
		c.Duration = time.Duration(n)
	case Calls:
		c.Calls = n
	case Bytes:
		c.Bytes = n
	case Money:
		c.Money = n
	}
	return c
}

// IsZero reports whether nothing is spent on any axis.
func (c Cost) IsZero() bool {
	return c.Tokens == 0 && c.Duration == 0 && c.Calls == 0 && c.Bytes == 0 && c.Money == 0
}

// Check reports the first axis on which c is negative, too large, or money without a currency.
func (c Cost) Check() error {
	for a := range AxisCount {
		if n := c.Amount(a); n < 0 || n > MaxAmount {
			return fmt.Errorf("cost %s is %d, want 0 to %d", a, n, MaxAmount)
		}
	}
	if err := checkCurrency(c.Currency); err != nil {
		return err
	}
	if c.Money > 0 && c.Currency == "" {
		return errors.New("cost money needs a currency")
	}
	return nil
}

func checkCurrency(s string) error {
	if s == "" {
		return nil
	}
	if len(s) != 3 || s[0] < 'A' || s[0] > 'Z' || s[1] < 'A' || s[1] > 'Z' || s[2] < 'A' || s[2] > 'Z' {
		return fmt.Errorf("currency %q is not an ISO 4217 code", s)
	}
	return nil
}

// Add returns c + d, or an error where an axis would leave the range or the currencies differ.
func (c Cost) Add(d Cost) (Cost, error) {
	if err := errors.Join(c.Check(), d.Check()); err != nil {
		return c, err
	}
	cur, err := commonCurrency(c, d)
	if err != nil {
		return c, err
	}
	sum := Cost{Currency: cur}
	for a := range AxisCount {
		n := c.Amount(a) + d.Amount(a) // no overflow: both are below 2^53
		if n > MaxAmount {
			return c, fmt.Errorf("cost %s would be %d, above %d", a, n, MaxAmount)
		}
		sum = sum.With(a, n)
	}
	return sum, nil
}

// Max returns the larger amount on each axis, or ErrCurrency.
func (c Cost) Max(d Cost) (Cost, error) {
	cur, err := commonCurrency(c, d)
	if err != nil {
		return c, err
	}
	out := Cost{Currency: cur}
	for a := range AxisCount {
		out = out.With(a, max(c.Amount(a), d.Amount(a)))
	}
	return out, nil
}

// commonCurrency is the currency of the amounts of money; one beside no money counts only where there is no other.
func commonCurrency(c, d Cost) (string, error) {
	switch {
	case c.Money == 0 && d.Money == 0:
		return cmp.Or(c.Currency, d.Currency), nil
	case d.Money == 0:
		return c.Currency, nil
	case c.Money == 0:
		return d.Currency, nil
	case c.Currency != d.Currency:
		return "", fmt.Errorf("%w: %s and %s", ErrCurrency, c.Currency, d.Currency)
	}
	return c.Currency, nil
}
