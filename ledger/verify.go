package ledger

import (
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Report says how far a ledger was found whole.
type Report struct {
	Records  int    `json:"records"`  // records that were looked at and found in order
	Sealed   int64  `json:"sealed"`   // sequence of the last linked record, 0 for none
	Head     string `json:"head"`     // its link, or the genesis
	Unsealed int    `json:"unsealed"` // records behind it that are not linked yet
	Pruned   int64  `json:"pruned"`   // records before them that were pruned behind a checkpoint, which stands among them
}

// Fault says what is wrong with a record.
type Fault string

// The faults.
const (
	Changed   Fault = "changed"   // its link does not follow from its contents and its predecessor
	Missing   Fault = "missing"   // a later record stands in its place
	Repeated  Fault = "repeated"  // an earlier record stands in its place
	Reordered Fault = "reordered" // a later record stands in its place, and it comes behind
	Unlinked  Fault = "unlinked"  // it has no link, though one behind it has
	Unsealed  Fault = "unsealed"  // it had a link when an earlier report was made, and has none
	CutOff    Fault = "cut off"   // it was there when an earlier report was made, and the ledger ends before it
)

// BrokenError locates the first fault of a ledger.
type BrokenError struct {
	Fault Fault
	Seq   int64 // the sequence number at which the ledger is first not what it should be
	Found int64 // the sequence number of the record found there
}

// Error names the place and the fault.
func (e *BrokenError) Error() string {
	switch e.Fault {
	case Changed:
		return fmt.Sprintf("ledger record %d was changed: its link does not follow from its contents", e.Seq)
	case Unlinked:
		return fmt.Sprintf("ledger record %d has no link, but record %d behind it has", e.Seq, e.Found)
	case Unsealed:
		return fmt.Sprintf("ledger record %d has lost its link: the ledger was sealed up to record %d", e.Seq, e.Found)
	case CutOff:
		return fmt.Sprintf("ledger record %d is cut off: the ledger was sealed up to record %d", e.Seq, e.Found)
	}
	return fmt.Sprintf("ledger record %d is %s: record %d stands in its place", e.Seq, e.Fault, e.Found)
}

// Verify checks a whole ledger from its first record on. The error is a *BrokenError; the report then covers what comes
// before the fault.
func Verify(genesis string, records []txn.Stored) (Report, error) {
	return verify(NewVerifier(genesis), records)
}

func verify(v *Verifier, records []txn.Stored) (Report, error) {
	for i, r := range records {
		if err := v.Add(r); err != nil {
			b := err.(*BrokenError) // Add returns no other
			if b.Fault == Missing && slices.ContainsFunc(records[i:], func(r txn.Stored) bool { return r.Seq == b.Seq }) {
				b.Fault = Reordered
			}
			return v.Report(), b
		}
	}
	return v.Report(), nil
}

// Compare checks a ledger that Verify found whole, found being its report, against an earlier report on the same ledger:
// what was sealed then must be there, as it was, and linked. A ledger all of whose links were taken away, or that was
// written anew from the first record on, is whole by itself. The error is a *BrokenError: CutOff and Unsealed where the
// records that are there may still be what they were, Changed where they are not.
func Compare(records []txn.Stored, found, earlier Report) error {
	base := found.Pruned
	switch n := base + int64(len(records)); {
	case earlier.Sealed == 0 || earlier.Sealed < base:
		return nil // nothing was known, or nothing is left of it
	case n < earlier.Sealed:
		return &BrokenError{CutOff, n + 1, earlier.Sealed}
	case earlier.Sealed == base: // the checkpoint must be of the records that were known
		if base > 0 && len(records) > 0 && Link(earlier.Head, records[0]) != records[0].Link && records[0].Link != "" {
			return &BrokenError{Changed, base + 1, base + 1}
		}
		return nil
	case found.Sealed >= earlier.Sealed:
		if records[earlier.Sealed-base-1].Link != earlier.Head {
			return &BrokenError{Changed, earlier.Sealed, earlier.Sealed}
		}
		return nil
	}
	head := found.Head
	for _, r := range records[found.Sealed-base : earlier.Sealed-base] {
		head = Link(head, r)
	}
	if head != earlier.Head {
		return &BrokenError{Changed, found.Sealed + 1, earlier.Sealed}
	}
	return &BrokenError{Unsealed, found.Sealed + 1, earlier.Sealed}
}

// Verifier checks a ledger record by record, in the memory of one record.
type Verifier struct {
	next int64  // sequence number expected
	head string // link of the last sealed record
	rep  Report
	err  *BrokenError
}

// NewVerifier returns a verifier at the start of a ledger.
func NewVerifier(genesis string) *Verifier { return Resume(0, genesis) }

// Resume returns a verifier that goes on behind record seq, whose link is head: both from an earlier Report, or 0 and the
// genesis.
func Resume(seq int64, head string) *Verifier {
	return &Verifier{next: seq + 1, head: head, rep: Report{Sealed: seq, Head: head, Pruned: seq}}
}

// Add checks the next record. The first error is final: it is returned by every later call. A record left out cannot be
// told from one that comes later, so a stream reports either as Missing; [Verify] tells them apart.
func (v *Verifier) Add(r txn.Stored) error {
	if v.err == nil {
		v.err = v.check(r)
	}
	if v.err != nil {
		return v.err
	}
	v.next++
	v.rep.Records++
	if r.Link == "" {
		v.rep.Unsealed++
		return nil
	}
	v.head = r.Link
	v.rep.Sealed, v.rep.Head = r.Seq, r.Link
	return nil
}

func (v *Verifier) check(r txn.Stored) *BrokenError {
	switch {
	case r.Seq > v.next:
		return &BrokenError{Missing, v.next, r.Seq}
	case r.Seq < v.next:
		return &BrokenError{Repeated, v.next, r.Seq}
	case r.Link == "":
		return nil
	case v.rep.Unsealed > 0:
		return &BrokenError{Unlinked, v.rep.Sealed + 1, r.Seq}
	case r.Link != Link(v.head, r):
		return &BrokenError{Changed, r.Seq, r.Seq}
	}
	return nil
}

// Report returns what has been found whole so far.
func (v *Verifier) Report() Report { return v.rep }
