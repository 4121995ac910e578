package delta

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/course"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
)

// NoTimeout says of an action that no timeout bounds its attempts, not even [Config.Timeout]: for functions that surely
// return soon. It spares the call a goroutine and a timer. The function runs on the goroutine of whoever made the call, who
// waits until it returns, whatever becomes of task, context and engine; that they ended is noticed then. It cannot be
// abandoned, and must not call runtime.Goexit, which would end its caller too; a run and [Engine.Work] bear it.
const NoTimeout time.Duration = -1

// attempt runs the function once, in a goroutine of its own so that it can be abandoned, and says how that ended.
func (f *flight) attempt(n int) engine.End {
	limit := f.def.timeout
	switch limit {
	case NoTimeout:
		return f.here(n)
	case 0:
		limit = f.t.engine.cfg.Timeout
	}
	started := time.Now()
	c := newContext(f, n, started.Add(limit))
	defer c.own.Cancel(errLanded)
	back := f.launch(c)
	came := c.own.Wait(back.bell, &back.done)
	if !came || c.own.Err() != nil && (cancelled(c.own.Why()) || !back.got.done || back.got.err != nil) {
		return f.gaveUp(c, back, came, started)
	}
	f.t.engine.bells.Put(back.bell)
	return f.verdict(back.got, c.used(time.Since(started), true))
}

// landing is where what comes back from a function is put. It may be read once it is done.
type landing struct {
	got  crash
	done atomic.Bool
	bell course.Bell
}

// launch starts the function. Exactly one value comes back, also from a panic and from a function that ends its goroutine.
// What the function returned is read, and its output written as JSON, there too: both run user code.
func (f *flight) launch(c *Context) *landing {
	back := &f.back
	if c != &f.first { // the earlier attempt's may still be under way
		back = new(landing)
	}
	back.bell = f.t.engine.bells.Take()
	go f.carry(c, back)
	return back
}

// carry runs the function on its own goroutine.
func (f *flight) carry(c *Context, back *landing) {
	back.got = crash{returned: returned{err: errExited}}
	bell := back.bell // it may be read as soon as it is done
	defer func() {    // apart from what reads a panic's value: that may end the goroutine too
		back.done.Store(true)
		bell.Ring()
	}()
	defer func() {
		if p := recover(); p != nil {
			back.got = crash{returned{err: &panicked{action.TextOf(p)}}, action.Document{}, nil}
		}
	}()
	back.got = f.perform(c)
}

// perform is gate 11 and the first half of 12: the function, and its output written as JSON.
func (f *flight) perform(c *Context) crash {
	got := crash{returned: f.def.run(c, f.in)}
	if got.bad = got.breach; got.bad != nil {
		return got
	}
	if got.err = action.Contain(got.err); got.err == nil {
		var room *action.Lazy
		if c == &f.first { // no other attempt uses it
			room = &f.out
		}
		got.doc, got.bad = f.def.checkReturned(&got.returned, room)
	}
	return got
}

// here runs the function on the caller's goroutine: it has no timeout, so nobody waits for it beside the caller. That the
// call was stopped meanwhile is noticed when it returns.
func (f *flight) here(n int) engine.End {
	c := newContext(f, n, time.Time{})
	started := time.Now()
	r := f.contained(c, started)
	used := c.used(time.Since(started), true)
	if f.ctx.Err() == nil || r.done && action.IsUnstarted(r.err) {
		return f.verdict(r, used)
	}
	said := ""
	if r.done && r.err == nil {
		said = "the function returned Ok"
	}
	return f.stopped(context.Cause(f.ctx), used, said)
}

// contained returns whatever the function does: a panic is an error. Where it ends the goroutine, which is the caller's,
// the call is settled on the way out.
func (f *flight) contained(c *Context, started time.Time) (r crash) {
	back := false
	defer func() {
		if back {
			return
		}
		if p := recover(); p != nil {
			r = crash{returned{err: &panicked{action.TextOf(p)}}, action.Document{}, nil}
			return
		}
		f.after(f.settle(f.verdict(crash{returned: returned{err: errExited}}, c.used(time.Since(started), true))))
	}()
	r = f.perform(c)
	back = true
	return r
}

// crash is what came back from a function, a panic included.
type crash struct {
	returned
	doc action.Document
	bad *action.Failure // what is wrong with the output
}

// cancelled tells a call that was stopped from one that ran out of its own time.
func cancelled(cause error) bool { return !errors.Is(action.Contain(cause), errTimeout) }

// gaveUp ends an attempt whose context ended first. The function gets a grace period to return; after that it is
// abandoned, counted, and what it returns is LATE. Of what came only an Ok counts after a timeout: what a function says because
// it was told to stop must not depend on who was quicker.
func (f *flight) gaveUp(c *Context, back *landing, came bool, started time.Time) engine.End {
	cause := c.own.Why()
	if !came {
		if came = f.patience(back); !came {
			f.abandon(c, back, started)
		}
	}
	var r crash
	if came {
		r = back.got
	}
	if came && r.done && action.IsUnstarted(r.err) {
		return f.verdict(r, action.Cost{})
	}
	said := ""
	switch {
	case !came:
		said = "the function ignores its context and was abandoned"
	case r.done && r.err == nil:
		said = "the function returned Ok"
	}
	return f.stopped(cause, c.used(time.Since(started), came), said)
}

// patience waits for a function that was told to stop, as long as the grace period lasts.
func (f *flight) patience(back *landing) bool {
	e := f.t.engine
	var grace course.Context
	grace.Start(course.Options{Parent: context.Background(), End: time.Now().Add(e.cfg.Grace), Clock: &e.clocks, Lane: f.t.state.lane})
	defer grace.Cancel(errLanded)
	return grace.Wait(back.bell, &back.done)
}

// stopped is the end of an attempt that was told to stop.
func (f *flight) stopped(cause error, cost action.Cost, said string) engine.End {
	code, why := action.Interrupted, "the call was stopped while it ran: "+action.TextOf(cause)
	if !cancelled(cause) {
		code, why = action.Timeout, "the call took too long and was given up"
	}
	fail := engine.Interrupt(f.def.compiled, code, why).Because(cause).With(action.DetailReason, said)
	return engine.End{Code: fail.Code, Failure: fail, Cost: cost, At: f.now()}
}

// abandon counts a function that still runs, and records what it returns when it does.
func (f *flight) abandon(c *Context, back *landing, started time.Time) {
	e := f.t.engine
	f.left = true
	e.functions.stuck.Add(1)
	go func() {
		for !back.done.Load() {
			back.bell.Wait()
		}
		e.functions.stuck.Add(-1)
		f.settled.Wait()
		end := f.verdict(back.got, c.used(time.Since(started), true))
		f.mu.Lock()
		x := f.run.Late(end, f.end.Code, engine.Beyond(end.Cost, f.charged))
		f.mu.Unlock()
		if reply, err := e.apply(context.Background(), x); err != nil || !reply.OK {
			e.cfg.Log.Warn("late result not recorded", "action", f.def.name, "task", f.t.ID(), "intent", f.run.Begun.Intent, "code", end.Code, "error", err)
		}
	}()
}

// verdict is gates 11 and 12: only a function that completed with an explicit Ok and a valid output succeeded.
func (f *flight) verdict(r crash, cost action.Cost) engine.End {
	end := engine.End{Cost: cost, At: f.now()}
	switch {
	case !r.done:
		end.Failure = because(action.Fail(action.Panicked, "action %q ended without a result: %v", f.def.name, r.err), r.err)
	case r.err != nil && action.IsUnstarted(r.err):
		end.Cost = action.Cost{}
		end.Failure = action.Fail(action.NotStarted, "the call was not started: what it runs in could not be made ready").With(action.DetailSaid, r.err.Error()).Because(r.err)
	case r.err != nil && action.IsUnknown(r.err):
		end.Failure = action.Fail(action.StartedUnknown, "it is not known whether the call took effect: %v", r.err).Because(r.err)
	case r.err != nil:
		end.Failure = failedBy(r.err)
	default:
		end.Output, end.Failure = r.doc, r.bad
	}
	end.Code = action.OK
	if end.Failure != nil {
		end.Code = end.Failure.Code
	}
	return end
}

// failedBy is the failure of a function that returned an error. One that a call of its own met with may name an action that
// the planner must not know of: then the words are for operators.
func failedBy(err error) *action.Failure {
	if f := action.FailureOf(err); f != nil && (f.Code == action.Denied || f.Code == action.ActionUnknown) {
		return action.Fail(action.Failed, "a call that the function made was refused as %s", f.Code).With(action.DetailSaid, err.Error()).Because(err)
	}
	return action.Fail(action.Failed, "%v", err).Because(err)
}
