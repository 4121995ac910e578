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

// jsonText is v as JSON without HTML escaping: a checked input or output inside keeps its canonical bytes, so that a person
// is shown, and a caller given, exactly what the digest and the ledger hold. v has plain fields only and cannot fail.
func jsonText(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
