package faulty

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// ErrLost is the error of a call that a [Store] lost. Its caller cannot know whether the call took effect.
var ErrLost = errors.New("lost on the way")

// Fault is what happens to a call.
type Fault int

// The faults.
const (
	None        Fault = iota
	LostRequest       // the store never sees the call
	LostReply         // the store serves the call, the caller gets ErrLost
)

// Plan tells the fault of a call by its number; the first call is 1.
type Plan func(call int) Fault

// FailAt plans the fault for the calls of these numbers.
func FailAt(f Fault, calls ...int) Plan {
	return func(call int) Fault {
		if slices.Contains(calls, call) {
			return f
		}
		return None
	}
}

// FailFrom plans the fault for every call from the given number on: a store that is down.
func FailFrom(f Fault, first int) Plan {
	return func(call int) Fault {
		if call >= first {
			return f
		}
		return None
	}
}

// FailRandomly plans lost requests and lost replies with these probabilities, the same for the same seed.
func FailRandomly(seed uint64, request, reply float64) Plan {
	rnd := rand.New(rand.NewPCG(seed, 0))
	return func(int) Fault {
		switch x := rnd.Float64(); {
		case x < request:
			return LostRequest
		case x < request+reply:
			return LostReply
		}
		return None
	}
}

// Store is a store that loses calls by plan. Every method but Close counts as a call.
type Store struct {
	store memory.Store
	mu    sync.Mutex
	plan  Plan
	calls int
	lost  int
}

var _ memory.Store = (*Store)(nil)

// New wraps the store; a nil plan loses nothing. The plan is not called from two goroutines at a time.
func New(s memory.Store, plan Plan) *Store {
	return &Store{store: s, plan: plan}
}

// Replan sets another plan; the numbers of calls go on.
func (f *Store) Replan(plan Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = plan
}

// Calls returns how many calls there were, and how many of them were lost.
func (f *Store) Calls() (calls, lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls, f.lost
}

func (f *Store) next() Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.plan == nil {
		return None
	}
	fault := f.plan(f.calls)
	if fault != None {
		f.lost++
	}
	return fault
}

// through serves a call under the plan.
func through[V any](f *Store, call func() (V, error)) (V, error) {
	var zero V
	fault := f.next()
	if fault == LostRequest {
		return zero, ErrLost
	}
	v, err := call()
	if fault == LostReply {
		return zero, ErrLost
	}
	return v, err
}

// Apply implements [memory.Store].
func (f *Store) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	return through(f, func() (txn.Reply, error) { return f.store.Apply(ctx, t) })
}

// Load implements [memory.Store].
func (f *Store) Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error) {
	return through(f, func() (*txn.Snapshot, error) { return f.store.Load(ctx, agent, task, have) })
}

// Records implements [memory.Store].
func (f *Store) Records(ctx context.Context, agent, task string, from int64, limit int) ([]txn.Stored, error) {
	return through(f, func() ([]txn.Stored, error) { return f.store.Records(ctx, agent, task, from, limit) })
}

// Queued implements [memory.Store].
func (f *Store) Queued(ctx context.Context, agent, queue string, after txn.Queued, dueOnly bool, limit int) ([]txn.Queued, error) {
	return through(f, func() ([]txn.Queued, error) { return f.store.Queued(ctx, agent, queue, after, dueOnly, limit) })
}

// Remember implements [memory.Store].
func (f *Store) Remember(ctx context.Context, agent string, n memory.Note) error {
	_, err := through(f, func() (struct{}, error) { return struct{}{}, f.store.Remember(ctx, agent, n) })
	return err
}

// Recall implements [memory.Store].
func (f *Store) Recall(ctx context.Context, agent, tenant, query string, limit int) ([]memory.Note, error) {
	return through(f, func() ([]memory.Note, error) { return f.store.Recall(ctx, agent, tenant, query, limit) })
}

// Close implements [memory.Store]; it is never lost.
func (f *Store) Close() error { return f.store.Close() }
