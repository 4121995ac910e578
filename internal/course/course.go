package course

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Context is a [context.Context] that ends with its parent's, with the one that stops it, at its end, or when it is
// cancelled, whichever is first. Start it once; it must not be copied. It is safe for concurrent use.
//
// Contexts that are made from it by the standard library are told of its end as from one of its own: with its cause, and
// without a goroutine for each.
type Context struct {
	parent context.Context
	stop   context.Context // ends it too; nil: there is none
	end    time.Time       // zero: never
	late   error           // the cause, then
	clock  *Clock
	lane   uint8

	mu    sync.Mutex
	err   error // once it has ended
	cause error
	armed bool // what ends it will tell it
	done  chan struct{}
	bell  Bell
	funcs map[*func()]struct{}
	told  told        // once it has ended, until that is told
	undo  func() bool // takes back what was asked of a parent of another kind
	gone  context.Context
	kids  *Context // those that must be told

	near link // among the parent's, under the parent's lock
	due  link // on the clock's lane, under the lane's
}

// told is whom to tell that a context has ended, once no lock is held any more.
type told struct {
	funcs []func()
	kids  []*Context
}

// unlock tells whoever listens what came to light under the lock.
func (c *Context) unlock() {
	t := c.told
	c.told = told{}
	c.mu.Unlock()
	call(t.funcs)
	for _, k := range t.kids {
		k.check()
	}
}

// patience is how long who ended a context waits until those who were to be called have returned. The standard library's do
// at once: then a context made from this one ends before its end can be seen by anything else.
const patience = 10 * time.Millisecond

// call calls functions of others, each on a goroutine of its own.
func call(funcs []func()) {
	if len(funcs) == 0 {
		return
	}
	back := make(chan struct{}, len(funcs))
	for _, f := range funcs {
		go func() {
			defer func() { back <- struct{}{} }()
			f()
		}()
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for range funcs {
		select {
		case <-back:
		case <-late.C:
			return
		}
	}
}

// link is a place in a list; which one, and under which lock, its field says.
type link struct {
	next, prev *Context
	in         bool
}

// Options is what ends a context.
type Options struct {
	Parent context.Context // never nil
	Stop   context.Context // nil: nothing else does; whoever ends it calls [Clock.Check]
	End    time.Time       // zero: never
	Late   error           // the cause once End has passed; nil: [context.DeadlineExceeded]
	Clock  *Clock          // that keeps the time and tells of Stop
	Lane   uint8           // of the clock: those of one lane wait for each other
}

// Start starts a context of its zero value.
func (c *Context) Start(o Options) {
	c.parent, c.stop, c.end, c.late, c.clock, c.lane = o.Parent, o.Stop, o.End, o.Late, o.Clock, o.Lane%lanes
	if c.late == nil {
		c.late = context.DeadlineExceeded
	}
}

// Started reports whether it was started.
func (c *Context) Started() bool { return c.parent != nil }

// Parent returns what it was started under.
func (c *Context) Parent() context.Context { return c.parent }

// Lane returns the lane that it was started with.
func (c *Context) Lane() uint8 { return c.lane }

// Until moves the end of a context that nobody has seen yet to an earlier time.
func (c *Context) Until(end time.Time, late error) {
	if c.end.IsZero() || end.Before(c.end) {
		c.end, c.late = end, late
	}
}

// Deadline implements [context.Context].
func (c *Context) Deadline() (time.Time, bool) {
	at, ok := c.parent.Deadline()
	if !c.end.IsZero() && (!ok || c.end.Before(at)) {
		return c.end, true
	}
	return at, ok
}

// Err implements [context.Context].
func (c *Context) Err() error {
	c.mu.Lock()
	defer c.unlock()
	c.look()
	return c.err
}

// Why returns why it ended, nil where it has not: [context.Cause], for less.
func (c *Context) Why() error {
	c.mu.Lock()
	defer c.unlock()
	c.look()
	return c.cause
}

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.unlock()
	if c.done != nil {
		return c.done
	}
	if c.look(); c.err != nil {
		c.done = make(chan struct{})
		close(c.done)
		return c.done
	}
	c.done = make(chan struct{})
	c.arm()
	return c.done
}

// AfterFunc calls f in a goroutine of its own once the context has ended, unless stop was called first. The standard library
// tells by it the contexts made from this one.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.unlock()
	if c.look(); c.err == nil {
		c.arm()
	}
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.funcs == nil {
		c.funcs = map[*func()]struct{}{}
	}
	key := &f
	c.funcs[key] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waits := c.funcs[key]
		delete(c.funcs, key)
		return waits
	}
}

// Value implements [context.Context].
func (c *Context) Value(key any) any {
	if cancelKey == nil || key != cancelKey {
		return c.parent.Value(key)
	}
	c.mu.Lock()
	defer c.unlock()
	if c.look(); c.err == nil {
		return nil // what it ends with is its own
	}
	if c.gone == nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(c.cause)
		c.gone = ctx
	}
	return c.gone.Value(key)
}

// Cancel ends it, unless it has ended.
func (c *Context) Cancel(cause error) {
	c.mu.Lock()
	defer c.unlock()
	if c.look(); c.err == nil {
		c.finish(context.Canceled, cause)
	}
}

// check finds out whether it has ended, and tells those who listen.
func (c *Context) check() { _ = c.Err() }

// look is check for who holds the lock.
func (c *Context) look() {
	if c.err != nil {
		return
	}
	if err, cause := c.above(); err != nil {
		c.finish(err, cause)
	} else if c.stop != nil && c.stop.Err() != nil {
		c.finish(context.Canceled, context.Cause(c.stop))
	} else if !c.end.IsZero() && !time.Now().Before(c.end) {
		c.finish(context.DeadlineExceeded, c.late)
	}
}

// above asks the parent whether it has ended, and why. The caller, who holds the lock of a child, tells what comes of that.
func (c *Context) above() (err, cause error) {
	p, ok := c.parent.(*Context)
	if !ok {
		if err = c.parent.Err(); err != nil {
			cause = context.Cause(c.parent)
		}
		return err, cause
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look()
	c.takeOver(p)
	return p.err, p.cause
}

// takeOver takes over what a parent that is locked, too, has to tell: the caller is one of those who would be told.
func (c *Context) takeOver(p *Context) {
	c.told.funcs, c.told.kids = append(c.told.funcs, p.told.funcs...), append(c.told.kids, p.told.kids...)
	p.told = told{}
}

// finish ends it; the caller holds the lock, and tells whoever listens with unlock.
func (c *Context) finish(err, cause error) {
	if cause == nil {
		cause = err
	}
	c.err, c.cause = err, cause
	if c.done != nil {
		close(c.done)
	}
	c.bell.Ring()
	for f := range c.funcs {
		c.told.funcs = append(c.told.funcs, *f)
	}
	c.funcs = nil
	for k := c.kids; k != nil; k = k.near.next {
		c.told.kids = append(c.told.kids, k)
	}
	if c.armed {
		c.disarm()
	}
}

// arm asks everything that may end it to tell; the caller holds the lock, and has looked.
func (c *Context) arm() {
	if c.armed {
		return
	}
	c.armed = true
	if c.stop != nil || !c.end.IsZero() {
		c.clock.join(c)
	}
	if p, ok := c.parent.(*Context); ok {
		p.adopt(c)
	} else if c.parent.Done() != nil {
		c.undo = context.AfterFunc(c.parent, c.check)
	}
	c.look() // what ended it before it was asked to tell does not
}

// disarm takes back what arm asked; the caller holds the lock.
func (c *Context) disarm() {
	if c.clock != nil {
		c.clock.leave(c)
	}
	if p, ok := c.parent.(*Context); ok {
		p.disown(c)
	} else if c.undo != nil {
		c.undo()
		c.undo = nil
	}
}

// adopt has a child, which is locked, told when its parent ends; one that has ended by now is seen by the child.
func (c *Context) adopt(kid *Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.look(); c.err == nil {
		c.arm()
	}
	kid.takeOver(c)
	if c.err != nil {
		return
	}
	kid.near = link{next: c.kids, in: true}
	if c.kids != nil {
		c.kids.near.prev = kid
	}
	c.kids = kid
}

func (c *Context) disown(kid *Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !kid.near.in {
		return
	}
	if kid.near.prev != nil {
		kid.near.prev.near.next = kid.near.next
	} else {
		c.kids = kid.near.next
	}
	if kid.near.next != nil {
		kid.near.next.near.prev = kid.near.prev
	}
	kid.near = link{}
}

// cancelKey is the key under which the standard library looks for the innermost context of its own kind, whose cause it
// takes for that of all contexts around it. It is learned by asking for the cause of one that has ended.
var cancelKey = func() any {
	var p probe
	_ = context.Cause(&p)
	return p.key
}()

// probe is a context that has ended and notes what it is asked for.
type probe struct {
	context.Context
	key any
}

var errProbe = errors.New("it ended")

func (p *probe) Err() error { return errProbe }

func (p *probe) Value(key any) any {
	p.key = key
	return nil
}
