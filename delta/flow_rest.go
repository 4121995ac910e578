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
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// rest puts the instance down where nothing is to be done now; it is not done where something happened meanwhile.
func (r *flowRun) rest(ctx context.Context) (done bool, err error) {
	if r.k.State.Status.Terminal() && r.told != r.k.Ver {
		if err := r.conclude(ctx); err != nil {
			return true, errors.Join(err, r.letGo(ctx))
		}
	}
	rest := engine.Rest{Due: -1, Over: r.told == r.k.Ver && r.k.State.Status.Terminal()}
	if at, ok := r.nextTimer(); ok {
		rest.Due = max(at-r.e.clock(), 0)
	}
	if r.later > 0 && (rest.Due < 0 || rest.Due > r.later.Microseconds()) {
		rest.Due = r.later.Microseconds()
	}
	for _, w := range r.k.State.Waits() {
		rest.Forbidden = rest.Forbidden || w.For == workflow.WaitPolicy
	}
	reply, err := r.e.apply(ctx, engine.RestFlow(r.t.agent.name, r.t.local, r.holder, &r.k, rest))
	if err != nil {
		return true, failedStore(err)
	}
	if reply.OK {
		r.rulesMoved()
		return true, nil
	}
	switch reply.Failed {
	case engine.RestHeld:
		return true, errSuperseded
	case -1:
		return true, nil // its task is there no more
	}
	if err = r.look(ctx, true); errors.Is(err, errMoved) {
		err = errors.Join(err, r.letGo(ctx))
	}
	return err != nil, err
}

// conclude does what is left to do for an instance that has ended: its parent is told, and its task ends with a verdict.
func (r *flowRun) conclude(ctx context.Context) error {
	s := &r.k.State
	if s.Status == workflow.Completed {
		if err := r.established(ctx); err != nil {
			return err
		}
	}
	p, err := r.parent(ctx)
	if err != nil {
		return err
	}
	if p != nil {
		err := r.e.tellFlow(ctx, p.Agent, p.Task, r.veil.met(), func(parent *workflow.State) *workflow.Event {
			c, ok := about(parent, p.Child, workflow.Spawn, workflow.CancelChild, workflow.Unwind)
			if !ok {
				return nil
			}
			return childEvent(c, s, 0)
		})
		if err != nil {
			return err
		}
		if s.Status == workflow.Completed && len(s.Deeds) > 0 {
			r.told = r.k.Ver
			return nil // its parent may want it undone; its task ends with the parent's
		}
	}
	verdict, why := action.NotReached, "the workflow ended as "+string(s.Status)
	switch s.Status {
	case workflow.Completed:
		verdict, why = action.Reached, "the workflow completed"
	case workflow.Stopped:
		verdict = action.Abandoned
	}
	if s.Failure != nil {
		why += ": " + s.Failure.Message
	}
	err = r.t.conclude(ctx, action.Conclusion{Verdict: verdict, Reason: action.Cut(why), By: action.ByProgram}, "")
	f := action.FailureOf(err)
	if f != nil && f.Code == action.TaskPaused {
		return nil // a person looks first: it is concluded when the task goes on
	}
	if f != nil && (f.Code == action.TaskClosed || f.Code == action.Cancelled) {
		err = nil // it has ended
	}
	if err == nil {
		r.told = r.k.Ver
	}
	return err
}

// neverBegins is the end of an instance whose task has ended before anybody began it: whose step it is, is told, and that is all
// that ever happens to it.
func (e *Engine) neverBegins(ctx context.Context, t *Task, v *engine.View) error {
	if p := v.Task.Parent; p != nil && v.Task.Flow != nil && v.Task.Flow.Parent != "" {
		err := e.tellFlow(ctx, p.Agent, p.Task, nil, func(parent *workflow.State) *workflow.Event {
			c, ok := about(parent, p.Child, workflow.Spawn, workflow.CancelChild)
			if !ok {
				return nil
			}
			f := action.Fail(action.Cancelled, "the task of the nested workflow has ended before it began")
			return &workflow.Event{Kind: workflow.ChildEnded, Of: c.ID, Failure: v.Task.Because(f)}
		})
		if err != nil {
			return err
		}
	}
	_, err := e.apply(ctx, engine.DropFlow(t.agent.name, t.local))
	if err != nil {
		return failedStore(err)
	}
	return nil
}

// rulesMoved has those who wait for other rules asked again where the rules changed while this one was being put down.
func (r *flowRun) rulesMoved() {
	now := r.e.rulesNow()
	for _, w := range r.k.State.Waits() {
		if w.For == workflow.WaitPolicy && now != "" && now != w.Policy {
			r.e.flows.rules.Delete(r.t.agent.name)
			r.e.nudge()
		}
	}
}

func (r *flowRun) stands(id string) bool {
	return slices.ContainsFunc(r.k.State.Outstanding, func(c workflow.Command) bool { return c.ID == id })
}

func (r *flowRun) nextTimer() (at int64, ok bool) { return timerOf(&r.k.State) }

// timerOf is when the first timer of an instance fires.
func timerOf(s *workflow.State) (at int64, ok bool) {
	for _, c := range s.Outstanding {
		if c.Kind == workflow.Timer && (!ok || c.At < at) {
			at, ok = c.At, true
		}
	}
	return at, ok
}

// definitionIn returns the definition that an instance runs by: as it is configured, or else as its ledger has it, by which
// events can be taken, but nothing performed.
func (e *Engine) definitionIn(ctx context.Context, agent, task string, of *engine.FlowOf) (*workflow.Definition, error) {
	if d := e.flows.definition(of); d != nil {
		return d, nil
	}
	for from := int64(1); ; from += recordPage {
		page, err := e.store.Records(ctx, agent, task, from, recordPage)
		if err != nil {
			return nil, failedStore(err)
		}
		for _, rec := range page {
			ev, err := ledger.Decode(rec.Val)
			if err != nil {
				return nil, fmt.Errorf("record %d: %w", rec.Seq, err)
			}
			if (ev.Type == ledger.WorkflowStart || ev.Type == ledger.WorkflowMigrated) && ev.Flow != nil {
				var spec workflow.Spec
				if err := json.Unmarshal(ev.Flow.Spec, &spec); err != nil {
					return nil, fmt.Errorf("record %d: %w", rec.Seq, err)
				}
				if d, err := workflow.Compile(spec); err != nil || of.Digest == "" || d.Digest() == of.Digest {
					return d, err
				}
			}
		}
		if len(page) < recordPage {
			return nil, ErrNoWorkflow
		}
	}
}

// fitsStep holds the output that an operator vouches for against the step whose call it ends: its schema, and what its undo is
// made of. Whoever resolves it can still say better then.
func (t *Task) fitsStep(ctx context.Context, begun *ledger.Event, output action.Document) error {
	if !strings.HasPrefix(begun.Call, flowID) {
		return nil
	}
	v, err := t.stands(ctx)
	if err != nil || v.Task.Flow == nil {
		return err
	}
	k, err := t.readFlow(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(k.State.Steps, func(s workflow.StepState) bool {
		return s.Wait != nil && s.Wait.For == workflow.WaitResolution && s.Wait.Intent == begun.Intent
	})
	if i < 0 {
		return nil // it undoes one, or the instance has not heard of it yet
	}
	def, err := t.engine.definitionIn(ctx, t.agent.name, t.local, v.Task.Flow)
	if err != nil {
		return err
	}
	step, text := k.State.Steps[i].Name, json.RawMessage(output.Text())
	contract, err := def.Resolves(&k.State, step, text)
	if err != nil {
		return because(action.Fail(action.OutputInvalid, "the output does not do: %s; say what the call returned, as it did", action.TextOf(err)), err)
	}
	if len(contract) == 0 {
		return nil
	}
	s, err := t.engine.flows.contract(contract)
	if err != nil {
		return fmt.Errorf("step %q: its output schema: %w", step, err)
	}
	if _, f := s.CheckOutput(text); f != nil {
		return fmt.Errorf("step %q: %w", step, f)
	}
	return nil
}

// askRules makes the instances due that wait for other rules, once the policy has another version than when it was asked last.
func (w *shift) askRules(ctx context.Context, s *agentState) {
	e := w.e
	now := e.rulesNow()
	if was, asked := e.flows.rules.Load(s.agent.name); len(e.flows.Definitions) == 0 || asked && was == now {
		return
	}
	e.flows.rules.Store(s.agent.name, now) // before: who is put down meanwhile and finds other rules takes it back
	for after := (txn.Queued{}); ; {
		due, err := e.store.Queued(ctx, s.agent.name, engine.QueueForbidden, after, false, workPage)
		if err != nil {
			e.flows.rules.Delete(s.agent.name)
			e.cfg.Log.Warn("work queue cannot be read", "queue", engine.QueueForbidden, "agent", s.agent.name, "error", err)
			return
		}
		for _, q := range due {
			if !w.take(ctx, s, engine.QueueFlows, q.Member, e.driveDue) {
				e.flows.rules.Delete(s.agent.name)
				return
			}
			after = q
		}
		if len(due) < workPage {
			return
		}
	}
}
