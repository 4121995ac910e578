package memory

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// DefaultKeep is how long the in-process store keeps what ended where its Config does not say.
const DefaultKeep = 24 * time.Hour

// Config configures the in-process store. Its zero value is ready to use.
type Config struct {
	// Clock gives the store's time; nil means time.Now. Store time never runs backwards, whatever Clock says.
	Clock func() time.Time
	// Keep is how long intents and tasks that ended are kept at least; see [Store] for what goes then. As long as a call
	// is kept, its repeat gets its outcome again; later, as long as its task is there, it is refused and does not run. 0 is
	// [DefaultKeep], less than 0 keeps all.
	Keep time.Duration
}

// InProcess is the [Store] that needs nothing installed. It is volatile: what it holds ends with the process. Until then
// it keeps every ledger, and what ended for Config.Keep; what is due to go goes with later transactions of its agent, some
// at a time. Agents do not wait for each other; the transactions of one agent are serialised by one lock.
type InProcess struct {
	clock  func() time.Time
	keep   int64        // µs; less than 0 for ever
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
	if c.Keep == 0 {
		c.Keep = DefaultKeep
	}
	keep := c.Keep.Microseconds()
	if c.Keep < 0 {
		keep = -1
	}
	return &InProcess{clock: c.Clock, keep: keep}
}

// shard is what the store holds of one agent.
type shard struct {
	mu      sync.Mutex
	keep    int64 // as in InProcess
	space   txn.Space
	book    book
	tasks   map[string]*task
	none    task // stays empty
	queues  map[string]*queue
	leases  leases
	pending []txn.Pending // not yet folded, in order of sequence
	spare   []txn.Pending // room for copies of it, see copied
	pended  int64         // sequence of the last outcome pended
	intents pool[intent]  // of all tasks
	owned   pool[owned]   // of all intents
	ends    []end         // what is due to go, in order
	notes   memories
}

// task is what the store holds of one task.
type task struct {
	space   txn.Space
	record  txn.Space
	intents map[string]int32 // place in the shard's pool
	book    book

	known   bool  // the shard keeps it
	over    bool  // an Expire said so
	lively  int   // intents that run, or are kept by an Expire
	due     int64 // store time from which it may go; 0 while that is not known
	expired bool  // its keys are gone; its ledger stays
}

func newShard(keep int64) *shard {
	return &shard{keep: keep, tasks: map[string]*task{}, queues: map[string]*queue{}}
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
		v, _ = s.agents.LoadOrStore(agent, newShard(s.keep))
	default:
		v = newShard(s.keep)
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
	if name == "" { // of the agent alone: nothing is written to it
		return &a.none
	}
	return &task{}
}

// Close implements [Store].
func (s *InProcess) Close() error {
	if s.closed.Swap(true) {
		return ErrClosed
	}
	s.agents.Clear()
	return nil
}
