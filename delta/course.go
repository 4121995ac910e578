package delta

import (
	"context"
	"sync"
	"time"
)

// course is the context of one call: it ends with its caller's, with the task's deadline, with the engine, or when it is
// cancelled. What channels, timers and goroutines that takes is made only once somebody listens: most functions that take
// microseconds never do.
type course struct {
	parent context.Context
	stop   context.Context // the engine's
	end    time.Time       // when the task's deadline passes, or the call's; zero: never
	late   error           // why it ends then; nil: errDeadline

	mu    sync.Mutex
	err   error // once it has ended
	cause error
	real  context.Context // once somebody listens
	halt  context.CancelCauseFunc
	undo  func()
}

// Deadline implements [context.Context].
func (c *course) Deadline() (time.Time, bool) {
	at, ok := c.parent.Deadline()
	if !c.end.IsZero() && (!ok || c.end.Before(at)) {
		return c.end, true
	}
	return at, ok
}

// Done implements [context.Context].
func (c *course) Done() <-chan struct{} { return c.listen().Done() }

// Value implements [context.Context].
func (c *course) Value(key any) any { return c.listen().Value(key) }

// Err implements [context.Context].
func (c *course) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real != nil {
		return c.real.Err()
	}
	c.look()
	return c.err
}

// look finds out whether a context that nobody listens to has ended.
func (c *course) look() {
	switch {
	case c.err != nil:
	case c.parent.Err() != nil:
		c.err, c.cause = c.parent.Err(), context.Cause(c.parent)
	case c.stop.Err() != nil:
		c.err, c.cause = context.Canceled, context.Cause(c.stop)
	case !c.end.IsZero() && !time.Now().Before(c.end):
		c.err, c.cause = context.DeadlineExceeded, c.overdue()
	}
}

// overdue is why the context ends at its end.
func (c *course) overdue() error {
	if c.late != nil {
		return c.late
	}
	return errDeadline
}

// cancel ends the context, unless it has ended.
func (c *course) cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real != nil {
		c.halt(cause)
		return
	}
	if c.look(); c.err == nil {
		c.err, c.cause = context.Canceled, cause
	}
}

// land ends the context and whatever was made for it.
func (c *course) land() {
	c.cancel(errLanded)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.undo != nil {
		c.undo()
		c.undo = nil
	}
}

// listen returns a context that others can wait for.
func (c *course) listen() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real != nil {
		return c.real
	}
	ctx, halt := context.WithCancelCause(c.parent)
	c.real, c.halt = ctx, halt
	over, stop := func() {}, func() bool { return true }
	switch c.look(); {
	case c.err == nil && !c.end.IsZero():
		c.real, over = context.WithDeadlineCause(ctx, c.end, c.overdue())
		fallthrough
	case c.err == nil:
		stop = context.AfterFunc(c.stop, func() { halt(context.Cause(c.stop)) })
	case c.cause == c.overdue():
		c.real, over = context.WithDeadlineCause(ctx, c.end, c.overdue())
	default:
		halt(c.cause)
	}
	c.undo = func() {
		over()
		stop()
		halt(errLanded)
	}
	return c.real
}
