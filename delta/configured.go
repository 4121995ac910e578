package delta

import (
	"context"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/policy"
)

// noteConfig records in the ledger of an agent by what this engine decides, where that is not what it recorded last: before
// the first task, and before the first decision by new rules. What is the default all over is not recorded.
func (e *Engine) noteConfig(ctx context.Context, s *agentState) error {
	if s.agent.card != nil {
		return nil // others decide
	}
	version := policy.VersionOf(e.cfg.Policy)
	if last := s.config.Load(); last != nil && *last == version || last == nil && version == "" && e.plain && e.ownsStore {
		return nil
	}
	return e.recordConfig(ctx, s, version)
}

// recordConfig is noteConfig for what is not known to be recorded.
func (e *Engine) recordConfig(ctx context.Context, s *agentState, version string) error {
	c := e.configuration(version)
	for range rounds {
		snap, err := e.store.Load(ctx, s.agent.name, "", nil)
		if err != nil {
			return err
		}
		x, err := engine.Configure(snap, s.agent.name, c, e.who("", ""))
		if err != nil {
			return err
		}
		if x == nil {
			break
		}
		reply, err := e.apply(ctx, x)
		if err != nil {
			return err
		}
		if reply.OK {
			s.advance(x, reply)
			break
		}
	}
	s.config.Store(&version) // where others write theirs at the same time, one of them stands
	return nil
}

// configuration is by what this engine decides, with one version of the policy.
func (e *Engine) configuration(version string) engine.Configuration {
	c := engine.Configuration{Policy: action.Cut(version), Estimator: e.rules.Estimator, Observe: e.cfg.Observe, Operators: slices.Clone(e.cfg.Operators), Pools: e.rules.Pools}
	if c.Estimator != "" {
		r := e.cfg.Risk
		c.Risk = &r
	}
	return c
}

// plainConfig reports whether nothing of a configuration but the policy is worth a record.
func plainConfig(c engine.Configuration) bool {
	return c.Estimator == "" && !c.Observe && len(c.Operators) == 0 && len(c.Pools) == 0
}
