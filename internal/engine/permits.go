package engine

import "github.com/seed-ab2cfece/delta-agents/policy"

// permits asks grants and policy. Deny is the default; a grant permits; a policy permits or forbids, and what it forbids
// no grant allows; a policy that fails denies, because it might have forbidden.
func (r *round) permits(anyInput bool) policy.Decision {
	q := policy.Request{
		Agent: r.agent.Name, Action: r.act.Name, Version: r.act.Version, AnyInput: anyInput, Declared: r.act.Risk,
		Effective:  r.view.Risk(r.rules, r.act).Effective(r.act.Risk, r.call.Rule),
		Trust:      r.view.trust(r.rules),
		Provenance: r.call.Intent.Provenance,
	}
	if r.rules.Policy == nil { // grants do not look at the input
		return r.allowed(q, policy.Evaluate(r.agent.Grants, q))
	}
	if !anyInput { // a policy is user code: what it does to its input must not reach the gates after it
		q.Input = r.call.Intent.Input.Detached().Tree()
	}
	return r.allowed(q, policy.Evaluate(policy.Any(r.agent.Grants, r.rules.Policy), q))
}
