package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Bounds of what outlasts a task.
const (
	// MaxEarlier is how many facts of earlier tasks a task is told of: its configuration carries them.
	MaxEarlier = 256
	// MaxLasting is how many an agent keeps; each start drops what is older than the newest so many.
	MaxLasting = 1024
	// maxForgotten is how many one start drops.
	maxForgotten = 256
)

// Earlier is a fact that an earlier task established.
type Earlier struct {
	Key string `json:"key"`
	At  int64  `json:"at"` // store time of the Ok, µs
}

// lasting notes what later tasks may rest on. A fact that is established again counts from then on.
func (c *changes) lasting(e *ledger.Event) {
	for _, k := range e.Facts {
		if d, ok := statespace.Lasting(k); ok {
			c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueLasting, Val: c.cat(e.Tenant, "\n", k), N: d.Microseconds()})
		}
	}
}

// Recall makes of what an agent keeps what a new task is told: of the newest facts those of its tenant that still count at
// store time now. Of the oldest it returns those that are too old, or not among the newest, to be dropped with the start,
// see [Drop]. Both are in the order of the queue, newest is not empty.
func Recall(oldest, newest []txn.Queued, tenant string, now int64) (told []Earlier, drop []string) {
	for _, q := range oldest {
		older := cmp.Or(cmp.Compare(q.Due, newest[0].Due), cmp.Compare(q.Member, newest[0].Member)) < 0
		if (q.Due < now || older) && len(drop) < maxForgotten {
			drop = append(drop, q.Member)
		}
	}
	for _, q := range newest {
		whose, key, _ := strings.Cut(q.Member, "\n")
		if d, ok := statespace.Lasting(key); ok && whose == tenant && q.Due >= now {
			told = append(told, Earlier{Key: key, At: q.Due - d.Microseconds()})
		}
	}
	slices.SortStableFunc(told, func(a, b Earlier) int { return cmp.Compare(b.At, a.At) })
	return told[:min(len(told), MaxEarlier)], drop
}

// Drop makes a transaction drop facts that an agent need not keep. Whoever establishes one at that moment has to do so again.
func Drop(t *txn.Txn, members []string) {
	for _, m := range members {
		t.Add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueLasting, Val: m})
	}
}

// earlier reports whether a fact of an earlier task answers the need, and pins that it still does when the call begins. That
// the task was told of it is in its configuration, which gate 1 has pinned. Where it is too old the refusal rests on that.
func (r *round) earlier(need *statespace.Requirement) bool {
	if !need.Across {
		return false
	}
	for _, f := range r.view.Task.Earlier {
		if f.Key != need.Key {
			continue
		}
		until := f.At + need.Within.Microseconds()
		if until < r.call.Now {
			r.pin(txn.Clause{Op: txn.Time, Min: until + 1, Max: txn.NoMax})
			return false
		}
		r.pin(txn.Clause{Op: txn.Time, Min: txn.NoMin, Max: until})
		return true
	}
	return false
}

// earlierOf reads what a task was told of earlier ones.
func earlierOf(snap *txn.Snapshot) []Earlier {
	text := snap.Task.Cells[cellTask].Val
	if !strings.Contains(text, `"earlier":[`) { // as nearly always
		return nil
	}
	var s struct{ Earlier []Earlier }
	_ = json.Unmarshal([]byte(text), &s) // what cannot be read answers nothing
	return s.Earlier
}
