package engine

import (
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// OpenAsks returns the digests of at most limit calls of the task whose approval waits, or was given and not used, in order.
func (v *View) OpenAsks(limit int) []string {
	var open []string
	for key, t := range v.Snap.Task.Tokens {
		digest, is := strings.CutPrefix(key, tokenAsk)
		if !is {
			continue
		}
		if state, _, _, err := approval.ParseMark(t.State); err == nil && (state == approval.Pending || state == approval.Approved) {
			open = append(open, digest)
		}
	}
	slices.Sort(open)
	return open[:min(limit, len(open))]
}

// EndAsk takes back what a task that has ended, or for a call that was cancelled, still asks of people, or was consented to and will never run, and ends the
// call that waited. Nil where there is nothing to take back; parked is as in DecideAsk.
func EndAsk(v *View, digest string, parked *ledger.Event, who Who) *txn.Txn {
	token := v.Snap.Task.Tokens[tokenAsk+digest]
	state, q, err := ReadAsk(v, digest, v.Snap.Now)
	if err != nil || !v.Task.Status.Ended() && !v.CallCancelled(q.Intent) || state != approval.Pending && state != approval.Approved {
		return nil
	}
	t := &txn.Txn{Agent: q.Agent, Task: q.Task, Phase: txn.Plain}
	t.Add(haveMark(digest, token.State))
	e := v.event(ledger.ApprovalRevoked, who.At)
	e.Intent, e.Action, e.Digest, e.Approval, e.Reason = q.Intent, q.Action, digest, q.ID, "the task has ended"
	if !v.Task.Status.Ended() {
		e.Reason = "the call was cancelled"
	}
	e.ApprovalFrom, e.ApprovalState = token.State, approval.Mark(approval.Revoked, q.ID, "")
	write(t, &e, nil)
	if parked != nil {
		code := action.TaskClosed
		if v.Task.Status == Cancelled || !v.Task.Status.Ended() {
			code = action.Cancelled
		}
		f := v.Task.Because(action.Fail(code, "the task ended while a person was asked about this call"))
		v.endParked(t, parked, f.With(action.DetailApproval, q.ID), who)
	}
	return t
}
