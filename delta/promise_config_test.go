package delta_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

// relabelled is a policy whose version a test moves.
type relabelled struct{ version atomic.Pointer[string] }

func (r *relabelled) set(v string) { r.version.Store(&v) }

func (r *relabelled) Version() string {
	if v := *r.version.Load(); v != "panics" {
		return v
	}
	panic("no version")
}

func (r *relabelled) Decide(policy.Request) (policy.Decision, error) {
	return policy.Decision{Permit: true, Reason: "it may", Version: *r.version.Load()}, nil
}

// configured returns the events of configuration in an agent's own ledger.
func (f *fleet) configured(agent string) (out []ledger.Event) {
	records, err := f.store.Records(context.Background(), agent, "", 1, 1000)
	require.NoError(f, err)
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		require.NoError(f, err)
		if e.Type == ledger.AgentConfigured {
			out = append(out, e)
		}
	}
	return out
}

// TestAPolicyReloadIsAnEvent: each version, once, before the first decision by it; what the engine decides by besides too.
func TestAPolicyReloadIsAnEvent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 0)
		rules := &relabelled{}
		rules.set("rules-1")
		e, err := delta.New(delta.Config{Store: f.store, Policy: rules, Risk: risk.Single()})
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close(context.Background())) }()
		task := f.start(e, f.agents[0], "t")
		require.Len(t, f.configured("crew"), 1)
		for _, version := range []string{"rules-1", "rules-2", "rules-2", "panics", "rules-1"} {
			rules.set(version)
			require.Equal(t, action.OK, f.code(task, "look"))
		}
		require.NoError(t, e.Sync(context.Background()))
		all := f.configured("crew")
		var versions []string
		for _, e := range all {
			if e.Policy == nil {
				e.Policy = &ledger.PolicyShown{}
			}
			versions = append(versions, e.Policy.Version)
			assert.Contains(t, string(e.State), `"estimator":"estimator-`)
			assert.Contains(t, string(e.State), `"risk":{`)
		}
		assert.Equal(t, []string{"rules-1", "rules-2", "", "rules-1"}, versions)
		assert.Contains(t, all[1].Text, "policy rules-2 (was rules-1)")
		last, err := f.store.Records(context.Background(), "crew", "", 1, 1000)
		require.NoError(t, err)
		folded := 0
		for _, r := range last {
			e, err := ledger.Decode(r.Val)
			require.NoError(t, err)
			if e.Type == ledger.BeliefsFolded {
				folded++
				assert.NotEmpty(t, e.Version, "a fold names a tuned estimator")
			}
		}
		assert.NotZero(t, folded)

		plain, err := delta.New(delta.Config{Store: f.store})
		require.NoError(t, err)
		defer func() { require.NoError(t, plain.Close(context.Background())) }()
		f.start(plain, f.agents[0], "t2")
		all = f.configured("crew")
		require.Len(t, all, 5)
		assert.Contains(t, all[4].Text, "policy grants alone (was rules-1); estimator default", "that there are no rules any more is an event too")
		f.start(plain, f.agents[0], "t3")
		require.Len(t, f.configured("crew"), 5)
	})
}

func TestDefaultsAreNotWorthARecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 0)
		e, err := delta.New(delta.Config{Store: f.store, Risk: risk.Config{}.WithDefaults()})
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close(context.Background())) }()
		require.Equal(t, action.OK, f.code(f.start(e, f.agents[0], "t"), "look"))
		assert.Empty(t, f.configured("crew"))
	})
}
