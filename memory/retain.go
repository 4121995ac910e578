package memory

import "github.com/seed-ab2cfece/delta-agents/txn"

// intent is what the store keeps of one intent: its lease, and what goes with it.
type intent struct {
	lease
	kept bool  // by an Expire, though it ended
	due  int64 // store time from which it may go; 0 while that is not known
	keys int32 // place of the first key that it owns
}

// owned is a cold cell that an intent's transactions put. The version tells whether somebody else has put it since: then
// it is not this intent's any more.
type owned struct {
	key  string
	ver  int64
	next int32
}

// end is an intent, or a task where intent is "", that may go. It counts only while it bears the same time.
type end struct {
	due    int64
	task   *task
	intent string
}

// sweepMost is how many ends one transaction looks at: nobody pays for all at once.
const sweepMost = 32

// sweep lets go what is due.
func (a *shard) sweep(now int64) {
	for n := 0; n < sweepMost && n < len(a.ends); n++ {
		if a.ends[n].due > now {
			a.ends = a.ends[n:]
			return
		}
		a.letGo(&a.ends[n])
		a.ends[n] = end{}
	}
	a.ends = a.ends[min(sweepMost, len(a.ends)):]
}

func (a *shard) letGo(e *end) {
	k := e.task
	if e.intent == "" {
		if k.due == e.due {
			a.expire(k)
		}
		return
	}
	i := k.intents[e.intent]
	if i == 0 || a.intents.at(i).due != e.due {
		return
	}
	a.forget(k, i)
	delete(k.intents, e.intent)
}

// forget gives back what an intent held, but for its name.
func (a *shard) forget(k *task, i int32) {
	for o := a.intents.at(i).keys; o != 0; {
		was := *a.owned.at(o)
		if k.record.Cells[was.key].Ver == was.ver {
			delete(k.record.Cells, was.key)
		}
		a.owned.give(o)
		o = was.next
	}
	a.intents.give(i)
}

// expire drops all that a task holds but its ledger. Its revision rises, so that no snapshot of it passes for new.
func (a *shard) expire(k *task) {
	for _, i := range k.intents {
		a.forget(k, i)
	}
	k.space, k.record, k.intents = txn.Space{Rev: k.space.Rev + 1}, txn.Space{}, nil
	k.due, k.expired = 0, true
}

// refuses reports whether the task has expired and the transaction wants more than to read it or to seal its ledger.
func (k *task) refuses(t *txn.Txn) bool {
	if !k.expired {
		return false
	}
	if t.Phase != txn.Plain {
		return true
	}
	for i := range t.Clauses {
		switch c := &t.Clauses[i]; c.Op {
		case txn.Put, txn.Count, txn.Set, txn.Take, txn.Event, txn.Expire:
			if c.Scope != txn.Agent {
				return true
			}
		}
	}
	return false
}

// retain notes what an accepted transaction says of how long its intent and its task are kept.
func (a *shard) retain(t *txn.Txn, k *task, now int64) {
	i := k.intents[t.Intent]
	wrote := t.Phase != txn.Plain
	for n := range t.Clauses {
		switch c := &t.Clauses[n]; {
		case c.Op == txn.Put && c.Scope == txn.Record && i != 0 && !c.Soft:
			a.own(k, i, c.Key)
			wrote = true
		case c.Op == txn.Expire && c.Scope == txn.Task:
			k.over = true
		case c.Op == txn.Expire:
			a.keepIntent(k, c, now)
		}
	}
	if i != 0 && wrote {
		a.ended(k, i, t.Intent, now)
	}
	if !k.over || a.keep < 0 {
		return
	}
	k.due = 0
	if k.lively == 0 {
		k.due = now + a.keep
		a.ends = push(a.ends, end{due: k.due, task: k})
	}
}

// own notes that the intent put a cell, or put it again.
func (a *shard) own(k *task, i int32, key string) {
	ver := k.record.Cells[key].Ver
	x := a.intents.at(i)
	for o := x.keys; o != 0; {
		was := a.owned.at(o)
		if was.key == key {
			was.ver = ver
			return
		}
		o = was.next
	}
	o := a.owned.take()
	*a.owned.at(o) = owned{key: key, ver: ver, next: x.keys}
	x.keys = o
}

// keepIntent keeps an intent though it ended, or keeps it no longer.
func (a *shard) keepIntent(k *task, c *txn.Clause, now int64) {
	i := k.intents[c.Key]
	if i == 0 {
		return
	}
	x := a.intents.at(i)
	was := x.lively()
	x.kept = c.N < 0
	k.count(was, x.lively())
	a.ended(k, i, c.Key, now)
}

// ended sets the time from which an intent may go, where it ended and nothing keeps it.
func (a *shard) ended(k *task, i int32, name string, now int64) {
	x := a.intents.at(i)
	x.due = 0
	if x.Phase != txn.Settle || x.kept || a.keep < 0 {
		return
	}
	x.due = now + a.keep
	a.ends = push(a.ends, end{due: x.due, task: k, intent: name})
}

// lively reports whether the intent's task may not go because of it.
func (x *intent) lively() bool { return x.kept || x.Phase == txn.Begin }

// count keeps the number of lively intents of the task.
func (k *task) count(was, is bool) {
	switch {
	case is && !was:
		k.lively++
	case was && !is:
		k.lively--
	}
}
