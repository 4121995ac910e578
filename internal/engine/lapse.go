package engine

import (
	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Covered returns the store time until which the approval that an intent consumed covers its starts, the repeated ones of
// a takeover too; 0 is for ever: it needed none. Where a later request has taken the place of the consumed one nobody
// knows any more, and nothing is covered.
func (v *View) Covered(begun *ledger.Event) int64 {
	if begun.Approval == "" {
		return 0
	}
	t := v.Snap.Task.Tokens[tokenAsk+begun.Digest]
	if state, id, _, err := approval.ParseMark(t.State); err != nil || state != approval.Consumed || id != begun.Approval {
		return 1
	}
	return t.Exp
}

// TakeoverStopped ends, under the next fence, an effect that could be repeated but must not be any more, for the reason
// that Recheck gave: it was interrupted, and what was reserved counts as used.
func TakeoverStopped(agent *Agent, begun ledger.Event, lease txn.Lease, owner, why string, at int64) *txn.Txn {
	x := &Run{Agent: agent, Begun: &begun, Fence: lease.Fence + 1, Owner: owner}
	t := x.txn(txn.Takeover)
	f := action.Fail(action.Interrupted, "the worker that ran this call disappeared, and %s", why)
	e := x.settled(End{Code: action.Interrupted, At: at, Cost: x.used(), Failure: f})
	write(t, &e, x.Begun)
	return t
}
