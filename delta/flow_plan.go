package delta

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// plan asks a proposer. What that costs is reserved before and charged after, like all planning.
func (r *flowRun) plan(ctx context.Context, c workflow.Command) (*workflow.Event, error) {
	ev := r.answer(workflow.Planned, &c)
	p := r.e.flows.Proposers[c.Planner]
	if p == nil {
		ev.Failure = action.Fail(action.Unavailable, "planner %q is not configured", c.Planner)
		return ev, nil
	}
	request, err := r.request(ctx, c)
	if err != nil {
		return nil, err
	}
	var estimate action.Cost
	if est, ok := p.(Estimator); ok {
		got, err := contain(ctx, &r.e.planners, asideLimit, 0, func(context.Context) (action.Cost, error) { return est.EstimatePlan(), nil })
		if err != nil {
			ev.Failure = because(action.Fail(action.Failed, "the planner does not say what it will need: %v", err), err)
			return ev, nil
		}
		estimate = got
	}
	begun, f := r.t.beginPlan(ctx, estimate, r.e.flows.PlanTime)
	switch {
	case f == nil:
	case f.Code == action.TaskPaused:
		return nil, errLater
	case f.Code == action.StoreUnavailable || f.Code == action.Stale:
		return nil, f
	case f.Code == action.Cancelled || f.Code == action.TaskClosed:
		return r.refusedByTask(ctx, c.Kind, "")
	default:
		ev.Failure = f
		return ev, nil
	}
	started := time.Now()
	draft, err := contain(ctx, &r.e.planners, r.e.flows.PlanTime, r.e.cfg.Grace, func(ctx context.Context) (Draft, error) { return p.Propose(ctx, request) })
	used := draft.Used
	used.Duration, used.Calls = max(time.Since(started), 0), 1
	doc := draft.Document
	if err == nil {
		var canonical action.Document
		if canonical, f = schema.Canonical(doc, 0); f == nil {
			doc = json.RawMessage(canonical.Text())
		} else {
			f = action.Fail(action.OutputInvalid, "the proposal is not acceptable JSON: %s", f.Message)
		}
	} else {
		f = because(action.Fail(action.Failed, "the planner failed: %v", err), err)
	}
	used, f = r.t.possible(used, estimate, f)
	begun.estimated = draft.Estimated
	_ = r.t.settlePlan(context.WithoutCancel(ctx), begun, used, f) // what cannot be written stays owed
	if ctx.Err() != nil {
		return nil, nil
	}
	ev.Cost = used
	if ev.Failure = f; f == nil {
		ev.Output = doc
	}
	return ev, nil
}

// request is what a proposer is told: digests in place of secrets.
func (r *flowRun) request(ctx context.Context, c workflow.Command) (q StepRequest, err error) {
	s, err := r.t.configuration(ctx)
	if err != nil {
		return q, err
	}
	q = StepRequest{
		Goal: r.t.told(ctx, &s).Goal, Step: c.Step, Description: c.Description, Iteration: c.Iteration, Contract: c.Contract, Critique: c.Critique,
		Storylines: c.Storylines, Hints: c.Hints, Limit: c.Limit,
	}
	if q.Input, err = r.veil.openPersonal(ctx, c.Input); err == nil {
		q.Intakes, err = r.veil.given(ctx, c.Intakes)
	}
	return q, err
}
