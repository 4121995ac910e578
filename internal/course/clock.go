package course

import (
	"sync"
	"time"
)

// lanes is how many lists a clock keeps: contexts of one do not wait for those of another.
const lanes = 16

// Clock tells contexts that their time has passed. The zero value is ready. It has a timer a lane, which is moved only where
// a context ends earlier than all before it; most have come and gone by the time it fires. It owns no goroutine.
type Clock struct {
	lanes [lanes]lane
}

type lane struct {
	mu    sync.Mutex
	first *Context
	timer *time.Timer
	at    time.Time // when it fires, zero: it is not set
	_     [64]byte  // two lanes do not share a cache line
}

func (k *Clock) join(c *Context) {
	l := &k.lanes[c.lane]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(c)
	if !c.end.IsZero() {
		l.wake(c.end)
	}
}

func (l *lane) put(c *Context) {
	c.due = link{next: l.first, in: true}
	if l.first != nil {
		l.first.due.prev = c
	}
	l.first = c
}

func (k *Clock) leave(c *Context) {
	l := &k.lanes[c.lane]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(c)
}

func (l *lane) take(c *Context) {
	if !c.due.in {
		return
	}
	if c.due.prev != nil {
		c.due.prev.due.next = c.due.next
	} else {
		l.first = c.due.next
	}
	if c.due.next != nil {
		c.due.next.due.prev = c.due.prev
	}
	c.due = link{}
}

// wake has the timer fire at that time or before.
func (l *lane) wake(at time.Time) {
	if !l.at.IsZero() && !at.Before(l.at) {
		return
	}
	l.at = at
	if in := time.Until(at); l.timer == nil {
		l.timer = time.AfterFunc(in, l.fire)
	} else {
		l.timer.Reset(in)
	}
}

// fire tells those whose time has passed, and sets the timer for the first of the others.
func (l *lane) fire() {
	for _, c := range l.passed() {
		c.check()
	}
}

func (l *lane) passed() []*Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*Context
	var next time.Time
	now := time.Now()
	l.at = time.Time{}
	for c := l.first; c != nil; c = c.due.next {
		switch {
		case c.end.IsZero():
		case !now.Before(c.end):
			out = append(out, c)
		case next.IsZero() || c.end.Before(next):
			next = c.end
		}
	}
	if !next.IsZero() {
		l.wake(next)
	}
	return out
}

// Check has all contexts look whether what stops them has.
func (k *Clock) Check() {
	for i := range k.lanes {
		l := &k.lanes[i]
		var all []*Context
		l.mu.Lock()
		for c := l.first; c != nil; c = c.due.next {
			if c.stop != nil {
				all = append(all, c)
			}
		}
		l.mu.Unlock()
		for _, c := range all {
			c.check()
		}
	}
}

// Close stops the timers. Nothing that is still under way is told of its time any more.
func (k *Clock) Close() {
	for i := range k.lanes {
		l := &k.lanes[i]
		l.mu.Lock()
		if l.timer != nil {
			l.timer.Stop()
		}
		l.mu.Unlock()
	}
}
