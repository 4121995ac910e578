package engine

import (
	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/policy"
)

// permits asks grants and policy. Deny is the default; a grant permits; a policy permits or forbids, and what it forbids
// no grant allows; a policy that fails denies, because it might have forbidden.
func permits(rules *Rules, agent *Agent, q policy.Request) policy.Decision {
	if rules.Policy == nil {
		return policy.Evaluate(agent.Grants, q)
	}
	q.Input = action.CopyTree(q.Input) // a policy is user code: what it does to its input must not reach the gates after it
	return policy.Evaluate(policy.Any(agent.Grants, rules.Policy), q)
}
