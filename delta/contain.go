package delta

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// asideLimit bounds user code that decides something about a call beside its function: rules, keys, decoding, policies,
// estimates. An action with a shorter timeout gives its own no more than that.
const asideLimit = 5 * time.Second

// crowd counts the user code of one kind that did not return when it was to, and bounds it. Each kind has its own: planners
// that are stuck must not keep functions from starting.
type crowd struct {
	what  string
	most  int64
	stuck atomic.Int64
}

// full is an error where no more of the kind may start.
func (c *crowd) full() error {
	if n := c.stuck.Load(); n >= c.most {
		return fmt.Errorf("%d %s were given up and still run; no more start until some return", n, c.what)
	}
	return nil
}

// leave counts one as stuck until something comes back.
func leave[T any](c *crowd, back <-chan T) {
	c.stuck.Add(1)
	go func() {
		<-back
		c.stuck.Add(-1)
	}()
}

// Why user code gave no answer. No text of its own is in these: planners may read them.
var (
	errTooLong = errors.New("it took too long")
	errExited  = errors.New("it ended its goroutine")
)

// panicked is a panic of user code. What it said is for operators.
type panicked struct{ said string }

func (p *panicked) Error() string { return "it panicked" }

// because gives a failure what an operator should know of user code that went wrong.
func because(f *action.Failure, err error) *action.Failure {
	var p *panicked
	if errors.As(err, &p) {
		return f.With(action.DetailSaid, "panic: "+p.said).Because(err)
	}
	return f.Because(err)
}

// contain runs user code of a kind in a goroutine of its own: under a deadline, until ctx ends; panics are errors, errors
// are contained, and what does not return in time, and a grace period for what was given a context, is left behind and
// counted. The error then is errTooLong, or why ctx ended.
func contain[T any](ctx context.Context, c *crowd, limit, grace time.Duration, f func(context.Context) (T, error)) (T, error) {
	var none T
	if err := alive(ctx); err != nil {
		return none, err
	}
	if err := c.full(); err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTooLong)
	defer cancel()
	back := make(chan answered[T], 1)
	go func() {
		a := answered[T]{err: errExited}
		defer func() { back <- a }() // apart from what reads a panic's value: that may end the goroutine too
		defer func() {
			if p := recover(); p != nil {
				a.err = &panicked{action.TextOf(p)}
			}
		}()
		v, err := f(ctx)
		a = answered[T]{v, action.Contain(err)}
	}()
	select {
	case a := <-back:
		return a.v, a.err
	case <-ctx.Done():
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case a := <-back:
		if a.err != nil {
			a.err = fmt.Errorf("%w: %w", context.Cause(ctx), a.err)
		}
		return a.v, a.err
	case <-patience.C:
		leave(c, back)
		return none, context.Cause(ctx)
	}
}

// safely runs a caller's own code on the caller's goroutine: panics are errors, errors are contained.
func safely[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{action.TextOf(p)}
		}
	}()
	v, err = f()
	return v, action.Contain(err)
}

type answered[T any] struct {
	v   T
	err error
}

// errNoContext answers a nil context.
var errNoContext = errors.New("the context is nil; pass context.Background()")

// alive returns why a context has ended, or that there is none.
func alive(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return context.Cause(ctx)
}

// within returns a context that ends with ctx and when the engine stops.
func (e *Engine) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.stop, func() { cancel(context.Cause(e.stop)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
