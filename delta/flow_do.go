package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/txn"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// flowID begins the ids of the calls that workflows make. Nobody else may use one.
const flowID = "delta.flow/"

// perform does what a command says. No event: it waits for something that makes the instance due when it happens.
func (r *flowRun) perform(ctx context.Context, c *workflow.Command) (*workflow.Event, error) {
	if c.Kind == workflow.Call {
		return r.call(ctx, c)
	}
	return r.does(ctx, *c)
}

// does is perform for what is no call. It is apart because calls need the stack.
//
//go:noinline
func (r *flowRun) does(ctx context.Context, c workflow.Command) (*workflow.Event, error) {
	switch c.Kind {
	case workflow.Compensate:
		return r.compensate(ctx, c)
	case workflow.Plan:
		return r.plan(ctx, c)
	case workflow.Verify, workflow.Evaluate:
		ev, err := r.judge(ctx, c)
		return &ev, err
	case workflow.Spawn:
		return r.spawn(ctx, c)
	case workflow.Unwind:
		return r.unwind(ctx, c)
	case workflow.Escalate:
		return nil, r.escalate(ctx, c)
	case workflow.Interrupt:
		return r.interrupt(ctx, c)
	case workflow.CancelChild:
		return r.cancelChild(ctx, c)
	case workflow.Advise:
		return r.advise(ctx, c)
	case workflow.Hold:
		return r.holdChild(ctx, c)
	case workflow.Withdraw:
		return r.answer(workflow.Performed, &c), nil // the question stands in the state, and no more
	}
	return nil, fmt.Errorf("the driver does not know how to %q", c.Kind)
}

func (r *flowRun) answer(k workflow.EventKind, c *workflow.Command) *workflow.Event {
	return &workflow.Event{Kind: k, Of: c.ID, At: r.e.clock()}
}

// call makes a governed call. Its id is the machine's: made again it is answered with what was recorded.
func (r *flowRun) call(ctx context.Context, c *workflow.Command) (*workflow.Event, error) {
	input, spilt, err := r.input(ctx, c)
	if spilt != nil || err != nil {
		return spilt, err
	}
	return r.governed(ctx, c, Call{
		ID: flowID + c.Call, Action: c.Action, Input: input, own: true, flow: true,
		Provenance: action.Provenance{Goal: r.def.Name(), Decision: c.ID, PlanStep: c.Step, Reason: action.Cut(c.Description)},
	})
}

// input is what a call is made with: the secrets for fields that are secret. An event says that others would be.
func (r *flowRun) input(ctx context.Context, c *workflow.Command) (json.RawMessage, *workflow.Event, error) {
	input, err := r.veil.openInput(ctx, c.Input, c.Action)
	if !errors.Is(err, errSpilt) {
		return input, nil, err
	}
	f := action.Fail(action.InputInvalid, "the input would hold a secret where action %q takes none: tag the field as a secret, or hand it something else", c.Action)
	ev := r.answer(workflow.Called, c)
	ev.Outcome = &action.Outcome{Action: c.Action, Code: f.Code, Failure: f}
	return nil, ev, nil
}

func (r *flowRun) governed(ctx context.Context, c *workflow.Command, call Call) (*workflow.Event, error) {
	for {
		rules := r.e.rulesNow() // before: what is denied by others than these is tried by these
		out, err := r.t.Do(ctx, call).Get()
		if err != nil {
			return nil, err
		}
		switch out.Code {
		case action.InFlight, action.Stale:
			if !r.e.pause(ctx, nil) {
				return nil, nil // somebody else makes it; whoever takes the instance up finds how it ended
			}
			continue
		case action.TaskPaused:
			return nil, errLater
		case action.StoreUnavailable:
			return nil, out.Err()
		case action.Cancelled, action.TaskClosed:
			if ev, err := r.refusedByTask(ctx, c.Kind, call.ID); ev != nil || err != nil {
				return ev, err
			}
		}
		ev := r.answer(workflow.Called, c)
		ev.Outcome = &out
		if def := r.t.agent.defs[call.Action]; def != nil {
			ev.Effect = def.effect
		}
		if out.Code == action.Denied {
			ev.Text = rules
		}
		return ev, nil
	}
}

// refusedByTask finds out why a call is cancelled: because that is how it ended, where there is neither event nor error; or
// because its task has ended, or its agent is halted, which a workflow sits out.
func (r *flowRun) refusedByTask(ctx context.Context, kind workflow.CommandKind, id string) (*workflow.Event, error) {
	reply, err := r.e.apply(ctx, engine.ReadCall(r.t.agent.name, r.t.local, id))
	if err != nil {
		return nil, failedStore(err)
	}
	if intent := engine.CallIntent(&reply.Fresh.Record, id); intent != "" && intent != "-" {
		own := newSight()
		if err := r.t.readRecord(ctx, intent, own); err != nil {
			return nil, failedStore(err)
		}
		if _, is := engine.Ended(&own.record, intent); is && own.leases[intent].Phase == txn.Settle {
			return nil, nil
		}
	}
	v, err := r.t.stands(ctx)
	switch {
	case err != nil:
		return nil, err
	case !v.Task.Status.Ended():
		return nil, errLater
	case kind == workflow.Compensate:
		return nil, nil // an instance that is unwinding cannot be cancelled: it is told that this cannot be undone
	}
	ev := r.gone()
	return &ev, nil
}

// gone is what an instance is told whose task ended without it: nothing can be undone any more.
func (r *flowRun) gone() workflow.Event {
	return workflow.Event{Kind: workflow.Cancelled, At: r.e.clock(), Keep: true, Text: "its task has ended"}
}

// rulesNow names the rules of the policy, "" where they have no version.
func (e *Engine) rulesNow() string { return policy.VersionOf(e.cfg.Policy) }

// compensate undoes a call that completed.
func (r *flowRun) compensate(ctx context.Context, c workflow.Command) (*workflow.Event, error) {
	call := Call{
		ID: flowID + c.Call, Action: c.Action, own: true, flow: true,
		Provenance: action.Provenance{Goal: r.def.Name(), Decision: "compensate", PlanStep: "undo " + c.Intent, Reason: c.Step},
	}
	if c.Action == "" {
		var out *action.Outcome
		var err error
		if call, out, err = r.declared(ctx, c, call); err != nil {
			return nil, err
		}
		if out != nil {
			ev := r.answer(workflow.Called, &c)
			ev.Outcome = out
			return ev, nil
		}
	}
	if call.Input == nil { // it is made of the definition, or a person's
		c.Action = call.Action
		input, spilt, err := r.input(ctx, &c)
		if spilt != nil || err != nil {
			return spilt, err
		}
		call.Input = input
	}
	return r.governed(ctx, &c, call)
}

// declared is the call that undoes another as its action declares; an outcome where there is none.
func (r *flowRun) declared(ctx context.Context, c workflow.Command, call Call) (Call, *action.Outcome, error) {
	order, err := r.t.deeds(ctx)
	if err != nil {
		return call, nil, err
	}
	i := slices.IndexFunc(order, func(d *deed) bool { return d.begun.Call == flowID+c.Undoes })
	if i < 0 {
		f := action.Fail(action.Failed, "no call %q is recorded that could be undone", c.Undoes)
		return call, &action.Outcome{Code: f.Code, Failure: f}, nil
	}
	d := order[i]
	def := r.t.agent.defs[d.begun.Action]
	if def == nil || def.undo == nil || def.version != d.begun.Version {
		f := action.Fail(action.NotLegal, "action %q does not declare here how that version of it is undone", d.begun.Action)
		return call, &action.Outcome{Action: d.begun.Action, Code: f.Code, Failure: f}, nil
	}
	call.Action, call.Provenance.PlanStep = def.undoneBy, "undo "+d.begun.Intent
	if len(c.Input) > 0 {
		return call, nil, nil // a person's
	}
	raw, f, err := r.t.undoInput(ctx, d)
	if err != nil {
		return call, nil, err
	}
	if f != nil {
		return call, &action.Outcome{Action: def.undoneBy, Code: f.Code, Failure: f}, nil
	}
	call.Input = raw
	return call, nil, nil
}

// judge holds a document against its contract and its verifier, or a view against a condition.
func (r *flowRun) judge(ctx context.Context, c workflow.Command) (workflow.Event, error) {
	if c.Kind == workflow.Evaluate {
		return r.guard(ctx, c)
	}
	ev := *r.answer(workflow.Verified, &c)
	doc, err := r.veil.openAll(ctx, c.Document)
	if err != nil {
		return ev, err
	}
	if c.Contract != nil {
		s, err := r.e.flows.contract(c.Contract)
		if err != nil {
			ev.Text = "the contract cannot be used: " + action.TextOf(err)
			return ev, nil
		}
		if _, f := s.Check(doc); f != nil {
			ev.Text = r.veil.said(f.Message, c.Contract)
			return ev, nil
		}
	}
	if c.Verifier == "" {
		ev.OK = true
		return ev, nil
	}
	v := r.e.flows.Verifiers[c.Verifier]
	if v == nil {
		ev.Text = fmt.Sprintf("verifier %q is not configured", c.Verifier)
		return ev, nil
	}
	said, err := contain(ctx, &r.e.planners, r.e.flows.PlanTime, r.e.cfg.Grace, func(ctx context.Context) (string, error) {
		return v(ctx, c.Subject, slices.Clone(doc))
	})
	switch {
	case ctx.Err() != nil:
		return ev, context.Cause(ctx)
	case err != nil:
		ev.Text = fmt.Sprintf("verifier %q could not judge: %s", c.Verifier, r.veil.said(action.TextOf(err), c.Contract))
	case said != "":
		ev.Text = action.Cut(r.veil.said(said, c.Contract))
	default:
		ev.OK = true
	}
	return ev, nil
}

func (r *flowRun) guard(ctx context.Context, c workflow.Command) (workflow.Event, error) {
	ev := *r.answer(workflow.Guarded, &c)
	doc, err := r.veil.openAll(ctx, c.Document)
	if err != nil {
		return ev, err
	}
	switch {
	case c.Guard == nil:
		ev.OK = true
	case c.Guard.Name == "":
		s, err := r.e.flows.contract(c.Guard.Schema)
		if err != nil {
			ev.Failure = action.Fail(action.Failed, "the condition cannot be used: %s", action.TextOf(err))
			break
		}
		_, f := s.Check(doc)
		ev.OK = f == nil
	default:
		g := r.e.flows.Guards[c.Guard.Name]
		if g == nil {
			ev.Failure = action.Fail(action.Unavailable, "the condition %q is not configured", c.Guard.Name)
			break
		}
		ok, err := contain(ctx, &r.e.inputs, asideLimit, 0, func(ctx context.Context) (bool, error) { return g(ctx, slices.Clone(doc)) })
		if ev.OK = ok && err == nil; err != nil {
			ev.Failure = because(action.Fail(action.Failed, "the condition %q could not be evaluated: %v", c.Guard.Name, err), err)
		}
	}
	ev.Failure = r.veil.failed(ev.Failure)
	return ev, nil
}

// notice hands in what happened elsewhere: timers that fired, approvals that were decided, outcomes that became known, a task
// that has ended.
func (r *flowRun) notice(ctx context.Context) error {
	now := r.e.clock()
	for {
		at, ok := r.nextTimer()
		if !ok || at > now {
			break
		}
		i := slices.IndexFunc(r.k.State.Outstanding, func(c workflow.Command) bool { return c.Kind == workflow.Timer && c.At == at })
		c := r.k.State.Outstanding[i]
		ev := workflow.Event{Kind: workflow.Fired, Of: c.ID, At: max(now, c.At)}
		if err := r.feed(ctx, ev); err != nil {
			return err
		}
		if slices.ContainsFunc(r.k.State.Outstanding, func(d workflow.Command) bool { return d.ID == c.ID }) {
			return fmt.Errorf("workflow %q keeps the timer %s though it fired", r.def.Name(), c.ID)
		}
	}
	for _, w := range r.k.State.Waits() {
		ev, err := r.ended(ctx, w)
		if err != nil {
			return err
		}
		if ev != nil {
			if err := r.feed(ctx, *ev); err != nil {
				return err
			}
		}
	}
	return nil
}

// ended is what ends a wait for something that others decide, nil where it goes on.
func (r *flowRun) ended(ctx context.Context, w workflow.Wait) (*workflow.Event, error) {
	if r.over && (w.For == workflow.WaitOperator || w.For == workflow.WaitPolicy) {
		return r.leftBehind(w), nil
	}
	switch w.For {
	case workflow.WaitApproval:
		if w.Approval == "" {
			return nil, nil
		}
		a, _, err := r.e.approval(ctx, w.Approval)
		if err != nil {
			return nil, err
		}
		ev := &workflow.Event{Kind: workflow.Approval, Of: w.ID, At: r.e.clock()}
		switch string(a.State) {
		case "pending":
			return nil, nil
		case "approved", "consumed":
			ev.OK = true
		case "expired":
			ev.Text = workflow.Expired
		default:
			ev.Text = workflow.Rejected
		}
		return ev, nil
	case workflow.WaitPolicy:
		if now := r.e.rulesNow(); now != "" && now != w.Policy {
			return &workflow.Event{Kind: workflow.PolicyChanged, Of: w.ID, At: r.e.clock(), Text: now}, nil
		}
	case workflow.WaitResolution:
		own := newSight()
		if err := r.t.readRecord(ctx, w.Intent, own); err != nil {
			return nil, failedStore(err)
		}
		out, ok := engine.Ended(&own.record, w.Intent)
		if !ok || own.leases[w.Intent].Phase != txn.Settle || out.Code == action.StartedUnknown {
			return nil, nil
		}
		return &workflow.Event{Kind: workflow.Resolved, Of: w.ID, At: r.e.clock(), OK: out.OK(), Output: out.Output, Cost: out.Cost, Failure: out.Failure}, nil
	}
	return nil, nil
}

// leftBehind ends a wait of an instance whose task has ended: nobody can help it any more, and what it has not undone stays.
func (r *flowRun) leftBehind(w workflow.Wait) *workflow.Event {
	ev := &workflow.Event{Kind: workflow.Resumed, Of: w.ID, At: r.e.clock(), Text: "its task has ended"}
	if w.For == workflow.WaitPolicy { // then the call is refused because of the task
		ev.Kind, ev.Text = workflow.PolicyChanged, "task ended, after "+w.Policy
	}
	return ev
}

// notFlows refuses a call id that would pass for a workflow's.
func notFlows(id string) *action.Failure {
	if strings.HasPrefix(id, flowID) {
		return action.Fail(action.InputMalformed, "call ids that begin with %q are reserved", flowID)
	}
	return nil
}
