package delta

import (
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// unmoved reports whether a call that began still stands on the grounds on which it was decided: nothing was written to the
// agent since, save what the begin itself wrote, and outcomes of other calls that a decision may leave out. Each of those is
// one write and one more that waits; a fold is a write and none that waits, so that it is never taken for one: [Task.freshView]
// knows better of this engine's own.
func unmoved(view *engine.View, begun *ledger.Event, reply txn.Reply) bool {
	at := reply.AgentRev - view.Snap.Agent.Rev
	if at == 0 || at == 1 && len(begun.Pools)+len(begun.Limits) > 0 { // pools and limits are written to by the begin itself
		return true
	}
	last := int64(0)
	if n := len(view.Snap.Pending); n > 0 {
		last = view.Snap.Pending[n-1].Seq
	}
	return at > 0 && at == engine.Successes(reply.Pending, last)
}
