package delta

import (
	"context"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Reading what an agent keeps of earlier tasks: so many at a time, and so often at most. Who has more than that is told of
// fewer, until what is too old or too much has been dropped.
const (
	lastingPage  = 1000
	lastingPages = 64
)

// recall tells a task that starts what earlier tasks established, where any action of its agent may rest on that, and
// returns what the agent need not keep any longer.
func (e *Engine) recall(ctx context.Context, a *agentState, s *engine.TaskState) (drop []string, err error) {
	if !a.agent.compiled.Graph.Across() {
		return nil, nil
	}
	var oldest, kept []txn.Queued
	for after, n := (txn.Queued{}), 0; n < lastingPages; n++ {
		page, err := e.store.Queued(ctx, a.agent.name, engine.QueueLasting, after, false, lastingPage)
		if err != nil {
			return nil, err
		}
		if kept = append(kept, page...); n == 0 {
			oldest = page
		}
		kept = kept[max(0, len(kept)-engine.MaxLasting):]
		if len(page) < lastingPage {
			break
		}
		after = page[len(page)-1]
	}
	if len(kept) == 0 {
		return nil, nil
	}
	snap, err := e.store.Load(ctx, a.agent.name, s.ID, nil)
	if err != nil {
		return nil, err
	}
	s.Earlier, drop = engine.Recall(oldest, kept, s.Tenant, snap.Now)
	return drop, nil
}

// forgetLasting drops facts that have become too old for later tasks, all that are due at once.
func (e *Engine) forgetLasting(ctx context.Context, s *agentState, member string) error {
	due, err := e.store.Queued(ctx, s.agent.name, engine.QueueLasting, txn.Queued{}, true, workPage)
	if err != nil || len(due) == 0 {
		return err
	}
	x := &txn.Txn{Agent: s.agent.name, Phase: txn.Plain}
	for _, q := range due {
		engine.Drop(x, []string{q.Member})
	}
	_, err = e.apply(ctx, x)
	return err
}
