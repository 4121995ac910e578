package delta

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// InstanceTree is an instance with those nested in it that it waits for now, as they stood when they were read one after the
// other.
type InstanceTree struct {
	Step string // of the instance in which it is nested; "" of the first
	ID   string // of its task, for [Engine.OpenWorkflow]
	// State is how far it has come. Of one that has not begun it is the zero value.
	State workflow.State
	// Halted reports that its task is paused, or has ended, so that nothing goes on whatever State says.
	Halted bool
	Nested []InstanceTree // in the order in which they were started

	of        string   // the command of the instance above
	approvers []string // of its task, where something waits for them
}

// NestedWait is what an instance of a tree waits for.
type NestedWait struct {
	ID string // of the instance's task
	workflow.Wait
}

// Tree returns the instance and, level by level, those nested in it that it waits for: that have not ended, or were asked to
// undo what they did. Their agents need not be known here.
func (i *Instance) Tree(ctx context.Context) (InstanceTree, error) {
	out, err := i.t.engine.instanceTree(ctx, i.t.agent.name, i.t.local)
	if err != nil {
		return out, fmt.Errorf("state of %s: %w", i, err)
	}
	return out, nil
}

func (e *Engine) instanceTree(ctx context.Context, agent, task string) (InstanceTree, error) {
	out := InstanceTree{ID: agent + "~" + task}
	k, err := e.readFlow(ctx, agent, task)
	if err != nil {
		return out, err
	}
	out.State = k.State
	asks := slices.ContainsFunc(k.State.Waits(), func(w workflow.Wait) bool { return w.For == workflow.WaitApproval })
	if k.Ver > 0 && !slices.ContainsFunc(k.State.Outstanding, ofChild) && k.State.Parked() && !asks {
		return out, nil
	}
	v, err := e.lookAtTask(ctx, agent, task)
	if err != nil {
		return out, failedStore(err)
	}
	out.approvers = v.Task.Approvers
	out.Halted = v.Exists() && v.Task.Status != engine.Running
	if out.Halted { // it may have gone on, and ended with its task, since it was read
		if k, err = e.readFlowOn(ctx, agent, task, &k); err != nil {
			return out, err
		}
		out.State = k.State
	}
	for _, c := range k.State.Outstanding {
		if !ofChild(c) {
			continue
		}
		known, ver, err := v.Child(c.Child)
		if err != nil {
			return out, err
		}
		if ver == 0 {
			continue // it is about to be started
		}
		n, err := e.instanceTree(ctx, known.Agent, known.Task) // a tree: nobody is the child of its child
		if err != nil {
			return out, err
		}
		n.Step, n.of = c.Step, c.ID
		out.Nested = append(out.Nested, n)
	}
	return out, nil
}

// Rests reports whether the instance has ended, or neither it nor any nested in it goes on, deadlines apart, unless a person
// or a change of the rules makes it.
func (t *InstanceTree) Rests() bool {
	s := &t.State
	if len(s.Steps) == 0 {
		return t.Halted
	}
	return s.Status.Terminal() || t.Halted || t.parked()
}

// parked is Rests of an instance that has not ended: whose parent is yet to take an end goes on.
func (t *InstanceTree) parked() bool {
	own := t.State
	own.Outstanding = slices.DeleteFunc(slices.Clone(own.Outstanding), func(c workflow.Command) bool {
		return ofChild(c) && slices.ContainsFunc(t.Nested, func(n InstanceTree) bool {
			return n.of == c.ID && !n.State.Status.Terminal() && n.Rests()
		})
	})
	return own.Parked()
}

// Waits returns what the instance and those nested in it wait for that a person or a change of the rules ends: its own first,
// see [workflow.State.Waits].
func (t *InstanceTree) Waits() (out []NestedWait) {
	for _, w := range t.State.Waits() {
		if w.For == workflow.WaitApproval {
			w.Who = t.approvers
		}
		out = append(out, NestedWait{t.ID, w})
	}
	for i := range t.Nested {
		out = append(out, t.Nested[i].Waits()...)
	}
	return out
}
