package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Config configures a trail.
type Config struct {
	Sink Sink
	// Name stands in the engine's Observers and in the log. Default "audit".
	Name string
	// Key is that of the digests of inputs and outputs; at least 16 bytes. Empty: entries have no digests.
	Key []byte
	// Positions remembers how far the trail got; nil: in memory only, and another process begins anew.
	Positions Positions
	// Timeout bounds one write. Default 5 s.
	Timeout time.Duration
	// Retry is how soon a sink that failed is tried again; it doubles up to a minute. Default 1 s.
	Retry time.Duration
	// Queue bounds the events that wait for the sink; what is beyond is read from the ledger later. Default 1024.
	Queue int
	// Ledgers bounds the ledgers whose position is remembered. Of more, those that ended go first; what comes of a ledger
	// that was forgotten is written from its beginning. Default 100,000.
	Ledgers int
	// Log is told when the sink fails and when it is well again. Nil: nobody is.
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Sink == nil {
		return c, errors.New("audit: no Sink")
	}
	if len(c.Key) > 0 && len(c.Key) < 16 {
		return c, fmt.Errorf("audit: the key has %d bytes, want at least 16", len(c.Key))
	}
	if c.Timeout < 0 || c.Retry < 0 || c.Queue < 0 || c.Ledgers < 0 {
		return c, errors.New("audit: Timeout, Retry, Queue or Ledgers is negative; 0 is the default")
	}
	set(&c.Name, "audit")
	set(&c.Timeout, 5*time.Second)
	set(&c.Retry, time.Second)
	set(&c.Queue, 1024)
	set(&c.Ledgers, 100_000)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Source is what a trail reads ledgers from; *delta.Engine is one.
type Source interface {
	Follow(ctx context.Context, id string, from int64) iter.Seq2[delta.Record, error]
	Ledger(ctx context.Context, id string) ([]txn.Stored, ledger.Report, error)
}

// Trail writes the events of one engine into a sink.
type Trail struct {
	cfg  Config
	wake chan struct{}
	stop context.CancelFunc // of the worker; nil before Attach
	done chan struct{}

	mu     sync.Mutex // guards what follows
	known  map[string]Position
	behind map[string]int64 // ledgers that are read from, and up to which record at least; 0: to their end
	begun  map[string]int64 // when calls under way began
	dirty  bool
	stats  Stats
	closed bool

	write sync.Mutex // one writer at a time
}

// Stats is how a trail fares.
type Stats struct {
	Written int64 // entries
	Failed  int64 // writes that failed
	Behind  int   // ledgers that are being caught up with
	Err     error // of the last write, nil where it went well
}

// New returns a trail. What its Positions hold is read at once.
func New(cfg Config) (*Trail, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	t := &Trail{cfg: cfg, wake: make(chan struct{}, 1), known: map[string]Position{}, behind: map[string]int64{}, begun: map[string]int64{}}
	if cfg.Positions == nil {
		return t, nil
	}
	all, err := cfg.Positions.Load()
	if err != nil {
		return nil, err
	}
	maps.Copy(t.known, all)
	for name, p := range all {
		if !p.Ended {
			t.behind[name] = 0
		}
	}
	return t, nil
}

// Watch returns what to add to the observers of the engine.
func (t *Trail) Watch() delta.Watch {
	return delta.Watch{Observer: observer{t}, Name: t.cfg.Name, Queue: t.cfg.Queue, Patience: 2 * t.cfg.Timeout}
}

// Stats returns how the trail fares.
func (t *Trail) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Behind = len(t.behind)
	return s
}

// observer keeps the methods of an Observer off the face of a trail.
type observer struct{ t *Trail }

// Observe writes the record, if it is the next of its ledger and the sink writes; otherwise the ledger is caught up with.
func (o observer) Observe(ctx context.Context, r delta.Record) {
	t, name := o.t, ledger.NameOf(r.Agent, r.Task)
	t.mu.Lock()
	at := t.known[name].Seq
	late, catching := t.behind[name]
	switch {
	case catching:
		if late != 0 {
			t.behind[name] = max(late, r.Seq)
		}
	case r.Seq == 0 || r.Seq > at+1 || t.stats.Err != nil && r.Seq > at:
		t.behind[name] = r.Seq
		catching = true
	}
	t.mu.Unlock()
	if catching || r.Seq <= at {
		t.nudge()
		return
	}
	if t.put(ctx, name, []delta.Record{r}) != nil {
		t.late(name, r.Seq)
	}
}

// Missed has the ledger caught up with. Of what is not named nothing can be.
func (o observer) Missed(_ context.Context, g delta.Gap) {
	if g.Agent != "" {
		o.t.late(ledger.NameOf(g.Agent, g.Task), g.To)
		return
	}
	o.t.mu.Lock() // of several ledgers: all that are known
	for name, p := range o.t.known {
		if !p.Ended {
			o.t.behind[name] = 0
		}
	}
	o.t.mu.Unlock()
	o.t.nudge()
}

// late has a ledger caught up with, up to a record at least; 0 is to its end.
func (t *Trail) late(name string, to int64) {
	t.mu.Lock()
	if was, there := t.behind[name]; there && (was == 0 || to == 0) {
		t.behind[name] = 0
	} else {
		t.behind[name] = max(was, to)
	}
	t.mu.Unlock()
	t.nudge()
}

func (t *Trail) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// put writes records of one ledger and moves its position.
func (t *Trail) put(ctx context.Context, name string, rs []delta.Record) (err error) {
	t.write.Lock()
	defer t.write.Unlock()
	entries := t.entries(rs)
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	err = t.contained(ctx, entries)
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.stats.Err
	t.stats.Err = err
	if err != nil {
		t.stats.Failed++
		if was == nil {
			t.cfg.Log.Warn("an audit sink failed; it is tried again, and the ledger read from where it got to", "sink", t.cfg.Name, "err", err)
		}
		return err
	}
	if was != nil {
		t.cfg.Log.Info("an audit sink writes again", "sink", t.cfg.Name)
	}
	last := rs[len(rs)-1]
	p := t.known[name]
	p.Seq = last.Seq
	for i := range rs {
		p.Ended = p.Ended || rs[i].Type == ledger.TaskClosed || rs[i].Type == ledger.TaskCancelled
	}
	t.known[name], t.dirty = p, true
	t.stats.Written += int64(len(rs))
	t.forget()
	return nil
}

// contained keeps a sink that panics from taking the process with it.
func (t *Trail) contained(ctx context.Context, entries []Entry) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the sink panicked: %v", p)
		}
	}()
	return t.cfg.Sink.Write(ctx, entries)
}

func (t *Trail) entries(rs []delta.Record) []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Entry, len(rs))
	for i := range rs {
		r, began := &rs[i], int64(0)
		switch r.Type {
		case ledger.Begun:
			if len(t.begun) < t.cfg.Ledgers {
				t.begun[r.Intent] = r.At
			}
		case ledger.Settled:
			began = t.begun[r.Intent]
			delete(t.begun, r.Intent)
		}
		out[i] = entryOf(r, t.cfg.Key, began)
	}
	return out
}

// forget bounds what is known; the caller holds the lock. A tenth goes at a time.
func (t *Trail) forget() {
	if len(t.known) <= t.cfg.Ledgers {
		return
	}
	names := slices.SortedFunc(maps.Keys(t.known), func(a, b string) int {
		if x, y := t.known[a].Ended, t.known[b].Ended; x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	for _, name := range names[:len(names)-t.cfg.Ledgers+t.cfg.Ledgers/10] {
		delete(t.known, name)
	}
}
