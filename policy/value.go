package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
)

// shape is what is declared of a value, as far as its translation depends on it: JSON writes 5 for a number and for an
// integer, and for Cedar these are two types. Nil: nothing is declared.
type shape struct {
	number bool // fractional: always a decimal
	fields map[string]*shape
	items  *shape
}

func (s *shape) field(name string) *shape {
	if s == nil {
		return nil
	}
	return s.fields[name]
}

func (s *shape) item() *shape {
	if s == nil {
		return nil
	}
	return s.items
}

// maxValue bounds the depth of a value; the strict edge lets nothing deeper pass.
const maxValue = 80

// toCedar translates a JSON value, and is false where it has no counterpart at all: null, which is as absent.
//
// A number that Cedar cannot hold (an integer beyond 64 bits, a fraction of more than four digits) and a null in a list
// become a record that is equal to nothing a policy can write, and on which every comparison fails: a rule that looks at
// it denies, and a rule that does not is not disturbed. The same goes for a value of a Go type that JSON does not have.
func toCedar(v any, s *shape, depth int) (types.Value, bool) {
	switch v := v.(type) {
	case nil:
		return nil, false
	case bool:
		return types.Boolean(v), true
	case string:
		return types.String(v), true
	case json.Number:
		return number(string(v), s != nil && s.number), true
	case map[string]any:
		if depth > maxValue {
			return unheld("nested too deep"), true
		}
		m := make(types.RecordMap, len(v))
		for name, e := range v {
			if c, ok := toCedar(e, s.field(name), depth+1); ok {
				m[types.String(name)] = c
			}
		}
		return types.NewRecord(m), true
	case []any:
		if depth > maxValue {
			return unheld("nested too deep"), true
		}
		list := make([]types.Value, 0, len(v))
		for _, e := range v {
			c, ok := toCedar(e, s.item(), depth+1)
			if !ok {
				c = unheld("null")
			}
			list = append(list, c)
		}
		return types.NewSet(list...), true
	}
	return unheld(fmt.Sprintf("a %T", v)), true
}

// unheldKey names the one field of a record that stands for what Cedar cannot hold.
const unheldKey = "__unheld"

// unheld stands for a value that Cedar cannot hold, written as text.
func unheld(text string) types.Value {
	return types.NewRecord(types.RecordMap{unheldKey: types.String(text)})
}

// number translates a JSON number: an integer to a long, unless it is declared to be fractional; a fraction to a decimal.
func number(text string, fractional bool) types.Value {
	if !fractional && !strings.ContainsAny(text, ".eE") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return unheld(text)
		}
		return types.Long(n)
	}
	d, ok := decimalOf(text)
	if !ok {
		return unheld(text)
	}
	return d
}

// maxNumber is the length of the longest text that a decimal can have in any reasonable spelling. An exponent that is
// written in three digits has no value in reach.
const maxNumber = 64

// decimalOf translates a number exactly, or not at all.
func decimalOf(text string) (types.Decimal, bool) {
	if len(text) > maxNumber {
		return types.Decimal{}, false
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if e, err := strconv.Atoi(text[i+1:]); err != nil || e < -99 || e > 99 {
			return types.Decimal{}, false
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return types.Decimal{}, false
	}
	r.Mul(r, big.NewRat(10_000, 1))
	if !r.IsInt() || !r.Num().IsInt64() {
		return types.Decimal{}, false
	}
	d, err := types.NewDecimal(r.Num().Int64(), -4)
	return d, err == nil
}

// upward and downward round a finite number of moderate size to the four digits of a decimal. Who rounds a risk upward and
// a trust downward never makes a call look better than it is.
func upward(x float64) types.Decimal   { return rounded(math.Ceil(x * 10_000)) }
func downward(x float64) types.Decimal { return rounded(math.Floor(x * 10_000)) }

func rounded(n float64) types.Decimal {
	d, _ := types.NewDecimal(int64(n), -4) // cannot fail: the exponent is one of those allowed
	return d
}
