package schema

import (
	"bytes"
	"encoding/json"
	"math"
	"math/bits"
	"strconv"
)

// numberValue reads a number, writes it in canonical form and checks it.
func (p *pass) numberValue(pl *place) bool {
	start, at := p.at, p.at
	negative := at < len(p.src) && p.src[at] == '-'
	if negative {
		at++
	}
	first, v := at, int64(0)
	for at < len(p.src) && at-first < 18 && '0' <= p.src[at] && p.src[at] <= '9' {
		v = v*10 + int64(p.src[at]-'0')
		at++
	}
	if at == first || p.src[first] == '0' || at < len(p.src) && numeric(p.src[at]) {
		return p.fraction(pl, first, at, v, negative) || p.numberFar(pl)
	}
	p.at = at
	if negative {
		v = -v
	}
	r := pl.number
	if r == nil {
		return true
	}
	if r.bits == 0 && r.multipleOf == nil {
		return v >= r.low && v <= r.high && !r.noInteger
	}
	return p.numberHolds(r, p.src[start:at], true)
}

// fraction is numberValue for most numbers with a point: digits that are canonical as they are and few enough for a float,
// and whole numbers on both sides of them that are within the bounds. False where it cannot tell.
func (p *pass) fraction(pl *place, first, at int, whole int64, negative bool) bool {
	if pl.types&typeNumber == 0 || at == first || at-first > 17 || at >= len(p.src) || p.src[at] != '.' || p.src[first] == '0' && at > first+1 {
		return false
	}
	end := digitsEnd(p.src, at+1)
	if end == at+1 || p.src[end-1] == '0' || end-p.at > MaxNumber || end < len(p.src) && numeric(p.src[end]) {
		return false
	}
	if r := pl.number; r != nil {
		low, high := whole, whole+1
		if negative {
			low, high = -high, -low
		}
		if r.bits != 0 && end-first > r.fewDigits || r.multipleOf != nil || r.noInteger || low < r.low || high > r.high {
			return false
		}
	}
	p.at = end
	return true
}

// numberFar is numberValue for all but short whole numbers.
func (p *pass) numberFar(pl *place) bool {
	start, end := p.at, p.at
	for end < len(p.src) && numeric(p.src[end]) {
		if end++; end-start > MaxNumber {
			return false
		}
	}
	text, whole, ok := p.canonicalNumber(p.src[start:end])
	if !ok || !whole && pl.types&typeNumber == 0 {
		return false
	}
	return pl.number == nil || p.numberHolds(pl.number, text, whole)
}

// canonicalNumber reads a number and returns its canonical form and whether it is a whole one.
func (p *pass) canonicalNumber(token []byte) (text []byte, whole, ok bool) {
	digits := token
	if len(token) > 0 && token[0] == '-' {
		digits = token[1:]
	}
	n := digitsEnd(digits, 0)
	if n == 0 || n > 1 && digits[0] == '0' {
		return nil, false, false
	}
	if n == len(digits) && (n == len(token) || digits[0] != '0') { // no negative zero
		p.at += len(token)
		return token, true, true
	}
	if n < len(digits) && digits[n] == '.' {
		// Digits with a fraction that does not end in zero are canonical as they are, and no such number is out of range.
		if m := digitsEnd(digits, n+1); m == len(digits) && m > n+1 && digits[m-1] != '0' {
			p.at += len(token)
			return token, false, true
		}
	}
	d := &p.dec
	if !d.read(token) {
		return nil, false, false
	}
	if top := d.n + d.exp; d.n > 0 && (top > 300 || top < -300) {
		if f, err := strconv.ParseFloat(string(token), 64); err != nil || f == 0 || math.IsInf(f, 0) {
			return nil, false, false
		}
	}
	p.flush()
	from := len(p.out)
	p.out = d.append(p.out)
	p.at += len(token)
	p.run = p.at
	return p.out[from:], d.n == 0 || d.exp >= 0, true
}

func digitsEnd(s []byte, i int) int {
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}

// dec is the exact value ±digits × 10^exp, digits without leading and trailing zeros and none for zero.
type dec struct {
	negative bool
	n, exp   int
	digits   [MaxNumber + 8]byte
}

// read takes a number of the JSON grammar; it reports false for anything else, and for more digits than fit.
func (d *dec) read(s []byte) bool {
	d.negative, d.n, d.exp = false, 0, 0
	i := 0
	if i < len(s) && s[i] == '-' {
		d.negative, i = true, 1
	}
	end := digitsEnd(s, i)
	if end == i || end-i > 1 && s[i] == '0' || !d.take(s[i:end]) {
		return false
	}
	if i = end; i < len(s) && s[i] == '.' {
		end = digitsEnd(s, i+1)
		if end == i+1 || !d.take(s[i+1:end]) {
			return false
		}
		d.exp, i = i+1-end, end
	}
	if i < len(s) {
		exp, ok := exponent(s[i:])
		if !ok {
			return false
		}
		d.exp += exp
	}
	for d.n > 0 && d.digits[d.n-1] == '0' {
		d.n--
		d.exp++
	}
	if d.n == 0 {
		d.negative, d.exp = false, 0
	}
	return true
}

// take appends digits, leading zeros left out.
func (d *dec) take(s []byte) bool {
	for _, c := range s {
		if d.n == 0 && c == '0' {
			continue
		}
		if d.n == len(d.digits) {
			return false
		}
		d.digits[d.n] = c
		d.n++
	}
	return true
}

// exponent reads e, a sign and digits; what is far out of range stays so.
func exponent(s []byte) (int, bool) {
	if s[0]|0x20 != 'e' {
		return 0, false
	}
	i, sign := 1, 1
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		if s[i] == '-' {
			sign = -1
		}
		i++
	}
	end := digitsEnd(s, i)
	if end == i || end != len(s) {
		return 0, false
	}
	exp := 0
	for _, c := range s[i:] {
		exp = min(exp*10+int(c-'0'), 1_000_000)
	}
	return sign * exp, true
}

// append writes the canonical form, as decimal.text does.
func (d *dec) append(dst []byte) []byte {
	sign, digits := 0, d.digits[:d.n]
	if d.n == 0 {
		return append(dst, '0')
	}
	if d.negative {
		dst, sign = append(dst, '-'), 1
	}
	switch {
	case d.exp >= 0 && sign+d.n+d.exp <= MaxNumber:
		return appendZeros(append(dst, digits...), d.exp)
	case d.exp < 0 && d.n+d.exp > 0:
		point := d.n + d.exp
		return append(append(append(dst, digits[:point]...), '.'), digits[point:]...)
	case d.exp < 0 && sign+2-d.exp <= MaxNumber:
		return append(appendZeros(append(dst, "0."...), -d.exp-d.n), digits...)
	}
	return strconv.AppendInt(append(append(dst, digits...), 'e'), int64(d.exp), 10)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

func (d *dec) compare(e *dec) int {
	switch {
	case d.n == 0 && e.n == 0:
		return 0
	case d.negative != e.negative || d.n == 0 || e.n == 0:
		return d.sign() - e.sign()
	}
	c := d.n + d.exp - e.n - e.exp
	if c == 0 {
		c = bytes.Compare(d.digits[:d.n], e.digits[:e.n])
	}
	if d.negative {
		return -c
	}
	return c
}

func (d *dec) sign() int {
	switch {
	case d.n == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// numberRule is what a schema says of numbers.
type numberRule struct {
	// Whole numbers of at most 19 digits that an int64 holds are compared as such.
	low, high  int64
	noInteger  bool  // none of them is within the bounds
	divisor    int64 // 0 where multipleOf is none of them
	fewDigits  int   // at most that many digits are fine for the float format
	minimum    *dec
	maximum    *dec
	above      *dec
	below      *dec
	multipleOf *dec
	divide     *bound
	bits       int // 32 or 64 for the float formats
}

// numberHolds checks a number in canonical form.
func (p *pass) numberHolds(r *numberRule, text []byte, whole bool) bool {
	if whole && len(text) <= 20 {
		if v, ok := smallInteger(text); ok && (r.bits == 0 || len(text) <= r.fewDigits) && (r.multipleOf == nil || r.divisor > 0) {
			return v >= r.low && v <= r.high && !r.noInteger && (r.divisor == 0 || v%r.divisor == 0)
		}
	}
	d := &p.dec
	if !d.read(text) {
		return false
	}
	if r.minimum != nil && d.compare(r.minimum) < 0 || r.maximum != nil && d.compare(r.maximum) > 0 ||
		r.above != nil && d.compare(r.above) <= 0 || r.below != nil && d.compare(r.below) >= 0 {
		return false
	}
	if r.multipleOf != nil && !d.divides(r, text) {
		return false
	}
	return r.bits == 0 || d.n <= r.fewDigits && d.n+d.exp > -30 && d.n+d.exp < 30 || p.shortest(text, r.bits)
}

func smallInteger(text []byte) (int64, bool) {
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) > 19 {
		return 0, false
	}
	v := uint64(0)
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false // an exponent
		}
		v = v*10 + uint64(c-'0')
	}
	if v > math.MaxInt64 {
		return 0, false
	}
	if negative {
		return -int64(v), true
	}
	return int64(v), true
}

// divides reports whether d is a multiple of the rule's.
func (d *dec) divides(r *numberRule, text []byte) bool {
	if d.n == 0 {
		return true
	}
	a, okA := d.uint()
	b, okB := r.multipleOf.uint()
	if !okA || !okB {
		q := rat(json.Number(text))
		return q.Quo(q, r.divide.rat).IsInt()
	}
	shift := d.exp - r.multipleOf.exp
	for ; shift < 0; shift++ { // a has no zero at its end, so that it must be b that is smaller
		hi, lo := bits.Mul64(b, 10)
		if hi != 0 || lo > a {
			return false
		}
		b = lo
	}
	rest := a % b
	for ; shift > 0 && rest != 0; shift-- {
		hi, lo := bits.Mul64(rest, 10)
		_, rest = bits.Div64(hi, lo, b)
	}
	return rest == 0
}

// uint is the digits as a number.
func (d *dec) uint() (uint64, bool) {
	if d.n > 19 {
		return 0, false
	}
	v := uint64(0)
	for _, c := range d.digits[:d.n] {
		v = v*10 + uint64(c-'0')
	}
	return v, true
}

// shortest reports whether p.dec, whose canonical text is given, is the shortest decimal of a float (see isShortest).
func (p *pass) shortest(text []byte, size int) bool {
	f, err := strconv.ParseFloat(string(text), size)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	var buf [32]byte
	var other dec
	return other.read(strconv.AppendFloat(buf[:0], f, 'g', -1, size)) && other.compare(&p.dec) == 0
}
