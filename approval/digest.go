package approval

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"sync"
)

const digestTag = "delta-agents approval 1"

// Digest names one exact call: the SHA-256, in lower-case hex, over agent, task, action, its version, the hash of its
// declared schema and the input in canonical form, each preceded by its length. A call that differs in any of them is
// another call and needs another consent.
func Digest(agent, task, action, version, schemaHash, input string) string {
	var text [2 * sha256.Size]byte
	return string(AppendDigest(text[:0], agent, task, action, version, schemaHash, input))
}

// AppendDigest appends what Digest returns to dst. It allocates nothing for inputs of up to about a kilobyte where dst has
// room.
func AppendDigest(dst []byte, agent, task, action, version, schemaHash, input string) []byte {
	var room [1536]byte
	b := appendParts(room[:0], agent, task, action, version, schemaHash)
	b = binary.BigEndian.AppendUint64(b, uint64(len(input)))
	h := sha256.Sum256(append(b, input...))
	return hex.AppendEncode(dst, h[:])
}

// appendParts appends all that is digested before the length of the input.
func appendParts(b []byte, agent, task, action, version, schemaHash string) []byte {
	for _, p := range [...]string{digestTag, agent, task, action, version, schemaHash} {
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
func NewDigester(agent, task, action, version, schemaHash string) *Digester {
	d := &Digester{parts: appendParts(nil, agent, task, action, version, schemaHash)}
	h := newHasher()
	defer hashers.Put(h)
	h.Reset()
	_, _ = h.Write(d.parts) // a hash does not fail
	if m, ok := h.Hash.(encoding.BinaryMarshaler); ok && h.resume != nil {
		if state, err := m.MarshalBinary(); err == nil && h.resume.UnmarshalBinary(state) == nil {
			d.state = state
		}
	}
	return d
}

// Append appends what [Digest] returns for the input to dst. It allocates nothing where dst has room.
func (d *Digester) Append(dst, input []byte) []byte {
	h := newHasher()
	if d.state == nil || h.resume.UnmarshalBinary(d.state) != nil {
		h.Reset()
		_, _ = h.Write(d.parts)
	}
	binary.BigEndian.PutUint64(h.length[:], uint64(len(input)))
	_, _ = h.Write(h.length[:])
	_, _ = h.Write(input)
	h.Sum(h.sum[:0])
	var text [2 * sha256.Size]byte
	for i, c := range &h.sum {
		text[2*i], text[2*i+1] = hexDigits[c>>4], hexDigits[c&0xf]
	}
	hashers.Put(h)
	return append(dst, text[:]...)
}

const hexDigits = "0123456789abcdef"

// hasher is a hash and the memory that its use takes.
type hasher struct {
	hash.Hash
	resume encoding.BinaryUnmarshaler // nil where it cannot go on from a state
	length [8]byte
	sum    [sha256.Size]byte
}

var hashers = sync.Pool{New: func() any {
	h := &hasher{Hash: sha256.New()}
	h.resume, _ = h.Hash.(encoding.BinaryUnmarshaler)
	return h
}}

func newHasher() *hasher {
	h, _ := hashers.Get().(*hasher) // made by New
	return h
}
