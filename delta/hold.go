package delta

import (
	"context"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
)

// tellChildren tells the children of a task that it is paused, or goes on, and gives the places that are free to those that
// wait. Where the task changes meanwhile it is due again.
func (e *Engine) tellChildren(ctx context.Context, agent, task string) error {
	for range rounds {
		v, err := e.lookAtTask(ctx, agent, task)
		if err != nil {
			return err
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
		x, err := engine.TellChild(v, engine.HoldOf(parent), e.who("", ""))
		if err != nil || x == nil {
			return err
		}
		reply, err := e.apply(ctx, x)
		if err != nil {
			return err
		}
		if reply.OK {
			e.noteParent(x, reply)
			e.later(e.tellChildren(ctx, c.Agent, c.Task), "tell the children", idOf{c.Agent, c.Task})
			return nil
		}
	}
	return errChildChanges
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
