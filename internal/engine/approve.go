package engine

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// readAsk decodes the token of a digest.
func readAsk(t txn.Token) (approval.State, approval.Request, error) {
	state, _, _, err := approval.ParseMark(t.State)
	if err != nil {
		return state, approval.Request{}, err
	}
	q, err := approval.DecodeRequest(t.Val)
	return state, q, err
}

// askToken returns the token of the call's approval.
func (r *round) askToken() (txn.Token, bool) {
	r.key = append(append(r.key[:0], tokenAsk...), r.digest...)
	t, has := r.view.Snap.Task.Tokens[string(r.key)]
	return t, has
}

// gate 8

func (r *round) approved() *action.Failure {
	why := r.whyApproval()
	t, has := r.askToken()
	if len(why) == 0 {
		r.unneeded(t, has)
		return nil
	}
	if r.throughGlass() {
		return r.despite(t, has)
	}
	if !has {
		return r.request(why)
	}
	state, ask, err := readAsk(t)
	if err != nil {
		return action.Fail(action.StoreUnavailable, "the approval of this call cannot be read").Because(err)
	}
	r.approvalID = ask.ID
	live := t.Live(r.call.Now)
	switch {
	case state == approval.Rejected:
		r.pin(haveMark(r.digest, t.State))
		return r.rejected(ask)
	case (state == approval.Pending || state == approval.Approved) && !live:
		return r.expired(t, ask)
	case state == approval.Pending:
		r.pin(liveMark(r.digest, t.State))
		r.silent = r.call.Resume || r.parked == ask.Intent
		return action.Fail(action.ApprovalRequired, "a person has been asked to approve this call").
			With(action.DetailApproval, ask.ID).With(action.DetailRule, strings.Join(ask.Why, "; "))
	case state == approval.Approved:
		return r.consume(t, ask, why)
	case r.parked != "" && r.parked == ask.Intent:
		return r.overtaken(state, ask)
	}
	return r.request(why) // consumed, revoked or expired: another request
}

// despite lets a call through an override: no new approval is asked for, but what a person rejected stays rejected.
func (r *round) despite(t txn.Token, has bool) *action.Failure {
	if has {
		switch state, ask, err := readAsk(t); {
		case err != nil: // it may say that a person rejected the call
			r.glass = nil
			return action.Fail(action.StoreUnavailable, "the approval of this call cannot be read").Because(err)
		case state == approval.Rejected:
			r.glass = nil
			r.pin(haveMark(r.digest, t.State))
			return r.rejected(ask)
		}
	}
	if f := r.rejectedAlike(); f != nil {
		r.glass = nil
		return f
	}
	r.unneeded(t, has)
	r.expires = 0
	return nil
}

// overtaken answers a parked call whose own request is over: it was taken up or ended between two looks, and its record
// says how. Nobody is asked about it again.
func (r *round) overtaken(state approval.State, ask approval.Request) *action.Failure {
	if state == approval.Revoked {
		return action.Fail(action.ApprovalRejected, "a person took the approval of this call back").With(action.DetailApproval, ask.ID)
	}
	r.silent = true
	return action.Fail(action.InFlight, "the approved call is running already, or has ended").With(action.DetailIntent, ask.Intent)
}

// unneeded closes the request under which this very call waits, where nobody needs to be asked any more: else a person
// would be asked about a call that has run, and a consent would be left over for another.
func (r *round) unneeded(t txn.Token, has bool) {
	if !has {
		return
	}
	state, ask, err := readAsk(t)
	if err != nil || ask.Intent != r.intent() || state.Terminal() {
		return
	}
	if !t.Live(r.call.Now) {
		r.pin(haveMark(r.digest, t.State), txn.Clause{Op: txn.Time, Min: t.Exp, Max: txn.NoMax})
		r.end(ledger.ApprovalExpired, ask, "")
		return
	}
	r.pin(liveMark(r.digest, t.State))
	r.end(ledger.ApprovalRevoked, ask, "the call does not need an approval any more")
}

// liveMark pins a request, or a consent, that has not expired; haveMark one that may have.
func liveMark(digest, mark string) txn.Clause {
	return txn.Clause{Op: txn.Have, Scope: txn.Task, Key: tokenAsk + digest, From: mark}
}

func haveMark(digest, mark string) txn.Clause {
	return txn.Clause{Op: txn.Have, Scope: txn.Task, Key: tokenAsk + digest, From: mark, N: -1}
}

// whyApproval says why a person must be asked; nothing means that nobody needs to be.
func (r *round) whyApproval() []string {
	why := approvalReasons(r.rules, r.view, r.act, r.shown)
	if r.policy.Ask != "" {
		why = append(why, r.policy.Ask)
	}
	return why
}

func approvalReasons(rules *Rules, v *View, a *Action, shown ledger.RiskShown) (why []string) {
	if t := v.Task.Threshold; shown.Effective >= t {
		s := fmt.Sprintf("effective risk %.2f reaches the threshold %.2f", shown.Effective, t)
		if shown.Rule != "" {
			s += " (" + shown.Rule + ")"
		}
		why = append(why, s)
	}
	if a.Approve && !waived(rules, v, a) {
		why = append(why, "the action asks for an approval")
	}
	return why
}

// waived reports whether earned trust answers the action's own demand for an approval. It never waives the threshold.
func waived(rules *Rules, v *View, a *Action) bool {
	if !a.Approve || a.UntilTrust <= 0 {
		return false
	}
	e := v.Risk(rules, a)
	return approval.Waives(v.trust(rules), a.UntilTrust, e.N-e.Errs)
}

func (r *round) rejected(ask approval.Request) *action.Failure {
	f := action.Fail(action.ApprovalRejected, "a person rejected this call; do not ask again").With(action.DetailApproval, ask.ID)
	if ask.Decision != nil {
		f = f.With(action.DetailReason, ask.Decision.Reason)
	}
	return f
}

// expired writes the end of a request that waited, or an approval that was not used, too long. It is neither a rejection
// nor consent.
func (r *round) expired(t txn.Token, ask approval.Request) *action.Failure {
	r.pin(haveMark(r.digest, t.State), txn.Clause{Op: txn.Time, Min: t.Exp, Max: txn.NoMax})
	r.end(ledger.ApprovalExpired, ask, "")
	r.adopt(ask.Intent)
	return action.Fail(action.ApprovalExpired, "the approval was not given, or not used, in time; propose the call again to ask again").
		With(action.DetailApproval, ask.ID)
}

// end records that a request is over.
func (r *round) end(t ledger.Type, q approval.Request, reason string) {
	e := r.view.event(t, r.call.At)
	e.Intent, e.Action, e.Digest, e.Approval, e.Reason = q.Intent, q.Action, q.Digest, q.ID, reason
	e.ApprovalFrom = r.view.Snap.Task.Tokens[tokenAsk+q.Digest].State
	r.closing = append(r.closing, e)
}

// adopt makes the call continue the intent that was parked when the approval was asked for, unless that has ended.
func (r *round) adopt(intent string) {
	l, known := r.view.Snap.Leases[intent]
	if known && l.Phase == txn.Settle || r.view.Snap.Record.Cells[cellOutcome+intent].Ver > 0 {
		r.parked = ""
		return
	}
	r.parked = intent
}

func approverRisk(s ledger.RiskShown) approval.Risk {
	return approval.Risk{Declared: s.Declared, Score: s.Score, Floor: s.Floor, Effective: s.Effective, P: s.P, Lo: s.Lo, Hi: s.Hi, N: s.N, Rule: s.Rule}
}

// consume checks that the approval still covers the call: the same digest by construction, not expired, and a risk that
// has not risen above what the approver saw.
func (r *round) consume(t txn.Token, ask approval.Request, why []string) *action.Failure {
	if shown := ask.Risk; r.shown.Effective > shown.Effective {
		return r.askAnew(t, ask, why, fmt.Sprintf("effective risk rose from %.2f to %.2f", shown.Effective, r.shown.Effective))
	}
	if ask.Priced != r.call.Price {
		return r.askAnew(t, ask, why, fmt.Sprintf("the call costs %s now, not %s", priced(r.call.Price), priced(ask.Priced)))
	}
	if !ask.Quorum.Equal(r.act.Quorum) {
		return r.askAnew(t, ask, why, fmt.Sprintf("the action asks for %s now", r.act.Quorum))
	}
	r.pin(liveMark(r.digest, t.State))
	r.adopt(ask.Intent)
	r.approvalID, r.expires = ask.ID, t.Exp
	return nil
}

func priced(l action.Limit) string { return cmp.Or(l.Amounts(), "what is forecast") }

// askAnew ends a consent that does not cover the call as it is now, and opens another request for it.
func (r *round) askAnew(t txn.Token, ask approval.Request, why []string, reason string) *action.Failure {
	r.pin(liveMark(r.digest, t.State))
	r.end(ledger.ApprovalRevoked, ask, reason)
	if _, known := r.view.Snap.Leases[ask.Intent]; !known { // no lease will say that it has ended: nothing begins here
		r.lookup = ask.Intent
	}
	r.adopt(ask.Intent)
	if r.parked != "" { // what was read of its lease may be old: a request is for an intent that can run
		r.pin(txn.Clause{Op: txn.Expect, Scope: txn.Record, Key: cellOutcome + r.parked})
	}
	return r.open(why)
}

// request opens a request in place of none or of one that is over.
func (r *round) request(why []string) *action.Failure {
	t, has := r.askToken()
	r.pinToken(tokenAsk+r.digest, t, has)
	r.approvalID = ""
	if f := r.rejectedAlike(); f != nil {
		return f
	}
	return r.open(why)
}

// rejectedAlike refuses what a person rejected under another spelling: the function could not tell the two apart.
func (r *round) rejectedAlike() *action.Failure {
	if f := r.rejectedAbove(); f != nil {
		return f
	}
	if f := r.rejectedBelow(); f != nil {
		return f
	}
	key := noKey(r.act.Name, r.act.Version, r.call.Intent.Value)
	if key == "" {
		return nil
	}
	t, has := r.view.Snap.Task.Tokens[key]
	r.pinToken(key, t, has)
	if !has {
		return nil
	}
	_, ask, err := readAsk(t)
	if err != nil {
		return action.Fail(action.StoreUnavailable, "the approval of this call cannot be read").Because(err)
	}
	return r.rejected(ask)
}

func (r *round) open(why []string) *action.Failure {
	if no := r.rules.unreachable(&r.view.Task, r.act); no != "" {
		r.closing = nil
		f := action.Fail(action.NoApprover, "action %q needs an approval and this task has nobody to ask", r.act.Name)
		return f.With(action.DetailRule, strings.Join(why, "; ")+"; "+no)
	}
	r.ask = r.newRequest(why)
	f := action.Fail(action.ApprovalRequired, "a person has been asked to approve this call").With(action.DetailApproval, r.ask.ID)
	return f.With(action.DetailRule, strings.Join(why, "; "))
}
