package delta

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// intake is what was noted for the keeper and is not taken up yet. Agents that work at the same time do not wait for each
// other here: each has its lane.
type intake struct {
	lanes [laneCount]lane
	noted atomic.Int64 // since it was last taken up
	books atomic.Int64 // how many ledgers that is about
	seed  maphash.Seed
}

const laneCount = 16

type lane struct {
	mu     sync.Mutex
	agents map[string]bool
	tasks  map[book]*tail
	_      [64]byte // two lanes do not share a cache line
}

// tail is the end of a ledger as this engine wrote it, so that sealing need not read it.
type tail struct {
	records []txn.Stored
	lost    bool // not all of it is here
}

// tailRecords bounds what is kept of one ledger's tail; beyond, it is read.
const tailRecords = 256

func newIntake() *intake { return &intake{seed: maphash.MakeSeed()} }

func (n *intake) lane(agent string) *lane {
	return &n.lanes[maphash.String(n.seed, agent)%laneCount]
}

// agent notes that an agent has outcomes to fold; it returns how much is noted.
func (n *intake) agent(name string) int64 {
	l := n.lane(name)
	l.mu.Lock()
	if l.agents == nil {
		l.agents = map[string]bool{}
	}
	l.agents[name] = true
	l.mu.Unlock()
	return n.noted.Add(1)
}

// book notes that a ledger has records to seal. Those that were just written, if it is known where, are remembered.
func (n *intake) book(b book, written ...txn.Stored) int64 {
	l := n.lane(b.agent)
	l.mu.Lock()
	if l.tasks == nil {
		l.tasks = map[book]*tail{}
	}
	t := l.tasks[b]
	if t == nil {
		t = &tail{}
		l.tasks[b] = t
		n.books.Add(1)
	}
	t.add(written)
	l.mu.Unlock()
	return n.noted.Add(1)
}

// add keeps the records where there is room.
func (t *tail) add(written []txn.Stored) {
	switch {
	case t.lost:
	case len(written) == 0 || len(t.records)+len(written) > tailRecords:
		t.lost, t.records = true, nil
	default:
		t.records = append(t.records, written...)
	}
}

// after returns the records that follow a sequence; false where some are not here.
func (t *tail) after(seq int64) ([]txn.Stored, bool) {
	if t == nil || t.lost {
		return nil, false
	}
	slices.SortFunc(t.records, func(a, b txn.Stored) int { return cmp.Compare(a.Seq, b.Seq) })
	rest := t.records
	for len(rest) > 0 && rest[0].Seq <= seq {
		rest = rest[1:]
	}
	for i := range rest {
		if rest[i].Seq != seq+int64(i)+1 {
			return nil, false // another engine's records lie between
		}
	}
	return rest, true
}

// due reports whether anything is noted.
func (n *intake) due() bool { return n.noted.Load() > 0 }

// take returns what is noted, which is noted no more.
func (n *intake) take() (agents map[string]bool, books map[book]*tail) {
	n.noted.Store(0) // first: what comes meanwhile counts, though it may be taken already
	n.books.Store(0)
	agents, books = map[string]bool{}, map[book]*tail{}
	for i := range n.lanes {
		l := &n.lanes[i]
		l.mu.Lock()
		a, b := l.agents, l.tasks
		l.agents, l.tasks = nil, nil
		l.mu.Unlock()
		for name := range a {
			agents[name] = true
		}
		for of, t := range b {
			books[of] = t
		}
	}
	return agents, books
}

// takeAgents returns the agents that have outcomes to fold; ledgers stay noted.
func (n *intake) takeAgents() map[string]bool {
	agents := map[string]bool{}
	for i := range n.lanes {
		l := &n.lanes[i]
		l.mu.Lock()
		a := l.agents
		l.agents = nil
		l.mu.Unlock()
		for name := range a {
			agents[name] = true
		}
	}
	return agents
}
