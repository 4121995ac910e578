package memory

import (
	"context"
	"math"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Load implements [Store].
func (s *InProcess) Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error) {
	a, err := s.lock(ctx, agent, false)
	if err != nil {
		return nil, err
	}
	defer a.mu.Unlock()
	if have != nil && have.Gap {
		have = nil
	}
	k := a.task(task)
	n := &txn.Snapshot{Now: s.now(), Pending: slices.Clone(a.pending), Leases: map[string]txn.Lease{}}
	n.Record = txn.NewSpace()
	n.Task, n.Agent = shared(k.space, have, txn.Task), shared(a.space, have, txn.Agent)
	return n, nil
}

// shared returns the space as it was, where it is unchanged, and a copy otherwise.
func shared(now txn.Space, have *txn.Snapshot, sc txn.Scope) txn.Space {
	if have != nil {
		if was := have.Space(sc); was.Rev == now.Rev {
			return *was
		}
	}
	return now.Clone()
}

// Revisions returns the revisions of a task and of its agent as they are now, 0 where there is none, -1 once the store is
// closed; and the store's time, µs. Where they are what a reply said, nobody has written since.
func (s *InProcess) Revisions(agent, task string) (ofTask, ofAgent, now int64) {
	a, err := s.lock(context.Background(), agent, false)
	if err != nil {
		return -1, -1, 0
	}
	defer a.mu.Unlock()
	return a.task(task).space.Rev, a.space.Rev, s.now()
}

// Records implements [Store].
func (s *InProcess) Records(ctx context.Context, agent, task string, from int64, limit int) ([]txn.Stored, error) {
	a, err := s.lock(ctx, agent, false)
	if err != nil {
		return nil, err
	}
	defer a.mu.Unlock()
	if task == "" {
		return a.book.read(from, limit), nil
	}
	return a.task(task).book.read(from, limit), nil
}

// Queued implements [Store].
func (s *InProcess) Queued(ctx context.Context, agent, queue string, after txn.Queued, dueOnly bool, limit int) ([]txn.Queued, error) {
	a, err := s.lock(ctx, agent, false)
	if err != nil {
		return nil, err
	}
	defer a.mu.Unlock()
	until := int64(math.MaxInt64)
	if dueOnly {
		until = s.now()
	}
	if queue == txn.Leases {
		return a.leases.page(after, until, limit), nil
	}
	if q := a.queues[queue]; q != nil {
		return q.page(after, until, limit), nil
	}
	return nil, nil
}
