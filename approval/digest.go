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
	parts := [...]string{digestTag, agent, task, action, version, schemaHash, input}
	n := 0
	for _, p := range parts {
		n += 8 + len(p)
	}
	b := make([]byte, 0, n)
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
