package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"slices"
)

const everyType = typeNull | typeBoolean | typeInteger | typeNumber | typeString | typeArray | typeObject

// rules are what the pass needs of a node, made once.
type rules struct {
	id     int
	types  typeSet // never empty but for the schema false
	text   *textRule
	number *numberRule
	whole  bool // something is said of the value as a whole
	listed bool // and that is no more than which it may be
	names  bool // a property is declared somewhere inside
}

// textRule is what a schema says of strings.
type textRule struct {
	counted     bool
	lengthOnly  bool
	least, most int // characters
	pattern     *regexp.Regexp
	format      func(string) bool
	sure        func([]byte) bool // of some that have the format
}

func (r *rules) compile(n *node) {
	r.types = n.types
	if n.types == 0 {
		r.types = everyType
	}
	if n.never {
		r.types = 0
	}
	r.whole = n.enum != nil || turns(n)
	r.listed = n.enum != nil && !turns(n)
	f := formats[n.formatName]
	if n.minLength != nil || n.maxLength != nil || n.pattern != nil || f.text != nil {
		r.text = &textRule{least: 0, most: math.MaxInt, pattern: n.pattern, format: f.text, sure: sure[n.formatName], counted: n.minLength != nil || n.maxLength != nil}
		r.text.lengthOnly = n.pattern == nil && f.text == nil
		if n.minLength != nil {
			r.text.least = *n.minLength
		}
		if n.maxLength != nil {
			r.text.most = *n.maxLength
		}
	}
	if n.minimum != nil || n.maximum != nil || n.above != nil || n.below != nil || n.multipleOf != nil || f.number != nil {
		r.number = newNumberRule(n)
	}
}

// turns reports whether n holds schemas for the same value.
func turns(n *node) bool {
	return n.allOf != nil || n.anyOf != nil || n.oneOf != nil || n.not != nil || n.ifs != nil ||
		slices.ContainsFunc(n.dependencies, func(d dependency) bool { return d.node != nil })
}

// saysNothing reports whether every value satisfies n, as far as the pass has to look.
func (r *rules) saysNothing(n *node) bool {
	return r.types == everyType && r.text == nil && r.number == nil && !r.whole && !n.unique && n.items == nil && n.tuple == nil &&
		n.contains == nil && n.propertyNames == nil && n.dependencies == nil && n.required == nil && n.patterns == nil && len(n.props) == 0 &&
		n.additional == nil && n.minItems == nil && n.maxItems == nil && n.minProperties == nil && n.maxProperties == nil
}

// integerFormats are the limits of the formats of whole numbers.
var integerFormats = map[string][2]json.Number{
	"int8": {"-128", "127"}, "int16": {"-32768", "32767"}, "int32": {"-2147483648", "2147483647"},
	"int64": {"-9223372036854775808", "9223372036854775807"},
	"uint8": {"0", "255"}, "uint16": {"0", "65535"}, "uint32": {"0", "4294967295"}, "uint64": {"0", "18446744073709551615"},
}

func newNumberRule(n *node) *numberRule {
	r := &numberRule{low: math.MinInt64, high: math.MaxInt64, fewDigits: 20}
	lo, hi := (*big.Rat)(nil), (*big.Rat)(nil)
	tighten := func(b *bound, to **dec, low bool, open bool) {
		if b == nil {
			return
		}
		if *to == nil || low == ((*to).compare(newDec(b)) < 0) {
			*to = newDec(b)
		}
		at := integerBound(b.rat, low, open)
		if low && (lo == nil || at.Cmp(lo) > 0) {
			lo = at
		}
		if !low && (hi == nil || at.Cmp(hi) < 0) {
			hi = at
		}
	}
	tighten(n.minimum, &r.minimum, true, false)
	tighten(n.above, &r.above, true, true)
	tighten(n.maximum, &r.maximum, false, false)
	tighten(n.below, &r.below, false, true)
	switch n.formatName {
	case "float":
		r.bits, r.fewDigits = 32, 6
	case "double":
		r.bits, r.fewDigits = 64, 15
	default:
		if limits, ok := integerFormats[n.formatName]; ok {
			tighten(limit(limits[0]), &r.minimum, true, false)
			tighten(limit(limits[1]), &r.maximum, false, false)
		}
	}
	r.low, r.high, r.noInteger = clamp(lo, hi)
	if n.multipleOf != nil {
		r.multipleOf, r.divide = newDec(n.multipleOf), n.multipleOf
		if m := n.multipleOf.rat; m.IsInt() && m.Num().IsInt64() {
			r.divisor = m.Num().Int64()
		}
	}
	return r
}

// integerBound is the first whole number within a bound.
func integerBound(r *big.Rat, low, open bool) *big.Rat {
	z := new(big.Int)
	z.Div(r.Num(), r.Denom()) // rounds down, the denominator being above zero
	whole := r.IsInt()
	switch {
	case low && (!whole || open):
		z.Add(z, big.NewInt(1))
	case !low && whole && open:
		z.Sub(z, big.NewInt(1))
	}
	return new(big.Rat).SetInt(z)
}

func clamp(lo, hi *big.Rat) (low, high int64, none bool) {
	low, high = math.MinInt64, math.MaxInt64
	least, most := new(big.Rat).SetInt64(low), new(big.Rat).SetInt64(high)
	if lo != nil {
		if none = lo.Cmp(most) > 0; !none && lo.Cmp(least) > 0 {
			low = lo.Num().Int64()
		}
	}
	if hi != nil {
		if hi.Cmp(least) < 0 {
			none = true
		} else if hi.Cmp(most) < 0 {
			high = hi.Num().Int64()
		}
	}
	return low, high, none
}

func newDec(b *bound) *dec {
	d := new(dec)
	if !d.read([]byte(b.text)) {
		panic("schema: bound " + b.text) // not reached: the edge made it
	}
	return d
}
