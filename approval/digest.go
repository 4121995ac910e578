package approval

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/action"
)

const digestTag = "delta-agents approval 1"

// Digest names one exact call: the SHA-256, in lower-case hex, over agent, task, action, its version, the hash of its
// declared schema and the input in canonical form, each preceded by its length. A call that differs in any of them is
// another call and needs another consent.
func Digest(agent, task, name, version, schemaHash, input string) string {
	var text [2 * sha256.Size]byte
	return string(AppendDigest(text[:0], agent, task, name, version, schemaHash, input))
}

// AppendDigest appends what Digest returns to dst. It allocates nothing for inputs of up to about a kilobyte where dst has
// room.
func AppendDigest(dst []byte, agent, task, name, version, schemaHash, input string) []byte {
	var room [1536]byte
	b := appendParts(room[:0], agent, task, name, version, schemaHash)
	b = binary.BigEndian.AppendUint64(b, uint64(len(input)))
	h := sha256.Sum256(append(b, input...))
	return hex.AppendEncode(dst, h[:])
}

// appendParts appends all that is digested before the length of the input.
func appendParts(b []byte, agent, task, name, version, schemaHash string) []byte {
	for _, p := range [...]string{digestTag, agent, task, name, version, schemaHash} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}

// Digester makes digests of calls of one action in one task: what comes before the input has been hashed already. It is
// safe for concurrent use.
type Digester struct {
	parts []byte // what is hashed before the input
	state []byte // of SHA-256 behind them, nil where the hash does not say
}

// NewDigester returns the Digester of an action in a task.
func NewDigester(agent, task, name, version, schemaHash string) *Digester {
	d := &Digester{parts: appendParts(nil, agent, task, name, version, schemaHash)}
	var h Hasher
	h.reset()
	_, _ = h.hash.Write(d.parts) // a hash does not fail
	if m, ok := h.hash.(encoding.BinaryMarshaler); ok && h.resume != nil {
		if state, err := m.MarshalBinary(); err == nil && h.resume.UnmarshalBinary(state) == nil {
			d.state = state
		}
	}
	return d
}

// Append appends what [Digest] returns for the input to dst. It allocates nothing where dst has room.
func (d *Digester) Append(dst, input []byte) []byte {
	h := hashers.Get().(*Hasher)                 // made by New
	dst = action.AppendHex(dst, d.Sum(h, input)) // the bytes are the hasher's
	hashers.Put(h)
	return dst
}

// Sum returns the bytes that [Digest] writes in hex. They lie in the hasher's memory, until it is used again.
func (d *Digester) Sum(h *Hasher, input []byte) *[sha256.Size]byte {
	if h.hash == nil || d.state == nil || h.resume.UnmarshalBinary(d.state) != nil {
		h.reset()
		_, _ = h.hash.Write(d.parts)
	}
	binary.BigEndian.PutUint64(h.length[:], uint64(len(input)))
	_, _ = h.hash.Write(h.length[:])
	_, _ = h.hash.Write(input)
	h.hash.Sum(h.sum[:0])
	return &h.sum
}

// Hasher is the memory that the use of a [Digester] takes. The zero value is ready. It is for one user at a time, and must
// not be copied once it was used.
type Hasher struct {
	hash   hash.Hash
	resume encoding.BinaryUnmarshaler // nil where it cannot go on from a state
	length [8]byte
	sum    [sha256.Size]byte
}

func (h *Hasher) reset() {
	if h.hash == nil {
		h.hash = sha256.New()
		h.resume, _ = h.hash.(encoding.BinaryUnmarshaler)
	}
	h.hash.Reset()
}

var hashers = sync.Pool{New: func() any { return new(Hasher) }}
