package delta

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/txn"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Nested instances are child tasks: their authority, budget and deadline lie within their parent's, and they end with it. What
// parent and child tell each other is an event handed in on the other side, in a transaction of its own: again where nobody
// knows whether it was, because what answers nothing is absorbed. A child that completed keeps its task, though it does
// nothing any more, as long as its parent may want it undone.

// spawn starts a nested instance. What becomes of it the child tells when it ends; of one whose task ended without it, its
// parent finds out here, and is woken for it.
func (r *flowRun) spawn(ctx context.Context, c workflow.Command) (*workflow.Event, error) {
	v, err := r.t.peek(ctx)
	if err != nil {
		return nil, err
	}
	known, ver, err := v.Child(c.Child)
	if err != nil {
		return nil, err
	}
	if ver > 0 {
		return r.childStands(ctx, c, known)
	}
	ev, err := r.breakerOpen(ctx, &c, v.Snap.Now)
	if ev != nil || err != nil {
		return ev, err
	}
	failed := func(f *action.Failure) (*workflow.Event, error) {
		ev := r.answer(workflow.ChildEnded, &c)
		ev.Failure = f
		return ev, nil
	}
	def := r.e.flows.latest(c.Workflow)
	if def == nil {
		return failed(action.Fail(action.Unavailable, "workflow %q is not configured", c.Workflow))
	}
	input, err := r.childInput(ctx, def, c)
	if f := action.FailureOf(err); f != nil && f.Code == action.KeyUnavailable {
		return nil, err
	}
	if err != nil {
		return failed(because(action.Fail(action.InputInvalid, "the input of workflow %q: %s", c.Workflow, action.TextOf(err)), err))
	}
	agent := r.e.flows.Agents[c.Workflow]
	if agent == nil {
		agent = r.t.agent
	}
	if faults := unheld(def, agent); len(faults) > 0 {
		return failed(action.Fail(action.ActionUnknown, "workflow %q: %s", c.Workflow, action.TextOf(errors.Join(faults...))))
	}
	g := Goal{ID: c.Child, Agent: agent, Text: r.t.told(ctx, &v.Task).Goal, Limit: share(v, c.Limit), Storylines: c.Storylines}
	g.ApprovalTTL = time.Duration(v.Task.AskTTL) * time.Microsecond // a step's question waits as long, wherever the step is
	g.flow = &engine.FlowOf{Workflow: def.Name(), Version: def.Version(), Digest: def.Digest(), Input: input, Parent: r.t.local, Sealed: r.veil.met()}
	if c.Attempt > 1 {
		if err := r.e.knownBelow(ctx, v, &g.took); err != nil {
			return nil, err
		}
	}
	_, err = r.t.delegate(ctx, g)
	f := action.FailureOf(err)
	switch {
	case err == nil:
		r.e.nudge()
		return nil, nil
	case f == nil:
		return nil, err
	case f.Code == action.TaskPaused:
		return nil, errLater
	case f.Code == action.StoreUnavailable || f.Code == action.Stale:
		return nil, err
	case f.Code == action.Cancelled || f.Code == action.TaskClosed:
		return r.refusedByTask(ctx, c.Kind, "")
	}
	return failed(f)
}

// childInput is what a nested instance begins with: the digests that stand in it go along.
func (r *flowRun) childInput(ctx context.Context, def *workflow.Definition, c workflow.Command) (json.RawMessage, error) {
	open, err := r.veil.openAll(ctx, c.Input)
	if err != nil {
		return nil, err
	}
	input, err := r.e.flows.input(def, open)
	switch {
	case err != nil:
		return nil, errors.New(r.veil.said(action.TextOf(err), def.Spec().Input))
	case string(open) == string(c.Input):
		return input, nil
	}
	doc, no := schema.Canonical(c.Input, 0)
	return json.RawMessage(doc.Text()), failureOr(no)
}

// knownBelow adds the calls that a person rejected, or of unknown outcome, in the instances that were nested before: one that
// takes the place of another neither asks the same person again nor repeats what may have happened.
func (e *Engine) knownBelow(ctx context.Context, v *engine.View, b *engine.Bound) error {
	all, err := v.Children()
	if err != nil {
		return err
	}
	for i := range all {
		below, err := e.lookAtTask(ctx, all[i].Agent, all[i].Task)
		if err != nil {
			return failedStore(err)
		}
		if err := below.Known(b); err != nil {
			return err
		}
		if err := e.knownBelow(ctx, below, b); err != nil {
			return err
		}
	}
	return nil
}

// share is what a nested instance may spend: what the step allows, and where the task is limited and the step says nothing,
// what is left of the task's.
func share(v *engine.View, limit action.Limit) action.Limit {
	left := v.Account().Snapshot().Left
	for a := range action.AxisCount {
		have, limited := left.On(a).Get()
		if want, said := limit.On(a).Get(); limited && (!said || want > have) {
			limit = limit.With(a, have)
		}
	}
	if limit.Currency == "" {
		limit.Currency = v.Task.Limit.Currency
	}
	return limit
}

// childStands is how a nested instance ended, nil where it has not.
func (r *flowRun) childStands(ctx context.Context, c workflow.Command, known engine.Child) (*workflow.Event, error) {
	k, err := r.e.readFlow(ctx, known.Agent, known.Task)
	if err != nil {
		return nil, err
	}
	if k.Ver > 0 {
		r.veil.meet(k.Sealed)
		if ev := childEvent(c, &k.State, r.e.clock()); ev != nil {
			return ev, nil
		}
	}
	if known.Status != engine.ChildEnded {
		return nil, nil
	}
	kind := workflow.ChildEnded
	if c.Kind == workflow.Unwind {
		kind = workflow.ChildUnwound
	}
	ev := r.answer(kind, &c)
	ev.Cost = known.Spent
	if k.Ver > 0 { // it was broken off: nothing of it is undone any more
		ev.Left = k.State.Standing()
	}
	ev.Failure = action.Fail(action.Cancelled, "the task of the nested workflow has ended before it: %s", known.Reason)
	return ev, nil
}

// childEvent answers a command about a nested instance from the instance's state, nil where there is no answer yet.
func childEvent(c workflow.Command, s *workflow.State, at int64) *workflow.Event {
	if !s.Status.Terminal() {
		return nil
	}
	ev := &workflow.Event{Of: c.ID, At: at, OK: s.Status == workflow.Completed, Output: s.Output, Cost: s.Cost, Failure: s.Failure, Tree: s.Tree}
	switch c.Kind {
	case workflow.Spawn, workflow.CancelChild:
		ev.Kind = workflow.ChildEnded
		if !ev.OK && ev.Failure == nil {
			ev.Failure = action.Fail(action.Cancelled, "the nested workflow was cancelled")
		}
		if !ev.OK {
			ev.Left = s.Standing()
		}
	case workflow.Unwind:
		if ev.OK && len(s.Deeds) > 0 {
			return nil // it does not know yet
		}
		ev.Kind, ev.OK, ev.Output, ev.Failure, ev.Left = workflow.ChildUnwound, true, nil, nil, s.Standing()
	default:
		return nil
	}
	return ev
}

// unwind has a nested instance that completed undo itself.
func (r *flowRun) unwind(ctx context.Context, c workflow.Command) (*workflow.Event, error) {
	v, err := r.t.stands(ctx)
	if err != nil {
		return nil, err
	}
	known, ver, err := v.Child(c.Child)
	if err != nil {
		return nil, err
	}
	if ver == 0 {
		ev := r.answer(workflow.ChildUnwound, &c)
		ev.OK = true // it never was
		return ev, nil
	}
	if err := errors.Join(r.e.flowUndone(ctx, r.t.agent.name, r.t.local, c.Child), r.e.flowUndone(ctx, known.Agent, known.Task, "")); err != nil {
		return nil, err
	}
	if known.Status != engine.ChildEnded {
		err := r.e.tellFlow(ctx, known.Agent, known.Task, r.veil.met(), func(*workflow.State) *workflow.Event {
			return &workflow.Event{Kind: workflow.Unwound, Text: c.Description}
		})
		if err != nil {
			return nil, err
		}
	}
	return r.childStands(ctx, c, known)
}

// parent is the task of whose instance this one is a step.
func (r *flowRun) parent(ctx context.Context) (*engine.Parent, error) {
	v := r.view // which task it works for never changes
	if v == nil {
		var err error
		if v, err = r.t.stands(ctx); err != nil {
			return nil, err
		}
	}
	if v.Task.Flow == nil || v.Task.Flow.Parent == "" {
		return nil, nil
	}
	return v.Task.Parent, nil
}

// about finds the parent's command about this child.
func about(s *workflow.State, child string, kinds ...workflow.CommandKind) (workflow.Command, bool) {
	for _, c := range s.Outstanding {
		if c.Child == child && slices.Contains(kinds, c.Kind) {
			return c, true
		}
	}
	return workflow.Command{}, false
}

// escalate asks the parent. Its answer comes as an event.
func (r *flowRun) escalate(ctx context.Context, c workflow.Command) error {
	p, err := r.parent(ctx)
	if err != nil || p == nil {
		return err
	}
	return r.e.tellFlow(ctx, p.Agent, p.Task, r.veil.met(), func(s *workflow.State) *workflow.Event {
		of, ok := about(s, p.Child, workflow.Spawn)
		if !ok {
			return nil
		}
		return &workflow.Event{Kind: workflow.ChildAsked, Of: of.ID, Ask: c.ID, Text: c.Prompt}
	})
}

// cancelChild cancels a nested instance: it undoes what it completed, and says how it ended.
func (r *flowRun) cancelChild(ctx context.Context, c workflow.Command) (*workflow.Event, error) {
	v, err := r.t.stands(ctx)
	if err != nil {
		return nil, err
	}
	known, ver, err := v.Child(c.Child)
	if err != nil {
		return nil, err
	}
	if _, busy := r.under.Load(c.Ask); ver == 0 && busy { // it is being started
		if !r.e.pause(ctx, nil) {
			return nil, nil
		}
		return r.cancelChild(ctx, c)
	}
	k := engine.FlowKnown{}
	if ver > 0 {
		if k, err = r.e.readFlow(ctx, known.Agent, known.Task); err != nil {
			return nil, err
		}
	}
	if k.Ver == 0 { // it never began
		if ver > 0 && known.Status != engine.ChildEnded {
			// Whoever holds it may be about to begin it; nobody else does while it is held here.
			reply, err := r.e.apply(ctx, engine.HoldFlow(known.Agent, known.Task, r.e.newOwner(), r.ttl()))
			if err != nil {
				return nil, failedStore(err)
			}
			held, err := engine.FlowRead(&reply, nil)
			if err != nil {
				return nil, err
			}
			if !reply.OK || held.Ver > 0 {
				return nil, errLater
			}
			if err := r.e.endChild(ctx, r.t.agent.name, r.t.local, c.Child, "its parent cancelled it"); err != nil {
				return nil, err
			}
		}
		ev := r.answer(workflow.ChildEnded, &c)
		ev.Failure = action.Fail(action.Cancelled, "it was cancelled before it began")
		return ev, nil
	}
	if known.Status != engine.ChildEnded {
		err := r.e.tellFlow(ctx, known.Agent, known.Task, r.veil.met(), func(*workflow.State) *workflow.Event {
			return &workflow.Event{Kind: workflow.Cancelled, Text: "its parent cancelled it", Keep: c.Keep}
		})
		if err != nil {
			return nil, err
		}
	}
	return r.childStands(ctx, c, known)
}

// advise gives a nested instance the answer to what it asked.
func (r *flowRun) advise(ctx context.Context, c workflow.Command) (*workflow.Event, error) {
	v, err := r.t.stands(ctx)
	if err != nil {
		return nil, err
	}
	known, ver, err := v.Child(c.Child)
	if err != nil {
		return nil, err
	}
	if ver > 0 && known.Status != engine.ChildEnded {
		err := r.e.tellFlow(ctx, known.Agent, known.Task, r.veil.met(), func(*workflow.State) *workflow.Event {
			return &workflow.Event{Kind: workflow.Advised, Of: c.Ask, OK: c.OK, Output: c.Input}
		})
		if err != nil {
			return nil, err
		}
	}
	return r.answer(workflow.Performed, &c), nil
}

// interrupt has a call end, or never begin, and says how it ended.
func (r *flowRun) interrupt(ctx context.Context, c workflow.Command) (*workflow.Event, error) {
	id := flowID + c.Call
	ended := func(o action.Outcome) *workflow.Event {
		ev := r.answer(workflow.Called, &c)
		ev.Outcome = &o
		if def := r.t.agent.defs[c.Action]; def != nil {
			ev.Effect = def.effect
		}
		return ev
	}
	f := action.Fail(action.Cancelled, "the workflow took the call back before it began")
	never := ended(action.Outcome{Action: c.Action, Code: f.Code, Failure: f})
	for told := ""; ; {
		reply, err := r.e.apply(ctx, engine.ReadCall(r.t.agent.name, r.t.local, id))
		if err != nil {
			return nil, failedStore(err)
		}
		intent := engine.CallIntent(&reply.Fresh.Record, id)
		switch intent {
		case "":
			err := r.t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
				return engine.BarCall(v, id, r.e.who("", "the workflow takes it back")), nil
			})
			if f := action.FailureOf(err); f != nil && f.Code == action.Stale {
				continue // it has begun meanwhile
			}
			return never, err
		case "-":
			return never, nil
		}
		own := newSight()
		if err := r.t.readRecord(ctx, intent, own); err != nil {
			return nil, failedStore(err)
		}
		out, is := engine.Ended(&own.record, intent)
		lease := own.leases[intent]
		switch {
		case is && lease.Phase == txn.Settle:
			return ended(out), nil
		case told != intent:
			if err := r.t.CancelCall(ctx, intent, "the workflow interrupts it"); err != nil {
				return nil, err
			}
			told = intent
		case lease.Phase == txn.Park:
			parked, err := engine.Held(&own.record, intent)
			if err != nil {
				return nil, err
			}
			err = r.t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
				return engine.EndAsk(v, parked.Digest, &parked, r.e.who("", "the workflow takes it back")), nil
			})
			if err != nil {
				return nil, err
			}
		default:
			if !r.e.pause(ctx, nil) {
				return nil, nil
			}
		}
	}
}
