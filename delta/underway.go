package delta

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Underway is a call that a worker is making, or was when it was last heard of.
type Underway struct {
	Task   string // full id
	Intent string
	// Worker names the worker's hold on the call: it is another after a takeover.
	Worker string
	// Left is how long its lease lasts, by the store's clock. Below zero nobody has said for so long that the call is still
	// made; a worker that has the agent's functions takes it over.
	Left  time.Duration
	Begun ledger.Event
}

// Underway returns the calls under way of the agents that this engine knows, at most limit of each agent, those first of
// which the lease ends first. It reads what calls leave in the store anyway; what ends meanwhile is left out.
func (e *Engine) Underway(ctx context.Context, limit int) ([]Underway, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var out []Underway
	for _, s := range e.inOrder() {
		members, err := e.tasksIn(ctx, s.agent.name, txn.Leases, limit)
		if err != nil {
			return nil, fmt.Errorf("list calls under way: %w", err)
		}
		if len(members) == 0 {
			continue
		}
		snap, err := e.store.Load(ctx, s.agent.name, "", nil) // for the store's clock
		if err != nil {
			return nil, fmt.Errorf("list calls under way: %w", failedStore(err))
		}
		for _, m := range members {
			u, ok, err := e.underway(ctx, s, m, snap.Now)
			if err != nil {
				return nil, fmt.Errorf("list calls under way: %w", err)
			}
			if ok {
				out = append(out, u)
			}
		}
	}
	return out, nil
}

func (e *Engine) underway(ctx context.Context, s *agentState, m txn.Queued, now int64) (u Underway, ok bool, err error) {
	task, intent, _ := strings.Cut(m.Member, "\n")
	t := &Task{engine: e, agent: s.agent, state: s, local: task, space: txn.NewSpace()}
	own := newSight()
	if err := t.readRecord(ctx, intent, own); err != nil {
		return u, false, err
	}
	lease := own.leases[intent]
	if lease.Phase != txn.Begin {
		return u, false, nil // it ended meanwhile
	}
	u = Underway{Task: t.ID(), Intent: intent, Worker: lease.Owner, Left: time.Duration(lease.Until-now) * time.Microsecond}
	u.Begun, err = engine.Held(&own.record, intent)
	if err != nil && !errors.Is(err, ErrNoIntent) {
		e.cfg.Log.Warn("what the store holds of a call under way cannot be read", "task", u.Task, "intent", intent, "error", err)
	}
	return u, true, nil
}
