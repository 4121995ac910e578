package engine

import (
	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// begins is the text that begins of an action have in common, and what it was made of.
type begins struct {
	form        ledger.Form
	agent, task string
	version     string
	act         *Action
	reserved    action.Cost
	risk        ledger.RiskShown
	policy      ledger.PolicyShown
}

// appendBegun appends the text of the event of the round's begin to dst: most have all in common but what is the call's own.
func (r *round) appendBegun(dst []byte, e *ledger.Event) []byte {
	s := r.said()
	if s == nil || r.act.Keyed || e.Risk == nil || e.Policy == nil || len(e.Claimed)+len(e.Pools)+len(e.Limits)+len(e.Waived) > 0 ||
		e.Approval != "" || e.ApprovalFrom != "" || e.ApprovalState != "" || e.Text != "" || e.Wakes || e.Priced != (action.Limit{}) || e.Flow != nil {
		return appendShown(dst, e, r.riskText(e))
	}
	b := &s.begins
	if b.act != r.act || b.agent != e.Agent || b.task != e.Task || b.version != e.Version || b.reserved != e.Reserved || b.risk != *e.Risk || b.policy != *e.Policy {
		*b = begins{b.form, e.Agent, e.Task, e.Version, r.act, e.Reserved, *e.Risk, *e.Policy}
		if !b.form.Set(e, r.riskText(e)) {
			b.act = nil
			return appendShown(dst, e, "")
		}
	}
	return b.form.Append(dst, &ledger.Entry{
		At: e.At, Intent: e.Intent, Call: e.Call, Digest: e.Digest, Within: e.Within, Owner: e.Owner, Input: e.Input,
		Provenance: &e.Provenance, Value: e.Value,
	})
}
