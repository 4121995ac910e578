package course

import (
	"sync"
	"sync/atomic"
)

// Bell wakes who waits for one of several things. It says that something may have happened, not what, and may ring for
// nothing: whoever waits looks. The zero value wakes nobody.
type Bell struct{ c chan struct{} }

// Ring wakes the one who waits, or the next one to.
func (b Bell) Ring() {
	if b.c == nil {
		return
	}
	select {
	case b.c <- struct{}{}:
	default: // it rings already
	}
}

// Wait waits until the bell rings.
func (b Bell) Wait() { <-b.c }

// Bells are bells to be used again. The zero value is ready. A bell that somebody may still ring can be given back: who
// has it next looks, and waits again.
type Bells struct {
	mu    sync.Mutex
	spare []Bell
}

// sparesKept bounds how many bells are kept.
const sparesKept = 256

// Take returns a bell.
func (s *Bells) Take() Bell {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.spare); n > 0 {
		b := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return b
	}
	return Bell{make(chan struct{}, 1)}
}

// Put gives a bell back that nobody waits for.
func (s *Bells) Put(b Bell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spare) < sparesKept {
		s.spare = append(s.spare, b)
	}
}

// Wait waits until over is true or the context has ended, and returns over, as it was then. Whoever sets over rings the bell
// after it.
func (c *Context) Wait(bell Bell, over *atomic.Bool) bool {
	c.mu.Lock()
	c.bell = bell
	if c.look(); c.err == nil {
		c.arm()
	}
	ended := c.err != nil
	c.unlock()
	for !ended && !over.Load() {
		bell.Wait()
		if !over.Load() {
			ended = c.Err() != nil
		}
	}
	c.mu.Lock()
	c.bell = Bell{}
	c.mu.Unlock()
	return over.Load()
}
