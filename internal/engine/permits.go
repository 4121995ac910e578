package engine

import (
	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/policy"
)

// permits asks grants and policy. Deny is the default; a grant permits; a policy permits or forbids, and what it forbids
// no grant allows; a policy that fails denies, because it might have forbidden. Levels of autonomy permit nothing: they say
// that a person must be asked, and the strictest of the agent's, its ancestors' and the policy's counts.
//
// What a policy may look at besides the risk is of the moment: the budget, trust and time of the snapshot.
func (r *round) permits(anyInput bool) policy.Decision {
	if r.rules.Policy == nil && len(r.view.Task.Bounds) == 0 && r.call.Rule == 0 {
		return r.granted(anyInput)
	}
	q := r.question(anyInput)
	if r.rules.Policy == nil { // grants do not look at the input
		return r.allowed(q, r.autonomous(policy.Evaluate(r.agent.Grants, q)))
	}
	q.Left = r.view.left()
	for _, rule := range r.act.Rules {
		q.Raises = append(q.Raises, rule.Level)
	}
	if !anyInput { // a policy is user code: what it does to its input must not reach the gates after it
		q.Input = r.call.Intent.Input.Detached().Tree()
	}
	return r.allowed(q, r.autonomous(policy.Evaluate(policy.Any(r.agent.Grants, r.rules.Policy), q)))
}

// question is what is asked of a policy, but for the input and the budget.
func (r *round) question(anyInput bool) policy.Request {
	return policy.Request{
		Agent: r.agent.Name, Action: r.act.Name, Version: r.act.Version, AnyInput: anyInput, Declared: r.act.Risk,
		Effective:  r.risk().Effective(r.act.Risk, r.call.Rule),
		Trust:      r.view.trust(r.rules),
		Provenance: r.call.Intent.Provenance,
		Effect:     r.act.Effect, Tool: r.act.Tool, Tenant: r.view.Task.Tenant, Now: r.call.Now,
	}
}

// granted is permits where grants alone are asked about a call that no rule raises: they look at nothing but who wants to do
// what, and whether anything is known of the risk and the trust.
func (r *round) granted(anyInput bool) policy.Decision {
	s := r.said()
	if s != nil && s.permits == r.view.gen && s.by == r.agent {
		return s.permit
	}
	d := r.autonomous(policy.Evaluate(r.agent.Grants, r.question(anyInput)))
	if s != nil {
		s.permits, s.permit, s.by = r.view.gen, d, r.agent
	}
	return d
}

// autonomous adds what the agent's own level of autonomy asks for.
func (r *round) autonomous(d policy.Decision) policy.Decision {
	d.Ask = both(r.agent.Autonomy.Asks(r.agent.Name, r.act.Effect), d.Ask)
	return d
}

// both joins two reasons to ask; the same is said once.
func both(a, b string) string {
	if a == "" || b == "" || a == b {
		return max(a, b)
	}
	return a + "; " + b
}

// left is what is left of the task's budget, never below nothing.
func (v *View) left() action.Limit {
	l := v.Task.Limit
	acc := v.Account()
	rest := func(b action.Bound, a action.Axis) action.Bound {
		n, ok := b.Get()
		if !ok {
			return b
		}
		return action.Max(max(0, n-acc.Granted.Amount(a)))
	}
	return action.Limit{
		Tokens: rest(l.Tokens, action.Tokens), Duration: rest(l.Duration, action.Duration), Calls: rest(l.Calls, action.Calls),
		Bytes: rest(l.Bytes, action.Bytes), Money: rest(l.Money, action.Money), Currency: l.Currency,
	}
}
