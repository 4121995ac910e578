package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// established tells the task that a workflow completed, and the task whose child it is, where any of their actions need it:
// before anybody else is told, so that what comes next is legal.
func (r *flowRun) established(ctx context.Context) error {
	v := r.view
	if v == nil {
		var err error
		if v, err = r.t.stands(ctx); err != nil {
			return err
		}
	}
	done := engine.Done{Workflow: r.def.Name(), Version: r.def.Version()}
	if g := r.t.agent.compiled.Graph; g.Across() && g.Follows(done.Workflow) {
		if err := r.flowDone(ctx, r.t, done); err != nil {
			return err
		}
	}
	p := v.Task.Parent
	if p == nil {
		return nil
	}
	of, err := r.e.agentNamed(ctx, p.Agent)
	if err != nil || !of.agent.compiled.Graph.Follows(done.Workflow) {
		return err
	}
	done.Child = p.Child
	return r.flowDone(ctx, r.e.adopt(of, p.Task), done)
}

// agentNamed is what is known of an agent here or, where that is nothing, in the store.
func (e *Engine) agentNamed(ctx context.Context, name string) (*agentState, error) {
	find := func() *agentState {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.agents[name]
	}
	if s := find(); s != nil {
		return s, nil
	}
	if err := e.adoptStored(ctx, name); err != nil {
		return nil, fmt.Errorf("agent %q: %w", name, err)
	}
	return find(), nil
}

// flowDone writes into a task's ledger what a workflow established that completed. Once it stands there it is not written
// again, also where it was taken back.
func (r *flowRun) flowDone(ctx context.Context, t *Task, done engine.Done) error {
	e, s := r.e, &r.k.State
	r.veil.meet(r.k.Sealed)
	in, out := t.agent.boundOn(done.Workflow)
	input, err := r.veil.openAt(ctx, s.Input, in)
	if err != nil {
		return err
	}
	output, err := r.veil.openAt(ctx, s.Output, out)
	if err != nil {
		return err
	}
	if done.Input, err = treeOf(input); err != nil {
		return fmt.Errorf("input of workflow %q: %w", done.Workflow, err)
	}
	if done.Output, err = treeOf(output); err != nil {
		return fmt.Errorf("output of workflow %q: %w", done.Workflow, err)
	}
	v, err := t.stands(ctx)
	if err != nil || !v.Exists() || v.Task.Status.Ended() {
		return err
	}
	hash, err := t.factHash(ctx)
	if err != nil {
		return err
	}
	x, err := engine.FlowDone(t.agent.compiled, v, done, hash, e.clock())
	if err != nil || x == nil {
		return err
	}
	reply, err := e.apply(ctx, x)
	if err != nil {
		return failedStore(err)
	}
	if reply.OK {
		t.advance(x, reply, nil)
	}
	return nil // else somebody wrote it
}

// boundOn says which places of a workflow's input and output are bound to secrets alone: their values are written as hashes.
func (a *Agent) boundOn(workflow string) (in, out places) {
	var plainIn, plainOut places
	for _, d := range a.defs {
		for _, p := range d.needs {
			if !p.flow || p.name != workflow || d.in == nil {
				continue
			}
			secret := placesOf(d.in)
			for _, b := range p.binds {
				to := map[[2]bool]*places{{false, false}: &plainIn, {false, true}: &in, {true, false}: &plainOut, {true, true}: &out}
				at := to[[2]bool{b.Output, secret.covers(segmentsOf(b.Mine))}]
				*at = append(*at, segmentsOf(b.Theirs))
			}
		}
	}
	beside := func(plain places) func([]string) bool {
		return func(at []string) bool { return len(plain.below(at)) > 0 }
	}
	return slices.DeleteFunc(in, beside(plainIn)), slices.DeleteFunc(out, beside(plainOut))
}

func treeOf(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	doc, f := schema.Canonical(raw, 0)
	if f != nil {
		return nil, f
	}
	return doc.Tree(), nil
}

// factHash is how values that must not be read are written into the facts of the task.
func (t *Task) factHash(ctx context.Context) (h statespace.Hash, err error) {
	about, err := t.about(ctx)
	if err != nil || about != aboutSomebody && len(t.agent.veils) == 0 {
		return h, err
	}
	v, err := t.vault(ctx, false)
	if err != nil {
		return h, err
	}
	key := v.data.Sum("fact")
	return statespace.Hash{Key: key[:], All: v.all}, nil
}

// flowUndone takes back what a workflow established, before it is undone; whoever is about to write it comes too late.
func (e *Engine) flowUndone(ctx context.Context, agent, task, child string) error {
	of, err := e.agentNamed(ctx, agent)
	if err != nil || !of.agent.compiled.Graph.Follows("") {
		return err
	}
	for range rounds {
		reply, err := e.apply(ctx, engine.ReadDone(agent, task, child))
		if err != nil {
			return failedStore(err)
		}
		record := reply.Fresh.Record
		v, err := e.lookAtTask(ctx, agent, task)
		if err != nil {
			return failedStore(err)
		}
		x, err := engine.FlowUndone(v, &record, child, e.clock())
		if err != nil || x == nil {
			return err
		}
		if reply, err = e.apply(ctx, x); err != nil {
			return failedStore(err)
		}
		if reply.OK {
			e.noteParent(x, reply)
			return nil
		}
	}
	return action.Fail(action.Stale, "what a workflow established changed %d times while it was taken back", rounds)
}

// StartWorkflow is [Engine.StartWorkflow] as a child of the task, see [Task.Delegate]: once it completed, actions of the task
// that need the workflow are legal. It waits while the task has as many children as it may have.
func (t *Task) StartWorkflow(ctx context.Context, d *workflow.Definition, g Goal, input json.RawMessage) (*Instance, error) {
	if err := errors.Join(t.callable(), alive(ctx)); err != nil {
		return nil, err
	}
	e := t.engine
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.inside.Done()
	if err := e.runs(d, &g, input); err != nil {
		return nil, err
	}
	c, err := t.delegate(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("workflow %q: %w", d.Name(), err)
	}
	child, err := c.Task(ctx)
	if err != nil {
		return nil, err
	}
	e.nudge()
	return &Instance{child, d, *g.flow}, nil
}

// fitsFlow checks what is bound on the input of a workflow. What a workflow gives is put together by itself: of that the
// values decide.
func fitsFlow(mine *declaration, p *Pre) (faults []error) {
	if p.def == nil || p.def.Spec().Input == nil {
		return nil
	}
	side, err := schema.Foreign(p.def.Spec().Input)
	if err != nil {
		return []error{fmt.Errorf("action %q needs workflow %s: its input: %w", mine.name, p.name, err)}
	}
	for _, b := range p.binds {
		if b.Output {
			continue
		}
		if err := fitsSide(mine, side, "input", b); err != nil {
			faults = append(faults, fmt.Errorf("action %q needs workflow %s: %w", mine.name, p.name, err))
		}
	}
	return faults
}
