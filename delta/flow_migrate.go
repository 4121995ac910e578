package delta

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Migrate has the instance go on by another definition of its workflow. What has begun must be the same in both, see
// [workflow.Compatible]: the error names every step that is not, and nothing is changed. What the instance began with must pass the
// other definition's input schema. The other definition must be one that this engine or a live worker holds, else the error is a
// [NoWorkerError]. It is for the task's approvers and the operators, and is recorded with the reason. A worker that has the
// instance in hand puts it down and takes it up anew; calls under way end as they would. Nested instances keep their own
// definition and are migrated by themselves. Migrated to what it runs by already, nothing happens.
func (i *Instance) Migrate(ctx context.Context, by Identity, to *workflow.Definition, reason string) error {
	if to == nil {
		return fmt.Errorf("migrate %s: no definition is given", i)
	}
	e := i.t.engine
	if err := errors.Join(alive(ctx), e.mine(by)); err != nil {
		return fmt.Errorf("migrate %s: %w", i, err)
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.inside.Done()
	lacks, err := e.runsFor(ctx, i.t, to)
	for n := 0; err == nil; n++ {
		if n == flowTries {
			err = action.Fail(action.Stale, "the instance changed %d times while this was written; try again", n)
			break
		}
		var done bool
		if done, err = i.migrate(ctx, by, to, reason, lacks); done {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("migrate %s to version %s: %w", i, to.Version(), err)
	}
	e.nudge()
	return nil
}

// migrate tries once; it is not done where something else was quicker. Why nobody could go on comes after why it may not.
func (i *Instance) migrate(ctx context.Context, by Identity, to *workflow.Definition, reason string, lacks error) (done bool, err error) {
	t, e := i.t, i.t.engine
	v, err := t.stands(ctx)
	if err != nil {
		return false, err
	}
	if !v.Exists() || v.Task.Flow == nil {
		return false, ErrNoTask
	}
	who := e.whoIs(by, cmp.Or(reason, "it goes on by version "+to.Version()))
	if err := engine.MayOperate(v, e.cfg.Operators, who); err != nil {
		return false, err
	}
	if v.Task.Flow.Digest == to.Digest() {
		return lacks == nil, lacks
	}
	if v.Task.Flow.Workflow != to.Name() {
		return false, fmt.Errorf("%w: it is one of workflow %q, not of %q", workflow.ErrIncompatible, v.Task.Flow.Workflow, to.Name())
	}
	veil, err := e.veilOf(ctx, t, to)
	if err != nil {
		return false, err
	}
	r := &flowRun{e: e, t: t, def: to, veil: veil}
	if r.k, err = t.readFlow(ctx); err != nil {
		return false, err
	}
	if r.k.Ver > 0 && v.Task.Flow.Digest != "" && r.k.State.Digest != v.Task.Flow.Digest {
		return false, nil // the two were read apart
	}
	state, steps, err := r.takeOver(ctx, v.Task.Flow, by, reason)
	if err != nil {
		return false, err
	}
	if lacks != nil {
		return false, lacks
	}
	x, err := engine.MigrateFlow(v, &r.k, flowOf(to), steps, state, who)
	if err != nil {
		return false, err
	}
	reply, err := e.apply(ctx, x)
	if err != nil {
		return false, failedStore(err)
	}
	if reply.OK {
		t.advance(x, reply, nil)
	}
	return reply.OK, nil
}

// takeOver is what the machine makes of an instance under the run's definition; nothing where it has not begun.
func (r *flowRun) takeOver(ctx context.Context, of *engine.FlowOf, by Identity, reason string) (state string, steps []engine.FlowStep, err error) {
	r.veil.meet(r.k.Sealed)
	if err := r.fitsInput(ctx); err != nil || r.k.Ver == 0 {
		return "", nil, err
	}
	was, err := r.e.definitionIn(ctx, r.t.agent.name, r.t.local, of)
	if err != nil {
		return "", nil, err
	}
	ev := workflow.Event{Kind: workflow.Migrated, At: r.e.clock(), By: by.name, Text: action.Cut(reason)}
	turn, err := r.def.TakeOver(was, r.k.State, ev)
	if err != nil {
		return "", nil, err
	}
	s, steps, err := r.settle(ctx, turn, engine.FlowStep{Spec: r.def.Text()}, ev)
	if err != nil {
		return "", nil, err
	}
	state, err = r.text.Write(&s)
	return state, steps, err
}

// fitsInput holds what an instance began with, or is to, against the definition.
func (r *flowRun) fitsInput(ctx context.Context) error {
	input := r.k.Input
	if r.k.Ver > 0 {
		input = r.k.State.Input
	}
	open, err := r.veil.openAll(ctx, input)
	if err != nil {
		return fmt.Errorf("what it began with: %w", err)
	}
	if _, err := r.e.flows.input(r.def, open); err != nil {
		return fmt.Errorf("%w: what it began with does not pass the input schema: %s", workflow.ErrIncompatible, r.veil.said(action.TextOf(err), r.def.Spec().Input))
	}
	return nil
}

// runsFor finds out why nobody could go on with an instance by a definition, nil where somebody could.
func (e *Engine) runsFor(ctx context.Context, t *Task, d *workflow.Definition) (lacks, err error) {
	of := flowOf(d)
	if e.flows.definition(&of) == nil || t.agent.card != nil {
		_, err := e.heldElsewhere(ctx, t.agent.name, d)
		var nobody *NoWorkerError
		if errors.As(err, &nobody) {
			return nobody, nil
		}
		return nil, err
	}
	return errors.Join(append(unheld(d, t.agent), e.placesIn(d, t.agent).spilt...)...), nil
}

// runs is the definition that the instance runs by now.
func (i *Instance) runs(ctx context.Context) (engine.FlowOf, error) {
	v, err := i.t.stands(ctx)
	if err != nil || !v.Exists() || v.Task.Flow == nil {
		return i.of, err
	}
	return *v.Task.Flow, nil
}
