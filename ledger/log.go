package ledger

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Hash is a node of the Merkle tree, SHA-256 as RFC 6962 has it; in JSON it is base64.
type Hash = tlog.Hash

// Log is the Merkle tree over the links of one ledger, the first record being its first leaf. Since a link covers all that
// comes before it, tree and chain say the same; the tree says it in proofs that grow with the logarithm of the ledger. It
// is computed anew from the records wherever it is needed and takes 64 bytes for each. The zero value is an empty log.
type Log struct {
	hashes stored
	size   int64
}

// stored is the tree in the order of tlog.StoredHashIndex: from a place on, and what is known of the nodes before it.
type stored struct {
	from   int64
	list   []tlog.Hash
	before map[int64]tlog.Hash
}

func (s *stored) ReadHashes(at []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(at))
	for i, n := range at {
		h, known := s.before[n]
		switch {
		case known:
			out[i] = h
		case n >= 0 && n < s.from:
			return nil, ErrPruned
		case n < 0 || n >= s.from+int64(len(s.list)):
			return nil, fmt.Errorf("the tree has no node %d", n)
		default:
			out[i] = s.list[n-s.from]
		}
	}
	return out, nil
}

// NewLog returns the log of a ledger's sealed records, also of one whose beginning was pruned.
func NewLog(records []txn.Stored) (*Log, error) {
	b, err := BaseIn(records)
	if err != nil {
		return nil, err
	}
	l, err := b.Log()
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.Link == "" {
			break
		}
		if err := l.Add(r.Link); err != nil {
			return nil, fmt.Errorf("record %d: %w", r.Seq, err)
		}
	}
	return l, nil
}

// Add appends the link of the next record.
func (l *Log) Add(link string) error {
	leaf, err := leafOf(link)
	if err != nil {
		return err
	}
	more, err := tlog.StoredHashesForRecordHash(l.size, leaf, &l.hashes)
	if err != nil {
		return err
	}
	l.hashes.list = append(l.hashes.list, more...)
	l.size++
	return nil
}

func leafOf(link string) (Hash, error) {
	b, err := hex.DecodeString(link)
	if err != nil || len(b) != len(Hash{}) {
		return Hash{}, fmt.Errorf("%q is not a link: want 64 digits in hex", link)
	}
	return tlog.RecordHash(b), nil
}

// Size returns the number of records.
func (l *Log) Size() int64 { return l.size }

// Root returns the root of the tree over the first size records; that of none is the SHA-256 of nothing.
func (l *Log) Root(size int64) (Hash, error) {
	if err := l.within(size); err != nil {
		return Hash{}, err
	}
	return tlog.TreeHash(size, &l.hashes)
}

func (l *Log) within(size int64) error {
	if size < 0 || size > l.size {
		return fmt.Errorf("there is no tree of %d records: the ledger has %d", size, l.size)
	}
	return nil
}

// Head returns what the log is of, how long it is and its root.
func (l *Log) Head(agent, task string) (Head, error) {
	root, err := l.Root(l.size)
	return Head{Agent: agent, Task: task, Size: l.size, Root: root}, err
}

// ProveRecord returns the path from record seq (1 is the first) to the root over the first size records; see CheckRecord.
func (l *Log) ProveRecord(seq, size int64) ([]Hash, error) {
	if err := l.within(size); err != nil {
		return nil, err
	}
	if seq < 1 || seq > size {
		return nil, fmt.Errorf("there is no record %d among the first %d", seq, size)
	}
	return tlog.ProveRecord(size, seq-1, &l.hashes)
}

// ProveGrowth returns the proof that the log of older records is the beginning of that of newer ones; see CheckGrowth.
func (l *Log) ProveGrowth(older, newer int64) ([]Hash, error) {
	if err := l.within(newer); err != nil {
		return nil, err
	}
	if older < 0 || older > newer {
		return nil, fmt.Errorf("a log of %d records is not the beginning of one of %d", older, newer)
	}
	if older == 0 {
		return nil, nil
	}
	return tlog.ProveTree(newer, older, &l.hashes)
}

// Extends checks that the log goes on from a head that was taken earlier. The error is ErrRewritten, a *BrokenError where the
// ledger is shorter than it was, or ErrPruned where the head is of records that were pruned since: then the checkpoint has to
// vouch for them.
func (l *Log) Extends(older Head) error {
	if older.Size > l.size {
		return &BrokenError{CutOff, l.size + 1, older.Size}
	}
	root, err := l.Root(older.Size)
	if err != nil {
		return fmt.Errorf("%s, its head of %d records: %w", older.Name(), older.Size, err)
	}
	if root != older.Root {
		return fmt.Errorf("%s: %w: among its first %d records", older.Name(), ErrRewritten, older.Size)
	}
	return nil
}

// ErrRewritten is the answer of every check of a proof that fails: the past is not what it was, or the proof is not one.
var ErrRewritten = errors.New("the ledger is not the one that the head was taken of")

// CheckRecord checks that r, whose predecessor's link is prev (the first one's is Genesis), is in the log that h is the
// head of. r.Link is not looked at.
func CheckRecord(h Head, prev string, r txn.Stored, path []Hash) error {
	leaf, err := leafOf(Link(prev, r))
	if err == nil {
		err = tlog.CheckRecord(path, h.Size, h.Root, r.Seq-1, leaf)
	}
	if err != nil {
		return fmt.Errorf("record %d of %s: %w (%v)", r.Seq, h.Name(), ErrRewritten, err)
	}
	return nil
}

// CheckGrowth checks that the log of the newer head begins with that of the older one: nothing was changed, left out,
// repeated or moved in what was there.
func CheckGrowth(older, newer Head, path []Hash) error {
	if older.Agent != newer.Agent || older.Task != newer.Task {
		return fmt.Errorf("the heads are of %s and of %s: want two of one ledger", older.Name(), newer.Name())
	}
	if older.Size == 0 && len(path) == 0 {
		return nil
	}
	if err := tlog.CheckTree(path, newer.Size, newer.Root, older.Size, older.Root); err != nil {
		return fmt.Errorf("%s from %d to %d records: %w (%v)", newer.Name(), older.Size, newer.Size, ErrRewritten, err)
	}
	return nil
}

// Head stands for a whole ledger: whoever has it can be shown that a record is in the ledger, and that a later ledger goes
// on from it.
type Head struct {
	Agent, Task string // of the agent itself where Task is ""
	Size        int64  // records
	Root        Hash
}

// Name is the ledger's: "agent~task", or the agent's.
func (h Head) Name() string { return NameOf(h.Agent, h.Task) }

// NameOf returns the name of a ledger: "agent~task", or the agent's where task is "".
func NameOf(agent, task string) string {
	if task == "" {
		return agent
	}
	return agent + nameSeparator + task
}

const (
	nameSeparator = "~"
	originPrefix  = "delta-agents ledger "
)

// Text is the head as a C2SP tlog-checkpoint: the ledger, the size, the root, each on a line of its own.
func (h Head) Text() string {
	return originPrefix + h.Name() + "\n" + strconv.FormatInt(h.Size, 10) + "\n" + h.Root.String() + "\n"
}

// ParseHead reads what Text wrote and nothing else. It says nothing about who wrote it: see OpenHead.
func ParseHead(text string) (Head, error) {
	lines := strings.Split(text, "\n")
	name, ok := strings.CutPrefix(lines[0], originPrefix)
	if !ok || len(lines) != 4 {
		return Head{}, errors.New("not the head of a ledger: want three lines, the first beginning with " + strconv.Quote(originPrefix))
	}
	h := Head{}
	h.Agent, h.Task, _ = strings.Cut(name, nameSeparator)
	var err error
	if h.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || h.Size < 0 {
		return Head{}, fmt.Errorf("not the head of a ledger: %q is not a number of records", lines[1])
	}
	if h.Root, err = tlog.ParseHash(lines[2]); err != nil {
		return Head{}, fmt.Errorf("not the head of a ledger: root: %w", err)
	}
	if h.Text() != text {
		return Head{}, errors.New("not the head of a ledger: not in canonical form")
	}
	return h, nil
}
