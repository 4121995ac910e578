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
	n := txn.NewSnapshot()
	n.Now, n.Pending = s.now(), slices.Clone(a.pending)
	n.Task, n.Agent = a.task(task).space, a.space
	if have != nil && have.Task.Rev == n.Task.Rev {
		n.Task = have.Task
	} else {
		n.Task = n.Task.Clone()
	}
	if have != nil && have.Agent.Rev == n.Agent.Rev {
		n.Agent = have.Agent
	} else {
		n.Agent = n.Agent.Clone()
	}
	return n, nil
}

// Records implements [Store].
func (s *InProcess) Records(ctx context.Context, agent, task string, from int64, limit int) ([]txn.Stored, error) {
	a, err := s.lock(ctx, agent, false)
	if err != nil {
		return nil, err
	}
	defer a.mu.Unlock()
	book := a.ledger
	if task != "" {
		book = a.task(task).ledger
	}
	from = max(from, 1)
	if from > int64(len(book)) || limit <= 0 {
		return nil, nil
	}
	book = book[from-1:]
	return slices.Clone(book[:min(limit, len(book))]), nil
}

// Queued implements [Store].
func (s *InProcess) Queued(ctx context.Context, agent, queue string, after txn.Queued, dueOnly bool, limit int) ([]txn.Queued, error) {
	a, err := s.lock(ctx, agent, false)
	if err != nil {
		return nil, err
	}
	defer a.mu.Unlock()
	q := a.queues[queue]
	if q == nil {
		return nil, nil
	}
	until := int64(math.MaxInt64)
	if dueOnly {
		until = s.now()
	}
	return q.page(after, until, limit), nil
}
