package delta

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// watch puts what this engine writes in the order of each ledger and hands it to the observers. An engine without
// observers has none.
type watch struct {
	all []*watcher

	mu    sync.Mutex
	books map[book]*order
}

// order is what is under way of one ledger. Transactions are answered in any order: what was accepted is held back as long
// as another one, sent before the answer came, may stand before it.
type order struct {
	last int64   // the highest number handed on, 0 for none
	sent int64   // transactions sent so far: their tickets
	out  []int64 // tickets of those without an answer yet, in order
	held []batch // in the order of their numbers
}

// batch is the events that one transaction wrote into one ledger.
type batch struct {
	seq, at int64
	after   int64 // transactions with a ticket up to this one may stand before it
	texts   []string
}

const (
	booksKept = 4096 // ledgers whose last number is remembered
	heldMost  = 512  // batches held back in one ledger; one more, and the first goes on
)

func startWatch(e *Engine) *watch {
	if len(e.cfg.Observers) == 0 {
		return nil
	}
	h := &watch{books: map[book]*order{}}
	for i := range e.cfg.Observers {
		h.all = append(h.all, startWatcher(e, i))
	}
	return h
}

// send notes that a transaction is sent. What it returns is to be called with its answer.
func (h *watch) send(x *txn.Txn) func(txn.Reply, error) {
	b, texts, beside := eventsOf(x)
	if len(texts) == 0 {
		return func(txn.Reply, error) {}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.order(b)
	o.sent++
	ticket := o.sent
	o.out = append(o.out, ticket)
	return func(r txn.Reply, err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		i, _ := slices.BinarySearch(o.out, ticket)
		o.out = slices.Delete(o.out, i, i+1)
		h.answered(b, o, batch{seq: r.Seq, at: r.Now, after: o.sent, texts: texts}, r, err)
		if err == nil && r.OK {
			for _, other := range beside {
				h.push(book{x.Agent, other.task}, item{text: other.text, at: r.Now})
			}
		}
	}
}

func (h *watch) order(b book) *order {
	if o := h.books[b]; o != nil {
		return o
	}
	if len(h.books) >= booksKept {
		for k, o := range h.books {
			if len(o.out)+len(o.held) == 0 {
				delete(h.books, k)
			}
		}
	}
	o := &order{}
	h.books[b] = o
	return o
}

// answered takes an answer in; the caller holds the lock.
func (h *watch) answered(b book, o *order, got batch, r txn.Reply, err error) {
	n := int64(len(got.texts))
	switch {
	case err != nil: // it may have been written all the same
		h.miss(Gap{Agent: b.agent, Task: b.task, From: o.last + 1})
	case !r.OK:
	case got.seq <= 0: // it was found written, not told where
		h.miss(Gap{Agent: b.agent, Task: b.task, From: 1, Events: n})
	case got.seq <= o.last: // too late to be told in order
		h.miss(Gap{b.agent, b.task, got.seq, got.seq + n - 1, n})
	default:
		i, _ := slices.BinarySearchFunc(o.held, got, func(x, y batch) int { return cmp.Compare(x.seq, y.seq) })
		o.held = slices.Insert(o.held, i, got)
	}
	for len(o.held) > 0 && o.ready() {
		first := o.held[0]
		o.held = slices.Delete(o.held, 0, 1)
		for i, text := range first.texts {
			h.push(b, item{text: text, seq: first.seq + int64(i), at: first.at})
		}
		o.last = first.seq + int64(len(first.texts)) - 1
	}
}

// ready reports whether nothing can stand before the first batch any more.
func (o *order) ready() bool {
	first := &o.held[0]
	return first.seq == o.last+1 || len(o.out) == 0 || o.out[0] > first.after || len(o.held) > heldMost
}

func (h *watch) push(b book, it item) {
	it.book = b
	for _, w := range h.all {
		w.push(it)
	}
}

func (h *watch) miss(g Gap) {
	for _, w := range h.all {
		w.miss(g)
	}
}

// aside is an event of the ledger that a transaction does not give the numbers of.
type aside struct{ task, text string }

// eventsOf returns the events that a transaction appends to the ledger its reply gives the numbers of, and the others.
func eventsOf(x *txn.Txn) (b book, texts []string, beside []aside) {
	b.agent = x.Agent
	scope := txn.Scope(0)
	for i := range x.Clauses {
		c := &x.Clauses[i]
		if c.Op != txn.Event {
			continue
		}
		task := x.Task
		if c.Scope == txn.Agent {
			task = ""
		}
		if scope == 0 {
			scope, b.task = c.Scope, task
		}
		if c.Scope == scope {
			texts = append(texts, c.Val)
		} else {
			beside = append(beside, aside{task, c.Val})
		}
	}
	return b, texts, beside
}

// close lets the observers finish what is in their queues, as long as ctx lasts.
func (h *watch) close(ctx context.Context) error {
	if h == nil {
		return nil
	}
	for _, w := range h.all {
		w.closing()
	}
	var first error
	for _, w := range h.all {
		if err := w.wait(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// stuck is how many observers do not return.
func (h *watch) stuck() (n int64) {
	if h == nil {
		return 0
	}
	for _, w := range h.all {
		if w.hangs.Load() {
			n++
		}
	}
	return n
}
