package hooks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Why a hook failed other than by its own error.
var (
	ErrTimeout = errors.New("hook took too long")
	ErrExited  = errors.New("hook ended its goroutine")
	ErrTooMany = errors.New("too many hooks ignore their context: no hook is run until some return")
)

// tookTooLong is the cause of a hook's end by its timeout.
type tookTooLong struct{ timeout time.Duration }

func (e *tookTooLong) Error() string { return fmt.Sprintf("%v: more than %v", ErrTimeout, e.timeout) }
func (e *tookTooLong) Unwrap() error { return ErrTimeout }

// PanicError is a panic of a hook.
type PanicError struct {
	Value any
	Stack []byte // for operators
	text  string // what the value says of itself, read once: its own code may panic too
}

// Error names the value, not the stack.
func (e *PanicError) Error() string { return "hook panicked: " + e.text }

// Grace is how long a hook whose context has ended is waited for before it is left behind.
const Grace = 100 * time.Millisecond

// DefaultMaxAbandoned is the bound of a Runner that does not set one.
const DefaultMaxAbandoned = 64

// Runner runs hooks and owns their goroutines. The zero value is ready. It must not be copied.
type Runner struct {
	// MaxAbandoned is how many hooks left behind may still be running before no more are started; 0 is
	// DefaultMaxAbandoned. Hooks that were running already when it was reached can come on top.
	MaxAbandoned int64

	mu        sync.Mutex
	live      int64         // goroutines that have not returned, left behind or not
	abandoned int64         // of them, those left behind
	total     int64         // ever left behind
	idle      chan struct{} // closed when live falls to 0; nil before the first hook
}

// Run runs one hook with a copy of the view and returns its error; a nil hook does nothing. A timeout of 0 is
// DefaultTimeout. The error is, or wraps, ErrTimeout where the timeout ended first, the context's error where ctx did, a
// *PanicError, ErrExited, or ErrTooMany where the hook was not started. The hook's own error is contained, see
// [action.Contain].
//
// Run returns at the latest Grace after the first of timeout and ctx, whatever the hook does; with NoTimeout when the hook
// does, on whose goroutine it runs then: one that ends its goroutine ends the caller's.
func (r *Runner) Run(ctx context.Context, timeout time.Duration, hook Func, v action.View) error {
	if hook == nil {
		return nil
	}
	switch {
	case timeout == NoTimeout:
		return contained(ctx, hook, copyView(&v))
	case timeout <= 0:
		timeout = DefaultTimeout
	}
	if err := r.start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, &tookTooLong{timeout})
	defer cancel()
	run := &running{done: make(chan error, 1)}
	own := copyView(&v)
	go func() {
		err := error(ErrExited)
		defer func() { // apart from what reads a panic's value: that may end the goroutine too
			r.end(run)
			run.done <- err
		}()
		err = contained(ctx, hook, own)
	}()

	select {
	case err := <-run.done:
		return err
	case <-ctx.Done():
	}
	return r.late(ctx, run)
}

// contained calls a hook; a panic is an error.
func contained(ctx context.Context, hook Func, v action.View) (err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			err = &PanicError{p, stack, action.TextOf(p)}
		}
	}()
	return inTime(ctx, action.Contain(hook(ctx, v)))
}

// running is one hook's goroutine.
type running struct {
	done chan error // its error, once; buffered, so that nobody need listen
	left bool       // behind; guarded by Runner.mu
	over bool       // guarded by Runner.mu
}

// inTime adds why the context ended to what a hook returned after it had: a hook that was told to stop did not succeed.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	switch {
	case err == nil || errors.Is(err, ctx.Err()):
		return cause
	}
	return errors.Join(cause, err)
}

// late waits for a hook whose context has ended, for a while.
func (r *Runner) late(ctx context.Context, run *running) error {
	grace := time.NewTimer(Grace)
	defer grace.Stop()
	select {
	case err := <-run.done:
		return err
	case <-grace.C:
		r.abandon(run)
		return fmt.Errorf("%w, and ignores its context", context.Cause(ctx))
	}
}

func (r *Runner) start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	bound := r.MaxAbandoned
	if bound <= 0 {
		bound = DefaultMaxAbandoned
	}
	if r.abandoned >= bound {
		return ErrTooMany
	}
	if r.live == 0 {
		r.idle = make(chan struct{})
	}
	r.live++
	return nil
}

func (r *Runner) end(run *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run.over = true
	if run.left {
		r.abandoned--
	}
	if r.live--; r.live == 0 {
		close(r.idle)
	}
}

func (r *Runner) abandon(run *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run.over {
		return // it returned just now
	}
	run.left = true
	r.abandoned++
	r.total++
}

// Abandoned returns how many hooks that were left behind are still running.
func (r *Runner) Abandoned() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.abandoned
}

// EverAbandoned returns how many hooks were left behind since the start.
func (r *Runner) EverAbandoned() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// Wait returns when no hook is running, those left behind included, or with an error that counts them when ctx ends.
func (r *Runner) Wait(ctx context.Context) error {
	for {
		r.mu.Lock()
		live, idle := r.live, r.idle
		r.mu.Unlock()
		if live == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("%d hooks are still running: %w", live, context.Cause(ctx))
		}
	}
}
