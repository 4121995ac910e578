package hooks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/course"
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
	idle      chan struct{} // closed when live falls to 0; nil where nobody waits for that

	bells course.Bells
	clock course.Clock
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
	run := &running{runner: r, hook: hook, own: copyView(&v), bell: r.bells.Take()}
	run.start(ctx, timeout)
	defer run.ctx.Cancel(errReturned)
	go run.perform()
	if run.ctx.Wait(run.bell, &run.done) {
		err := run.err
		r.bells.Put(run.bell)
		return err
	}
	return r.late(run)
}

// errReturned ends the context of a hook that has returned.
var errReturned = errors.New("the hook has returned")

// start starts the hook's context. It ends with the timeout at the latest.
func (run *running) start(ctx context.Context, timeout time.Duration) {
	run.late.timeout = timeout
	o := course.Options{Parent: ctx, End: time.Now().Add(timeout), Late: &run.late, Clock: &run.runner.clock}
	if p, ok := ctx.(*course.Context); ok {
		o.Lane = p.Lane()
	}
	run.ctx.Start(o)
}

// perform runs the hook on its own goroutine.
func (run *running) perform() {
	run.err = ErrExited
	defer func() { // apart from what reads a panic's value: that may end the goroutine too
		bell := run.bell // the one who waits may go on as soon as it is done
		run.runner.end(run)
		run.done.Store(true)
		bell.Ring()
	}()
	run.err = contained(&run.ctx, run.hook, run.own)
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

// running is one hook under way, in one piece of memory, which a hook that keeps its context keeps alive.
type running struct {
	runner *Runner
	hook   Func
	own    action.View
	ctx    course.Context
	late   tookTooLong

	bell course.Bell
	done atomic.Bool
	err  error // once it is done

	left bool // behind; guarded by Runner.mu
	over bool // guarded by Runner.mu
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
func (r *Runner) late(run *running) error {
	var grace course.Context
	grace.Start(course.Options{Parent: context.Background(), End: time.Now().Add(Grace), Clock: &r.clock, Lane: run.ctx.Lane()})
	defer grace.Cancel(errReturned)
	if grace.Wait(run.bell, &run.done) {
		return run.err
	}
	r.abandon(run)
	return fmt.Errorf("%w, and ignores its context", run.ctx.Why())
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
	if r.live--; r.live == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
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
		live, idle := r.waits()
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

// waits returns how many hooks run, and what closes when none do.
func (r *Runner) waits() (live int64, idle chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live > 0 && r.idle == nil {
		r.idle = make(chan struct{})
	}
	return r.live, r.idle
}
