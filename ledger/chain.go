package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Domain tags keep a link from ever being taken for another hash of the same bytes.
const (
	genesisTag = "delta-agents ledger genesis 1"
	linkTag    = "delta-agents ledger link 1"
)

// Genesis returns the link before the first record of a ledger: of a task, or of the agent itself where task is "".
func Genesis(agent, task string) string {
	b := part(nil, genesisTag)
	b = part(b, agent)
	b = part(b, task)
	return sum(b)
}

// Link returns the chain link of a record whose predecessor's link is prev (the first one's is Genesis): the SHA-256, in
// lower-case hex, over prev, sequence, store time and value. Every part is preceded by its length, so no two records
// share their bytes. r.Link is not looked at.
func Link(prev string, r txn.Stored) string { return string(AppendLink(nil, prev, r)) }

// AppendLink appends what Link returns.
func AppendLink(dst []byte, prev string, r txn.Stored) []byte {
	var room [2048]byte // most records fit
	b := room[:0]
	b = part(b, linkTag)
	b = part(b, prev)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Seq))
	b = binary.BigEndian.AppendUint64(b, uint64(r.At))
	b = part(b, r.Val)
	h := sha256.Sum256(b)
	return hex.AppendEncode(dst, h[:])
}

func part(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], h[:])
	return string(text[:])
}
