package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Apply implements [Store].
func (s *InProcess) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	return s.transact(ctx, t, (*shard).copied)
}

// ApplyShared is Apply for who does not change the pending outcomes of the reply: they are shared with others who read
// them.
func (s *InProcess) ApplyShared(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	return s.transact(ctx, t, (*shard).tail)
}

func (s *InProcess) transact(ctx context.Context, t *txn.Txn, tail func(*shard) []txn.Pending) (txn.Reply, error) {
	if err := t.Check(); err != nil {
		return txn.Reply{}, fmt.Errorf("apply: %w", err)
	}
	a, err := s.lock(ctx, t.Agent, true)
	if err != nil {
		return txn.Reply{}, err
	}
	defer a.mu.Unlock()
	now := s.now()
	a.sweep(now)
	k := a.task(t.Task)
	r := a.apply(t, k, now)
	r.Pending = tail(a)
	r.TaskRev, r.AgentRev = k.space.Rev, a.space.Rev
	if !r.OK || reads(t.Clauses) {
		r.Fresh = a.fresh(t, k, r.Now)
	}
	return r, nil
}

// apply is the whole transaction but for what every reply carries.
func (a *shard) apply(t *txn.Txn, k *task, now int64) txn.Reply {
	var l lease
	i := k.intents[t.Intent]
	if i != 0 {
		l = a.intents.at(i).lease
	}
	if t.Phase != txn.Plain {
		if i != 0 && l.repeats(t, now) {
			return txn.Reply{OK: true, Replay: true, Now: now, Seq: l.Seq, Until: l.Until}
		}
		if !l.permits(t, i != 0, now) {
			return txn.Reply{Failed: -1, Now: now}
		}
	}
	if k.refuses(t) {
		return txn.Reply{Failed: -1, Now: now}
	}
	state := txn.State{Task: k.space, Record: k.record, Agent: a.space}
	if i := state.Apply(t.Clauses, now); i >= 0 {
		return txn.Reply{Failed: i, Now: now}
	}
	k.space, k.record, a.space = state.Task, state.Record, state.Agent
	if t.Task != "" && !k.known {
		k.known = true
		a.tasks[t.Task] = k
	}
	a.raise(t, k)
	r := txn.Reply{OK: true, Now: now, Seq: a.append(t, k, now)}
	if t.Phase != txn.Plain {
		r.Until = a.relet(t, k, i, l.after(t, now, r.Seq))
	}
	a.retain(t, k, now)
	return r
}

// relet leaves the lease as the transaction wants it, and returns when it expires.
func (a *shard) relet(t *txn.Txn, k *task, i int32, l lease) int64 {
	if i == 0 {
		i = a.intents.take()
		if k.intents == nil {
			k.intents = map[string]int32{}
		}
		k.intents[t.Intent] = i
	}
	x := a.intents.at(i)
	if x.Phase == txn.Begin {
		a.leases.drop(t.Task, t.Intent, x.Until)
	}
	was := x.lively()
	x.lease = l
	k.count(was, x.lively())
	if l.Phase == txn.Begin {
		a.leases.put(t.Task, t.Intent, l.Until)
	}
	return l.Until
}

// handed is how many outcomes are handed out of one allocation.
const handed = 256

// copied returns a copy of what is pending. Copies are cut from a larger piece, of which nobody else gets the same part.
func (a *shard) copied() []txn.Pending {
	n := len(a.pending)
	if n == 0 || n > handed/4 {
		return slices.Clone(a.pending)
	}
	if len(a.spare) < n {
		a.spare = make([]txn.Pending, handed)
	}
	out := a.spare[:n:n]
	a.spare = a.spare[n:]
	copy(out, a.pending)
	return out
}

// tail returns what is pending, to be read only: an outcome is never changed once it is there, and what comes later comes behind
// what was handed out.
func (a *shard) tail() []txn.Pending {
	n := len(a.pending)
	return a.pending[:n:n]
}

func reads(cs []txn.Clause) bool {
	for i := range cs {
		if cs[i].Op == txn.Read {
			return true
		}
	}
	return false
}

// raise counts the transaction in the revision of each space it writes to.
func (a *shard) raise(t *txn.Txn, k *task) {
	inTask, inAgent := t.Raises()
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
			seq := a.ledger(k, c.Scope).write(now, c.Val)
			if first == 0 {
				first = seq
			}
		case txn.Link:
			a.ledger(k, c.Scope).link(c.N, c.Val)
		case txn.Pend:
			a.pended++
			a.pending = push(a.pending, txn.Pending{Seq: a.pended, Val: c.Val})
		case txn.Trim:
			for len(a.pending) > 0 && a.pending[0].Seq <= c.N {
				a.pending = a.pending[1:]
			}
		case txn.Queue:
			a.queue(c.Key).put(c.Val, now+c.N)
		case txn.Unqueue:
			a.unqueue(c.Key, c.Val)
		}
	}
	return first
}

// ledger returns the ledger of a scope.
func (a *shard) ledger(k *task, sc txn.Scope) *book {
	if sc == txn.Agent {
		return &a.book
	}
	return &k.book
}

// fresh returns the keys that the transaction names, the lease of its intent and the pending outcomes, as they are now.
func (a *shard) fresh(t *txn.Txn, k *task, now int64) *txn.Snapshot {
	f := &txn.Snapshot{Now: now, Pending: a.copied()}
	state := txn.State{Task: k.space, Record: k.record, Agent: a.space}
	for i := range t.Clauses {
		c := &t.Clauses[i]
		from, to := state.Space(c.Scope), f.Space(c.Scope)
		cells, counters, tokens := c.Names()
		if cells {
			copyKey(&to.Cells, from.Cells, c.Key)
		}
		if counters {
			copyKey(&to.Counters, from.Counters, c.Key)
		}
		if tokens {
			copyKey(&to.Tokens, from.Tokens, c.Key)
		}
	}
	f.Task.Rev, f.Agent.Rev = k.space.Rev, a.space.Rev
	if i := k.intents[t.Intent]; i != 0 {
		f.Leases = map[string]txn.Lease{t.Intent: a.intents.at(i).Lease}
	}
	return f
}

func copyKey[V any](to *map[string]V, from map[string]V, key string) {
	if *to == nil {
		*to = map[string]V{}
	}
	if v, ok := from[key]; ok {
		(*to)[key] = v
	}
}
