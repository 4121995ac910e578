package engine

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// Recheck evaluates again, for a call that has begun, the gates whose grounds may have moved since: task and deadline,
// policy, ceiling, threshold and approval. It stands between a begin and a start that rests on newer knowledge: a begin
// that other outcomes overtook, a repeat after a takeover.
func Recheck(rules *Rules, agent *Agent, v *View, begun *ledger.Event, call *Call) *action.Failure {
	r := &round{rules: rules, agent: agent, view: v, call: call, act: agent.Actions[begun.Action], digest: begun.Digest}
	if r.act == nil {
		return action.Fail(action.ActionUnknown, "there is no action %q", begun.Action)
	}
	if f := r.taskRuns(); f != nil {
		return f
	}
	if f := r.notHalted(); f != nil || rules.Observe {
		return f
	}
	if f := r.policyPermits(); f != nil {
		return f
	}
	if f := r.riskUnderCeiling(); f != nil {
		return f
	}
	return r.stillApproved(begun)
}

// mayGoOn is Recheck for a further attempt. What let the call through let it through with its declared retries: its own
// failures do not make it ask a person anew, but they count towards the ceiling.
func mayGoOn(rules *Rules, agent *Agent, v *View, begun *ledger.Event, call *Call) *action.Failure {
	f := Recheck(rules, agent, v, begun, call)
	if f != nil && f.Code == action.ApprovalRequired {
		return nil
	}
	return f
}

// stillApproved checks that nobody needs to be asked, or that the consent that was used covers what is known now.
func (r *round) stillApproved(begun *ledger.Event) *action.Failure {
	until := r.view.Covered(begun)
	if until > 0 && r.call.Now >= until {
		return action.Fail(action.ApprovalExpired, "the approval of this call has expired")
	}
	why := r.whyApproval()
	if len(why) == 0 || begun.Approval == "" && r.throughGlass() {
		return nil
	}
	f := action.Fail(action.ApprovalRequired, "the call needs an approval that it does not have")
	if begun.Approval == "" {
		return f.With(action.DetailRule, why[0])
	}
	q, err := approval.DecodeRequest(r.view.Snap.Task.Tokens[tokenAsk+begun.Digest].Val)
	if err != nil || r.shown.Effective > q.Risk.Effective {
		return f.With(action.DetailRule, fmt.Sprintf("effective risk is %.2f, approved at %.2f", r.shown.Effective, q.Risk.Effective))
	}
	return nil
}
