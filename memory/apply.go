package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Apply implements [Store].
func (s *InProcess) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	if err := t.Check(); err != nil {
		return txn.Reply{}, fmt.Errorf("apply: %w", err)
	}
	a, err := s.lock(ctx, t.Agent, true)
	if err != nil {
		return txn.Reply{}, err
	}
	defer a.mu.Unlock()
	k := a.task(t.Task)
	r := a.apply(t, k, s.now())
	r.Pending = slices.Clone(a.pending)
	r.TaskRev, r.AgentRev = k.space.Rev, a.space.Rev
	if !r.OK || reads(t.Clauses) {
		r.Fresh = a.fresh(t, k, r.Now)
	}
	return r, nil
}

// apply is the whole transaction but for what every reply carries.
func (a *shard) apply(t *txn.Txn, k *task, now int64) txn.Reply {
	l, has := k.leases[t.Intent]
	if t.Phase != txn.Plain {
		if has && l.repeats(t, now) {
			return txn.Reply{OK: true, Replay: true, Now: now, Seq: l.Seq, Until: l.Until}
		}
		if !l.permits(t, has, now) {
			return txn.Reply{Failed: -1, Now: now}
		}
	}
	state := txn.State{Task: k.space, Record: k.record, Agent: a.space}
	if i := state.Apply(t.Clauses, now); i >= 0 { // writes reach the spaces through their maps
		return txn.Reply{Failed: i, Now: now}
	}
	if t.Task != "" {
		a.tasks[t.Task] = k
	}
	a.raise(t, k)
	r := txn.Reply{OK: true, Now: now, Seq: a.append(t, k, now)}
	if t.Phase != txn.Plain {
		l = l.after(t, now, r.Seq)
		k.leases[t.Intent], r.Until = l, l.Until
		a.schedule(t, l)
	}
	return r
}

func reads(cs []txn.Clause) bool {
	return slices.ContainsFunc(cs, func(c txn.Clause) bool { return c.Op == txn.Read })
}

// raise counts the transaction in the revision of each space it writes to.
func (a *shard) raise(t *txn.Txn, k *task) {
	var inTask, inAgent bool
	for i := range t.Clauses {
		switch t.Clauses[i].Raises() {
		case txn.Task:
			inTask = true
		case txn.Agent:
			inAgent = true
		}
	}
	if inTask {
		k.space.Rev++
	}
	if inAgent {
		a.space.Rev++
	}
}

// append does what has no condition: ledgers, pending outcomes and queues. It returns the sequence of the first event.
func (a *shard) append(t *txn.Txn, k *task, now int64) (first int64) {
	for i := range t.Clauses {
		c := &t.Clauses[i]
		switch c.Op {
		case txn.Event:
			book := a.book(k, c.Scope)
			seq := int64(len(*book)) + 1
			*book = append(*book, txn.Stored{Seq: seq, At: now, Val: c.Val})
			if first == 0 {
				first = seq
			}
		case txn.Link:
			book := *a.book(k, c.Scope)
			if 1 <= c.N && c.N <= int64(len(book)) && book[c.N-1].Link == "" {
				book[c.N-1].Link = c.Val
			}
		case txn.Pend:
			a.pended++
			a.pending = append(a.pending, txn.Pending{Seq: a.pended, Val: c.Val})
		case txn.Trim:
			a.pending = slices.DeleteFunc(a.pending, func(p txn.Pending) bool { return p.Seq <= c.N })
		case txn.Queue:
			a.queue(c.Key).put(c.Val, now+c.N)
		case txn.Unqueue:
			a.queue(c.Key).drop(c.Val)
		}
	}
	return first
}

// book returns the ledger of a scope.
func (a *shard) book(k *task, sc txn.Scope) *[]txn.Stored {
	if sc == txn.Agent {
		return &a.ledger
	}
	return &k.ledger
}

// schedule keeps the queue of leases: what runs is in it, due when its lease expires.
func (a *shard) schedule(t *txn.Txn, l lease) {
	member := t.Task + "\n" + t.Intent
	if l.Phase == txn.Begin {
		a.queue(txn.Leases).put(member, l.Until)
	} else {
		a.queue(txn.Leases).drop(member)
	}
}

// fresh returns the keys that the transaction names, the lease of its intent and the pending outcomes, as they are now.
func (a *shard) fresh(t *txn.Txn, k *task, now int64) *txn.Snapshot {
	f := txn.NewSnapshot()
	f.Now, f.Pending = now, slices.Clone(a.pending)
	state := txn.State{Task: k.space, Record: k.record, Agent: a.space}
	for i := range t.Clauses {
		c := &t.Clauses[i]
		from, to := state.Space(c.Scope), f.Space(c.Scope)
		cells, counters, tokens := c.Names()
		if cells {
			copyKey(to.Cells, from.Cells, c.Key)
		}
		if counters {
			copyKey(to.Counters, from.Counters, c.Key)
		}
		if tokens {
			copyKey(to.Tokens, from.Tokens, c.Key)
		}
	}
	f.Task.Rev, f.Agent.Rev = k.space.Rev, a.space.Rev
	if l, ok := k.leases[t.Intent]; ok {
		f.Leases[t.Intent] = l.Lease
	}
	return f
}

func copyKey[V any](to, from map[string]V, key string) {
	if v, ok := from[key]; ok {
		to[key] = v
	}
}
