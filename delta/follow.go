package delta

import (
	"slices"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// What this engine knows of a task, and of an agent, is the state of the store at one revision, of each its own. Replies to
// transactions that were under way at the same time come in any order: one that skips revisions is kept until those before
// it are known. As long as a transaction of this engine's own is under way that may have made them, nothing is wrong: what
// is known is a moment old, pins keep decisions right, and no reading is needed. Else somebody else made them, and the space
// is read anew.

// follow says how far a space is known to go beyond what is known of it.
type follow struct {
	told  int64   // the highest revision that a reply named
	since uint64  // how much this engine had sent when it was known first that the next revision is missing
	ahead []later // what follows revisions that are missing, in order
}

// later is what a transaction of this engine wrote to a space, for when the revisions before it are known.
type later struct {
	rev, now int64
	clauses  []txn.Clause
	pending  []txn.Pending // of an agent
	worse    bool          // what it wrote to an agent is not benign
}

// aheadKept bounds what waits for missing revisions; beyond it the space is read anew.
const aheadKept = 1024

// flown is a transaction under way.
type flown struct {
	x           *txn.Txn
	n           uint64
	task, agent bool // what it raises the revision of
}

// hear notes a revision that a reply named, where it is beyond what is known.
func (f *follow) hear(rev, known int64, sent uint64) {
	if f.told <= known {
		f.since = sent
	}
	f.told = max(f.told, rev)
}

// hold keeps what is ahead; false where there is no room.
func (f *follow) hold(l later) bool {
	if len(f.ahead) >= aheadKept {
		f.ahead = nil
		return false
	}
	at, _ := slices.BinarySearchFunc(f.ahead, l.rev, func(x later, rev int64) int { return int(x.rev - rev) })
	f.ahead = slices.Insert(f.ahead, at, l)
	return true
}

// next takes what follows a revision; false where that is still missing.
func (f *follow) next(known int64) (l later, ok bool) {
	for len(f.ahead) > 0 && f.ahead[0].rev <= known {
		f.ahead = f.ahead[1:]
	}
	if len(f.ahead) == 0 || f.ahead[0].rev != known+1 {
		return l, false
	}
	l, f.ahead = f.ahead[0], f.ahead[1:]
	return l, true
}

// read notes that a space was read. What had been told before the reading was asked for is not missing any more.
func (f *follow) read(told, rev int64) {
	if f.told == told {
		f.told = rev
	}
}

// sends notes that a transaction is under way; [Task.advance] or [Task.merge] takes it back, or lands where there is none.
func (a *agentState) sends(x *txn.Txn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent++
	task, agent := x.Raises()
	a.flying = append(a.flying, flown{x, a.sent, task, agent})
}

// lands notes that a transaction is under way no more; the caller holds the lock.
func (a *agentState) lands(x *txn.Txn) {
	for i := range a.flying {
		if a.flying[i].x == x {
			last := len(a.flying) - 1
			a.flying[i] = a.flying[last]
			a.flying[last] = flown{}
			a.flying = a.flying[:last]
			return
		}
	}
}

// landed is lands for who does not hold the lock: what was sent got no answer, or changed nothing.
func (a *agentState) landed(x *txn.Txn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lands(x)
}

// lags reports whether the agent must be read anew; the caller holds the lock.
func (a *agentState) lags() bool {
	if !a.gap && a.flow.told > a.space.Rev {
		a.gap = !slices.ContainsFunc(a.flying, func(f flown) bool { return f.agent && f.n <= a.flow.since })
	}
	return a.gap
}

// lags reports whether the task must be read anew; the caller holds the lock.
func (t *Task) lags() bool {
	if !t.gap && t.flow.told > t.space.Rev {
		t.gap = !slices.ContainsFunc(t.state.flying, func(f flown) bool {
			return f.task && f.n <= t.flow.since && f.x.Task == t.local
		})
	}
	return t.gap
}

// behind reports whether something is known to be missing of the task; the caller holds the lock.
func (t *Task) behind() bool { return t.gap || t.flow.told > t.space.Rev }

func (a *agentState) behind() bool { return a.gap || a.flow.told > a.space.Rev }

// inOrder reports whether a reply follows what is known of both spaces.
func (t *Task) inOrder(x *txn.Txn, r *txn.Reply) bool {
	inTask, inAgent := x.Raises()
	return !r.Replay && r.TaskRev == t.space.Rev+one(inTask) && r.AgentRev == t.state.space.Rev+one(inAgent)
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// outOfOrder is advance for a reply that others overtook, or that overtook others.
func (t *Task) outOfOrder(x *txn.Txn, r *txn.Reply, own *sight) {
	a := t.state
	if r.Now >= a.now {
		a.now, a.at = r.Now, t.engine.cfg.Now()
	}
	if own != nil {
		own.wrote(x, r)
	}
	if r.Replay {
		t.gap, a.gap = true, true
		return
	}
	inTask, inAgent := x.Raises()
	switch rev := r.TaskRev; {
	case rev <= t.space.Rev:
	case inTask && rev == t.space.Rev+1 && r.Fresh == nil:
		t.follow(later{rev: rev, now: r.Now, clauses: x.Clauses})
	case inTask && (r.Fresh != nil || !t.flow.hold(later{rev: rev, now: r.Now, clauses: of(x.Clauses, txn.Task)})):
		t.gap = true
	default:
		t.flow.hear(rev, t.space.Rev, a.sent)
	}
	a.outOfOrder(x, r, inAgent, !benign(x))
}

func (a *agentState) outOfOrder(x *txn.Txn, r *txn.Reply, raised, worse bool) {
	switch rev := r.AgentRev; {
	case rev <= a.space.Rev:
	case raised && rev == a.space.Rev+1 && r.Fresh == nil:
		a.follow(later{rev, r.Now, x.Clauses, r.Pending, worse})
	case raised && (r.Fresh != nil || !a.flow.hold(later{rev, r.Now, of(x.Clauses, txn.Agent), r.Pending, worse})):
		a.gap = true
	default:
		a.flow.hear(rev, a.space.Rev, a.sent)
	}
}

// benign reports whether what a call's transaction wrote to the agent makes no other call riskier than it was when the
// revision before was known: successes do not.
func benign(x *txn.Txn) bool {
	for i := range x.Clauses {
		c := &x.Clauses[i]
		if c.Raises() == txn.Agent && (c.Op != txn.Pend || engine.Failed(c.Val)) {
			return false
		}
	}
	return true
}

// of returns copies of the clauses that write to a scope.
func of(cs []txn.Clause, sc txn.Scope) (out []txn.Clause) {
	for i := range cs {
		if c := &cs[i]; c.Scope == sc && c.Raises() == sc {
			out = append(out, *c)
		}
	}
	return out
}

// follow moves the task on by what follows, and by all that was waiting for it.
func (t *Task) follow(l later) {
	s := &txn.Snapshot{State: txn.State{Task: t.space}}
	before := engine.CountFacts(&t.space, l.clauses)
	for i := range l.clauses {
		if c := &l.clauses[i]; c.Scope == txn.Task {
			s.Write(c, l.now)
		}
	}
	t.space = s.Task
	t.space.Rev, t.flow.since = l.rev, t.state.sent
	t.state.edition++
	if t.facted >= 0 {
		t.facted += engine.CountFacts(&t.space, l.clauses) - before
	}
	if t.set != nil {
		engine.NoteFacts(t.set, s, l.clauses)
	}
}

// moved takes what waited for what is known now, and tells who waits for it; the caller holds the lock.
func (t *Task) moved() {
	for l, ok := t.flow.next(t.space.Rev); ok; l, ok = t.flow.next(t.space.Rev) {
		t.follow(l)
	}
	t.state.caughtUp()
}

// follow moves the agent on.
func (a *agentState) follow(l later) {
	s := txn.State{Agent: a.space}
	for i := range l.clauses {
		if c := &l.clauses[i]; c.Scope == txn.Agent {
			s.Write(c, l.now)
		}
	}
	a.space, a.pending = s.Agent, l.pending
	a.space.Rev, a.flow.since = l.rev, a.sent
	if l.worse {
		a.worse = l.rev
	}
	a.edition++
}

// caughtUp is moved for an agent alone.
func (a *agentState) caughtUp() {
	for l, ok := a.flow.next(a.space.Rev); ok; l, ok = a.flow.next(a.space.Rev) {
		a.follow(l)
	}
	if a.moved != nil {
		close(a.moved)
		a.moved = nil
	}
}

// wrote has a call's own sight know what its transaction wrote to cold cells, and what a reply brought of them.
func (own *sight) wrote(x *txn.Txn, r *txn.Reply) {
	s := txn.Snapshot{State: txn.State{Record: own.record}, Leases: own.leases}
	if r.Fresh != nil {
		s.Task.Rev, s.Agent.Rev = r.Fresh.Task.Rev, r.Fresh.Agent.Rev
		s.Merge(r.Fresh, x.Clauses)
	} else if !r.Replay {
		for i := range x.Clauses {
			if c := &x.Clauses[i]; c.Scope == txn.Record {
				s.Write(c, r.Now)
			}
		}
	}
	own.record, own.leases = s.Record, s.Leases
}
