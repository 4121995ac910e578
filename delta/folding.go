package delta

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// fold moves an agent's pending outcomes into its beliefs, by compare-and-set, unless no more than so many are pending. One
// fold of an agent at a time is enough: who waited for another's finds nothing left to do.
func (k *keeper) fold(name string, unless int) error {
	k.e.mu.Lock()
	s := k.e.agents[name]
	k.e.mu.Unlock()
	if s == nil {
		return fmt.Errorf("agent %q is not registered", name)
	}
	if s.agent.card != nil {
		return nil // those who hold it fold: its estimator may be tuned otherwise than this engine's
	}
	ctx, cancel := k.patience()
	defer cancel()
	done, err := k.folds(s)
	if err != nil {
		return err
	}
	defer done()
	if done, err := k.foldWarm(ctx, s, unless); done || err != nil {
		return err
	}
	return k.foldCold(ctx, s, s.known(), unless)
}

// foldStored is fold for outcomes that somebody else left in the store, of which this engine may not know.
func (k *keeper) foldStored(ctx context.Context, s *agentState) error {
	done, err := k.folds(s)
	if err != nil {
		return err
	}
	defer done()
	return k.foldCold(ctx, s, nil, 0)
}

// folds takes the agent's turn to fold; done gives it back.
func (k *keeper) folds(s *agentState) (done func(), err error) {
	select {
	case s.folding <- struct{}{}:
	default:
		if err := k.turn(s); err != nil {
			return nil, err
		}
	}
	return func() { <-s.folding }, nil
}

// foldCold folds on a snapshot, which is read where there is none or where others wrote meanwhile.
func (k *keeper) foldCold(ctx context.Context, s *agentState, snap *txn.Snapshot, unless int) error {
	for range rounds {
		if snap == nil {
			var err error
			if snap, err = k.e.store.Load(ctx, s.agent.name, "", nil); err != nil {
				return err
			}
		}
		if len(snap.Pending) <= unless {
			return nil
		}
		s.mu.Lock()
		last := s.folded
		s.mu.Unlock()
		x, now, err := engine.FoldOn(last, &k.e.rules, s.agent.compiled, snap, k.e.clock())
		if err != nil || x == nil {
			return err
		}
		if done, err := k.foldIn(ctx, s, x, now); done || err != nil {
			return err
		}
		snap = nil
	}
	return errors.New("another worker folds at the same time")
}

// turn waits until nobody else folds.
func (k *keeper) turn(s *agentState) error {
	ctx, cancel := context.WithTimeout(k.ctx, k.e.cfg.StoreTimeout)
	defer cancel()
	select {
	case s.folding <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a fold under way: %w", context.Cause(ctx))
	}
}

// patience is how long the store is waited for; not at all where it never waits.
func (k *keeper) patience() (context.Context, context.CancelFunc) {
	if k.e.instant != nil {
		return k.ctx, func() {}
	}
	return context.WithTimeout(k.ctx, k.e.cfg.StoreTimeout)
}

// foldWarm folds on what this engine folded last, without a copy of all that is known of the agent. It is not done where
// that is not what the store holds any more.
func (k *keeper) foldWarm(ctx context.Context, s *agentState, unless int) (done bool, err error) {
	s.mu.Lock()
	last, pending := s.folded, s.pending
	sp, current := last.Current(&s.space)
	current = current && !s.lags()
	s.mu.Unlock()
	if !current || len(pending) <= unless {
		return current, nil
	}
	l, err := engine.Learn(last, &k.e.rules, s.agent.compiled, &sp, pending)
	if err != nil {
		return true, err
	}
	at := k.e.clock()
	s.mu.Lock()
	if s.gap || !l.Stands(&s.space) {
		s.mu.Unlock()
		return false, nil
	}
	x, now := l.Txn(&s.space, at)
	s.mu.Unlock()
	return k.foldIn(ctx, s, x, now)
}

// foldIn writes a fold; it is not done where another worker was quicker.
func (k *keeper) foldIn(ctx context.Context, s *agentState, x *txn.Txn, now *engine.Folded) (done bool, err error) {
	s.sends(x)
	reply, err := k.e.apply(ctx, x)
	if err != nil || !reply.OK {
		s.landed(x)
		return false, err
	}
	s.mu.Lock()
	s.folded = now
	s.mu.Unlock()
	s.advanceBy(x, reply, false) // what it folds had been told of
	return true, nil
}

// known is what the engine knows of an agent without asking the store; nil where that may lag.
func (a *agentState) known() *txn.Snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lags() {
		return nil
	}
	return &txn.Snapshot{State: txn.State{Agent: a.space}.Clone(), Now: a.now, Pending: a.pending}
}

// advance moves what the engine knows of an agent on by a transaction outside any task.
func (a *agentState) advance(x *txn.Txn, r txn.Reply) { a.advanceBy(x, r, true) }

func (a *agentState) advanceBy(x *txn.Txn, r txn.Reply, worse bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.edition++
	a.lands(x)
	if r.Replay {
		a.gap = true
		return
	}
	_, raised := x.Raises()
	a.outOfOrder(x, &r, raised, worse)
	a.caughtUp()
}

// foldTold learns what an operator told of a call. Where several were, the first that is served learns from all.
func (e *Engine) foldTold(ctx context.Context, s *agentState, member string) error {
	if err := e.keeper.foldStored(ctx, s); err != nil {
		return err
	}
	_, err := e.apply(ctx, &txn.Txn{Agent: s.agent.name, Phase: txn.Plain, Clauses: []txn.Clause{
		{Op: txn.Unqueue, Scope: txn.Agent, Key: engine.QueueFolds, Val: member}}})
	return err
}
