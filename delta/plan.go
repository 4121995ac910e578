package delta

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// plan asks the planner, reserving what that costs before and charging what it used after: planning is spending too.
func (r *run) plan(ctx context.Context, req Request) (Proposal, *action.Failure) {
	t := r.t
	estimate, err := r.estimate(ctx)
	if err != nil {
		return Proposal{}, because(action.Fail(action.Failed, "the planner does not say what it will need: %v", err), err)
	}
	begun, f := t.beginPlan(ctx, estimate, r.b.PlanTime)
	if f != nil {
		return Proposal{}, f
	}
	started := time.Now()
	prop, f := r.propose(ctx, req)
	used := prop.Used
	used.Duration, used.Calls = max(time.Since(started), 0), 1
	used, f = t.possible(used, estimate, f)
	begun.estimated = prop.Estimated
	if err := t.settlePlan(ctx, begun, used, f); err != nil && f == nil {
		f = failedStore(err)
	}
	return prop, f
}

// possible is what a planner says it used, where that can be; else the proposal fails and has used what was estimated.
func (t *Task) possible(used, estimate action.Cost, f *action.Failure) (action.Cost, *action.Failure) {
	if err := used.Check(); err != nil {
		return estimate, action.Fail(action.OutputInvalid, "the planner reported an impossible cost").Because(err)
	}
	if used.Money > 0 && used.Currency != t.currency() {
		return estimate, action.Fail(action.OutputInvalid, "the planner reported a cost in another currency").Because(action.ErrCurrency)
	}
	return used, f
}

// goesOn reports whether the planner is to be asked again before anything is made of its proposal.
func (r *run) goesOn(p *Proposal) bool {
	if p.More && !p.Done && len(p.Calls) == 0 && r.more < r.b.Steps {
		r.more++
		r.last = nil // it was told
		return true
	}
	r.more = 0
	return false
}

// estimate asks the planner what it expects to need, contained like any user code.
func (r *run) estimate(ctx context.Context) (action.Cost, error) {
	e, ok := r.p.(Estimator)
	if !ok {
		return action.Cost{}, nil
	}
	return contain(ctx, &r.t.engine.planners, min(r.b.PlanTime, asideLimit), 0, func(context.Context) (action.Cost, error) { return e.EstimatePlan(), nil })
}

// propose runs the planner, contained like any user code.
func (r *run) propose(ctx context.Context, req Request) (Proposal, *action.Failure) {
	e := r.t.engine
	prop, err := contain(ctx, &e.planners, r.b.PlanTime, e.cfg.Grace, func(ctx context.Context) (Proposal, error) { return r.p.Plan(ctx, req) })
	prop.Why = action.Cut(prop.Why)
	switch {
	case err == nil:
		return prop, nil
	case ctx.Err() != nil:
		return prop, because(action.Fail(action.Interrupted, "the run was stopped while the planner worked"), err)
	case errors.Is(err, errTooLong):
		return prop, because(action.Fail(action.Timeout, "the planner took too long"), err)
	}
	return prop, because(action.Fail(action.Failed, "the planner failed: %v", err), err)
}

func (t *Task) currency() string {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	return t.view.Task.Limit.Currency
}

// beginPlan passes planning through gates 1, 7 and 9.
func (t *Task) beginPlan(ctx context.Context, estimate action.Cost, limit time.Duration) (*plan, *action.Failure) {
	e := t.engine
	p := &plan{owner: e.newOwner()}
	c := &p.call
	*c = engine.Call{
		Intent: action.Intent{ID: e.cfg.ID(), Agent: t.agent.name, Task: t.local, Action: engine.PlanAction},
		At:     e.clock(), Owner: p.owner, Room: &p.room, TTL: (limit + e.cfg.Grace + e.cfg.StoreTimeout + e.cfg.Lease).Microseconds(),
	}
	if err := e.payDebts(ctx, t.ID()); err != nil {
		return nil, failedStore(fmt.Errorf("what an earlier proposal used is not recorded yet: %w", err))
	}
	if e.instant != nil {
		p.room.Lend()
		defer p.room.Return()
	}
	own := newSight()
	for range rounds {
		if err := t.refresh(ctx, false); err != nil {
			return nil, failedStore(err)
		}
		d, err := t.decidePlan(p, own, estimate)
		if err != nil {
			return nil, failedStore(err)
		}
		if d.Lease != nil {
			if err := t.lease(ctx, d.Lease, c); err != nil {
				return nil, failedStore(err)
			}
			continue
		}
		reply, err := e.apply(ctx, d.Txn)
		if err != nil {
			return nil, failedStore(err)
		}
		if !reply.OK {
			t.merge(d.Txn, reply, own)
			continue
		}
		t.advance(d.Txn, reply, own)
		if d.Muted {
			t.mute(ctx, d.Refusal.Code, "")
		}
		if d.Refusal != nil {
			return nil, d.Refusal
		}
		p.begun = d.Begun
		return p, nil
	}
	return nil, action.Fail(action.Stale, "the state changed %d times while planning was decided", rounds)
}

// decidePlan decides on what is known now. Beliefs are nothing to planning: outcomes wait.
func (t *Task) decidePlan(p *plan, own *sight, estimate action.Cost) (d engine.Decision, err error) {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	t.snapshotInto(&p.snap, own)
	if err := t.glanceInto(&p.view, &p.snap); err != nil {
		return d, err
	}
	p.call.Now = p.snap.Now
	return engine.DecidePlan(&t.engine.rules, t.agent.compiled, &p.view, &p.call, estimate), nil
}

// plan is a proposal under way, and the memory that its two transactions are made in.
type plan struct {
	begun     *ledger.Event
	owner     string
	estimated bool // what it used is an estimate

	call engine.Call
	room engine.Room
	snap txn.Snapshot
	view engine.View
}

// settlePlan writes down what a proposal used. Where the store does not take it, it stays owed.
func (t *Task) settlePlan(ctx context.Context, p *plan, used action.Cost, f *action.Failure) error {
	d := &debt{t: t, plan: p, used: used, f: f, at: t.engine.clock()}
	err := d.pay(ctx)
	if err != nil {
		t.engine.owe(d)
	}
	return err
}
