package delta

import (
	"hash/maphash"
	"sync"
	"time"
)

// pulse starts the heartbeat of calls that outlive a third of their lease. Agents have lanes, so that they do not wait for
// each other; a lane has one timer for all of its calls.
type pulse struct {
	seed  maphash.Seed
	lanes [laneCount]pulseLane
}

type pulseLane struct {
	every time.Duration

	mu          sync.Mutex
	first, last *flight // in the order in which their first beat is due
	timer       *time.Timer
	armed       bool
	_           [64]byte // two lanes do not share a cache line
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
	p := &pulse{seed: maphash.MakeSeed()}
	for i := range p.lanes {
		l := &p.lanes[i]
		l.every, l.timer = every, time.AfterFunc(time.Hour, l.fire)
		l.timer.Stop()
	}
	return p
}

func (p *pulse) lane(f *flight) *pulseLane {
	return &p.lanes[maphash.String(p.seed, f.t.agent.name)%laneCount]
}

// join has the flight's heart beat from a third of its lease on.
func (p *pulse) join(f *flight) { p.lane(f).join(f) }

// leave ends the flight's heartbeat, and returns when it has.
func (p *pulse) leave(f *flight) { p.lane(f).leave(f) }

// close stops the timers; no flight is left.
func (p *pulse) close() {
	for i := range p.lanes {
		p.lanes[i].timer.Stop()
	}
}

func (p *pulseLane) join(f *flight) {
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
func (p *pulseLane) fire() {
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

func (p *pulseLane) leave(f *flight) {
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

func (p *pulseLane) unlink(f *flight) {
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
