package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// tellChildren tells the children of a task that it is paused, or goes on, and gives the places that are free to those that
// wait. Where the task changes meanwhile it is due again.
func (e *Engine) tellChildren(ctx context.Context, agent, task string) error {
	for range rounds {
		v, err := e.lookAtTask(ctx, agent, task)
		if err != nil {
			return err
		}
		if !v.Exists() {
			return nil
		}
		all, err := v.Children()
		if err != nil {
			return err
		}
		for _, c := range all {
			if c.Status != engine.ChildActive || v.Task.Status.Ended() {
				continue // who is queued does nothing; when a task ends so do its children
			}
			if err := e.tellChild(ctx, v, c); err != nil {
				return err
			}
		}
		if err := e.fillPlaces(ctx, v); err != nil {
			return err
		}
		reply, err := e.apply(ctx, engine.Told(v))
		if err != nil || reply.OK {
			return err
		}
	}
	return nil
}

// tellChild tells one child how its parent stands. One that was granted and not started yet is started first: whoever would
// start it later might not look.
func (e *Engine) tellChild(ctx context.Context, parent *engine.View, c engine.Child) error {
	for range rounds {
		v, err := e.lookAtTask(ctx, c.Agent, c.Task)
		if err != nil {
			return err
		}
		if !v.Exists() {
			if err := e.startChild(ctx, parent.Task.Agent, parent.Task.ID, c.Name); err != nil {
				return err
			}
			continue
		}
		if !v.ChildOf(parent.Task.Agent, parent.Task.ID, c.Name) {
			return nil
		}
		hold := engine.HoldOf(parent)
		x, err := engine.TellChild(v, hold, e.who("", ""))
		if err != nil || x == nil {
			return err
		}
		reply, err := e.apply(ctx, x)
		if err != nil {
			return err
		}
		if reply.OK {
			e.noteParent(x, reply)
			e.interruptHeld(c, hold)
			e.later(e.tellChildren(ctx, c.Agent, c.Task), "tell the children", idOf{c.Agent, c.Task})
			return nil
		}
	}
	return errChildChanges
}

// interruptHeld tells calls of a child that are under way here to stop, where the halt that holds it says so.
func (e *Engine) interruptHeld(c engine.Child, h engine.Hold) {
	e.mu.Lock()
	a := e.aloft[c.Agent+idSeparator+c.Task].Value()
	e.mu.Unlock()
	if a == nil {
		return
	}
	if h.Stop {
		a.interrupt(stoppedBy("everything that the agent does for which the task works was stopped"))
		return
	}
	a.interruptIf(func(f *flight) bool {
		return slices.ContainsFunc(h.Actions, func(x engine.HeldAction) bool { return x.Name == f.def.name && !x.After })
	}, stoppedBy("the action was stopped for those for whom the task works"))
}

// tellFamilies tells what works for the tasks of an agent that the agent was halted, or goes on. Where that changes
// meanwhile it is due again.
func (e *Engine) tellFamilies(ctx context.Context, agent string) error {
	snap, err := e.store.Load(ctx, agent, "", nil)
	if err != nil {
		return failedStore(err)
	}
	var faults []error
	for after := (txn.Queued{}); ; {
		page, err := e.store.Queued(ctx, agent, engine.QueueTasks, after, false, workPage)
		if err != nil {
			return errors.Join(append(faults, failedStore(err))...)
		}
		for _, q := range page {
			after = q
			if err := e.tellChildren(ctx, agent, q.Member); err != nil && len(faults) < workPage {
				faults = append(faults, fmt.Errorf("task %s: %w", q.Member, err))
			}
		}
		if len(page) < workPage {
			break
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	_, err = e.apply(ctx, engine.ToldAll(snap, agent)) // refused where it changed: then it is due again
	return err
}

// tellHeld is tellChildren for a member of the queue.
func (e *Engine) tellHeld(ctx context.Context, s *agentState, member string) error {
	if member == engine.EveryTask {
		return e.tellFamilies(ctx, s.agent.name)
	}
	return e.tellChildren(ctx, s.agent.name, member)
}

// fillPlaces starts children that wait, where others ended while their parent was paused.
func (e *Engine) fillPlaces(ctx context.Context, v *engine.View) error {
	for {
		x, heir, err := engine.Promote(v, e.clock())
		if err != nil || x == nil {
			return err
		}
		reply, err := e.apply(ctx, x)
		if err != nil {
			return err
		}
		agent, task := v.Task.Agent, v.Task.ID
		if reply.OK {
			e.noteParent(x, reply)
			e.decided(childKey(agent, task, heir))
			if err := e.startChild(ctx, agent, task, heir); err != nil {
				return err
			}
		}
		if v, err = e.lookAtTask(ctx, agent, task); err != nil {
			return err
		}
	}
}

// passOn does at once what the pause of a task, or its going on, leads to, as far as it gets in the time of one access to
// the store. [Engine.Work] does the rest.
func (t *Task) passOn(ctx context.Context) {
	t.state.mu.Lock()
	has := t.behind() || engine.HasFamily(&t.space)
	t.state.mu.Unlock()
	if !has {
		return
	}
	e := t.engine
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.StoreTimeout)
	defer cancel()
	e.later(e.tellChildren(ctx, t.agent.name, t.local), "tell the children", t)
}

// passOnAfter is passOn after a call that may have paused the task.
func (t *Task) passOnAfter(ctx context.Context, code action.Code) {
	if code == action.OK || code == action.TaskPaused {
		return
	}
	t.state.mu.Lock()
	has := t.behind() || engine.HasFamily(&t.space)
	t.state.mu.Unlock()
	if !has {
		return
	}
	if v, err := t.peek(context.WithoutCancel(ctx)); err == nil && v.Task.Status == engine.Paused {
		t.passOn(ctx)
	}
}
