package memory

import (
	"cmp"
	"slices"

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
