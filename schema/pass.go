package schema

import (
	"errors"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Pass is the whole of [Schema.Check] in one walk over the bytes: strict edge, member names and schema. It appends the
// canonical form of src to dst and returns the result, without allocating where dst has room. Where ok is false dst comes
// back as it was, and Check says why: src is refused, or the schema is one that has no pass (see [Schema.Compiled]), or
// checking takes more steps than a pass takes, so that a slower judge decides. What it takes, Check takes, with the same
// canonical form. src and dst must not overlap.
func (s *Schema) Pass(dst, src []byte) (canonical []byte, ok bool) {
	if s.pass == nil || len(src) > DefaultLimit {
		return dst, false
	}
	return s.pass.run(dst, src, s.steps())
}

// Compiled reports whether the schema has a pass; why says, where it has none, what stands in the way.
func (s *Schema) Compiled() (ok bool, why string) {
	if s.pass == nil {
		return false, s.why
	}
	return true, ""
}

// AppendCanonical is [Canonical] without a schema, a limit of its own and words: it appends the canonical form of src to
// dst, without allocating where dst has room. Where ok is false dst comes back as it was, and Canonical says why.
func AppendCanonical(dst, src []byte) (canonical []byte, ok bool) {
	if len(src) > DefaultLimit {
		return dst, false
	}
	return anything.run(dst, src, maxSteps)
}

// steps is how many schemas may be applied to one document.
func (s *Schema) steps() int {
	if j, ok := s.judge.(*own); ok {
		return j.limit
	}
	return maxSteps
}

// document passes raw and makes a document of the text, its value read when somebody asks.
func (g *program) document(raw []byte, limit, steps int) (action.Document, bool) {
	return g.documentIn(nil, raw, limit, steps)
}

// documentIn is document with the value in a room of the caller's, where there is one.
func (g *program) documentIn(room *action.Lazy, raw []byte, limit, steps int) (action.Document, bool) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	if g == nil || len(raw) > limit {
		return action.Document{}, false
	}
	p := newPass()
	text, ok := g.walk(p, p.own[:0], raw, steps)
	if !ok {
		return action.Document{}, false
	}
	if room == nil {
		room = new(action.Lazy)
	}
	doc := room.Document(string(text))
	p.own = text
	p.free()
	return doc, true
}

// program is a schema compiled for the pass.
type program struct {
	root *place
}

// anything is the program of the schema true.
var anything = func() *program {
	at := &place{types: everyType}
	at.other, at.rest = child{at: at}, child{at: at}
	return &program{root: at}
}()

// pass is one walk over one document.
type pass struct {
	src     []byte
	at      int
	out     []byte
	run     int // what stands between run and at is canonical as it is, and follows out
	depth   int
	work    int    // steps left
	own     []byte // what out is where nobody brought a buffer
	spans   []span // members of the objects that are being read, and elements that must differ
	tmp     []byte // an object while its members are put in order
	scratch []byte // a text without its escapes
	dec     dec
}

// span is a member or an element in the canonical text.
type span struct {
	start, name, end int // the name ends at name; its quote opens at start
	rank             int // among the names known there, -1 for others
}

// run walks src and appends its canonical form to dst.
func (g *program) run(dst, src []byte, steps int) (out []byte, ok bool) {
	p := newPass()
	if out, ok = g.walk(p, dst, src, steps); ok {
		p.free()
	}
	return out, ok
}

var passes = sync.Pool{New: func() any { return new(pass) }}

func newPass() *pass {
	p, _ := passes.Get().(*pass) // made by New
	return p
}

// maxKept bounds, in bytes, what is kept between documents.
const maxKept = 1 << 16

// free makes p available for another document.
func (p *pass) free() {
	p.src, p.out = nil, nil
	if cap(p.own)+cap(p.tmp)+cap(p.scratch)+cap(p.spans)*32 <= maxKept {
		passes.Put(p)
	}
}

// walk is run by a pass, which is not to be used again where ok is false. A panic in what a schema refers to, a format, is
// a refusal, which Check words.
func (g *program) walk(p *pass, dst, src []byte, steps int) (out []byte, ok bool) {
	p.src, p.out, p.at, p.run, p.depth, p.spans, p.work = src, dst, 0, 0, 0, p.spans[:0], steps
	defer func() {
		if r := recover(); r != nil || !ok {
			out, ok = dst, false
		}
	}()
	if !p.value(g.root) {
		return dst, false
	}
	p.next()
	p.flush()
	return p.out, p.at == len(src) && p.work >= 0
}

// Why a schema has no pass.
var (
	errForeign  = errors.New("a schema from elsewhere is judged by a validator of its own")
	errPlaces   = errors.New("the schema has too many combinations of places")
	errPatterns = errors.New("more than 6 patternProperties apply to one object")
)
