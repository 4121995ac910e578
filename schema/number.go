package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// number reads a number and returns it in canonical form.
func (p *parser) number() (json.Number, *edgeFault) {
	start := p.at
	// More than MaxNumber characters are never looked at, so a number of a million digits costs no more than any other.
	end := start
	for end < len(p.in) && end-start <= MaxNumber && numeric(p.in[end]) {
		end++
	}
	if end-start > MaxNumber {
		return "", p.fault(start, "number is longer than "+strconv.Itoa(MaxNumber)+" characters")
	}
	token := string(p.in[start:end])
	if isPlain(token) {
		p.at = end
		return json.Number(token), nil
	}
	d, ok := splitNumber(token)
	if !ok {
		return "", p.fault(start, "malformed number")
	}
	if strings.ContainsAny(token, ".eE") {
		f, err := strconv.ParseFloat(token, 64)
		if err != nil || math.IsInf(f, 0) {
			return "", p.fault(start, "number is too large for a 64-bit float")
		}
		if f == 0 && d.digits != "" {
			return "", p.fault(start, "number is too small for a 64-bit float")
		}
	}
	p.at = end
	return json.Number(d.text()), nil
}

// isPlain reports whether a token is an integer literal in canonical form.
func isPlain(token string) bool {
	digits := strings.TrimPrefix(token, "-")
	whole, rest := takeDigits(digits)
	return whole != "" && rest == "" && (whole[0] != '0' || token == "0")
}

func numeric(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// decimal is the exact value ±digits × 10^exp, digits without leading and trailing zeros and empty for zero.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// splitNumber reads a token of the JSON grammar. The exponent of a number without mantissa digits does not matter and may
// overflow; that of any other is checked by its value as a float.
func splitNumber(token string) (decimal, bool) {
	var d decimal
	rest, negative := strings.CutPrefix(token, "-")
	whole, rest := takeDigits(rest)
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return d, false
	}
	fraction := ""
	if after, ok := strings.CutPrefix(rest, "."); ok {
		if fraction, rest = takeDigits(after); fraction == "" {
			return d, false
		}
	}
	exp := 0
	if rest != "" {
		if rest[0]|0x20 != 'e' {
			return d, false
		}
		sign := strings.TrimLeft(rest[1:], "+-")
		if digits, after := takeDigits(sign); digits == "" || after != "" || len(rest)-1-len(sign) > 1 {
			return d, false
		}
		exp, _ = strconv.Atoi(rest[1:])
	}
	all := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(all, "0")
	if d.digits == "" {
		return decimal{}, true
	}
	d.negative, d.exp = negative, exp-len(fraction)+len(all)-len(d.digits)
	return d, true
}

func takeDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

// text returns the canonical form: written out where that takes at most MaxNumber characters, else with an exponent.
// The choice depends on the value alone. Neither form is ever longer than MaxNumber where the token was not, so that a
// canonical text passes the edge again.
func (d decimal) text() string {
	if d.digits == "" {
		return "0"
	}
	sign := ""
	if d.negative {
		sign = "-"
	}
	n := len(d.digits)
	switch {
	case d.exp >= 0 && len(sign)+n+d.exp <= MaxNumber:
		return sign + d.digits + strings.Repeat("0", d.exp)
	case d.exp < 0 && n+d.exp > 0: // the point is inside the digits
		return sign + d.digits[:n+d.exp] + "." + d.digits[n+d.exp:]
	case d.exp < 0 && len(sign)+2-d.exp <= MaxNumber:
		return sign + "0." + strings.Repeat("0", -d.exp-n) + d.digits
	}
	return sign + d.digits + "e" + strconv.Itoa(d.exp)
}

// isInteger reports whether a canonical number is a whole one.
func isInteger(n json.Number) bool {
	return !strings.Contains(string(n), ".") && !strings.Contains(string(n), "e-")
}

// rat returns the exact value of a canonical number.
func rat(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat) // not reached: the edge made n
	}
	return r
}
