package delta

import (
	"context"
	"time"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// failuresKept bounds how many failures of nested workflows are looked at, the oldest first.
const failuresKept = 1000

// breakerOpen answers a command to start a nested workflow whose breaker is open; nil where it is not. All instances of the
// agent count, of this step and of others.
func (r *flowRun) breakerOpen(ctx context.Context, c *workflow.Command, now int64) (*workflow.Event, error) {
	b, has := r.def.Breaker(c.Step)
	if !has {
		return nil, nil
	}
	kept, err := r.e.store.Queued(ctx, r.t.agent.name, engine.QueueFailures, txn.Queued{Due: now}, false, failuresKept)
	if err != nil {
		return nil, failedStore(err)
	}
	until := b.Open(engine.FailuresOf(c.Workflow, kept), now)
	if until <= now {
		return nil, nil
	}
	ev := r.answer(workflow.ChildEnded, c)
	ev.Failure = workflow.BreakerIsOpen(c.Workflow, time.Duration(until-now)*time.Microsecond)
	return ev, nil
}

// forgetFailures drops failures that count no more, all that are due at once.
func (e *Engine) forgetFailures(ctx context.Context, s *agentState, _ string) error {
	due, err := e.store.Queued(ctx, s.agent.name, engine.QueueFailures, txn.Queued{}, true, workPage)
	if err != nil || len(due) == 0 {
		return err
	}
	_, err = e.apply(ctx, engine.ForgetFailures(s.agent.name, due))
	return err
}
