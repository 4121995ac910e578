package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-ab2cfece/delta-agents/policy"
)

// turning has other rules each time it is asked.
type turning struct {
	n  int
	of []policy.Policy
}

func (t *turning) Current() policy.Policy {
	t.n++
	return t.of[(t.n-1)%len(t.of)]
}

func (t *turning) Decide(r policy.Request) (policy.Decision, error) { return t.Current().Decide(r) }

func TestPinnedAnswersByOneSetOfRules(t *testing.T) {
	p := &turning{of: []policy.Policy{yes, no}}
	pinned := policy.Pinned(p)
	assert.Zero(t, p.n, "not before it is asked")
	for range 3 {
		assert.True(t, policy.Evaluate(pinned, charge).Permit)
	}
	assert.False(t, policy.Evaluate(policy.Pinned(p), charge).Permit)
	assert.True(t, policy.Evaluate(policy.Pinned(yes), charge).Permit)
	none := policy.Pinned(&turning{of: []policy.Policy{nil}})
	assert.Equal(t, "policy failed: the policy has no current rules", policy.Evaluate(none, charge).Reason)
	panicking := policy.Pinned(&turning{})
	for range 2 {
		assert.False(t, policy.Evaluate(panicking, charge).Permit)
	}
}
