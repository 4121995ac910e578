package engine

import (
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// gate 9: begin and its opposite

func (r *round) event(t ledger.Type) (e ledger.Event) {
	r.eventInto(&e, t)
	return e
}

// eventInto is event into one that is empty.
func (r *round) eventInto(e *ledger.Event, t ledger.Type) {
	in := &r.call.Intent
	r.view.eventInto(e, t, r.call.At)
	e.Task, e.Agent = in.Task, r.agent.Name
	e.Intent, e.Call, e.Action, e.Version, e.Digest = r.intent(), in.CallID, in.Action, in.Version, in.Digest
	e.Within, e.Provenance = in.Within, in.Provenance
	if r.act != nil {
		e.Tool = r.act.Tool
	}
	if r.agent.Graph.Across() {
		e.Tenant = r.view.Task.Tenant
	}
}

func (r *round) txn(phase txn.Phase, intent string) *txn.Txn {
	p := r.call.Room.transaction()
	p.Txn = txn.Txn{Agent: r.agent.Name, Task: r.call.Intent.Task, Phase: phase, Intent: intent, Fence: 1, Owner: r.call.Owner, TTL: r.call.TTL}
	p.Clauses = append(p.room[:0], r.pins...)
	return &p.Txn
}

// grounds is the event of a begin, and what it points to.
type grounds struct {
	event  ledger.Event
	risk   ledger.RiskShown
	policy ledger.PolicyShown
}

// write appends an event and what it changes.
func write(t *txn.Txn, e, held *ledger.Event) { writeShown(t, e, held, "") }

// writeBegun is write for the event of a round's begin.
func (r *round) writeBegun(t *txn.Txn, e *ledger.Event) {
	p := pieces.Get().(*piece)
	writeText(t, e, nil, p, p.end(r.appendBegun(p.begin(), e)))
}

// writeShown is write for who may have the text of the risk.
func writeShown(t *txn.Txn, e, held *ledger.Event, risk string) {
	p := pieces.Get().(*piece)
	writeText(t, e, held, p, p.end(appendShown(p.begin(), e, risk)))
}

// writeText is write for who has the text of the event, cut out of a piece that is given back.
func writeText(t *txn.Txn, e, held *ledger.Event, p *piece, text string) {
	c := changes{list: t.Clauses, text: p}
	c.add(txn.Clause{Op: txn.Event, Scope: txn.Task, Val: text})
	c.of(e, held, text)
	t.Clauses = c.list
	pieces.Put(p)
}

// begin writes the intent with everything it holds.
func (r *round) begin() Decision {
	t, g := r.txn(txn.Begin, r.intent()), r.call.Room.begin()
	r.begun(g)
	e := &g.event
	if waived(r.rules, r.view, r.act) && e.Approval == "" {
		w := r.event(ledger.ApprovalWaived)
		w.Risk, w.Reason = e.Risk, "the agent's trust answers the action's demand for an approval"
		write(t, &w, nil)
	}
	r.close(t)
	r.marked(t)
	r.writeBegun(t, e)
	if r.glass != nil {
		r.expires = r.glass.Until
	}
	return Decision{Txn: t, Begun: e, Expires: r.expires}
}

// riskText is the text of the risk that an event of this round shows, "" where it is not at hand.
func (r *round) riskText(e *ledger.Event) string {
	if e.Risk == nil {
		return ""
	}
	return r.said().shownText(e.Risk)
}

// begun fills in the event of the begin.
func (r *round) begun(g *grounds) {
	e := &g.event
	r.eventInto(e, ledger.Begun)
	e.Fence, e.Owner, e.Attempt = 1, r.call.Owner, 1
	e.Repeats = r.act.Promise(r.call.Key)
	for i := range r.claims {
		r.claims[i].To = "claimed:" + r.intent() // gate 8 may have adopted a parked intent
	}
	e.Reserved, e.Pools, e.Claimed, e.Waived, e.Limits = r.reserved, r.pools, r.claims, r.waived, r.limits
	e.Input, e.Value, e.Priced = jsonOf(r.call.shown()), r.call.Intent.Value, r.call.Price
	if r.call.Veil != nil {
		e.Sealed = r.call.Veil.Sealed
	}
	if !r.rules.Observe || r.shown.Declared > 0 {
		g.risk = r.shown
		e.Risk = &g.risk
	}
	if r.policy.Version != "" || r.policy.Reason != "" {
		g.policy = ledger.PolicyShown{Version: r.policy.Version, Reason: r.policy.Reason}
		e.Policy = &g.policy
	}
	if r.glass != nil {
		e.Text = r.glass.ID
	}
	if r.expires == 0 {
		return
	}
	if token, ok := r.askToken(); ok {
		e.Approval = r.approvalID
		e.ApprovalFrom = token.State
		e.ApprovalState = approval.Mark(approval.Consumed, r.approvalID, r.intent())
	}
}

func riskShown(s ledger.RiskShown) *ledger.RiskShown { return &s }

// refuse writes the refusal under the pins gathered so far, so that it is true at its place in the ledger.
func (r *round) refuse(f *action.Failure) Decision {
	if r.silent {
		return Decision{Refusal: f}
	}
	over := len(r.closing) > 0 && r.ask == nil // the request this call waited for is over
	passes := r.parked != "" && !over && r.passes(f)
	held := passes && r.halted
	if passes && r.call.Resume {
		return Decision{Refusal: f, Held: held}
	}
	ends := r.parked != "" && r.ask == nil && (r.call.Resume || over) && !passes
	t := r.txn(txn.Refuse, r.intent())
	switch {
	case r.ask != nil && r.parked == "":
		t.Phase = txn.Park
	case r.parked != "" && !ends:
		t.Phase = txn.Plain
	}
	r.close(t)
	if r.ask != nil {
		e := r.requested()
		r.refusal(t, &e, f.Code)
		return Decision{Txn: t, Refusal: f, Ask: r.ask}
	}
	e := r.refused(f, ends)
	if r.tally(&e) && r.mutable(f, ends) { // it is true by the pins alone
		return Decision{Txn: r.txn(txn.Plain, ""), Refusal: f, Held: held, Muted: true}
	}
	r.refusal(t, &e, f.Code)
	return Decision{Txn: t, Refusal: f, Held: held}
}

// passes reports a refusal that may pass by itself or by a person's word, and says nothing of the call: a parked one, approved
// or not, waits on for as long as its request stands. What a caller is told of the call itself he acts on; a call that
// nobody waits for sits that out too.
func (r *round) passes(f *action.Failure) bool {
	switch f.Code {
	case action.TaskPaused:
		return true
	case action.Unavailable, action.RateLimited:
		return r.call.Alone
	}
	return r.halted
}

func (r *round) refused(f *action.Failure, ends bool) ledger.Event {
	e := r.event(ledger.Refused)
	e.Code, e.Failure, e.Approval, e.Returned = f.Code, f, f.Approval(), ends
	if r.shown.Declared > 0 {
		e.Risk = riskShown(r.shown)
	}
	if f.Code == action.Denied && r.policy.Version != "" {
		e.Policy = &ledger.PolicyShown{Version: r.policy.Version, Reason: r.policy.Reason}
		if in := jsonOf(r.call.shown()); len(in) <= deniedInput {
			e.Risk, e.Input = riskShown(r.assess()), in
		}
	}
	return e
}

// deniedInput is how large the input of a call may be, in bytes, that is recorded though the policy denied the call: other
// rules are tried on what is recorded, and nobody fills the ledger with what does not run.
const deniedInput = 4096

// close writes the ends of earlier requests. A new request replaces their token in the same transaction.
func (r *round) close(t *txn.Txn) {
	for i := range r.closing {
		e := &r.closing[i]
		if r.ask == nil {
			e.ApprovalState = approval.Mark(endOf(e.Type), e.Approval, "")
		}
		write(t, e, nil)
	}
}

func endOf(t ledger.Type) approval.State {
	if t == ledger.ApprovalExpired {
		return approval.Expired
	}
	return approval.Revoked
}

func (r *round) requested() ledger.Event {
	e := r.event(ledger.ApprovalRequested)
	e.Approval, e.ApprovalState = r.ask.ID, approval.Mark(approval.Pending, r.ask.ID, "")
	e.Code = action.ApprovalRequired
	e.Risk, e.Reason = riskShown(r.shown), strings.Join(r.ask.Why, "; ")
	e.Expires = r.view.Task.AskTTL
	e.Input, e.Value = r.ask.Input, r.ask.Value
	if r.call.Veil != nil {
		e.Sealed = r.call.Veil.Sealed
	}
	e.State = jsonText(r.ask)
	if r.parked != "" {
		e.Attempt = 1
	}
	return e
}
