package delta

import "sync/atomic"

// insiders counts what is under way without a lock, so that Close can wait for it and say what is left. Nothing enters once
// it is closed.
type insiders struct {
	n    atomic.Int64  // how many are inside, and shut once it is closed
	out  atomic.Bool   // none was closed
	none chan struct{} // closed when it is shut and nobody is inside
}

const shut = 1 << 62

// enter counts one in; false where it is shut.
func (i *insiders) enter() bool {
	if i.n.Add(1) < shut {
		return true
	}
	i.Done()
	return false
}

// Done counts one out.
func (i *insiders) Done() {
	if i.n.Add(-1) == shut {
		i.empty()
	}
}

// close shuts it. The channel is closed when nobody is left inside.
func (i *insiders) close() <-chan struct{} {
	if i.n.Or(shut) == 0 {
		i.empty()
	}
	return i.none
}

// empty says that nobody is inside, once: who is turned away counts for a moment too.
func (i *insiders) empty() {
	if !i.out.Swap(true) {
		close(i.none)
	}
}

// under returns how many are inside.
func (i *insiders) under() int64 { return i.n.Load() &^ shut }
