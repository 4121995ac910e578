package delta

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// keeper does what need not be on a call's path: it folds pending outcomes into stored beliefs and links records into the
// hash chain. Nothing depends on when: decisions fold what is pending for themselves, and a chain says how far it is
// sealed. It has one goroutine and remembers each agent and task at most once,
// and a bounded number of records.
type keeper struct {
	e    *Engine
	done chan struct{} // closed when the goroutine has ended
	ctx  context.Context
	stop context.CancelFunc // gives up what is left

	in *intake // what is noted

	mu      sync.Mutex
	sealed  map[book]mark
	failed  map[book]bool // of who made it busy
	full    bool          // ledgers have much to seal
	looked  time.Time     // when they were sealed last
	pay     bool          // debts may be paid
	hurry   bool          // look now
	all     bool          // and fold however little waits
	armed   bool          // the timer will make it look
	since   time.Time     // it was armed first
	seen    int64         // how much was noted when it was armed last
	waiting int           // those who wait for it: then nothing is put off
	timer   *time.Timer
	busy    bool // somebody does what was noted
	mine    bool // it is the goroutine
	closing bool
	gone    bool // the goroutine does no more: what is noted now is done by whoever opens the store next
	idle    *sync.Cond
	wake    *sync.Cond

	// Written under the lock, so that who notes something need not take it where that says nothing new.
	awake  atomic.Bool // hurry or armed
	hasty  atomic.Bool // hurry
	hasten atomic.Bool // hurry and full
}

// book is a ledger: of a task, or of the agent where task is "".
type book struct{ agent, task string }

// mark is how far a book is sealed.
type mark struct {
	seq  int64
	link string
}

// sealedKept bounds how many books' marks are remembered; a forgotten one is read from its start again.
const sealedKept = 4096

func startKeeper(e *Engine) *keeper {
	k := &keeper{e: e, done: make(chan struct{}), in: newIntake(), sealed: map[book]mark{}, failed: map[book]bool{}}
	k.ctx, k.stop = context.WithCancel(context.Background())
	k.idle, k.wake = sync.NewCond(&k.mu), sync.NewCond(&k.mu)
	k.timer = time.AfterFunc(time.Hour, k.now)
	k.timer.Stop()
	go k.work()
	return k
}

// Housekeeping is done for several calls at once: when so much is noted, a ledger on average, when nothing is for a moment,
// at the latest after a while, or when somebody waits for it.
const (
	batchKept = 64
	notedKept = 4096
	quiet     = 2 * time.Millisecond
	linger    = 10 * time.Millisecond
)

// quiet is longer where the store costs trips: what it does for housekeeping it does not do for calls.
func (k *keeper) quiet() time.Duration {
	if k.e.instant != nil {
		return quiet
	}
	return linger
}

// agent notes that an agent has outcomes to fold; now, where decisions would have to fold them each for itself.
func (k *keeper) agent(name string, now bool) {
	k.in.agent(name)
	if now || !k.awake.Load() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.all = k.all || now
		k.soon(now)
	}
}

// waits notes that an agent has so many outcomes to fold, all of them successes; that is done before they are as many as
// decisions fold first.
func (k *keeper) waits(name string, n int) {
	k.in.agent(name)
	if long := 4*n > 3*tailKept; long && !k.hasty.Load() || !k.awake.Load() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.soon(long)
	}
}

// task notes that a ledger has records to seal, and those that were written just now if it is known where; "" is the
// agent's own ledger. [Engine.apply] calls it.
func (k *keeper) task(agent, task string, written ...txn.Stored) {
	n := k.in.book(book{agent, task}, written...)
	full := n >= notedKept || n >= batchKept*k.in.books.Load()
	if full && !k.hasten.Load() || !k.awake.Load() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.full = k.full || full
		k.soon(full)
	}
}

// soon has the goroutine look before long; the caller holds the lock.
func (k *keeper) soon(now bool) {
	switch now = now || k.waiting > 0; {
	case now && !k.hurry:
		k.hurry = true
		k.wake.Signal()
	case !k.hurry && !k.armed:
		k.since = time.Now()
		k.arm()
	}
	k.noteAwake()
}

// noteAwake has those see who note something whether they must wake the goroutine; the caller holds the lock.
func (k *keeper) noteAwake() {
	k.awake.Store(k.hurry || k.armed)
	k.hasty.Store(k.hurry)
	k.hasten.Store(k.hurry && k.full)
}

func (k *keeper) arm() {
	k.armed, k.seen = true, k.in.noted.Load()
	k.timer.Reset(k.quiet())
}

// now has the goroutine look at what is noted, unless more is about to come.
func (k *keeper) now() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.in.noted.Load() >= k.seen+batchKept/4 && time.Since(k.since) < linger && !k.hurry {
		k.arm()
		return
	}
	k.armed, k.all = false, true
	k.soon(true)
}

// owe notes that there are debts to pay.
func (k *keeper) owe() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pay = true
	k.soon(true)
}

// close does what is noted, as long as ctx lasts, and ends the goroutine. An error says that the store holds it up.
func (k *keeper) close(ctx context.Context) error {
	defer k.stop()
	defer context.AfterFunc(ctx, k.stop)()
	k.mu.Lock()
	k.closing = true
	k.wake.Signal()
	k.mu.Unlock()
	select {
	case <-k.done:
		return nil
	case <-ctx.Done():
	}
	patience := time.NewTimer(k.e.cfg.Grace)
	defer patience.Stop()
	select {
	case <-k.done:
		return nil
	case <-patience.C:
		return errors.New("housekeeping is still under way: the store does not answer")
	}
}

// wait returns when nothing is noted and nothing under way.
func (k *keeper) wait(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	stop := context.AfterFunc(ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.idle.Broadcast()
	})
	defer stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting++
	defer func() { k.waiting-- }()
	for !k.gone && (k.busy || k.pay || k.in.due()) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if k.helps() {
			continue
		}
		k.soon(true)
		k.idle.Wait()
	}
	return nil
}

// helps has who waits do what is noted, in place of a goroutine that sleeps: waking it, and being woken by it, costs more than
// that where the store never waits. It reports whether something was done. The caller holds the lock, but not meanwhile.
func (k *keeper) helps() bool {
	if k.e.instant == nil || k.busy || k.pay || k.closing || len(k.failed) > 0 {
		return false
	}
	k.busy = true
	agents, books := k.in.take()
	k.mu.Unlock()
	k.round(agents, books, nil, 0)
	k.mu.Lock()
	k.busy = false
	k.idle.Broadcast()
	if k.hurry || k.pay || k.closing { // it was told to look meanwhile
		k.wake.Signal()
	}
	return true
}

func (k *keeper) work() {
	defer close(k.done)
	defer k.timer.Stop()
	for {
		agents, books, least, pay, more := k.next()
		hopeless := map[book]bool{}
		for b := range k.failed { // once more, beside what is new
			books[b], hopeless[b] = nil, !more
		}
		clear(k.failed)
		if pay || !more {
			if err := k.e.payDebts(k.ctx, ""); err != nil {
				k.report(err, "record what planning used", book{})
				time.AfterFunc(k.e.cfg.Poll, k.owe)
			}
			if err := k.e.stopLost(k.ctx); err != nil {
				k.report(err, "stop what the store lost", book{})
				time.AfterFunc(k.e.cfg.Poll, k.owe)
			}
		}
		k.round(agents, books, hopeless, least)
		if !more {
			return
		}
	}
}

// round folds and seals what was taken up; outcomes of an agent that are no more than so many wait on. Whoever does it has
// made the keeper busy.
func (k *keeper) round(agents map[string]bool, books map[book]*tail, hopeless map[book]bool, least int) {
	for a := range agents {
		k.report(k.fold(a, least), "fold beliefs", book{a, ""})
		if least > 0 {
			k.waits(a, 0)
		}
	}
	for b, t := range books {
		if err := k.seal(b, t); err != nil && !hopeless[b] {
			k.report(err, "seal ledger", b)
			k.failed[b] = true
		}
	}
}

// next waits for something to do; more is false when the keeper is closing and this is the rest.
func (k *keeper) next() (agents map[string]bool, books map[book]*tail, least int, pay, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mine {
		k.busy, k.mine = false, false
	}
	for k.busy || !k.closing && !k.pay && !(k.hurry && k.in.due()) {
		if k.busy { // somebody helps
			k.wake.Wait()
			continue
		}
		k.hurry = false
		k.noteAwake()
		if k.in.due() { // noted before it was known that the goroutine sleeps
			k.soon(false)
			if k.hurry {
				continue
			}
		} else {
			k.idle.Broadcast()
		}
		k.wake.Wait()
	}
	k.hurry = false
	k.noteAwake() // before taking: who saw it awake is taken
	agents, books = k.taken()
	if k.e.instant == nil && k.waiting == 0 && !k.closing && !k.all {
		least = foldedFrom
		k.timer.Stop() // what is left waits as long as what comes now
		k.armed = false
	}
	k.all = false
	pay = k.pay
	k.pay, k.busy, k.mine = false, true, true
	if k.closing && len(agents) == 0 && len(books) == 0 {
		k.busy, k.mine, k.gone = false, false, true
		k.idle.Broadcast()
		return nil, map[book]*tail{}, 0, false, false
	}
	return agents, books, least, pay, true
}

// foldedFrom is how many outcomes are not worth a fold, where that costs a trip, unless nothing follows them for a moment:
// replies that were under way while others were folded still tell of those.
const foldedFrom = tailKept / 2

// sealedEvery is how often at most ledgers are sealed, where that costs trips, that have little to seal. Folds go on between:
// calls wait for them. Each ledger is a trip: many wait longer, up to four times as long.
const (
	sealedEvery = 50 * time.Millisecond
	sealedFew   = 16
)

func (k *keeper) sealedEvery() time.Duration {
	return sealedEvery * time.Duration(min(max(k.in.books.Load()/sealedFew, 1), 4))
}

// taken takes up what is due; the caller holds the lock.
func (k *keeper) taken() (agents map[string]bool, books map[book]*tail) {
	now := time.Now()
	if k.e.instant == nil && k.waiting == 0 && !k.closing && !k.full && now.Sub(k.looked) < k.sealedEvery() {
		return k.in.takeAgents(), map[book]*tail{}
	}
	k.looked, k.full = now, false
	return k.in.take()
}

func (k *keeper) report(err error, what string, b book) {
	if err != nil {
		k.e.cfg.Log.Warn("housekeeping failed; it is tried again with the next call", "what", what, "agent", b.agent, "task", b.task, "error", err)
	}
}

// seal links the records of a book that are not linked yet; those of the tail need not be read.
func (k *keeper) seal(b book, t *tail) error {
	ctx, cancel := k.patience()
	defer cancel()
	for {
		m := k.mark(b)
		if m.seq == 0 {
			m.link = ledger.Genesis(b.agent, b.task)
		}
		records, known := t.after(m.seq)
		if !known {
			var err error
			if records, err = k.e.store.Records(ctx, b.agent, b.task, m.seq+1, recordPage); err != nil {
				return err
			}
		}
		if len(records) == 0 {
			return nil
		}
		if records[0].Seq > m.seq+1 && b.task == "" { // its beginning was dropped
			if err := k.skip(ctx, b, m.seq); err != nil {
				return err
			}
			continue
		}
		x, link := engine.Seal(b.agent, b.task, m.link, records)
		if len(x.Clauses) > 0 {
			if _, err := k.e.apply(ctx, x); err != nil {
				return err
			}
		}
		k.note(b, mark{records[len(records)-1].Seq, link})
		if known || len(records) < recordPage {
			return nil
		}
	}
}

// skip notes where an agent's own ledger begins, which must be behind what is known to be sealed.
func (k *keeper) skip(ctx context.Context, b book, known int64) error {
	snap, err := k.e.store.Load(ctx, b.agent, "", nil)
	if err != nil {
		return err
	}
	seq, link, err := engine.CutAt(snap)
	if err == nil && seq <= known {
		err = fmt.Errorf("records behind %d are missing, and no checkpoint says why", known)
	}
	if err != nil {
		return err
	}
	k.note(b, mark{seq, link})
	return nil
}

// mark returns how far a book is known to be sealed, nothing where that is not known.
func (k *keeper) mark(b book) mark {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sealed[b]
}

func (k *keeper) note(b book, m mark) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.sealed) >= sealedKept {
		clear(k.sealed)
	}
	k.sealed[b] = m
}

// Sync waits until what has happened is folded into the stored beliefs and linked into the ledgers. Nothing else depends
// on it; it is for reading a store from outside, and for tests.
func (e *Engine) Sync(ctx context.Context) error { return e.keeper.wait(ctx) }
