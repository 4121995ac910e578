package delta

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// A store that lost what it had acknowledged says so once, and goes on with what is left. What was decided since rests on
// words that nobody can read any more: an approval that was used, a budget that was spent, an effect that happened. So
// everything that concerns the task, or all of the agent where the agent's own state was lost, is refused from then on,
// until the tasks of it that this engine holds are cancelled, durably and with the reason. Then the agent goes on.

// losses are what the store is known to have lost, until the tasks concerned are stopped.
type losses struct {
	n    atomic.Int64 // how many; most of the time there are none
	mu   sync.Mutex
	open map[book]*memory.LostError
}

// note reports whether the loss is news.
func (l *losses) note(lost *memory.LostError) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := book{lost.Agent, lost.Task}
	if l.open == nil {
		l.open = map[book]*memory.LostError{}
	}
	if l.open[b] != nil {
		return false
	}
	l.open[b] = lost
	l.n.Store(int64(len(l.open)))
	return true
}

// over notes that what this loss concerns is stopped.
func (l *losses) over(lost *memory.LostError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := (book{lost.Agent, lost.Task}); l.open[b] == lost {
		delete(l.open, b)
	}
	l.n.Store(int64(len(l.open)))
}

// of returns what was lost of a task, or of its agent; nil where nothing was.
func (l *losses) of(agent, task string) error {
	if l.n.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range []book{{agent, ""}, {agent, task}} {
		if lost := l.open[b]; lost != nil {
			return lost
		}
	}
	return nil
}

func (l *losses) all() []*memory.LostError {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*memory.LostError, 0, len(l.open))
	for _, lost := range l.open {
		out = append(out, lost)
	}
	slices.SortFunc(out, func(a, b *memory.LostError) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Task, b.Task))
	})
	return out
}

// guarded is a store that is asked nothing about what it lost before the tasks concerned are stopped; only the ends of
// calls are written, which stay true.
type guarded struct {
	memory.Store
	e *Engine
}

// stopping marks the context of whoever stops the tasks concerned.
type stopping struct{}

func (g guarded) barred(ctx context.Context, agent, task string) error {
	if err := g.e.losses.of(agent, task); err != nil && (ctx == nil || ctx.Value(stopping{}) == nil) {
		return err
	}
	return nil
}

func (g guarded) Apply(ctx context.Context, x *txn.Txn) (txn.Reply, error) {
	if err := g.barred(ctx, x.Agent, x.Task); err != nil && x.Phase != txn.Settle {
		return txn.Reply{}, err
	}
	r, err := g.Store.Apply(ctx, x)
	g.e.noteLoss(err)
	g.e.notePruned(err)
	return r, err
}

func (g guarded) Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error) {
	if err := g.barred(ctx, agent, task); err != nil {
		return nil, err
	}
	s, err := g.Store.Load(ctx, agent, task, have)
	if g.e.noteLoss(err) && ctx.Value(stopping{}) != nil { // the loss of another part of it, said once
		s, err = g.Store.Load(ctx, agent, task, nil)
	}
	if g.e.notePruned(err) { // said once: now it is as it is
		s, err = g.Store.Load(ctx, agent, task, nil)
	}
	return s, err
}

func (g guarded) Records(ctx context.Context, agent, task string, from int64, limit int) ([]txn.Stored, error) {
	if err := g.barred(ctx, agent, task); err != nil {
		return nil, err
	}
	return g.Store.Records(ctx, agent, task, from, limit)
}

func (g guarded) Queued(ctx context.Context, agent, queue string, after txn.Queued, dueOnly bool, limit int) ([]txn.Queued, error) {
	if err := g.barred(ctx, agent, ""); err != nil {
		return nil, err
	}
	return g.Store.Queued(ctx, agent, queue, after, dueOnly, limit)
}

// notePruned has the tasks that were dropped on purpose read anew: there are none of them any more.
func (e *Engine) notePruned(err error) bool {
	var pruned *memory.PrunedError
	if err == nil || !errors.As(err, &pruned) {
		return false
	}
	e.cfg.Log.Info("a task that was known here has ended and was pruned", "agent", pruned.Agent, "task", pruned.Task)
	for _, t := range e.concerned(&memory.LostError{Agent: pruned.Agent, Task: pruned.Task}) {
		t.dropped.Store(true)
		t.forgetAll()
		e.forget(t)
		t.aloft.interrupt(fmt.Errorf("%w: %w", errCancelled, pruned))
	}
	e.keeper.unmark(book{pruned.Agent, pruned.Task})
	return true
}

// noteLoss looks whether an error of the store says that it lost something. What this engine knows of it is forgotten,
// calls under way are told to stop, and the keeper cancels the tasks.
func (e *Engine) noteLoss(err error) bool {
	var lost *memory.LostError
	if err == nil || !errors.As(err, &lost) {
		return false
	}
	if e.losses.note(lost) {
		e.cfg.Log.Error("acknowledged writes are lost; the tasks concerned are stopped", "agent", lost.Agent, "task", lost.Task, "had", lost.Had, "has", lost.Has)
	}
	why := whyLost(lost)
	for _, t := range e.concerned(lost) {
		t.forgetAll()
		t.aloft.interrupt(why)
	}
	e.mu.Lock()
	s := e.agents[lost.Agent]
	e.mu.Unlock()
	if s != nil {
		s.forgetAll()
	}
	e.keeper.lost(book{lost.Agent, lost.Task})
	return true
}

func whyLost(lost *memory.LostError) error { return fmt.Errorf("%w: %w", errCancelled, lost) }

// concerned returns the tasks held here that a loss concerns.
func (e *Engine) concerned(lost *memory.LostError) (out []*Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.tasks {
		t := p.Value()
		if t != nil && t.agent.name == lost.Agent && (lost.Task == "" || t.local == lost.Task) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *Task) int { return cmp.Compare(a.local, b.local) })
	return out
}

// forgetAll has the task read anew: what is known of it is newer than what the store has.
func (t *Task) forgetAll() {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	t.space, t.gap, t.flow = txn.NewSpace(), true, follow{}
	t.view, t.set, t.facted, t.offers, t.lasting = nil, nil, -1, nil, nil
	t.state.edition++
	t.shelf.Drop()
}

func (a *agentState) forgetAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.space, a.pending, a.gap, a.flow, a.folded = txn.NewSpace(), nil, true, follow{}, nil
	a.edition++
}

// lost has the goroutine stop the tasks concerned, and links a ledger that was cut off from its start again.
func (k *keeper) lost(of book) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for b := range k.sealed {
		if b.agent == of.agent && (of.task == "" || b.task == of.task) {
			delete(k.sealed, b)
		}
	}
	k.pay = true
	k.soon(true)
}

// stopLost cancels what losses concern. A loss whose tasks cannot be stopped yet stays noted.
func (e *Engine) stopLost(ctx context.Context) (first error) {
	if e.losses.n.Load() == 0 {
		return nil
	}
	ctx = context.WithValue(ctx, stopping{}, true)
	for _, lost := range e.losses.all() {
		err := e.stopConcerned(ctx, lost)
		if err == nil {
			e.losses.over(lost)
		} else if first == nil {
			first = err
		}
	}
	return first
}

func (e *Engine) stopConcerned(ctx context.Context, lost *memory.LostError) error {
	var faults []error
	for _, t := range e.concerned(lost) {
		faults = append(faults, e.stopTask(ctx, t.agent.name, t.local, lost))
		t.aloft.interrupt(whyLost(lost)) // where nothing is left to cancel too
	}
	if lost.Task != "" && len(faults) == 0 {
		faults = append(faults, e.stopTask(ctx, lost.Agent, lost.Task, lost))
	}
	return errors.Join(faults...)
}

// stopTask cancels a task of any agent, known here or not, where the store still has it at work.
func (e *Engine) stopTask(ctx context.Context, agent, task string, lost *memory.LostError) error {
	e.mu.Lock()
	known := e.agents[agent]
	e.mu.Unlock()
	for range rounds {
		v, err := e.lookAtTask(ctx, agent, task)
		switch {
		case err != nil:
			return err
		case !v.Exists(), v.Task.Status.Ended():
			return nil
		case known != nil:
			return e.adopt(known, task).Cancel(ctx, lost.Error())
		}
		x, err := engine.CancelTask(v, e.who("", lost.Error()))
		if err != nil {
			return err
		}
		if reply, err := e.apply(ctx, x); err != nil || reply.OK {
			return err
		}
	}
	return errors.New("the task keeps changing")
}
