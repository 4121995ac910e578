package redisstore

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// pendings are the outcomes of an agent that wait to be folded, as this process was told of them. They are not changed once
// they are made. nil is: nothing is known.
type pendings struct {
	list []txn.Pending
	last int64 // how many were ever pended
	done int64 // how many of those are folded
}

// upto is the number of the last outcome that is known, which saves that it is told again.
func (p *pendings) upto() int64 {
	if p == nil {
		return -1
	}
	return p.last
}

// newer returns what was told later: numbers only grow.
func (p *pendings) newer(o *pendings) *pendings {
	if p == nil || o != nil && (o.last > p.last || o.last == p.last && o.done > p.done) {
		return o
	}
	return p
}

// pendings reads what the script says of the outcomes that are pending after a transaction: how many were ever pended,
// how many are folded, how many the transaction pended, up to which it takes those as known that the caller knew, and those
// between. Each answer holds no more than the caller cannot know.
func (r *reader) pendings(known *pendings, t *txn.Txn, v []any) *pendings {
	last, done, own, upto := r.number(v[0]), r.number(v[1]), r.number(v[2]), r.number(v[3])
	tail, _ := v[4].([]any)
	if known != nil && known.last == last && known.done == done && upto == last {
		return known
	}
	p := &pendings{last: last, done: done}
	if last == done {
		return p
	}
	p.list = make([]txn.Pending, 0, max(0, last-done))
	if known != nil {
		for _, o := range known.list {
			if done < o.Seq && o.Seq <= upto {
				p.list = append(p.list, o)
			}
		}
	}
	p.list = r.outcomes(p.list, upto, tail)
	if own > 0 {
		seq := last - own
		for i := range t.Clauses {
			if c := &t.Clauses[i]; c.Op == txn.Pend {
				if seq++; seq > done {
					p.list = append(p.list, txn.Pending{Seq: seq, Val: c.Val})
				}
			}
		}
	}
	if int64(len(p.list)) != last-done { // of another history, or damaged
		r.fail("pending outcomes", fmt.Sprint(v))
	}
	return p
}

// hear reads what an answer says of pending outcomes ahead of all else, nil where it does not say it plainly: then it is
// read with the rest.
func (e *encoder) hear(v []any) *pendings {
	var r reader
	if len(v) < fixed || v[0] == int64(otherHistory) || e.known == nil {
		return nil
	}
	p := r.pendings(e.known, e.t, v[pendingAt:fixed])
	if r.err != nil {
		return nil
	}
	e.heard = p
	return p
}

// outcomes reads a list of those that follow the one of that number.
func (r *reader) outcomes(to []txn.Pending, after int64, list []any) []txn.Pending {
	for i := range list {
		s, _ := list[i].(string)
		to = append(to, txn.Pending{Seq: after + 1 + int64(i), Val: s})
	}
	return to
}
