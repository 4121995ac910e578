package delta

import (
	"sync"
	"weak"
)

// aloft is what this engine has under way of one task, whichever of its handles made the calls: an agent that was built
// anew gives its tasks new handles, and cancelling through any of them reaches every call.
type aloft struct {
	mu      sync.Mutex
	flights map[*flight]struct{}
	halted  error // why nothing starts any more, once it was cancelled here
}

// aloft returns what is under way of a task as long as anybody holds a handle of it; the caller holds the engine's lock.
func (e *Engine) aloftOf(id string) *aloft {
	if a := e.aloft[id].Value(); a != nil {
		return a
	}
	a := newAloft()
	e.aloft[id] = weak.Make(a)
	return a
}

// lastAloft is aloftOf for a handle of a task that ended: nothing has to find what it holds again.
func (e *Engine) lastAloft(id string) *aloft {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a := e.aloft[id].Value(); a != nil {
		return a
	}
	return newAloft()
}

func newAloft() *aloft { return &aloft{flights: map[*flight]struct{}{}} }

// board registers a flight; it fails where the task was cancelled already.
func (a *aloft) board(f *flight) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.halted != nil {
		return a.halted
	}
	a.flights[f] = struct{}{}
	return nil
}

func (a *aloft) land(f *flight) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.flights, f)
}

// runs reports whether a call is under way here: its worker has not disappeared, however long its lease has run out.
func (a *aloft) runs(intent string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for f := range a.flights {
		if f.intent == intent {
			return true
		}
	}
	return false
}

// halt keeps anything more from starting; it reports whether it is the first to. resume takes that back.
func (a *aloft) halt(why error) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if first = a.halted == nil; first {
		a.halted = why
	}
	return first
}

func (a *aloft) resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.halted = nil
}

// interrupt stops the calls under way.
func (a *aloft) interrupt(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for f := range a.flights {
		f.stop(why)
	}
}
