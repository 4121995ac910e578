package delta

import (
	"context"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// policed is the configured policy under a deadline: it is user code, and what does not answer in time cannot decide.
type policed struct {
	policy.Policy
	e   *Engine
	ctx context.Context
}

// Decide asks the policy, in a goroutine that may be left behind.
func (p policed) Decide(q policy.Request) (policy.Decision, error) {
	return contain(p.ctx, &p.e.policies, asideLimit, 0, func(context.Context) (policy.Decision, error) { return p.Policy.Decide(q) })
}

// judged lets f judge by what is known now. Grants alone are asked under the agent's lock. A policy of the user's may take
// its time, and may ask the engine in turn: it is asked without the lock, about a copy, and has one deadline for all of f.
// An error of ctx, or of the engine that stops, is returned whatever f found: the policy may have been cut short.
func (t *Task) judged(ctx context.Context, own *sight, f func(*engine.Rules, *engine.View) error) error {
	return t.judgedBy(ctx, own, t.look, f)
}

// offered is judged as a decision judges, which may leave out successes that wait to be folded, unless one of the agent's
// actions counts each of them.
func (t *Task) offered(ctx context.Context, f func(*engine.Rules, *engine.View) error) error {
	if t.agent.counts {
		return t.judgedBy(ctx, nil, t.look, f)
	}
	return t.judgedBy(ctx, nil, t.glance, f)
}

func (t *Task) judgedBy(ctx context.Context, own *sight, look func(*txn.Snapshot) (*engine.View, error), f func(*engine.Rules, *engine.View) error) error {
	e := t.engine
	t.state.mu.Lock()
	s := t.snapshot(own)
	v, err := look(s)
	if err != nil || e.cfg.Policy == nil {
		defer t.state.mu.Unlock()
		if err != nil {
			return err
		}
		return f(&e.rules, v)
	}
	known := *s
	known.Task, known.Agent, known.Pending = s.Task.Clone(), s.Agent.Clone(), slices.Clone(s.Pending)
	apart := v.Apart(&known)
	t.state.mu.Unlock()

	ctx, done := e.within(ctx)
	defer done()
	limited, cancel := context.WithTimeoutCause(ctx, asideLimit, errTooLong)
	defer cancel()
	rules := e.rules
	rules.Policy = policed{policy.Pinned(e.cfg.Policy), e, limited} // one set of rules for all that is asked here
	if err := f(&rules, apart); err != nil {
		return err
	}
	return context.Cause(ctx)
}
