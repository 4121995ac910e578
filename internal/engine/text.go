package engine

import (
	"bytes"
	"encoding/json"
	"sync"
	"unsafe"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// jsonOf returns the bytes of a checked document without copying them: nobody may write to them.
func jsonOf(d action.Document) json.RawMessage {
	s := d.Text()
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// scratches are buffers in which texts are put together before they are kept as strings.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

func scratch() *[]byte { return scratches.Get().(*[]byte) }

// scratchKept is the largest buffer that is kept for the next text.
const scratchKept = 64 << 10

func release(b *[]byte) {
	if cap(*b) <= scratchKept {
		scratches.Put(b)
	}
}

// piece is memory out of which strings are cut, so that none is an allocation of its own. What was cut out never changes.
type piece struct{ room []byte } // empty; its capacity is what is left

const (
	pieceSize = 16 << 10
	pieceLeft = 1 << 10 // with less left than that a new one is begun
)

// pieces are those that are not all used up, one or so for each thread.
var pieces = sync.Pool{New: func() any { return new(piece) }}

// begin returns an empty slice to append a string to; end makes it one, before the next is begun. Where there is no piece, or
// not enough of it, a string gets memory of its own.
func (p *piece) begin() []byte {
	if p == nil {
		return nil
	}
	if cap(p.room) < pieceLeft {
		p.room = make([]byte, 0, pieceSize)
	}
	return p.room
}

func (p *piece) end(b []byte) string {
	n := len(b)
	if n == 0 {
		return ""
	}
	if p == nil || cap(b) != cap(p.room) || &b[0] != &p.room[:1][0] { // it outgrew the piece
		return string(b)
	}
	p.room = b[n:n]
	return unsafe.String(&b[0], n)
}

// jsonText is v as JSON without HTML escaping: a checked input or output inside keeps its canonical bytes, so that a person
// is shown, and a caller given, exactly what the digest and the ledger hold. v has plain fields only and cannot fail.
func jsonText(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
