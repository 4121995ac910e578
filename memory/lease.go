package memory

import "github.com/seed-ab2cfece/delta-agents/txn"

// lease is a lease and the phase that left it as it is: what tells a repeat from another transaction of the same owner.
//
//	           Park                Begin             Settle
//	no lease ───────▶ Parked ───────────────▶ Begun ────────▶ Ended
//	    │                │                    │ ▲ │              ▲
//	    ├────────────────│──── Begin ─────────┘ │ └─ Takeover ───┤
//	    └────────────────┴──── Refuse ──────────│────────────────┘
//	                                            └ Renew, or Begin with fence+1
type lease struct {
	txn.Lease
	by txn.Phase
}

// repeats reports whether t is the transaction that left the lease as it is. A begin counts only while its lease is live:
// later, somebody else may be about to take over.
func (l *lease) repeats(t *txn.Txn, now int64) bool {
	if l.by != t.Phase || l.Fence != t.Fence || l.Owner != t.Owner {
		return false
	}
	switch t.Phase {
	case txn.Begin:
		return l.Until > now
	case txn.Renew:
		return t.Step > 0 && t.Step == l.Step
	}
	return true
}

// permits reports whether the phase may happen to the lease; has tells a lease from none.
func (l *lease) permits(t *txn.Txn, has bool, now int64) bool {
	begun := has && l.Phase == txn.Begin
	fresh := t.Fence == 1 && (!has || l.Phase == txn.Park)
	expired := begun && l.Until <= now && t.Fence == l.Fence+1
	held := begun && t.Fence == l.Fence && t.Owner == l.Owner
	switch t.Phase {
	case txn.Park:
		return !has && t.Fence == 1
	case txn.Begin:
		return fresh || expired
	case txn.Renew:
		return held && (t.Step == 0 || t.Step == l.Step+1)
	case txn.Settle:
		return held
	case txn.Refuse:
		return fresh
	case txn.Takeover:
		return expired
	}
	return false
}

// after returns the lease as the transaction leaves it; seq is the sequence of its first event.
func (l lease) after(t *txn.Txn, now, seq int64) lease {
	if t.Phase == txn.Renew && t.Step == 0 { // a mere heartbeat: repeats of the last step are still recognised
		l.Until = now + t.TTL
		return l
	}
	n := lease{by: t.Phase, Lease: txn.Lease{Phase: txn.Settle, Fence: t.Fence, Owner: t.Owner, Seq: seq, Step: l.Step}}
	switch t.Phase {
	case txn.Park:
		n.Phase = txn.Park
	case txn.Begin:
		n.Phase, n.Until, n.Step = txn.Begin, now+t.TTL, 0
	case txn.Renew:
		n.Phase, n.Until, n.Step = txn.Begin, now+t.TTL, t.Step
	}
	return n
}
