package ledger

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Base is what is left of the beginning of a ledger that was pruned: enough to verify what comes behind it, and to go on with
// its Merkle tree, so that heads and proofs of later records are those that the whole ledger has. Its zero value is the base
// of a ledger that is whole.
type Base struct {
	Seq  int64  `json:"seq"`  // of the last record that was dropped
	Link string `json:"link"` // of that record
	// Tree is the tree over the records that were dropped: the roots of the complete subtrees that it falls into, from the
	// left to the right, of which there are as many as Seq has bits set.
	Tree []Hash `json:"tree"`
}

// ErrPruned says that something rests on records that were pruned.
var ErrPruned = errors.New("the records it rests on were pruned")

// Check reports a base that no ledger has.
func (b Base) Check() error {
	if b.Seq == 0 && b.Link == "" && len(b.Tree) == 0 {
		return nil
	}
	if b.Seq < 1 || b.Seq > txn.NoMax || len(b.Tree) != bits.OnesCount64(uint64(b.Seq)) {
		return fmt.Errorf("no base of a ledger: %d records and %d subtrees", b.Seq, len(b.Tree))
	}
	if _, err := leafOf(b.Link); err != nil {
		return fmt.Errorf("base of a ledger: %w", err)
	}
	return nil
}

// Root returns the root of the tree over what was dropped.
func (b Base) Root() (Hash, error) {
	l, err := b.Log()
	if err != nil {
		return Hash{}, err
	}
	return l.Root(b.Seq)
}

// Head returns the head of the ledger as it was when it ended with the last record that was dropped.
func (b Base) Head(agent, task string) (Head, error) {
	root, err := b.Root()
	return Head{Agent: agent, Task: task, Size: b.Seq, Root: root}, err
}

// Log returns the log of what was dropped, to be gone on with: it knows roots and proofs from there on alone.
func (b Base) Log() (*Log, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	l := &Log{size: b.Seq}
	if b.Seq == 0 {
		return l, nil
	}
	l.hashes.from = tlog.StoredHashCount(b.Seq)
	l.hashes.before = map[int64]Hash{}
	for i, at := range subtrees(b.Seq) {
		l.hashes.before[at] = b.Tree[i]
	}
	return l, nil
}

// subtrees are the places of the complete subtrees that a tree of n leaves falls into.
func subtrees(n int64) (at []int64) {
	for begin := int64(0); begin < n; {
		level := bits.Len64(uint64(n-begin)) - 1
		at = append(at, tlog.StoredHashIndex(level, begin>>level))
		begin += 1 << level
	}
	return at
}

// Base returns what is to be kept of the first n records, of which the last has that link.
func (l *Log) Base(n int64, link string) (Base, error) {
	if err := l.within(n); err != nil {
		return Base{}, err
	}
	if n == 0 {
		return Base{}, nil
	}
	tree, err := l.hashes.ReadHashes(subtrees(n))
	if err != nil {
		return Base{}, err
	}
	b := Base{Seq: n, Link: link, Tree: tree}
	return b, b.Check()
}

// BaseIn finds the base of a ledger in its records: nothing where they begin with the first one, else the checkpoint
// (LedgerPruned) among them that says what came before. It is a *BrokenError where there is none: records were taken out.
func BaseIn(records []txn.Stored) (Base, error) {
	e, err := CheckpointIn(records)
	if err != nil || e == nil {
		return Base{}, err
	}
	return BaseOf(e)
}

// CheckpointIn finds the event that [BaseIn] goes by, nil where the records begin with the first one.
func CheckpointIn(records []txn.Stored) (*Event, error) {
	if len(records) == 0 || records[0].Seq <= 1 {
		return nil, nil
	}
	first := records[0].Seq
	for i := range records {
		if !strings.Contains(records[i].Val, string(LedgerPruned)) {
			continue
		}
		if e, err := Decode(records[i].Val); err == nil && e.Type == LedgerPruned && e.ToSeq == first-1 {
			return &e, nil
		}
	}
	return nil, &BrokenError{Missing, 1, first}
}

// BaseOf reads the base that a checkpoint holds.
func BaseOf(e *Event) (Base, error) {
	var s struct{ Tree []Hash }
	if err := json.Unmarshal(e.State, &s); err != nil {
		return Base{}, fmt.Errorf("checkpoint of a pruned ledger: %w", err)
	}
	b := Base{Seq: e.ToSeq, Link: e.Digest, Tree: s.Tree}
	return b, b.Check()
}

// VerifyFrom is [Verify] of a ledger whose beginning may have been pruned.
func VerifyFrom(agent, task string, records []txn.Stored) (Report, error) {
	b, err := BaseIn(records)
	if err != nil {
		return Report{Head: Genesis(agent, task)}, err
	}
	if b.Seq == 0 {
		return Verify(Genesis(agent, task), records)
	}
	return verify(Resume(b.Seq, b.Link), records)
}

// statePrefix begins the line of a checkpoint that names the state.
const statePrefix = "state "

// CheckpointText is the text of a checkpoint: that of the head of what was dropped, and a line with the digest of the state
// that was carried over, which the C2SP checkpoint allows for as an extension.
func CheckpointText(h Head, state []byte) string {
	sum := sha256.Sum256(state)
	return h.Text() + statePrefix + base64.StdEncoding.EncodeToString(sum[:]) + "\n"
}

// SignCheckpoint returns the checkpoint as a signed note, as [SignHead] returns a head.
func SignCheckpoint(h Head, state []byte, signers ...Signer) (string, error) {
	if len(signers) == 0 {
		return "", errors.New("sign checkpoint: no key; give at least one")
	}
	b, err := note.Sign(&note.Note{Text: CheckpointText(h, state)}, signers...)
	if err != nil {
		return "", fmt.Errorf("sign checkpoint of %s: %w", h.Name(), err)
	}
	return string(b), nil
}

// OpenCheckpoint checks that one of the public keys signed the checkpoint, and that it is of that head and that state.
func OpenCheckpoint(signed string, h Head, state []byte, public ...string) error {
	text, err := openNote(signed, public)
	if err != nil {
		return fmt.Errorf("open checkpoint: %w", err)
	}
	if text != CheckpointText(h, state) {
		return fmt.Errorf("checkpoint of %s at %d records: %w", h.Name(), h.Size, ErrRewritten)
	}
	return nil
}
