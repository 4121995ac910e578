package faulty

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Rewinding is a store that can lose its latest writes, as a fail-over to a replica that lagged does, and tells each loss
// once, as stores that notice it do: see [memory.LostError]. Notes are lost with any rewinding.
type Rewinding struct {
	memory.Store
	fresh func(clock func() time.Time) memory.Store

	mu    sync.Mutex
	past  time.Time // while writes are made again: when they were made
	log   []entry   // what was accepted, in order
	known map[[2]string]int64
}

type entry struct {
	x  txn.Txn
	at int64 // store time, µs
}

// NewRewinding returns a store that keeps what it holds in a store that fresh opens, whose time is that of the clock. Rewind
// opens another.
func NewRewinding(fresh func(clock func() time.Time) memory.Store) *Rewinding {
	r := &Rewinding{fresh: fresh, known: map[[2]string]int64{}}
	r.Store = fresh(r.now)
	return r
}

// now is the store's clock.
func (r *Rewinding) now() time.Time {
	if !r.past.IsZero() {
		return r.past
	}
	return time.Now()
}

// Written returns how many transactions were accepted.
func (r *Rewinding) Written() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.log)
}

// Rewind loses all but the first n transactions that were accepted.
func (r *Rewinding) Rewind(ctx context.Context, n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.fresh(r.now)
	defer func() { r.past = time.Time{} }()
	for i := range r.log[:n] {
		r.past = time.UnixMicro(r.log[i].at)
		if reply, err := s.Apply(ctx, &r.log[i].x); err != nil || !reply.OK {
			return fmt.Errorf("transaction %d of %d cannot be made again: accepted %v, %w", i, n, reply.OK, err)
		}
	}
	r.Store, r.log = s, r.log[:n]
	return nil
}

// Apply implements [memory.Store].
func (r *Rewinding) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reply, err := r.Store.Apply(ctx, t)
	if err != nil {
		return reply, err
	}
	if reply.OK && !reply.Replay {
		kept := *t
		kept.Clauses = slices.Clone(t.Clauses)
		r.log = append(r.log, entry{kept, reply.Now})
	}
	if err := r.told(t.Agent, t.Task, reply.TaskRev, reply.AgentRev); err != nil {
		return txn.Reply{}, err
	}
	return reply, nil
}

// Load implements [memory.Store].
func (r *Rewinding) Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.Store.Load(ctx, agent, task, have)
	if err != nil {
		return nil, err
	}
	if err := r.told(agent, task, s.Task.Rev, s.Agent.Rev); err != nil {
		return nil, err
	}
	return s, nil
}

// Records implements [memory.Store].
func (r *Rewinding) Records(ctx context.Context, agent, task string, from int64, limit int) ([]txn.Stored, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Store.Records(ctx, agent, task, from, limit)
}

// Queued implements [memory.Store].
func (r *Rewinding) Queued(ctx context.Context, agent, queue string, after txn.Queued, dueOnly bool, limit int) ([]txn.Queued, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Store.Queued(ctx, agent, queue, after, dueOnly, limit)
}

// told compares revisions with those that were told before; what is left counts from then on.
func (r *Rewinding) told(agent, task string, taskRev, agentRev int64) (lost error) {
	note := func(task string, rev int64) {
		key := [2]string{agent, task}
		if had := r.known[key]; rev < had {
			lost = &memory.LostError{Agent: agent, Task: task, Had: had, Has: rev}
		}
		r.known[key] = rev
	}
	if task != "" {
		note(task, taskRev)
	}
	note("", agentRev) // the greater loss is the one that is told
	return lost
}
