package delta

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// What parents and children need of each other is done at once by whoever caused it, as far as the store answers. What is
// left undone then, or by a process that died, is due in a queue: Work does it, at the latest a poll interval later, and
// so does who waits for the child.

// startChild starts a child that was granted, unless somebody did.
func (e *Engine) startChild(ctx context.Context, agent, task, name string) error {
	s, err := e.childState(ctx, agent, task, name)
	if err != nil {
		return err
	}
	v, err := e.lookAtTask(ctx, s.Agent, s.ID)
	if err != nil {
		return err
	}
	if !v.Exists() {
		until := int64(0)
		if s.Deadline > 0 {
			until = max(1, s.Deadline-v.Snap.Now)
		}
		e.mu.Lock()
		held := e.agents[s.Agent]
		e.mu.Unlock()
		if held != nil {
			if err := errors.Join(e.leaveCard(ctx, held), e.noteConfig(ctx, held)); err != nil {
				return err
			}
		}
		parent, err := e.lookAtTask(ctx, agent, task) // what it says from now on the child is told: it is among its children
		if err != nil {
			return err
		}
		reply, err := e.apply(ctx, engine.Start(engine.Heir(s, parent), e.clock(), until))
		if err != nil {
			return err
		}
		if !reply.OK {
			if v, err = e.lookAtTask(ctx, s.Agent, s.ID); err != nil {
				return err
			}
		}
	}
	if v.Exists() && !v.ChildOf(agent, task, name) {
		return e.chargeParent(ctx, agent, task, name, never(fmt.Sprintf("agent %q has another task %q", s.Agent, s.ID)))
	}
	defer e.decided(childKey(agent, task, name))
	_, err = e.apply(ctx, engine.Started(agent, task, name))
	return err
}

// startDue is startChild for a member of the queue.
func (e *Engine) startDue(ctx context.Context, s *agentState, member string) error {
	task, name, _ := strings.Cut(member, "\n")
	return e.startChild(ctx, s.agent.name, task, name)
}

var errChildChanges = errors.New("the child keeps changing")

// childKey names what those wait for who wait for a child.
func childKey(agent, task, name string) string {
	return strings.Join([]string{"child", agent, task, name}, "\n")
}

// childState reads with what a child starts.
func (e *Engine) childState(ctx context.Context, agent, task, name string) (engine.TaskState, error) {
	reply, err := e.apply(ctx, engine.ReadChild(agent, task, name))
	if err != nil {
		return engine.TaskState{}, err
	}
	return engine.ChildState(&reply.Fresh.Record, name)
}

// lookAtTask loads a task of any agent, known here or not.
func (e *Engine) lookAtTask(ctx context.Context, agent, task string) (*engine.View, error) {
	snap, err := e.store.Load(ctx, agent, task, nil)
	if err != nil {
		return nil, err
	}
	return engine.LookAtTask(snap, nil)
}

// chargeParent writes to the parent what became of a child, and starts who takes its place.
func (e *Engine) chargeParent(ctx context.Context, agent, task, name string, t engine.Tally) error {
	for range rounds {
		v, err := e.lookAtTask(ctx, agent, task)
		if err != nil {
			return err
		}
		x, next, err := engine.ChargeChild(v, name, t, e.clock())
		if err != nil {
			return err
		}
		if x == nil {
			e.dropChild(v, name, false)
			return nil
		}
		reply, err := e.apply(ctx, x)
		if err != nil {
			return err
		}
		if !reply.OK {
			continue
		}
		e.noteParent(x, reply)
		e.dropChild(v, name, true)
		e.decided(childKey(agent, task, name))
		if next != "" {
			return e.startChild(ctx, agent, task, next)
		}
		return nil
	}
	return errors.New("the parent keeps changing")
}

// dropChild gives up what the task of a child that has ended held in memory, also where it never began.
func (e *Engine) dropChild(parent *engine.View, name string, ended bool) {
	if c, ver, err := parent.Child(name); err == nil && ver > 0 && (ended || c.Status == engine.ChildEnded) {
		e.releaseAttachments(c.Agent, c.Task)
	}
}

// noteParent moves what this engine knows of a parent on, where it has it open.
func (e *Engine) noteParent(x *txn.Txn, reply txn.Reply) {
	e.mu.Lock()
	t := e.tasks[x.Agent+idSeparator+x.Task].Value()
	e.mu.Unlock()
	if t != nil {
		t.advance(x, reply, nil)
	}
}

// reportChild tells the parent of a task what the task, having ended, has spent. A task without a parent has nobody to
// tell.
func (e *Engine) reportChild(ctx context.Context, agent, task string) error {
	for range rounds {
		v, err := e.lookAtTask(ctx, agent, task)
		if err != nil {
			return err
		}
		if p := v.Task.Parent; p != nil && v.Task.Status.Ended() {
			tally, err := engine.TallyOf(v)
			if err != nil {
				return err
			}
			if err := e.chargeParent(ctx, p.Agent, p.Task, p.Child, tally); err != nil {
				return err
			}
		}
		reply, err := e.apply(ctx, engine.Reported(v, agent, task, e.cfg.Poll.Microseconds()))
		if err != nil || reply.OK {
			return err
		}
	}
	return errors.New("the child keeps spending")
}

// never is the tally of a child that did nothing.
func never(why string) engine.Tally {
	return engine.Tally{Status: engine.Cancelled, Reason: why, Rev: 1}
}

// endChild ends a child wherever it stands: in the queue, on its way, or at work.
func (e *Engine) endChild(ctx context.Context, agent, task, name, why string) error {
	for range rounds {
		parent, err := e.lookAtTask(ctx, agent, task)
		if err != nil {
			return err
		}
		c, ver, err := parent.Child(name)
		switch {
		case err != nil:
			return err
		case ver == 0:
			return fmt.Errorf("task %s has no child %q", task, name)
		case c.Status == engine.ChildEnded:
			return nil
		case c.Status == engine.ChildQueued:
			t := never(why)
			t.Unstarted = true
			if err := e.chargeParent(ctx, agent, task, name, t); err != nil {
				return err
			}
			continue // perhaps it left the queue meanwhile
		}
		if err := e.cancelChild(ctx, parent, c, why); err != nil {
			return err
		}
		return e.reportChild(ctx, c.Agent, c.Task)
	}
	return errChildChanges
}

// cancelChild cancels the task of a child; one that was not started yet never will be.
func (e *Engine) cancelChild(ctx context.Context, parent *engine.View, c engine.Child, why string) error {
	e.mu.Lock()
	known := e.agents[c.Agent]
	e.mu.Unlock()
	for range rounds {
		v, err := e.lookAtTask(ctx, c.Agent, c.Task)
		if err != nil {
			return err
		}
		var x *txn.Txn
		switch {
		case v.Exists() && !v.ChildOf(parent.Task.Agent, parent.Task.ID, c.Name):
			return e.chargeParent(ctx, parent.Task.Agent, parent.Task.ID, c.Name, never(why))
		case v.Exists() && v.Task.Status.Ended():
			return nil
		case v.Exists() && known != nil:
			return e.adopt(known, c.Task).Cancel(ctx, why) // calls under way here are told to stop
		case v.Exists():
			if x, err = engine.CancelTask(v, e.who("", why)); err != nil {
				return err
			}
		default:
			s, err := e.childState(ctx, parent.Task.Agent, parent.Task.ID, c.Name)
			if err != nil {
				return err
			}
			x = engine.Stillborn(s, why, e.clock())
		}
		reply, err := e.apply(ctx, x)
		if err != nil {
			return err
		}
		if reply.OK {
			e.later(e.endChildren(ctx, c.Agent, c.Task), "end the children", idOf{c.Agent, c.Task})
			return nil
		}
	}
	return errChildChanges
}

// idOf names a task that may not be open here.
type idOf struct{ agent, local string }

func (i idOf) String() string { return "task " + i.agent + idSeparator + i.local }

// endChildren ends the children of a task that has ended.
func (e *Engine) endChildren(ctx context.Context, agent, task string) error {
	v, err := e.lookAtTask(ctx, agent, task)
	if err == nil && !v.Exists() {
		err = ErrNoTask
	}
	if err != nil || !v.Task.Status.Ended() {
		return err
	}
	all, err := v.Children()
	if err != nil {
		return err
	}
	var faults []error
	for _, c := range all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		faults = append(faults, e.endChild(ctx, agent, task, c.Name, "the task it worked for has ended"))
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if v, err = e.lookAtTask(ctx, agent, task); err != nil {
		return err
	}
	_, err = e.apply(ctx, engine.FamilyEnded(v)) // refused where somebody has not ended: then it is due again
	return err
}

// ended does at once what the end of a task leads to, as far as it gets in the time of one access to the store.
func (t *Task) ended(ctx context.Context) {
	e := t.engine
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.StoreTimeout)
	defer cancel()
	v, err := t.latest(ctx)
	if err != nil {
		return
	}
	for _, digest := range v.OpenAsks(endedAsks) {
		e.later(t.endAsk(ctx, v, digest), "take an approval request back", t)
	}
	if v.HasChildren() {
		e.later(e.endChildren(ctx, t.agent.name, t.local), "end the children", t)
	}
	if v.Task.Parent != nil {
		e.later(e.reportChild(ctx, t.agent.name, t.local), "tell the parent", t)
	}
}

// endedAsks bounds how many requests are taken back at once when a task ends; others expire in their time.
const endedAsks = 256

// endAsk takes back a request of a task that has ended: nobody should be asked about what will not run.
func (t *Task) endAsk(ctx context.Context, v *engine.View, digest string) error {
	_, q, err := engine.ReadAsk(v, digest, v.Snap.Now)
	if err != nil {
		return err
	}
	parked, err := t.parked(ctx, q.Intent)
	if err != nil {
		return err
	}
	defer t.engine.decided(q.ID)
	return t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		return engine.EndAsk(v, digest, parked, t.engine.who("", "")), nil
	})
}

// await waits until the parent knows of the child what it is waited for, doing on the way what others left undone.
func (c *Child) await(ctx context.Context, done func(engine.Child) (bool, error)) (engine.Child, error) {
	t := c.parent
	if err := errors.Join(t.opened(), alive(ctx)); err != nil {
		return engine.Child{}, err
	}
	e := t.engine
	back := vacate(ctx)
	defer back()
	for {
		told, leave := e.await(childKey(t.agent.name, t.local, c.name))
		s, ready, err := c.look(ctx, done)
		if err != nil || ready {
			leave()
			return s, err
		}
		ok := e.pause(ctx, told)
		leave()
		if !ok {
			return s, errors.Join(context.Cause(ctx), e.closing())
		}
	}
}

// look reads how the child stands; where it stands still, it is moved on once and read again.
func (c *Child) look(ctx context.Context, done func(engine.Child) (bool, error)) (engine.Child, bool, error) {
	t := c.parent
	var s engine.Child
	for try := range 2 {
		v, err := t.peek(ctx)
		if err != nil {
			return s, false, err
		}
		if s, _, err = v.Child(c.name); err != nil {
			return s, false, err
		}
		if ready, err := done(s); err != nil || ready || try > 0 {
			return s, ready, err
		}
		if s.Status == engine.ChildActive {
			t.engine.later(t.engine.advanceChild(ctx, t.agent.name, t.local, s), "look after a child", c)
		}
	}
	return s, false, nil
}

// advanceChild starts a child that nobody started, and reports one that has ended.
func (e *Engine) advanceChild(ctx context.Context, agent, task string, c engine.Child) error {
	v, err := e.lookAtTask(ctx, c.Agent, c.Task)
	switch {
	case err != nil:
		return err
	case !v.Exists():
		return e.startChild(ctx, agent, task, c.Name)
	case v.Task.Status.Ended():
		return e.reportChild(ctx, c.Agent, c.Task)
	}
	return nil
}

func (e *Engine) closing() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	return nil
}
