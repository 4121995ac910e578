package delta

import (
	"context"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Conclude ends the task with a verdict on its goal: nothing starts any more, calls under way finish. Calls that were Ok say
// nothing about the goal, and a verdict says nothing about them; both are recorded. A task that has ended is not concluded
// any more, save by a person, see [Task.ConcludeBy], nor is one that waits for a person: the refusal is TASK_PAUSED.
func (t *Task) Conclude(ctx context.Context, v action.Verdict, reason string) error {
	return t.conclude(ctx, action.Conclusion{Verdict: v, Reason: reason, By: action.ByProgram}, "")
}

// ConcludeBy is Conclude in the name of a person, one of the task's approvers or the engine's operators and never whoever
// requested it. A person may also judge a task that has ended, and correct what was said: the latest word counts.
func (t *Task) ConcludeBy(ctx context.Context, by Identity, v action.Verdict, reason string) error {
	if err := t.opened(); err != nil {
		return err
	}
	if err := t.engine.mine(by); err != nil {
		return err
	}
	return t.concludeAs(ctx, action.Conclusion{Verdict: v, Reason: reason, By: action.ByPerson, Identity: by.name}, t.engine.whoIs(by, reason))
}

// Conclude ends the task with a verdict on its goal, in the name of the call: it finishes, and nothing starts after it.
func (c *Context) Conclude(v action.Verdict, reason string) error {
	if err := c.mayAct(); err != nil {
		return fmt.Errorf("conclude: %w", err)
	}
	return c.flight.t.conclude(c, action.Conclusion{Verdict: v, Reason: reason, By: action.ByFunction}, c.begun.Intent)
}

func (t *Task) conclude(ctx context.Context, c action.Conclusion, intent string) error {
	if err := t.opened(); err != nil {
		return err
	}
	who := t.engine.who("", c.Reason)
	c.Intent = intent
	return t.concludeAs(ctx, c, who)
}

func (t *Task) concludeAs(ctx context.Context, c action.Conclusion, who engine.Who) error {
	if !c.Verdict.Valid() {
		return fmt.Errorf("conclude %s: %q is no verdict; want %q, %q or %q", t, action.CutTo(string(c.Verdict), action.MaxName), action.Reached, action.NotReached, action.Abandoned)
	}
	c.Reason, c.At = who.Reason, who.At
	look := t.latest
	if c.By == action.ByPerson { // what a person judges is as it stands
		look = t.stands
	}
	err := t.changeAs(ctx, func(ctx context.Context) (v *engine.View, err error) {
		v, err = look(ctx)
		look = t.stands
		return v, err
	}, func(v *engine.View) (*txn.Txn, error) {
		if c.By == action.ByPerson {
			if err := engine.MayOperate(v, t.engine.cfg.Operators, who); err != nil {
				return nil, err
			}
		}
		return engine.Conclude(v, c, who)
	})
	if err != nil {
		return fmt.Errorf("conclude %s: %w", t, err)
	}
	t.ended(ctx)
	t.engine.forget(t)
	return nil
}

// Conclusion returns the latest verdict on the goal of the task, and whether there is one. That calls were Ok is no verdict.
func (t *Task) Conclusion(ctx context.Context) (action.Conclusion, bool, error) {
	v, err := t.peek(ctx)
	if err != nil || v.Task.Conclusion == nil {
		return action.Conclusion{}, false, err
	}
	return *v.Task.Conclusion, true, nil
}

// concluded is what becomes of a run whose planner is done: with a verdict the task ends too.
func (r *run) concluded(ctx context.Context, p *Proposal) bool {
	if p.Verdict == "" {
		return r.end(RunDone, p.Why, nil)
	}
	if err := r.t.conclude(ctx, action.Conclusion{Verdict: p.Verdict, Reason: p.Why, By: action.ByPlanner}, ""); err != nil {
		f := action.FailureOf(err)
		if f == nil || f.Code != action.TaskPaused {
			return r.end(RunDone, p.Why, err)
		}
		if !r.b.Wait { // a person looks first; whoever runs the task again hears the planner again
			return r.end(RunPaused, f.Explain(), err)
		}
		if !r.t.awaitGoing(ctx) {
			return r.end(RunStopped, "the task was paused", context.Cause(ctx))
		}
		return r.concluded(ctx, p)
	}
	r.report.Verdict = p.Verdict
	return r.end(RunDone, p.Why, nil)
}
