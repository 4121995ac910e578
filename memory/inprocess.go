package memory

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Config configures the in-process store. Its zero value is ready to use.
type Config struct {
	// Clock gives the store's time; nil means time.Now. Store time never runs backwards, whatever Clock says.
	Clock func() time.Time
}

// InProcess is the [Store] that needs nothing installed. It is volatile: what it holds ends with the process, and it
// keeps every record and lease until then. Agents do not wait for each other; the transactions of one agent are
// serialised by one lock.
type InProcess struct {
	clock  func() time.Time
	last   atomic.Int64 // latest store time given out, µs
	closed atomic.Bool
	agents sync.Map // name → *shard
}

var _ Store = (*InProcess)(nil)

// New returns an empty store.
func New(c Config) *InProcess {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return &InProcess{clock: c.Clock}
}

// shard is what the store holds of one agent.
type shard struct {
	mu      sync.Mutex
	space   txn.Space
	ledger  []txn.Stored
	tasks   map[string]*task
	queues  map[string]*queue
	pending []txn.Pending // not yet folded, in order of sequence
	pended  int64         // sequence of the last outcome pended
	notes   notes
}

// task is what the store holds of one task.
type task struct {
	space  txn.Space
	record txn.Space
	leases map[string]lease
	ledger []txn.Stored
}

func newShard() *shard {
	return &shard{space: txn.NewSpace(), tasks: map[string]*task{}, queues: map[string]*queue{}}
}

func newTask() *task {
	return &task{space: txn.NewSpace(), record: txn.NewSpace(), leases: map[string]lease{}}
}

// now returns the store time in µs: the clock's, or the latest given out where the clock went back.
func (s *InProcess) now() int64 {
	t := s.clock().UnixMicro()
	for {
		last := s.last.Load()
		if t <= last {
			return last
		}
		if s.last.CompareAndSwap(last, t) {
			return t
		}
	}
}

// open reports why a call cannot be served.
func (s *InProcess) open(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return ctx.Err()
}

// lock returns the agent's shard, locked. Reading an agent that was never written to leaves no trace: it gets an empty
// shard of its own.
func (s *InProcess) lock(ctx context.Context, agent string, create bool) (*shard, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	v, ok := s.agents.Load(agent)
	switch {
	case ok:
	case create:
		v, _ = s.agents.LoadOrStore(agent, newShard())
	default:
		v = newShard()
	}
	a := v.(*shard)
	a.mu.Lock()
	if err := s.open(ctx); err != nil { // the lock may have been long in coming
		a.mu.Unlock()
		return nil, err
	}
	return a, nil
}

// task returns the task, or an empty one that is not kept yet.
func (a *shard) task(name string) *task {
	if t := a.tasks[name]; t != nil {
		return t
	}
	return newTask()
}

// Close implements [Store].
func (s *InProcess) Close() error {
	if s.closed.Swap(true) {
		return ErrClosed
	}
	s.agents.Clear()
	return nil
}
