package memory

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// queue holds each member once, in order of (due, member).
type queue struct {
	due  map[string]int64
	list []txn.Queued
}

func (a *shard) queue(name string) *queue {
	q := a.queues[name]
	if q == nil {
		q = &queue{due: map[string]int64{}}
		a.queues[name] = q
	}
	return q
}

// unqueue drops a member of a queue that may not exist.
func (a *shard) unqueue(name, member string) {
	if q := a.queues[name]; q != nil {
		q.drop(member)
	}
}

func byDue(x, y txn.Queued) int {
	return cmp.Or(cmp.Compare(x.Due, y.Due), cmp.Compare(x.Member, y.Member))
}

func (q *queue) put(member string, due int64) {
	q.drop(member)
	m := txn.Queued{Member: member, Due: due}
	i, _ := slices.BinarySearchFunc(q.list, m, byDue)
	q.list = slices.Insert(q.list, i, m)
	q.due[member] = due
}

func (q *queue) drop(member string) {
	due, ok := q.due[member]
	if !ok {
		return
	}
	i, _ := slices.BinarySearchFunc(q.list, txn.Queued{Member: member, Due: due}, byDue)
	q.list = slices.Delete(q.list, i, i+1)
	delete(q.due, member)
}

// page returns up to limit members after the given one that are due at until or before.
func (q *queue) page(after txn.Queued, until int64, limit int) []txn.Queued {
	from := 0
	if after != (txn.Queued{}) {
		i, found := slices.BinarySearchFunc(q.list, after, byDue)
		if found {
			i++
		}
		from = i
	}
	var out []txn.Queued
	for _, m := range q.list[from:] {
		if len(out) >= limit || m.Due > until {
			break
		}
		out = append(out, m)
	}
	return out
}

// leases is the queue that the store keeps by itself, of what runs, due when its lease expires. Its members are in two
// parts and are found by when they are due, which the lease knows: nothing is put together, and nothing else is kept.
type leases []running

type running struct {
	due          int64
	task, intent string
}

func (r *running) member() string { return r.task + "\n" + r.intent }

// find returns where the member is or belongs: in order of (due, member).
func (l leases) find(task, intent string, due int64) int {
	return sort.Search(len(l), func(i int) bool {
		m := &l[i]
		if m.due != due || m.task == task {
			return cmp.Or(cmp.Compare(m.due, due), strings.Compare(m.intent, intent)) >= 0
		}
		return m.member() >= task+"\n"+intent
	})
}

func (l *leases) put(task, intent string, due int64) {
	m := running{due, task, intent}
	if n := len(*l); n == 0 || (*l)[n-1].due < due { // the usual way
		*l = append(*l, m)
		return
	}
	*l = slices.Insert(*l, l.find(task, intent, due), m)
}

// drop removes a member that is there.
func (l *leases) drop(task, intent string, due int64) {
	i := l.find(task, intent, due)
	*l = slices.Delete(*l, i, i+1)
}

// page is that of a queue.
func (l leases) page(after txn.Queued, until int64, limit int) []txn.Queued {
	from := 0
	if after != (txn.Queued{}) {
		from = sort.Search(len(l), func(i int) bool { return byDue(txn.Queued{Member: l[i].member(), Due: l[i].due}, after) > 0 })
	}
	var out []txn.Queued
	for _, m := range l[from:] {
		if len(out) >= limit || m.due > until {
			break
		}
		out = append(out, txn.Queued{Member: m.member(), Due: m.due})
	}
	return out
}
