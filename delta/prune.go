package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Pruning says which tasks of an agent to drop.
type Pruning struct {
	Agent  string
	Before time.Time // by the store's clock: tasks that ended earlier
	By     Identity
	Reason string
	// Export is given each ledger, verified and sealed to its end, before anything of it is dropped; an error keeps it. It
	// may be given one again where a run before this one did not come to its end. Nil: the checkpoint alone is kept.
	Export func(ctx context.Context, task Pruned, records []txn.Stored) error
}

// Pruned is a task whose ledger was dropped: what the checkpoint in its agent's own ledger says of it.
type Pruned struct {
	ID      string // full id
	Records int64
	Head    string // link of the last record
	Ended   time.Time
}

// PruneReport is what a run of Prune did.
type PruneReport struct {
	Pruned []Pruned
	// Kept are tasks that are old enough and stay: the store still keeps their state, which it does for a while after their
	// end, and as long as one of their calls runs or is of unknown outcome.
	Kept []string
	// Resumed are tasks that a run before this one had begun to drop.
	Resumed []string
}

// Prune drops the ledgers of tasks that ended before a time. Each is verified and sealed to its end, exported where that is
// asked for, and leaves a checkpoint in its agent's own ledger, task_pruned, before anything is dropped; a run that is
// interrupted is simply repeated; of two at once the one that began last goes on (ErrPruning). A ledger that is not what was written stays, and is part of the error, which does not
// keep the others from being dropped. The agent's own ledger stays. An id that was pruned is free
// again: two tasks may have had it, one after the other, so an Export must not write one over the other.
func (e *Engine) Prune(ctx context.Context, p Pruning) (PruneReport, error) {
	var out PruneReport
	s, err := e.pruned(ctx, p.Agent, p.Before, p.By)
	if err != nil {
		return out, err
	}
	defer e.inside.Done()
	store, can := e.raw().(memory.Forgetter)
	if !can {
		return out, errors.New("prune: this store keeps its ledgers")
	}
	x := &pruner{Pruning: p, e: e, s: s, store: store, out: &out, who: e.newOwner()}
	if err = x.run(ctx); err != nil {
		err = fmt.Errorf("prune %s: %w", p.Agent, err)
	}
	return out, err
}

// pruned is the agent of which something is to be dropped, where whoever asks may. Where it is no error, the engine was
// entered.
func (e *Engine) pruned(ctx context.Context, agent string, before time.Time, by Identity) (*agentState, error) {
	if err := errors.Join(alive(ctx), e.mine(by)); err != nil {
		return nil, fmt.Errorf("prune: %w", err)
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	s := e.agents[agent]
	e.mu.Unlock()
	var err error
	switch {
	case s == nil:
		err = fmt.Errorf("prune: %w", notKnown(agent))
	case before.IsZero():
		err = errors.New("prune: before when? its zero value would be no bound")
	default:
		return s, nil
	}
	e.inside.Done()
	return nil, err
}

type pruner struct {
	Pruning
	e     *Engine
	s     *agentState
	store memory.Forgetter
	out   *PruneReport
	who   string              // this run, which keeps others from pruning the agent
	stale map[string][]queued // what other queues still hold of tasks that ended, by task
}

// queued is a member of a queue.
type queued struct{ queue, member string }

// ErrPruning says that somebody else began to prune the agent after this run did, and goes on with it; or that this run took
// more than a day for one ledger. Nothing is left half done: where the other run died, pruning is simply repeated, at once.
var ErrPruning = errors.New("another prune of this agent began since and goes on in this one's place, or this one took a day for one ledger: run it again where that did not finish")

func (p *pruner) run(ctx context.Context) (err error) {
	if _, err := p.e.apply(ctx, engine.HoldPruning(p.Agent, p.who)); err != nil {
		return failedStore(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.e.cfg.StoreTimeout)
		defer cancel()
		if _, no := p.e.apply(ctx, engine.LetPrune(p.Agent, p.who)); no != nil && err == nil {
			err = failedStore(no)
		}
	}()
	return p.prune(ctx)
}

func (p *pruner) prune(ctx context.Context) error {
	if err := p.gather(ctx); err != nil {
		return err
	}
	begun, err := p.all(ctx, engine.QueuePruned, time.Time{})
	if err != nil {
		return err
	}
	for _, q := range begun {
		seen, err := engine.SeenLedgerOf(q.Member)
		if err != nil {
			return err
		}
		if err := p.drop(ctx, seen); err != nil {
			return err
		}
		p.out.Resumed = append(p.out.Resumed, p.id(seen.Task))
	}
	ended, err := p.all(ctx, engine.QueueEnded, p.Before)
	if err != nil {
		return err
	}
	var faults []error
	for _, q := range ended {
		if err := p.one(ctx, q); err != nil {
			faults = append(faults, err)
		}
		if ctx.Err() != nil || len(faults) > recordPage {
			break
		}
	}
	return errors.Join(faults...)
}

func (p *pruner) id(task string) string { return p.Agent + idSeparator + task }

// all reads a queue; with a time, what is due before it.
func (p *pruner) all(ctx context.Context, queue string, before time.Time) (out []txn.Queued, err error) {
	for after := (txn.Queued{}); ; {
		page, err := p.e.store.Queued(ctx, p.Agent, queue, after, false, recordPage)
		if err != nil {
			return nil, err
		}
		for _, q := range page {
			if !before.IsZero() && q.Due >= before.UnixMicro() {
				return out, nil
			}
			out = append(out, q)
		}
		if len(page) < recordPage {
			return out, nil
		}
		after = page[len(page)-1]
	}
}

// gather finds what queues hold of tasks apart from their own names: requests that nobody decided, calls that never ran.
func (p *pruner) gather(ctx context.Context) error {
	p.stale = map[string][]queued{}
	for _, queue := range []string{engine.QueueAsks, engine.QueueDesk, engine.QueueGlass, engine.QueueReady} {
		members, err := p.all(ctx, queue, time.Time{})
		if err != nil {
			return err
		}
		for _, q := range members {
			task, _, parked := strings.Cut(q.Member, "\n")
			if parts := strings.Split(q.Member, idSeparator); !parked && len(parts) > 1 {
				task = parts[1]
			}
			p.stale[task] = append(p.stale[task], queued{queue, q.Member})
		}
	}
	return nil
}

// one drops a task, where the store has let its state go.
func (p *pruner) one(ctx context.Context, q txn.Queued) error {
	t := &Task{engine: p.e, agent: p.s.agent, state: p.s, local: q.Member, space: txn.NewSpace()}
	v, err := t.peek(ctx)
	if err != nil {
		return err
	}
	if v.Exists() {
		p.out.Kept = append(p.out.Kept, p.id(q.Member))
		return nil
	}
	if err := p.e.keeper.seal(book{p.Agent, q.Member}, nil); err != nil {
		return fmt.Errorf("seal %s: %w", t, err)
	}
	records, report, err := p.e.records(ctx, p.Agent, q.Member)
	if err == nil && report.Unsealed > 0 {
		err = fmt.Errorf("%d records at its end are not sealed", report.Unsealed)
	}
	if err != nil {
		return fmt.Errorf("ledger of %s stays: %w", t, err)
	}
	done := Pruned{t.ID(), int64(len(records)), report.Head, time.UnixMicro(q.Due).UTC()}
	if p.Export != nil {
		if err := p.Export(ctx, done, slices.Clone(records)); err != nil {
			return fmt.Errorf("export %s: %w", t, err)
		}
	}
	who := p.e.whoIs(p.By, p.Reason)
	seen := engine.SeenLedger{Task: q.Member, Records: done.Records, Head: report.Head}
	switch reply, err := p.e.apply(ctx, engine.Prune(p.Agent, p.who, seen, who)); {
	case err != nil:
		return failedStore(err)
	case !reply.OK:
		return ErrPruning
	}
	if err := p.drop(ctx, seen); err != nil {
		return err
	}
	p.out.Pruned = append(p.out.Pruned, done)
	return nil
}

// drop does what is left once the checkpoint is written. Of an id that was used anew since, by a prune that got further than
// its queue says, nothing is touched.
func (p *pruner) drop(ctx context.Context, seen engine.SeenLedger) error {
	ctx, cancel := context.WithTimeout(ctx, p.e.cfg.StoreTimeout)
	defer cancel()
	err := p.store.Forget(ctx, p.Agent, seen.Task, seen.Records, seen.Head)
	anew := errors.Is(err, memory.ErrKept) || errors.Is(err, memory.ErrAnother)
	if err != nil && !anew {
		return err
	}
	if !anew {
		p.e.keeper.unmark(book{p.Agent, seen.Task})
		x := engine.Pruned(p.Agent, seen, false)
		for _, q := range p.stale[seen.Task] {
			x.Add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: q.queue, Val: q.member})
		}
		switch reply, err := p.e.apply(ctx, x); {
		case err != nil:
			return failedStore(err)
		case reply.OK:
			return nil
		}
	}
	if _, err := p.e.apply(ctx, engine.Pruned(p.Agent, seen, true)); err != nil {
		return failedStore(err)
	}
	return nil
}

// unmark forgets how far a book is sealed that is no more.
func (k *keeper) unmark(b book) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.sealed, b)
}
