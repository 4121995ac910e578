package delta

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// TopUp raises the limits of the task by an amount on each axis, all of which must be limited. The change is recorded. It is
// for the task's approvers and the engine's operators, never for whoever requested the task or works on it. A child task
// has its budget from its parent: top up that one.
func (t *Task) TopUp(ctx context.Context, by Identity, more action.Cost, reason string) error {
	return t.operate(ctx, "top up", by, func(v *engine.View) (*txn.Txn, error) {
		return engine.TopUp(v, more, t.engine.whoIs(by, reason))
	})
}

// operate makes an operator's change to a task.
func (t *Task) operate(ctx context.Context, what string, by Identity, change func(*engine.View) (*txn.Txn, error)) error {
	if err := t.opened(); err != nil {
		return err
	}
	e := t.engine
	if err := e.mine(by); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.inside.Done()
	err := t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		if err := engine.MayOperate(v, e.cfg.Operators, e.whoIs(by, "")); err != nil {
			return nil, err
		}
		return change(v)
	})
	if err != nil {
		return fmt.Errorf("%s of %s: %w", what, t, err)
	}
	return nil
}

// ResetBelief forgets what was learned about one action of a registered agent: it is again as risky as it was declared.
// With action "" it is the trust that the agent earned. It is recorded in the agent's own ledger, and for the engine's
// operators alone, since it concerns every task of the agent. Of an agent that was adopted it is refused where Config.Risk is not that
// of the engine which works for it.
func (e *Engine) ResetBelief(ctx context.Context, agent, action string, by Identity, reason string) error {
	if err := e.mine(by); err != nil {
		return fmt.Errorf("reset belief: %w", err)
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.inside.Done()
	e.mu.Lock()
	s := e.agents[agent]
	e.mu.Unlock()
	if s == nil {
		return fmt.Errorf("reset belief: %w", notKnown(agent))
	}
	who := e.whoIs(by, reason)
	if err := engine.MayReset(agent, e.cfg.Operators, who); err != nil {
		return fmt.Errorf("reset belief: %w", err)
	}
	for range 4 * rounds { // outcomes are folded all the time
		snap, err := e.store.Load(ctx, agent, "", nil)
		if err != nil {
			return failedStore(err)
		}
		if s.agent.card != nil {
			if err := e.sameEstimator(snap); err != nil {
				return fmt.Errorf("reset belief: %w", err)
			}
		}
		x, err := engine.ResetBelief(&e.rules, s.agent.compiled, snap, action, who)
		if err != nil {
			return fmt.Errorf("reset belief: %w", err)
		}
		reply, err := e.apply(ctx, x)
		if err != nil {
			return failedStore(err)
		}
		if reply.OK {
			s.advance(x, reply)
			return nil
		}
	}
	return errors.New("reset belief: other workers fold at the same time; try again")
}

// sameEstimator reports that those who work for an agent learn by another estimator than this engine would.
func (e *Engine) sameEstimator(snap *txn.Snapshot) error {
	c, err := engine.ReadConfiguration(snap)
	if err == nil && c.Estimator != e.rules.Estimator {
		err = fmt.Errorf("the agent is learned about by estimator %q, this engine has %q: set Config.Risk to what agent_configured records", c.Estimator, e.rules.Estimator)
	}
	return err
}
