package subject

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/conformance"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// errLost is the error of an access that was lost.
var errLost = errors.New("the store does not answer")

// faulty loses accesses by plan. Closing it closes nothing: the store outlives engines.
type faulty struct {
	memory.Store
	mu    sync.Mutex
	fault conformance.Fault
	n     int
}

func (f *faulty) plan(fault conformance.Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.n = fault, 0
}

// lost counts an access and says what happens to it.
func (f *faulty) lost(write bool) (request, reply bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.fault
	if p.From == 0 || p.Writes && !write {
		return false, false
	}
	f.n++
	if f.n < p.From || p.To > 0 && f.n > p.To {
		return false, false
	}
	return !p.Reply, p.Reply
}

func through[V any](f *faulty, write bool, call func() (V, error)) (V, error) {
	var zero V
	request, reply := f.lost(write)
	if request {
		return zero, errLost
	}
	v, err := call()
	if reply {
		return zero, errLost
	}
	return v, err
}

// Apply implements [memory.Store].
func (f *faulty) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	write := false
	for i := range t.Clauses {
		op := t.Clauses[i].Op
		write = write || op != txn.Read && op != txn.Expect && op != txn.Have && op != txn.Time
	}
	return through(f, write, func() (txn.Reply, error) { return f.Store.Apply(ctx, t) })
}

// Load implements [memory.Store].
func (f *faulty) Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error) {
	return through(f, false, func() (*txn.Snapshot, error) { return f.Store.Load(ctx, agent, task, have) })
}

// Records implements [memory.Store].
func (f *faulty) Records(ctx context.Context, agent, task string, from int64, limit int) ([]txn.Stored, error) {
	return through(f, false, func() ([]txn.Stored, error) { return f.Store.Records(ctx, agent, task, from, limit) })
}

// Queued implements [memory.Store].
func (f *faulty) Queued(ctx context.Context, agent, queue string, after txn.Queued, dueOnly bool, limit int) ([]txn.Queued, error) {
	return through(f, false, func() ([]txn.Queued, error) { return f.Store.Queued(ctx, agent, queue, after, dueOnly, limit) })
}

// Close implements [memory.Store].
func (f *faulty) Close() error { return nil }
