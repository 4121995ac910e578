package txn

import "slices"

// Lease is the life of one intent as the store knows it.
type Lease struct {
	Phase Phase // Park, Begin (running), or Settle (ended)
	Fence int64
	Owner string
	Until int64 // store time at which it expires, µs
	Seq   int64 // sequence of the first event of the last accepted transaction
	Step  int64
}

// Live reports whether the intent is running under a lease that has not expired.
func (l Lease) Live(now int64) bool { return l.Phase == Begin && l.Until > now }

// Pending is an outcome that has not been folded into the beliefs yet.
type Pending struct {
	Seq int64
	Val string
}

// Snapshot is what the shell knows of a task and its agent. What it does not hold is unknown; a decision treats it as
// absent and pins it with a clause, so that a wrong guess is refused and brings the truth.
type Snapshot struct {
	State
	Now     int64 // store time of the reading, µs
	Leases  map[string]Lease
	Pending []Pending
	Gap     bool // another worker wrote in between: load again before showing numbers
}

// NewSnapshot returns an empty snapshot.
func NewSnapshot() *Snapshot {
	return &Snapshot{State: NewState(), Leases: map[string]Lease{}}
}

// Reply answers a transaction.
type Reply struct {
	OK       bool
	Replay   bool  // the transaction had been accepted before: Seq is its first answer, all else is as of now
	Failed   int   // where not OK: index of the first condition that does not hold, -1 for the lease and for a task that expired
	Now      int64 // store time, µs
	Seq      int64 // sequence of the first event appended
	Until    int64 // Begin, Renew: when the lease expires
	TaskRev  int64 // revisions after the transaction
	AgentRev int64
	Pending  []Pending // the agent's pending outcomes after the transaction
	// Fresh holds the keys of the transaction's clauses (in the name spaces of Clause.Names), the intent's lease, the
	// revisions and the pending outcomes as they are now: where the transaction was refused, and where it has Read clauses.
	// Maps that no clause names a key of may be nil.
	Fresh *Snapshot
}

// Stored is one record of a ledger.
type Stored struct {
	Seq  int64
	At   int64  // store time, µs
	Val  string // the encoded event
	Link string // chain link, "" while not sealed
}

// Queued is a member of a queue.
type Queued struct {
	Member string
	Due    int64 // store time, µs
}

// Leases is the queue that a store keeps by itself: members "task\nintent", due when the lease expires.
const Leases = "leases"

// Merge takes over what a reply brought: values the snapshot did not know or knew wrongly. Other revisions than its own
// tell that somebody else wrote, and set Gap.
func (s *Snapshot) Merge(fresh *Snapshot, cs []Clause) {
	if fresh == nil {
		return
	}
	for i := range cs {
		c := &cs[i]
		to, from := s.Space(c.Scope), fresh.Space(c.Scope)
		cells, counters, tokens := c.Names()
		if cells {
			renew(&to.Cells, from.Cells, c.Key)
		}
		if counters {
			renew(&to.Counters, from.Counters, c.Key)
		}
		if tokens {
			renew(&to.Tokens, from.Tokens, c.Key)
		}
	}
	for k, l := range fresh.Leases {
		made(&s.Leases)
		s.Leases[k] = l
	}
	s.Now = max(s.Now, fresh.Now)
	elsewhere := fresh.Task.Rev == 0 // the transaction had no task: its reply says nothing of it
	s.Gap = s.Gap || fresh.Task.Rev != s.Task.Rev && !elsewhere || fresh.Agent.Rev != s.Agent.Rev
	if fresh.Agent.Rev == s.Agent.Rev {
		s.Pending = fresh.Pending
	} else {
		s.Pending = unite(s.Pending, fresh.Pending)
	}
}

// trimmed leaves out what the transaction itself has folded.
func (t *Txn) trimmed(known []Pending) []Pending {
	for i := range t.Clauses {
		if c := &t.Clauses[i]; c.Op == Trim {
			return slices.DeleteFunc(slices.Clone(known), func(p Pending) bool { return p.Seq <= c.N })
		}
	}
	return known
}

// unite keeps outcomes that are known beside those that are pending now: another worker may have folded them into cells
// that this snapshot has not seen, and what was observed must not be forgotten until it has.
func unite(known, now []Pending) []Pending {
	out := slices.Clone(known)
	for _, p := range now {
		if n := len(out); n == 0 || out[n-1].Seq < p.Seq {
			out = append(out, p)
		}
	}
	return out
}

func renew[V any](to *map[string]V, from map[string]V, key string) {
	if v, ok := from[key]; ok {
		made(to)
		(*to)[key] = v
	} else {
		delete(*to, key)
	}
}

// Advance applies an accepted transaction to the snapshot. Replies that overtook each other, that the snapshot already
// contains, or that skip somebody else's write set Gap: pins keep decisions right, and the next reading loads again.
func (s *Snapshot) Advance(t *Txn, r Reply) {
	s.Now = max(s.Now, r.Now)
	task, agent := s.Task.Rev, s.Agent.Rev // what they are after t, where nobody else wrote
	inTask, inAgent := t.Raises()
	if inTask {
		task++
	}
	if inAgent {
		agent++
	}
	if t.Task == "" {
		r.TaskRev = task
	}
	s.Gap = s.Gap || r.Replay || r.TaskRev != task || r.AgentRev != agent
	switch {
	case r.Fresh != nil:
		seen := [2]int64{s.Task.Rev, s.Agent.Rev}
		s.Task.Rev, s.Agent.Rev = task, agent // what Fresh has of them, unless somebody else wrote
		s.Merge(r.Fresh, t.Clauses)
		s.Task.Rev, s.Agent.Rev = seen[0], seen[1]
	case r.Replay || r.TaskRev < task || r.AgentRev < agent:
		return
	case r.AgentRev != agent:
		s.Replay(t.Clauses, r.Now)
		s.Pending = unite(t.trimmed(s.Pending), r.Pending)
	default:
		s.Replay(t.Clauses, r.Now)
		s.Pending = r.Pending
	}
	s.Task.Rev, s.Agent.Rev = max(s.Task.Rev, r.TaskRev), max(s.Agent.Rev, r.AgentRev)
}

// Raises reports which revisions the transaction raises where it is accepted: the task's, to which Record counts, and the
// agent's.
func (t *Txn) Raises() (task, agent bool) {
	for i := range t.Clauses {
		switch t.Clauses[i].Raises() {
		case Task:
			task = true
		case Agent:
			agent = true
		}
	}
	return task, agent
}

// Raises returns the scope whose revision the clause raises: Task for writes to Task and Record, Agent for writes to
// Agent and for Pend and Trim, 0 for none.
func (c *Clause) Raises() Scope {
	switch {
	case c.Op == Pend || c.Op == Trim:
		return Agent
	case !c.writes():
		return 0
	case c.Scope == Record:
		return Task
	default:
		return c.Scope
	}
}
