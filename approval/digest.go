package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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
	b := room[:0]
	for _, p := range [...]string{digestTag, agent, task, action, version, schemaHash, input} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	h := sha256.Sum256(b)
	return hex.AppendEncode(dst, h[:])
}
