package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// keptApproved is of how many tenants and data subjects the call of an action that was approved last is remembered: those of
// which one was approved latest.
const keptApproved = 16

// scopeOf names for whom a task works, and about whom, without saying who that is.
func scopeOf(s *TaskState) string {
	h := sha256.Sum256(fmt.Appendf(nil, "delta-agents approved 1\n%s\n%s", s.Tenant, s.Subject))
	return hex.EncodeToString(h[:16])
}

// remember has an approval say where it is remembered, for the difference that the next approver is shown: in the place of the
// call that was approved last for the same tenant and subject, in a free one, or in that of the oldest. Two approvals at the
// same time may choose one place, and the later counts: what is lost is a difference shown.
func (v *View) remember(e *ledger.Event) {
	scope, at, oldest := scopeOf(&v.Task), -1, int64(0)
	for i := range keptApproved {
		t, has := v.Snap.Agent.Tokens[lastKey(e.Action, strconv.Itoa(i))]
		if has && t.Val == scope {
			at = i
			break
		}
		switch {
		case !has:
			t.At = -1 // older than any
		case at >= 0 && t.At >= oldest:
			continue
		}
		if at < 0 || t.At < oldest {
			at, oldest = i, t.At
		}
	}
	e.Text = strconv.Itoa(at) + " " + scope
}

func lastKey(name, place string) string { return tokenLast + name + "@" + place }

// approvedLast remembers which call of an action was approved last. It is a token and no cell: several tasks write it, and the
// latest counts. Approvals once did not say for whom.
func (c *changes) approvedLast(e *ledger.Event) {
	key := tokenLast + e.Action
	place, scope, told := strings.Cut(e.Text, " ")
	if told {
		key = lastKey(e.Action, place)
	}
	c.add(txn.Clause{Op: txn.Set, Scope: txn.Agent, Key: key, To: e.Task + "\n" + e.Digest, Val: scope})
}

// Approved is a call that was approved.
type Approved struct {
	Task, Digest string
	At           int64 // store time, µs
	Whose        bool  // it is known to be for the tenant and about the subject that was asked for
}

// LastApproved returns the call of an action that was approved last for the same tenant, and about the same subject, as a task;
// nil where none is remembered. others says that some are for other tenants or about other subjects.
func LastApproved(v *View, name string, of *TaskState) (last *Approved, others bool) {
	scope := scopeOf(of)
	read := func(t txn.Token) *Approved {
		task, digest, _ := strings.Cut(t.State, "\n")
		return &Approved{task, digest, t.At, t.Val == scope}
	}
	for i := range keptApproved {
		t, has := v.Snap.Agent.Tokens[lastKey(name, strconv.Itoa(i))]
		switch {
		case has && t.Val == scope && (last == nil || t.At > last.At):
			last = read(t)
		case has && t.Val != scope:
			others = true
		}
	}
	if t, has := v.Snap.Agent.Tokens[tokenLast+name]; has && last == nil {
		last = read(t) // of before it was said for whom: whoever reads it looks at its task
	}
	return last, others
}
