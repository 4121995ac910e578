package schema

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// The bounds of the strict edge.
const (
	DefaultLimit = 1 << 20 // bytes of a document
	MaxDepth     = 64      // nested arrays and objects
	MaxNumber    = 64      // characters of a number
)

// Canonical parses one JSON text of at most limit bytes ([DefaultLimit] where limit is not positive) and returns it in
// canonical form with its value, or a failure with code INPUT_MALFORMED that names the place (detail field, a JSON
// pointer, absent for the root) and the byte offset.
//
// Refused are: empty input, trailing data, more than limit bytes, more than [MaxDepth] nested containers, invalid UTF-8,
// lone surrogates, escaped or not, keys that are equal after unescaping, and numbers longer than [MaxNumber] characters
// or that are neither an integer literal without point and exponent nor a finite float64 that is zero only if every digit
// of its mantissa is. It takes time linear in the length of the input.
//
// The canonical form has no white space, members in the order of their names as UTF-16 code units and strings escaped as
// RFC 8785 (JCS) says, and numbers as exact decimals: without leading zeros, trailing fraction zeros, plus signs or
// negative zero, written out (12, 0.5, -40000) where that takes at most [MaxNumber] characters, else as digits without a
// trailing zero and an exponent (1e300, 25e-80). Two texts are equal exactly where the values are: 1.0, 1 and 10e-1 are
// 1, while 9007199254740993 and 9007199254740992 stay apart.
//
// The value is made of map[string]any, []any, string, json.Number (in its canonical form), bool and nil.
func Canonical(raw []byte, limit int) (action.Document, *action.Failure) {
	return CanonicalIn(nil, raw, limit)
}

// CanonicalIn is [Canonical] for whoever has room for the value of the document, see [action.Lazy]; nil is none.
func CanonicalIn(room *action.Lazy, raw []byte, limit int) (action.Document, *action.Failure) {
	if doc, ok := anything.documentIn(room, raw, limit, maxSteps); ok {
		return doc, nil
	}
	return parse(raw, limit, action.InputMalformed)
}

func parse(raw []byte, limit int, code action.Code) (action.Document, *action.Failure) {
	tree, fault := parseTree(raw, limit)
	if fault != nil {
		return action.Document{}, action.Fail(code, "%s at byte %d", fault.text, fault.offset).
			With(action.DetailField, fault.pointer)
	}
	return newDocument(tree), nil
}

func newDocument(tree any) action.Document { return action.NewDocument(canonicalText(tree), tree) }

// edgeFault is why a text is not acceptable JSON, and where.
type edgeFault struct {
	text    string
	pointer string
	offset  int
}

func (f *edgeFault) Error() string {
	s := f.text + " at byte " + strconv.Itoa(f.offset)
	if f.pointer != "" {
		s += " (" + f.pointer + ")"
	}
	return s
}

func parseTree(raw []byte, limit int) (any, *edgeFault) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	p := parser{in: raw}
	if len(raw) > limit {
		return nil, p.fault(limit, "input of "+strconv.Itoa(len(raw))+" bytes is longer than the limit of "+strconv.Itoa(limit))
	}
	p.space()
	if p.at == len(raw) {
		return nil, p.fault(p.at, "input is empty, want one JSON value")
	}
	v, fault := p.value()
	if fault != nil {
		return nil, fault
	}
	if p.space(); p.at < len(raw) {
		return nil, p.fault(p.at, "unexpected data after the value")
	}
	return v, nil
}

// parser reads one JSON text. Recursion is bounded by MaxDepth.
type parser struct {
	in   []byte
	at   int
	path []step
}

// step is one level of the place that is being read: a member name or an index.
type step struct {
	name  string
	index int
	named bool
}

func (p *parser) fault(offset int, text string) *edgeFault {
	var b strings.Builder
	for _, s := range p.path {
		b.WriteByte('/')
		if s.named {
			b.WriteString(pointerToken(s.name))
		} else {
			b.WriteString(strconv.Itoa(s.index))
		}
	}
	return &edgeFault{text: text, pointer: clip(b.String(), maxPointer), offset: offset}
}

func (p *parser) space() {
	for p.at < len(p.in) {
		switch p.in[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) peek() byte {
	if p.at < len(p.in) {
		return p.in[p.at]
	}
	return 0
}

func (p *parser) value() (any, *edgeFault) {
	switch c := p.peek(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		return orNil(p.str())
	case c == '-' || '0' <= c && c <= '9':
		return orNil(p.number())
	case c == 't':
		return true, p.literal("true")
	case c == 'f':
		return false, p.literal("false")
	case c == 'n':
		return nil, p.literal("null")
	}
	return nil, p.unexpected("a value")
}

func orNil[T any](v T, fault *edgeFault) (any, *edgeFault) {
	if fault != nil {
		return nil, fault
	}
	return v, nil
}

func (p *parser) literal(word string) *edgeFault {
	if !bytes.HasPrefix(p.in[p.at:], []byte(word)) {
		return p.unexpected("a value")
	}
	p.at += len(word)
	return nil
}

func (p *parser) unexpected(want string) *edgeFault {
	if p.at >= len(p.in) {
		return p.fault(p.at, "input ends where "+want+" is expected")
	}
	r, size := utf8.DecodeRune(p.in[p.at:])
	if r == utf8.RuneError && size == 1 {
		return p.fault(p.at, "invalid UTF-8")
	}
	hint := ""
	if r == '`' { // what language models put around JSON
		hint = "; send the bare JSON, without Markdown around it"
	}
	return p.fault(p.at, "unexpected "+strconv.QuoteRune(r)+" where "+want+" is expected"+hint)
}

func (p *parser) enter() *edgeFault {
	if len(p.path) == MaxDepth {
		return p.fault(p.at, "nesting is deeper than "+strconv.Itoa(MaxDepth))
	}
	p.path = append(p.path, step{})
	p.at++
	p.space()
	return nil
}

func (p *parser) leave() {
	p.path = p.path[:len(p.path)-1]
	p.at++
}

func (p *parser) array() (any, *edgeFault) {
	if fault := p.enter(); fault != nil {
		return nil, fault
	}
	list := []any{}
	if p.peek() == ']' {
		p.leave()
		return list, nil
	}
	for {
		v, fault := p.value()
		if fault != nil {
			return nil, fault
		}
		list = append(list, v)
		p.space()
		switch p.peek() {
		case ',':
			p.at++
			p.space()
			p.path[len(p.path)-1].index = len(list)
		case ']':
			p.leave()
			return list, nil
		default:
			return nil, p.unexpected("',' or ']'")
		}
	}
}

func (p *parser) object() (any, *edgeFault) {
	if fault := p.enter(); fault != nil {
		return nil, fault
	}
	here := len(p.path) - 1
	p.path[here].named = true
	members := map[string]any{}
	if p.peek() == '}' {
		p.leave()
		return members, nil
	}
	for {
		if fault := p.member(members, here); fault != nil {
			return nil, fault
		}
		p.space()
		switch p.peek() {
		case ',':
			p.at++
			p.space()
		case '}':
			p.leave()
			return members, nil
		default:
			return nil, p.unexpected("',' or '}'")
		}
	}
}

func (p *parser) member(members map[string]any, here int) *edgeFault {
	if p.peek() != '"' {
		return p.unexpected("a member name")
	}
	start := p.at
	name, fault := p.str()
	if fault != nil {
		return fault
	}
	p.path[here].name = name
	if _, dup := members[name]; dup {
		return p.fault(start, "duplicate member name "+quote(name))
	}
	p.space()
	if p.peek() != ':' {
		return p.unexpected("':'")
	}
	p.at++
	p.space()
	v, fault := p.value()
	if fault != nil {
		return fault
	}
	members[name] = v
	return nil
}
