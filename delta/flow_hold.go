package delta

import (
	"context"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// holdChild tells a nested instance whether this one is paused, as it stands now: what was commanded before or after may be
// performed at the same time.
func (r *flowRun) holdChild(ctx context.Context, c workflow.Command) (*workflow.Event, error) {
	for range flowTries {
		v, err := r.t.stands(ctx)
		if err != nil {
			return nil, err
		}
		known, ver, err := v.Child(c.Child)
		if err != nil {
			return nil, err
		}
		own, err := r.t.readFlow(ctx)
		if err != nil {
			return nil, err
		}
		if _, outstanding := about(&own.State, c.Child, workflow.Hold); !outstanding || ver > 0 && known.Status == engine.ChildEnded {
			break
		}
		k := engine.FlowKnown{}
		if ver > 0 {
			if k, err = r.e.readFlow(ctx, known.Agent, known.Task); err != nil {
				return nil, err
			}
		}
		if k.Ver == 0 { // it begins as its parent is then, and may have read that before
			return nil, errLater
		}
		kind := workflow.Resumed
		if own.State.Held {
			kind = workflow.Paused
		}
		err = r.e.tellFlow(ctx, known.Agent, known.Task, nil, func(*workflow.State) *workflow.Event {
			return &workflow.Event{Kind: kind, Tree: true, Text: "its parent"}
		})
		if err != nil {
			return nil, err
		}
		now, err := r.t.readFlow(ctx)
		if err != nil {
			return nil, err
		}
		if now.State.Held == own.State.Held {
			break
		}
	}
	return r.answer(workflow.Performed, &c), nil
}

// parentHeld reports whether the instance whose step this one is, is paused.
func (r *flowRun) parentHeld(ctx context.Context) (bool, error) {
	p, err := r.parent(ctx)
	if err != nil || p == nil {
		return false, err
	}
	k, err := r.e.readFlow(ctx, p.Agent, p.Task)
	return k.State.Held, err
}
