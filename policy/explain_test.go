package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/policy"
)

func TestExplainNamesWhatEveryPolicySays(t *testing.T) {
	b := rules(t, `
		@id("d") permit (principal, action, resource) when { context.input.n < 5 };
		@id("a") @reason("always") permit (principal, action, resource);
		@id("c") forbid (principal, action, resource) when { context.tenant == "x" };
		@id("b") @reason("too risky") forbid (principal, action, resource) when { context.risk.declared > 3 };
		@id("e") permit (principal == Agent::"other", action, resource);`)
	got, err := b.Explain(asked(`{"n":6}`))
	require.NoError(t, err)
	missing := "record does not have the attribute `tenant`"
	assert.Equal(t, []policy.Finding{
		{Policy: "a", Effect: "permit", Says: "applies", Reason: "always"},
		{Policy: "b", Effect: "forbid", Says: "does not apply"},
		{Policy: "c", Effect: "forbid", Says: "fails", Reason: missing},
		{Policy: "d", Effect: "permit", Says: "does not apply"},
	}, got)
	open := asked(`{}`)
	open.AnyInput = true
	got, err = b.Explain(open)
	require.NoError(t, err)
	assert.Equal(t, policy.Finding{Policy: "d", Effect: "permit", Says: "depends on the input"}, got[3])
	assert.Equal(t, policy.Finding{Policy: "c", Effect: "forbid", Says: "fails", Reason: missing}, got[2])
}
