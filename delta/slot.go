package delta

import (
	"context"
	"sync"
)

// slot is the place of one piece of work among those that Work does at a time. Who waits gives it back meanwhile.
type slot struct {
	places chan struct{}
	ends   <-chan struct{} // when it is closed, nothing further is begun

	mu      sync.Mutex
	waiting int
	without bool // it goes on without its place, because its context ended before there was one again
	gone    bool // the work is done, whoever was left behind by it
}

type slotKey struct{}

// leaving reports whether the Work under which ctx works has been told to end: what goes on step by step stops after one.
func leaving(ctx context.Context) bool {
	s, _ := ctx.Value(slotKey{}).(*slot)
	if s == nil {
		return false
	}
	select {
	case <-s.ends:
		return true
	default:
		return false
	}
}

// vacate gives up the place under which ctx works, if there is one, until the function that it returns is called. Of
// several who wait under one place the last to go on takes it again.
func vacate(ctx context.Context) (back func()) {
	s, _ := ctx.Value(slotKey{}).(*slot)
	if s == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting++; s.waiting == 1 && !s.without && !s.gone {
		<-s.places
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting--; s.waiting > 0 || s.gone {
			return
		}
		select {
		case s.places <- struct{}{}:
			s.without = false
		case <-ctx.Done():
			s.without = true
		}
	}
}

// leave gives the place up for good. A function that was left behind may still wait: it gets none again.
func (s *slot) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == 0 && !s.without {
		<-s.places
	}
	s.gone = true
}
