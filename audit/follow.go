package audit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// batch is how many entries are written at a time when a ledger is caught up with.
const batch = 256

// Attach has the trail read from the engine what it was not told of: at once what came since its positions were saved, and
// from then on whatever the sink or the queue could not take. Call it once; it starts a goroutine that Close ends.
func (t *Trail) Attach(s Source) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.stop != nil {
		return errors.New("audit: the trail is attached already, or closed")
	}
	ctx, stop := context.WithCancel(context.Background())
	t.stop, t.done = stop, make(chan struct{})
	go t.work(ctx, s)
	t.nudge()
	return nil
}

// Sync returns when the trail is behind in no ledger, or ctx ends.
func (t *Trail) Sync(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if t.Stats().Behind == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Close saves the positions and closes the sink: after the engine, which hands on what it still has. What the trail is
// behind with is written by the next process that has its positions; Sync before closing the engine waits for it.
func (t *Trail) Close(ctx context.Context) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	stop, done := t.stop, t.done
	t.mu.Unlock()
	if stop != nil {
		stop()
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errors.Join(t.save(), t.cfg.Sink.Close())
}

func (t *Trail) work(ctx context.Context, s Source) {
	defer close(t.done)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	wait := t.cfg.Retry
	for {
		if t.round(ctx, s) == nil {
			wait = t.cfg.Retry
			select {
			case <-ctx.Done():
				return
			case <-t.wake:
			case <-tick.C:
			}
		} else {
			pause := time.NewTimer(wait)
			wait = min(2*wait, time.Minute)
			select {
			case <-ctx.Done():
				pause.Stop()
				return
			case <-pause.C:
			}
		}
		if err := t.save(); err != nil {
			t.cfg.Log.Warn("audit positions cannot be saved; what follows may be written twice", "err", err)
		}
	}
}

// round catches up with every ledger once. An error is the sink's, or the store's.
func (t *Trail) round(ctx context.Context, s Source) error {
	t.mu.Lock()
	names := slices.Sorted(maps.Keys(t.behind))
	t.mu.Unlock()
	for _, name := range names {
		if err := t.catchUp(ctx, s, name); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trail) catchUp(ctx context.Context, s Source, name string) error {
	for {
		t.mu.Lock()
		to, there := t.behind[name]
		at := t.known[name].Seq
		if there && to != 0 && to <= at {
			delete(t.behind, name)
			there = false
		}
		t.mu.Unlock()
		if !there {
			return nil
		}
		if to == 0 {
			if err := t.measure(ctx, s, name); err != nil {
				return err
			}
			continue
		}
		if err := t.read(ctx, s, name, at, to); err != nil {
			return err
		}
	}
}

// measure finds the present end of a ledger.
func (t *Trail) measure(ctx context.Context, s Source, name string) error {
	records, _, err := s.Ledger(ctx, name)
	var broken *ledger.BrokenError
	if err != nil && !errors.As(err, &broken) { // a broken chain is for others to find; it is told as it is
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	last := int64(0)
	if len(records) > 0 {
		last = records[len(records)-1].Seq
	}
	if last > t.known[name].Seq {
		t.behind[name] = last
	} else {
		delete(t.behind, name)
	}
	return nil
}

// read writes the records behind at, up to a record that is known to be there.
func (t *Trail) read(ctx context.Context, s Source, name string, at, to int64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var rs []delta.Record
	next := at + 1
	for r, err := range s.Follow(ctx, name, at+1) {
		if err != nil {
			return err
		}
		if r.Seq > next {
			t.cfg.Log.Error("records were pruned before the audit trail had them", "ledger", name, "from", next, "records", r.Seq-next)
		}
		next = r.Seq + 1
		if rs = append(rs, r); len(rs) == batch || r.Seq >= to {
			if err := t.put(ctx, name, rs); err != nil {
				return err
			}
			rs = rs[:0]
		}
		if r.Seq >= to {
			return nil
		}
	}
	return nil
}

func (t *Trail) save() error {
	t.mu.Lock()
	if !t.dirty || t.cfg.Positions == nil {
		t.mu.Unlock()
		return nil
	}
	all := maps.Clone(t.known)
	t.dirty = false
	t.mu.Unlock()
	if err := t.cfg.Positions.Save(all); err != nil {
		t.mu.Lock()
		t.dirty = true
		t.mu.Unlock()
		return err
	}
	return nil
}
