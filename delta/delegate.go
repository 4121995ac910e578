package delta

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// MayDelegate adds actions that the agent may let others call on its behalf and is never offered itself. What it is
// granted it may pass on in any case.
func (b AgentBuilder) MayDelegate(ds ...Definition) AgentBuilder {
	b.delegable = append(slices.Clip(b.delegable), ds...)
	return b
}

func (b AgentBuilder) collectDelegable(a *Agent) (faults []error) {
	a.delegable = map[string]*declaration{}
	for _, def := range b.delegable {
		if isNil(def) || def.definition() == nil {
			faults = append(faults, errNotBuilt)
			continue
		}
		d := def.definition()
		if known := a.delegable[d.name]; known != nil && known != d {
			faults = append(faults, fmt.Errorf("two actions to delegate are named %q: rename one", d.name))
		}
		a.delegable[d.name] = d
	}
	return faults
}

// delegate asks for a child and starts it. Where it is refused, nothing of what the goal brought along stays.
func (t *Task) delegate(ctx context.Context, g Goal) (child *Child, err error) {
	e := t.engine
	parent, err := t.peek(ctx)
	if err != nil {
		return nil, err
	}
	d, err := t.delegation(g, parent.Task.Born)
	if err != nil {
		return nil, err
	}
	who, err := e.arrive(g.Agent)
	if err != nil {
		return nil, err
	}
	defer func() { who.leave(err == nil) }()
	if err := e.inherit(ctx, who.state); err != nil {
		return nil, err
	}
	if err := t.sharesVault(ctx, &d.State); err != nil {
		return nil, err
	}
	if err := e.sealGoal(ctx, &d.State); err != nil {
		return nil, err
	}
	if _, err := e.sealFlow(ctx, &d.State, &g); err != nil {
		return nil, err
	}
	undo, err := e.keepAttachments(ctx, d.State, g.Attachments)
	if err != nil {
		return nil, err
	}
	ended := false // perhaps long ago: it was asked for before
	defer func() {
		if err != nil || ended {
			undo()
		}
	}()
	for range rounds {
		v, err := t.peek(ctx)
		if err != nil {
			return nil, err
		}
		wish := d
		if !g.Deadline.IsZero() {
			wish.State.Deadline = v.Snap.Now + max(1, g.Deadline.Sub(e.cfg.Now()).Microseconds())
		}
		wish.Now, wish.At = v.Snap.Now, e.clock()
		out, err := engine.Delegate(&e.rules, v, wish)
		if err != nil {
			return nil, err
		}
		if need := out.Lease; need != nil {
			lent, err := e.lend(ctx, need.Pool, need.ID, t.agent.name, need.Need)
			if err != nil {
				return nil, failedStore(err)
			}
			d.Leased = !lent
			continue
		}
		child := &Child{t, d.Name, d.State.Agent, d.State.ID}
		if out.Txn == nil {
			ended = out.Child.Status == engine.ChildEnded
			return child, failureOr(out.Refusal)
		}
		reply, err := e.apply(ctx, out.Txn)
		if err != nil {
			return nil, failedStore(err)
		}
		if !reply.OK {
			continue
		}
		t.advance(out.Txn, reply, nil)
		if out.Muted {
			t.mute(ctx, out.Refusal.Code, d.Name) // no call of a planner, whose rules it would have broken
		}
		if out.Refusal == nil { // also of a child that waits: another worker may start it, which may not have the agent
			e.later(errors.Join(e.leaveCard(ctx, who.state), e.noteConfig(ctx, who.state)), "declare the agent of a child", child)
		}
		if out.Refusal == nil && out.Child.Status == engine.ChildActive {
			e.later(e.startChild(ctx, t.agent.name, t.local, d.Name), "start a child", child)
		}
		return child, failureOr(out.Refusal)
	}
	return nil, action.Fail(action.Stale, "the task changed %d times while this was decided; try again", rounds)
}

// failureOr is a nil error where there is no failure: a nil pointer in an error is not nil.
func failureOr(f *action.Failure) error {
	if f == nil {
		return nil
	}
	return f
}

// later logs what could not be done at once. Its queue still has it.
func (e *Engine) later(err error, what string, who fmt.Stringer) {
	if err != nil {
		e.cfg.Log.Warn("not done yet; it is tried again", "what", what, "of", who.String(), "error", err)
		e.nudge()
	}
}

// delegation checks a goal as the wish for a child.
func (t *Task) delegation(g Goal, born string) (engine.Delegation, error) {
	e := t.engine
	open := g.Threshold == 0
	if g.ID == "" {
		g.ID = e.cfg.ID()
	}
	name := g.ID
	if err := action.CheckName(name); err != nil {
		return engine.Delegation{}, fmt.Errorf("name of the child: %w", err)
	}
	g.ID = childID(t.ID(), born, name, g.flow != nil)
	s, err := e.taskState(g)
	if err != nil {
		return engine.Delegation{}, err
	}
	if err := e.declarable(g.Agent); err != nil {
		return engine.Delegation{}, err
	}
	if open {
		s.Threshold = 0
	}
	b := t.agent.passesOn(g.Agent)
	b.Rejected, b.Unsure = g.took.Rejected, g.took.Unsure
	return engine.Delegation{Name: name, State: s, Bound: b}, nil
}

// childID names the task of a child: readable, and no other parent's, nor that of one which had the parent's id before. That of an instance stays so short that what is made
// of it is a name, and so its own children's.
func childID(parent, born, name string, flow bool) string {
	most := action.MaxName
	if flow {
		most = workflow.MaxInstance
	}
	h := sha256.Sum256([]byte(parent + "\n" + born + "\n" + name))
	return name[:min(len(name), most-13)] + "." + hex.EncodeToString(h[:6])
}

// passesOn says which actions of another agent this one lets it call: those it holds itself or may delegate, the very
// same action and not another of its name.
func (a *Agent) passesOn(other *Agent) engine.Bound {
	b := engine.Bound{Agent: a.name, Autonomy: a.compiled.Autonomy}
	for _, name := range other.Actions() {
		d := other.defs[name]
		granted, _ := a.compiled.Grants.Decide(policy.Request{Agent: a.name, Action: name})
		switch {
		case a.defs[name].same(d) && granted.Permit, a.delegable[name].same(d):
			b.Granted = append(b.Granted, name)
		case a.defs[name].same(d):
			b.Held = append(b.Held, name)
		}
	}
	slices.Sort(b.Granted)
	slices.Sort(b.Held)
	return b
}
