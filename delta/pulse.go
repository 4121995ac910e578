package delta

import (
	"sync"
	"time"
)

// pulse starts the heartbeat of calls that outlive a third of their lease: one timer for all of an engine's.
type pulse struct {
	every time.Duration

	mu          sync.Mutex
	first, last *flight // in the order in which their first beat is due
	timer       *time.Timer
	armed       bool
}

// beats is a flight's place among those whose heart does not beat yet, and its heart once it does.
type beats struct {
	next, prev *flight
	waits      bool
	due        time.Time
	done       chan struct{} // closed when the flight lands
	beating    sync.WaitGroup
}

func newPulse(every time.Duration) *pulse {
	p := &pulse{every: every}
	p.timer = time.AfterFunc(time.Hour, p.fire)
	p.timer.Stop()
	return p
}

// join has the flight's heart beat from a third of its lease on.
func (p *pulse) join(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.due, f.waits = time.Now().Add(p.every), true
	if f.prev = p.last; p.last != nil {
		p.last.next = f
	} else {
		p.first = f
	}
	p.last = f
	if !p.armed {
		p.armed = true
		p.timer.Reset(p.every)
	}
}

// fire starts what is due.
func (p *pulse) fire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for p.first != nil && !now.Before(p.first.due) {
		f := p.first
		p.unlink(f)
		done := make(chan struct{})
		f.done = done
		f.beating.Go(func() { f.beat(done) })
	}
	if p.armed = p.first != nil; p.armed {
		p.timer.Reset(p.first.due.Sub(now))
	}
}

// leave ends the flight's heartbeat, and returns when it has.
func (p *pulse) leave(f *flight) {
	p.mu.Lock()
	if f.waits {
		p.unlink(f)
	}
	done := f.done
	p.mu.Unlock()
	if done != nil {
		close(done)
		f.beating.Wait()
	}
}

func (p *pulse) unlink(f *flight) {
	if f.prev != nil {
		f.prev.next = f.next
	} else {
		p.first = f.next
	}
	if f.next != nil {
		f.next.prev = f.prev
	} else {
		p.last = f.prev
	}
	f.next, f.prev, f.waits = nil, nil, false
}

// close stops the timer; no flight is left.
func (p *pulse) close() { p.timer.Stop() }
