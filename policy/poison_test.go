package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/policy"
)

type poison struct{ how string }

func (p *poison) Error() string { return p.how } // a typed nil panics

// An error that cannot be read denies like any other, and no policy's words are kept beyond measure.
func TestI04_AnErrorThatCannotBeReadDenies(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	for name, f := range map[string]policy.Func{
		"typed nil":      func(policy.Request) (policy.Decision, error) { return policy.Decision{Permit: true}, (*poison)(nil) },
		"panics with it": func(policy.Request) (policy.Decision, error) { panic((*poison)(nil)) },
		"huge error":     func(policy.Request) (policy.Decision, error) { return policy.Decision{Permit: true}, &poison{huge} },
		"huge reason": func(policy.Request) (policy.Decision, error) {
			return policy.Decision{Forbid: true, Reason: huge, Version: huge}, nil
		},
	} {
		for _, p := range []policy.Policy{f, policy.Any(policy.NewGrants(map[string][]string{"a": {"b"}}), f)} {
			d := policy.Evaluate(p, policy.Request{Agent: "a", Action: "b", Declared: 1, Effective: 1})
			assert.False(t, d.Permit, name)
			assert.NotEmpty(t, d.Reason, name)
			assert.LessOrEqual(t, len(d.Reason), 2*action.MaxText, name)
			assert.LessOrEqual(t, len(d.Version), 2*action.MaxText, name)
		}
	}
}
