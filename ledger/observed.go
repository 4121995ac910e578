package ledger

import (
	"encoding/json"
	"strings"
	"time"
)

// DecodeObserved reads an outcome that beliefs learn from, as [AppendObserved] writes it; of anything else it takes what
// encoding/json takes. Names are parts of the text.
func DecodeObserved(text string) (Observed, error) {
	var o Observed
	if r := (reader{text}); r.observed(&o) {
		return o, nil
	}
	return decodeObserved(text)
}

// decodeObserved is apart because what it decodes into is allocated.
func decodeObserved(text string) (o Observed, err error) {
	err = json.Unmarshal([]byte(text), &o)
	return o, err
}

// reader reads plain members in the order in which they are written. Where something is not as expected it gives up.
type reader struct{ s string }

func (r *reader) observed(o *Observed) bool {
	if !r.is("{") {
		return false
	}
	r.number(`"seq":`, &o.Seq)
	if !r.text(`"action":`, &o.Action) {
		return false
	}
	var declared int64
	if r.number(`,"declared":`, &declared) {
		o.Declared = int(declared)
	}
	if r.is(`,"tags":[`) {
		o.Tags = []string{}
		for first := true; !r.is("]"); first = false {
			var tag string
			if !first && !r.is(",") || !r.text("", &tag) {
				return false
			}
			o.Tags = append(o.Tags, tag)
		}
	}
	o.Err, o.Violation = r.is(`,"err":true`), r.is(`,"violation":true`)
	if r.is(`,"cost":{`) && !r.cost(o) {
		return false
	}
	r.number(`,"at":`, &o.At)
	o.Untimed = r.is(`,"untimed":true`)
	return r.s == "}"
}

func (r *reader) cost(o *Observed) bool {
	var lasted int64
	c := &o.Cost
	for first := true; !r.is("}"); first = false {
		if !first && !r.is(",") {
			return false
		}
		switch {
		case r.number(`"tokens":`, &c.Tokens), r.number(`"calls":`, &c.Calls), r.number(`"bytes":`, &c.Bytes), r.number(`"money":`, &c.Money):
		case r.number(`"duration":`, &lasted):
			c.Duration = time.Duration(lasted)
		case r.text(`"currency":`, &c.Currency):
		default:
			return false
		}
	}
	return true
}

// is skips a word where it comes next.
func (r *reader) is(word string) (ok bool) {
	r.s, ok = strings.CutPrefix(r.s, word)
	return ok
}

// number reads a member that is a whole number of at most 18 digits. The comma behind "seq" belongs to it.
func (r *reader) number(name string, to *int64) bool {
	rest, ok := strings.CutPrefix(r.s, name)
	if !ok {
		return false
	}
	var n int64
	i, digits := 0, 0
	minus := strings.HasPrefix(rest, "-")
	if minus {
		i++
	}
	for ; i < len(rest) && rest[i] >= '0' && rest[i] <= '9'; i++ {
		n = 10*n + int64(rest[i]-'0')
		digits++
	}
	if digits == 0 || digits > 18 || i < len(rest) && rest[i] != ',' && rest[i] != '}' || rest[i-digits] == '0' && digits > 1 {
		return false
	}
	if minus {
		n = -n
	}
	*to = n
	if name == `"seq":` {
		i++
	}
	r.s = rest[min(i, len(rest)):]
	return true
}

// text reads a member that is a string of printable ASCII without escapes.
func (r *reader) text(name string, to *string) bool {
	rest, ok := strings.CutPrefix(r.s, name)
	if ok {
		rest, ok = strings.CutPrefix(rest, `"`)
	}
	if !ok {
		return false
	}
	for i := range len(rest) {
		switch c := rest[i]; {
		case c == '"':
			*to, r.s = rest[:i], rest[i+1:]
			return true
		case c < ' ' || c > '~' || c == '\\':
			return false
		}
	}
	return false
}
