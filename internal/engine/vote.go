package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// ReadVotes returns the consents given so far to the request for a call, where it needs several.
func ReadVotes(v *View, digest, request string) (approval.Votes, error) {
	votes, err := approval.DecodeVotes(v.Snap.Task.Tokens[tokenVotes+digest].Val)
	return votes.For(request), err
}

// vote adds a consent to a request that needs several. The last one approves it.
func vote(v *View, q approval.Request, token txn.Token, who Who) (*txn.Txn, error) {
	return v.moveVotes(q, token, who, func(votes approval.Votes) (approval.Votes, ledger.Type, error) {
		next, err := votes.Consent(approval.Vote{Identity: who.Identity, Roles: who.Roles, Reason: who.Reason, At: who.At})
		if next.Reached(q.Quorum) {
			return next, ledger.ApprovalApproved, err
		}
		return next, ledger.ApprovalVoted, err
	})
}

// WithdrawVote takes back one's consent while others are still awaited.
func WithdrawVote(v *View, digest string, who Who) (*txn.Txn, error) {
	state, q, err := ReadAsk(v, digest, v.Snap.Now)
	if err != nil {
		return nil, err
	}
	if state == approval.Approved {
		return nil, fmt.Errorf("approval %s: it has every consent it needs: revoke it as a whole", q.ID)
	}
	if state != approval.Pending {
		return nil, fmt.Errorf("approval %s: it is %s: there is nothing to withdraw", q.ID, state)
	}
	if err := v.May(Consenter, nil, nil, who); err != nil {
		return nil, fmt.Errorf("approval %s: %w", q.ID, err)
	}
	return v.moveVotes(q, v.Snap.Task.Tokens[tokenAsk+digest], who, func(votes approval.Votes) (approval.Votes, ledger.Type, error) {
		next, err := votes.Withdraw(who.Identity)
		return next, ledger.ApprovalWithdrawn, err
	})
}

// moveVotes writes the next votes, on condition that nobody else voted since and that the request still waits.
func (v *View) moveVotes(q approval.Request, token txn.Token, who Who, move func(approval.Votes) (approval.Votes, ledger.Type, error)) (*txn.Txn, error) {
	votes, err := ReadVotes(v, q.Digest, q.ID)
	if err != nil {
		return nil, fmt.Errorf("approval %s: %w", q.ID, err)
	}
	next, what, err := move(votes)
	if err != nil {
		return nil, fmt.Errorf("approval %s: %w", q.ID, err)
	}
	t := &txn.Txn{Agent: q.Agent, Task: q.Task, Phase: txn.Plain}
	v.PinTask(t)
	t.Add(liveMark(q.Digest, token.State), v.sameVotes(q.Digest))
	e := v.event(what, who.At)
	e.Intent, e.Action, e.Version, e.Digest, e.Approval = q.Intent, q.Action, q.Version, q.Digest, q.ID
	e.Identity, e.Reason, e.State = who.Identity, who.Reason, jsonText(next)
	if what == ledger.ApprovalApproved {
		v.remember(&e)
		e.ApprovalFrom, e.ApprovalState = token.State, approval.Mark(approval.Approved, q.ID, "")
	}
	write(t, &e, nil)
	return t, nil
}

// sameVotes pins the votes of a call as they are.
func (v *View) sameVotes(digest string) txn.Clause {
	c := txn.Clause{Op: txn.Have, Scope: txn.Task, Key: tokenVotes + digest}
	if t, has := v.Snap.Task.Tokens[tokenVotes+digest]; has {
		c.From, c.N = t.State, -1
	}
	return c
}

// votes writes the votes that an event of a request with a quorum carries. One consent that is enough carries none.
func (c *changes) votes(e *ledger.Event) {
	if e.State == nil {
		return
	}
	votes, err := approval.DecodeVotes(string(e.State))
	if err != nil { // events are made by this package from checked values
		return
	}
	c.add(txn.Clause{Op: txn.Set, Scope: txn.Task, Key: tokenVotes + e.Digest, To: strconv.FormatInt(votes.Seq, 10), Val: string(e.State)})
}

// Unreachable says why nobody can give the consents that a call of an action needs, "" where they can be given as far as
// names tell: too few of the approvers are left when the requester and the agent do not count, or there are none.
func Unreachable(s *TaskState, a *Action) string {
	if len(s.Approvers) == 0 {
		return "this task has nobody to ask; approvers are named in Goal.Approvers"
	}
	if a.Quorum == nil {
		if s.somebody(s.Approvers) {
			return ""
		}
		return fmt.Sprintf("of this task's approvers (%s) nobody could answer%s", strings.Join(s.Approvers, ", "), selves(s))
	}
	demands := append([]approval.Demand{{N: a.Quorum.Need(), Of: a.Quorum.Of}}, a.Quorum.Including...)
	for _, d := range demands {
		if n, open := approval.Could(s.Approvers, d.Of, s.kin()...); !open && n < d.N {
			return fmt.Sprintf("it needs %s, and of this task's approvers (%s) only %d could answer%s", a.Quorum, strings.Join(s.Approvers, ", "), n, selves(s))
		}
	}
	return ""
}

// unreachable is Unreachable in an engine, which may have no way to hear anybody.
func (r *Rules) unreachable(s *TaskState, a *Action) string {
	if r.Unheard && len(s.Approvers) > 0 {
		return "its approvers can never answer: the engine has no Authenticator, and its store is its own; set Config.Authenticator"
	}
	return Unreachable(s, a)
}

// selves says which of the approvers do not count, because nobody approves what is done for them or by them.
func selves(s *TaskState) string {
	for _, name := range s.Approvers {
		if name != approval.Anybody && slices.ContainsFunc(s.kin(), func(k string) bool { return k != "" && action.SameIdentity(name, k) }) {
			return fmt.Sprintf(": %q is the requester, the agent, one for which it works, or reads like one of them", name)
		}
	}
	return ""
}

// newRequest is what a person is shown of the call.
func (r *round) newRequest(why []string) *approval.Request {
	a := r.act
	q := &approval.Request{
		ID: r.call.ask(), Agent: r.agent.Name, Task: r.view.Task.ID, Intent: r.intent(), Action: a.Name, Version: a.Version,
		Digest: r.digest, Input: json.RawMessage(r.call.shown().Text()), Value: r.call.Intent.Value, Why: why, Risk: approverRisk(r.shown),
		Policy: r.policy.Version, Permit: action.Cut(r.policy.Reason), Forecast: r.reserved, Priced: r.call.Price, Requester: r.view.Task.Requester,
		Asked: r.call.Now, Expires: r.call.Now + r.view.Task.AskTTL,
		Quorum: a.Quorum, Effect: a.Effect, UndoneBy: a.UndoneBy, Parts: r.parts(),
	}
	if a.Input != nil {
		q.Schema = a.Input.Hash()
	}
	return q
}

// parts says what the estimated risk rests on. What cannot be explained is left out: the numbers themselves are shown.
func (r *round) parts() []approval.Part {
	why, err := r.rules.Model.Explain(r.view.Beliefs, r.act.Declaration())
	if err != nil {
		return nil
	}
	out := []approval.Part{{Name: "declared", Adds: why.Declared}}
	for _, p := range slices.Concat(why.Tags, []risk.Part{why.Agent, why.Slope, why.Action}) {
		if p.SD > 0 || p.Mean != 0 {
			out = append(out, approval.Part{Name: p.Name, Adds: p.Mean, SD: p.SD})
		}
	}
	if why.Uncertainty != 0 {
		out = append(out, approval.Part{Name: "uncertainty", Adds: why.Uncertainty})
	}
	if why.Held != 0 {
		out = append(out, approval.Part{Name: "held", Adds: why.Held})
	}
	return out
}
