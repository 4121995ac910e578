package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// leftToFlow reports whether an approved call is made by the instance that commanded it, once and if that still wants it, or
// waits for as long as that is paused.
func (t *Task) leftToFlow(ctx context.Context, call string) (bool, error) {
	if strings.HasPrefix(call, flowID) {
		return true, nil
	}
	k, err := t.readFlow(ctx)
	return k.State.Held, err
}

// ofNoFlow refuses to do with the task of an instance what its workflow alone does.
func (t *Task) ofNoFlow(ctx context.Context, what string) error {
	v, err := t.peek(ctx)
	if err != nil || v.Task.Flow == nil {
		return err
	}
	return action.Fail(action.NotLegal, "the task runs workflow %q, which %s", v.Task.Flow.Workflow, what)
}

// tell gives an instance that this run does not hold an event, and makes it due.
func (r *flowRun) tell(ctx context.Context, event func(*engine.View, *workflow.State) (workflow.Event, error)) error {
	for range flowTries {
		v, err := r.e.lookAtTask(ctx, r.t.agent.name, r.t.local)
		if err != nil {
			return failedStore(err)
		}
		if r.k, err = r.t.readFlow(ctx); err != nil {
			return err
		}
		switch {
		case !v.Exists():
			return ErrNoTask
		case v.Task.Status.Ended():
			return action.Fail(action.TaskClosed, "the task is %s", v.Task.Status)
		case r.k.Ver == 0:
			return action.Fail(action.NotLegal, "the instance has not begun yet; no worker has taken it up")
		}
		ev, err := event(v, &r.k.State)
		if err != nil {
			return err
		}
		ev.At = r.e.clock()
		state, steps, why, err := r.turn(ctx, r.k.State, ev)
		switch {
		case err != nil:
			return err
		case why != "":
			return fmt.Errorf("%w: %s", errAbsorbed, why)
		}
		if ok, err := r.commit(ctx, state, steps, 0); ok || err != nil {
			return err
		}
	}
	return action.Fail(action.Stale, "the instance changed %d times while this was written; try again", flowTries)
}

// tellFlow hands an event in to an instance that somebody else may have in hand, and makes it due. One that takes no notice
// is no error.
// In the event may be digests, and sealed is what they stand for.
func (e *Engine) tellFlow(ctx context.Context, agent, task string, sealed map[string]string, event func(*workflow.State) *workflow.Event) error {
	for range flowTries {
		v, err := e.lookAtTask(ctx, agent, task)
		if err != nil {
			return failedStore(err)
		}
		k, err := e.readFlow(ctx, agent, task)
		if err != nil {
			return err
		}
		if !v.Exists() || v.Task.Flow == nil || k.Ver == 0 {
			return nil
		}
		def, err := e.definitionIn(ctx, agent, task, v.Task.Flow)
		if err != nil {
			return err
		}
		ev := event(&k.State)
		if ev == nil {
			return nil
		}
		ev.At = e.clock()
		step := engine.FlowStep{}
		if len(ev.Output) > 0 {
			if *ev, step.Sealed, err = e.hideFrom(ctx, agent, task, def, &k, sealed, *ev); err != nil {
				return err
			}
		}
		turn, err := def.Step(k.State, *ev)
		if errors.Is(err, workflow.ErrOther) {
			continue // it goes on by another definition since
		}
		if err != nil || turn.Absorbed != "" {
			return err
		}
		step.Trail = turn.Trail
		if step.Event, err = json.Marshal(ev); err != nil {
			return err
		}
		state, err := json.Marshal(turn.State)
		if err != nil {
			return err
		}
		x, _ := engine.FlowTurn(agent, task, &k, []engine.FlowStep{step}, string(state), 0, e.clock())
		reply, err := e.apply(ctx, x)
		if err != nil {
			return failedStore(err)
		}
		if reply.OK {
			e.noteParent(x, reply)
			e.nudge()
			return nil
		}
	}
	return action.Fail(action.Stale, "the instance changed %d times while an event was written", flowTries)
}

// hideFrom hides in an event what the instance that is told it takes for secret.
func (e *Engine) hideFrom(ctx context.Context, agent, task string, d *workflow.Definition, k *engine.FlowKnown, sealed map[string]string, ev workflow.Event) (workflow.Event, map[string]string, error) {
	s, err := e.agentNamed(ctx, agent)
	if err != nil {
		return ev, nil, err
	}
	f, err := e.veilOf(ctx, e.adopt(s, task), d)
	if err != nil {
		return ev, nil, err
	}
	f.meet(k.Sealed)
	f.meet(sealed)
	return f.event(ctx, &k.State, ev)
}
