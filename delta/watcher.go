package delta

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// watcher is one observer with its queue and its goroutine.
type watcher struct {
	Watch
	log   *slog.Logger
	grace time.Duration
	ctx   context.Context // ends when nobody waits for it any more
	halt  context.CancelFunc
	done  chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	more   *sync.Cond
	queue  []item
	gaps   []Gap // behind the queue
	ending bool
	since  time.Time // when the present record was given, zero between records

	told, dropped, panics, overdue atomic.Int64
	hangs                          atomic.Bool // it was left behind
}

// item is a record in a queue, as text: it is decoded by whoever is told, off every call's path.
type item struct {
	book    book
	text    string
	seq, at int64
	missed  []Gap // before it
}

// gapsKept bounds the gaps that are told one by one; what is beyond is told as one of several ledgers.
const gapsKept = 64

func startWatcher(e *Engine, i int) *watcher {
	w := &watcher{Watch: e.cfg.Observers[i], log: e.cfg.Log, grace: e.cfg.Grace, done: make(chan struct{})}
	set(&w.Name, fmt.Sprintf("observer %d", i+1))
	set(&w.Queue, 1024)
	set(&w.Patience, 10*time.Second)
	w.more = sync.NewCond(&w.mu)
	w.ctx, w.halt = context.WithCancel(context.Background())
	go w.work()
	return w
}

// push queues a record, or notes that it was left out. It never waits.
func (w *watcher) push(it item) {
	if !w.Filter.maybe(it.book.agent, it.book.task, it.text) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) >= w.Queue || w.ending {
		w.dropped.Add(1)
		w.note(Gap{it.book.agent, it.book.task, it.seq, it.seq, 1})
		return
	}
	it.missed, w.gaps = w.gaps, nil
	w.queue = append(w.queue, it)
	w.more.Signal()
}

// miss notes what nobody can be told of.
func (w *watcher) miss(g Gap) {
	if !w.Filter.maybe(g.Agent, g.Task, "") {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(g)
	w.more.Signal()
}

// note adds a gap behind the queue, one to a ledger; the caller holds the lock.
func (w *watcher) note(g Gap) {
	for i := range w.gaps {
		h := &w.gaps[i]
		if h.Agent != g.Agent || h.Task != g.Task {
			continue
		}
		open := h.To == 0 || g.To == 0
		h.From, h.To, h.Events = min(cmp.Or(h.From, g.From), cmp.Or(g.From, h.From)), max(h.To, g.To), h.Events+g.Events
		if open {
			h.To = 0
		}
		return
	}
	if len(w.gaps) >= gapsKept {
		w.gaps[gapsKept-1] = Gap{Events: w.gaps[gapsKept-1].Events + g.Events}
		return
	}
	w.gaps = append(w.gaps, g)
}

// work is the goroutine. An observer that ends it gets another one.
func (w *watcher) work() {
	through := false
	defer func() {
		if through {
			close(w.done)
			return
		}
		w.failed("ended its goroutine")
		go w.work()
	}()
	for {
		it, some := w.next()
		if !some {
			through = true
			return
		}
		w.hand(it)
	}
}

// next waits for something to tell. An item without a text is gaps alone.
func (w *watcher) next() (it item, some bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Time{}
	for len(w.queue)+len(w.gaps) == 0 && !w.ending {
		w.more.Wait()
	}
	if w.ctx.Err() != nil {
		w.dropped.Add(int64(len(w.queue)))
		w.queue, w.gaps = nil, nil
	}
	switch {
	case len(w.queue) > 0:
		it = w.queue[0]
		w.queue[0] = item{}
		if w.queue = w.queue[1:]; len(w.queue) == 0 {
			w.queue = nil
		}
	case len(w.gaps) > 0:
		it.missed, w.gaps = w.gaps, nil
	default:
		return item{}, false
	}
	w.since = time.Now()
	return it, true
}

// hand tells the observer.
func (w *watcher) hand(it item) {
	for _, g := range it.missed {
		w.tell(func(ctx context.Context) { w.Observer.Missed(ctx, g) })
	}
	if it.text == "" {
		return
	}
	r := Record{Seq: it.seq, Stored: it.at}
	if err := json.Unmarshal([]byte(it.text), &r.Event); err != nil { // this engine wrote it
		w.failed("cannot be told of an event: " + err.Error())
		return
	}
	if w.Filter.Fits(&r.Event) {
		w.tell(func(ctx context.Context) { w.Observer.Observe(ctx, r) })
		w.told.Add(1)
	}
}

func (w *watcher) tell(f func(context.Context)) {
	ctx, cancel := context.WithTimeout(w.ctx, w.Patience)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			w.failed("panicked: " + action.TextOf(p))
		}
	}()
	f(ctx)
	if ctx.Err() != nil {
		w.overdue.Add(1)
	}
}

func (w *watcher) failed(how string) {
	w.panics.Add(1)
	w.log.Warn("an observer failed; it is told the next record", "observer", w.Name, "how", how)
}

// closing tells that nothing more comes.
func (w *watcher) closing() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = true
	w.more.Signal()
}

// wait returns when all is told, or ctx has ended and the observer, told so, had its grace period.
func (w *watcher) wait(ctx context.Context) error {
	defer w.halt()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
	}
	w.halt()
	patience := time.NewTimer(w.grace)
	defer patience.Stop()
	select {
	case <-w.done:
		return nil
	case <-patience.C:
		w.hangs.Store(true)
		go func() {
			<-w.done
			w.hangs.Store(false)
		}()
		return fmt.Errorf("%s was given up and still runs", w.Name)
	}
}

func (w *watcher) stats() ObserverStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := ObserverStats{
		Name: w.Name, Told: w.told.Load(), Dropped: w.dropped.Load(), Panics: w.panics.Load(), Overdue: w.overdue.Load(), Waiting: len(w.queue),
	}
	if !w.since.IsZero() {
		s.Busy = time.Since(w.since)
	}
	return s
}
