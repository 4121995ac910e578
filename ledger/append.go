package ledger

import (
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// text writes JSON as encoding/json does without HTML escaping, at a tenth of the price, into memory the caller owns.
// Bytes that are not UTF-8 become U+FFFD. What it is not made for sets odd: then encoding/json has the word.
type text struct {
	b       []byte
	odd     bool
	vouched bool   // raw JSON needs no check
	shown   string // the text of the risk, "" where that is not known
}

// name begins a member of an object: a comma, save after the brace, and the name.
func (w *text) name(name string) {
	if last := len(w.b) - 1; last < 0 || w.b[last] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

// str writes a member unless it is empty; must writes it in any case.
func (w *text) str(name, s string) {
	if s != "" {
		w.must(name, s)
	}
}

func (w *text) must(name, s string) {
	w.name(name)
	w.quote(s)
}

func (w *text) num(name string, n int64) {
	if n != 0 {
		w.int(name, n)
	}
}

func (w *text) int(name string, n int64) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *text) yes(name string, is bool) {
	if is {
		w.bool(name, is)
	}
}

func (w *text) bool(name string, is bool) {
	w.name(name)
	w.b = strconv.AppendBool(w.b, is)
}

// real writes a number unless it is zero; float writes it in any case.
func (w *text) real(name string, f float64) {
	if f != 0 {
		w.float(name, f)
	}
}

func (w *text) float(name string, f float64) {
	w.name(name)
	abs := math.Abs(f)
	switch {
	case abs < 1<<53 && f == math.Trunc(f) && (f != 0 || !math.Signbit(f)): // declared levels are most of all numbers
		w.b = strconv.AppendInt(w.b, int64(f), 10)
	case abs > math.MaxFloat64 || abs != abs:
		w.odd = true // an error
	case abs != 0 && (abs < 1e-6 || abs >= 1e21):
		w.b = strconv.AppendFloat(w.b, f, 'e', -1, 64)
		if n := len(w.b); w.b[n-2] == '0' && w.b[n-3] == '-' { // e-07 is written e-7
			w.b = append(w.b[:n-2], w.b[n-1])
		}
	default:
		w.b = strconv.AppendFloat(w.b, f, 'f', -1, 64)
	}
}

const hexDigits = "0123456789abcdef"

// plain marks the ASCII characters that stand for themselves in a string.
var plain = func() (t [utf8.RuneSelf]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

func (w *text) quote(s string) {
	b := append(w.b, '"')
	start := 0
	for i := asciiFrom(s, 0); i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if !plain[c] {
				b = appendEscape(append(b, s[start:i]...), c)
				start = i + 1
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(append(b, s[start:i]...), "\ufffd"...)
			start = i + 1
		case r == '\u2028' || r == '\u2029':
			b = append(append(b, s[start:i]...), `\u202`...)
			b = append(b, hexDigits[r&0xf])
			start = i + size
		}
		i += size
	}
	w.b = append(append(b, s[start:]...), '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// raw writes JSON that must be valid and free of white space, as all that passed the strict edge is.
func (w *text) raw(name string, r json.RawMessage) {
	if len(r) == 0 {
		return
	}
	w.name(name)
	w.b = append(w.b, r...)
	w.odd = w.odd || !w.vouched && !compact(r)
}

func (w *text) list(name string, l []string) {
	if len(l) == 0 {
		return
	}
	w.name(name)
	w.strings(l)
}

func (w *text) strings(l []string) {
	w.b = append(w.b, '[')
	for i, s := range l {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.quote(s)
	}
	w.b = append(w.b, ']')
}

func (w *text) cost(name string, c *action.Cost) {
	if c.IsZero() {
		return
	}
	w.name(name)
	w.b = append(w.b, '{')
	w.num("tokens", c.Tokens)
	w.num("duration", int64(c.Duration))
	w.num("calls", c.Calls)
	w.num("bytes", c.Bytes)
	w.num("money", c.Money)
	w.str("currency", c.Currency)
	w.b = append(w.b, '}')
}

func (w *text) failure(name string, f *action.Failure) {
	if f != nil {
		w.name(name)
		w.fail(f)
	}
}

func (w *text) fail(f *action.Failure) {
	if f == nil {
		w.b = append(w.b, "null"...)
		return
	}
	w.b = append(w.b, '{')
	w.must("code", string(f.Code))
	w.must("layer", string(f.Layer))
	w.must("message", f.Message)
	w.must("executed", string(f.Executed))
	w.bool("retryable", f.Retryable)
	w.details(f.Details)
	w.b = append(w.b, '}')
}

// details are few: the next name in order is looked for each time, which needs no memory.
func (w *text) details(m map[string]string) {
	if len(m) == 0 {
		return
	}
	w.name("details")
	w.b = append(w.b, '{')
	for n, last := 0, ""; n < len(m); n++ {
		next, found := "", false
		for k := range m {
			if (n == 0 || k > last) && (!found || k < next) {
				next, found = k, true
			}
		}
		w.odd = w.odd || !utf8.ValidString(next) // two names may become one
		if n > 0 {
			w.b = append(w.b, ',')
		}
		w.quote(next)
		w.b = append(w.b, ':')
		w.quote(m[next])
		last = next
	}
	w.b = append(w.b, '}')
}

func (w *text) waived(fs []*action.Failure) {
	if len(fs) == 0 {
		return
	}
	w.name("waived")
	w.b = append(w.b, '[')
	for i, f := range fs {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.fail(f)
	}
	w.b = append(w.b, ']')
}
