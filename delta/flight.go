package delta

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/internal/course"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/tool"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// flight is one execution: gates 10 to 13 of an intent that has begun. It holds the lease until it has settled.
type flight struct {
	t      *Task
	def    *declaration
	call   *engine.Call
	in     action.Input
	key    string // idempotency key
	keyErr error  // why there is none
	tool   *tool.Registered
	veil   *veiled // nil: nothing in it is secret

	intent  string          // never changes
	ctx     context.Context // the caller's, ended also by the task, the lease and the engine: the course
	course  course.Context
	chain   hooks.Chain
	expires int64          // store time until which the approval covers the start, 0 for ever
	revs    [2]int64       // of task and agent once it had begun
	beyond  course.Context // of the hooks after the call
	seen    action.Outcome

	mu      sync.Mutex // guards what the heartbeat shares
	run     engine.Run
	view    *engine.View
	until   time.Time      // worker time until which the lease is surely held
	settled sync.WaitGroup // done once the end is written
	end     engine.End     // as written, then
	charged action.Cost
	first   Context      // of the first attempt
	back    landing      // of its function
	out     action.Lazy  // room for the value of its output
	under   atomic.Int32 // calls within it, and within those, that are under way
	left    bool         // a function of it was abandoned
	beats
}

// fly runs what began. It reports again where the call was given back because its risk rose in the meantime.
func (t *Task) fly(ctx context.Context, o *observed, d *engine.Decision, view *engine.View, reply txn.Reply, sent time.Time) (out action.Outcome, again bool) {
	f := t.flight(ctx, o, engine.Run{
		Agent: t.agent.compiled, Begun: d.Begun, Fence: 1, Owner: o.call.Owner, Doc: o.call.Intent.Input, Room: &o.room, Veil: o.call.Veil,
	}, view, reply, sent)
	f.expires, f.revs = d.Expires, [2]int64{reply.TaskRev, reply.AgentRev}
	defer f.land()
	if unmoved(view, d.Begun, reply) {
		return f.fly(), false
	}
	// Outcomes came in between, of this engine or another, folded already or not.
	fresh, err := t.freshView(ctx, view, d.Begun.Action, reply)
	if err != nil {
		return f.settle(f.notStarted("what is known of the agent cannot be read")), false
	}
	if fresh == view {
		return f.fly(), false
	}
	if no := f.recheck(fresh); no != nil {
		f.settle(f.notStarted("its grounds changed while it was decided: " + no.Message))
		return action.Outcome{}, true
	}
	return f.fly(), false
}

// recheck passes the gates again whose grounds may have moved since the begin.
func (f *flight) recheck(v *engine.View) *action.Failure {
	f.mu.Lock()
	begun := f.run.Begun
	f.mu.Unlock()
	c := *f.call
	c.Now = v.Snap.Now
	return engine.Recheck(&f.t.engine.rules, f.t.agent.compiled, v, begun, &c)
}

// flight takes off: from here the lease is kept alive until land.
func (t *Task) flight(ctx context.Context, o *observed, run engine.Run, view *engine.View, reply txn.Reply, sent time.Time) *flight {
	f := &o.flight
	if o.flown {
		f = new(flight)
	}
	o.flown = true
	f.t, f.def, f.call, f.in, f.intent, f.run, f.view = t, o.def, &o.call, action.Input{Document: o.call.Intent.Input}, run.Begun.Intent, run, view
	f.veil, f.key, f.keyErr = o.veil, o.key, o.keyErr
	f.until = sent.Add(time.Duration(reply.Until-reply.Now) * time.Microsecond)
	f.settled.Add(1)
	f.course.Start(course.Options{Parent: ctx, Stop: t.engine.stop, Clock: &t.engine.clocks, Lane: t.state.lane})
	f.ctx = &f.course
	if end := view.Task.Deadline; end > 0 {
		t.state.mu.Lock()
		f.course.Until(time.Now().Add(time.Duration(end-t.now())*time.Microsecond), errDeadline)
		t.state.mu.Unlock()
	}
	if d := f.def.deadline; d > 0 {
		f.course.Until(time.Now().Add(d), errOverdue)
	}
	t.engine.pulse.join(f)
	return f
}

// errLanded ends a flight's own context once nothing depends on it any more.
var errLanded = errors.New("the call has ended")

func (f *flight) land() {
	f.t.aloft.land(f)
	f.course.Cancel(errLanded)
	f.t.engine.pulse.leave(f)
}

// fly is gates 10 to 13.
func (f *flight) fly() action.Outcome {
	if err := f.t.aloft.board(f); err != nil {
		return f.settle(f.notStarted(ownWords(err)))
	}
	if err := f.keyErr; err != nil {
		end := f.notStarted(err.Error())
		end.Failure = because(end.Failure, err)
		return f.settle(end)
	}
	f.chain = f.t.engine.chain(f.def)
	if err := f.before(); err != nil && f.ctx.Err() == nil {
		return f.settle(f.checkFailed(err))
	}
	if err := f.stillRuns(); err != nil {
		return f.settle(f.notStarted(ownWords(err)))
	}
	if err := f.clear(); err != nil {
		return f.settle(f.notStarted(ownWords(err)))
	}
	end, err := f.attempts()
	var out action.Outcome
	if err == nil {
		out = f.settle(end)
	} else {
		out = f.leave(end, err)
	}
	f.after(out)
	return out
}

// leave gives up an end without writing it: who takes the intent over, once the lease has run out, writes what it finds.
func (f *flight) leave(end engine.End, err error) action.Outcome {
	defer f.settled.Done()
	f.end = engine.End{Code: action.StartedUnknown}
	return f.unwritten(end, err)
}

// stays reports whether nobody has written to a task or its agent since they were at these revisions, where looking costs
// no trip: then they are what they were.
func (e *Engine) stays(t *Task, revs [2]int64) bool {
	if e.instant == nil {
		return false
	}
	task, agent, _ := e.instant.Revisions(t.agent.name, t.local)
	return revs == [2]int64{task, agent}
}

// stillRuns asks the store once more, after before hooks, which may have taken long, whether the task runs: another engine
// may have cancelled it meanwhile, and the heartbeat has not told yet. Without such a hook the begin said so an instant ago.
func (f *flight) stillRuns() error {
	if f.ctx.Err() != nil || !hasHook(f.chain, before) || f.t.engine.stays(f.t, f.revs) {
		return nil
	}
	f.mu.Lock()
	x := f.run.Renew(f.view, f.t.engine.cfg.Lease.Microseconds())
	f.mu.Unlock()
	sent := time.Now()
	reply, err := f.t.engine.apply(f.ctx, x)
	switch {
	case err != nil:
		return fmt.Errorf("the store does not tell whether the task still runs: %w", err)
	case reply.OK:
		f.mu.Lock()
		f.until = sent.Add(time.Duration(reply.Until-reply.Now) * time.Microsecond)
		f.mu.Unlock()
		return nil
	case reply.Failed < 0:
		return errSuperseded
	}
	v, err := f.t.peek(context.WithoutCancel(f.ctx))
	if err != nil {
		return fmt.Errorf("the store does not tell whether the task still runs: %w", err)
	}
	if why := v.Stopped(f.intent, f.def.name, true); why != "" {
		return stoppedBy(why)
	}
	f.mu.Lock()
	f.view = v
	f.mu.Unlock()
	return goes(v)
}

// clear is the last look before the function starts.
func (f *flight) clear() error {
	if f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	f.mu.Lock()
	until := f.until
	f.mu.Unlock()
	if !time.Now().Before(until) {
		return errors.New("the lease ran out before the call could start")
	}
	if f.lapsed() {
		return errors.New("the approval expired before the call could start")
	}
	if err := f.stands(); err != nil {
		return err
	}
	return f.t.engine.functions.full()
}

// lapsed reports whether the approval that the call consumed no longer covers a start.
func (f *flight) lapsed() bool {
	if f.expires == 0 {
		return false
	}
	f.t.state.mu.Lock()
	defer f.t.state.mu.Unlock()
	return f.t.now() >= f.expires
}

func (f *flight) notStarted(why string) engine.End {
	return engine.End{Code: action.NotStarted, At: f.now(), Failure: action.Fail(action.NotStarted, "the call was not started: %s", why)}
}

func (f *flight) now() int64 { return f.t.engine.clock() }

// writeAttempt writes the next attempt; false where there must be none: a gate says no on what is known by now, or another
// worker took over. A task that merely changed is looked at again.
func (f *flight) writeAttempt(end engine.End) (bool, error) {
	end = f.hidden(end)
	for range rounds {
		v, err := f.t.peek(context.WithoutCancel(f.ctx))
		if err != nil {
			return false, nil
		}
		c := *f.call
		c.Now = v.Snap.Now
		f.mu.Lock()
		f.view = v
		x, e, no := f.run.Attempt(&f.t.engine.rules, v, &c, end, f.t.engine.cfg.Lease.Microseconds())
		f.mu.Unlock()
		if no != nil {
			return false, nil
		}
		sent := time.Now()
		reply, err := f.t.engine.apply(f.ctx, x)
		if err != nil {
			written, lost := f.wrote(e)
			if lost != nil || !written {
				return false, lost
			}
		} else if reply.OK {
			f.t.advance(x, reply, nil)
		} else if reply.Failed < 0 {
			return false, nil
		} else {
			continue
		}
		f.mu.Lock()
		f.run.Attempted(e, end.Cost)
		f.until = sent.Add(f.t.engine.cfg.Lease)
		f.mu.Unlock()
		return true, nil
	}
	return false, nil
}

// wrote looks up whether an attempt was written whose writing got no answer: then its reservation is held.
func (f *flight) wrote(e *ledger.Event) (bool, error) {
	own := newSight()
	if err := f.t.readRecord(f.ctx, e.Intent, own); err != nil {
		return false, err
	}
	held, err := engine.Held(&own.record, e.Intent)
	return held.Attempt == e.Attempt && held.Fence == e.Fence, err
}

// settle writes the end. An Ok is pinned to the task as it was: a result that comes after a cancellation is no success.
func (f *flight) settle(end engine.End) action.Outcome {
	defer f.settled.Done()
	if end.Code != action.OK { // it is counted beside what went wrong before
		_ = f.t.refresh(context.WithoutCancel(f.ctx), false)
	}
	for n := range rounds {
		end = f.hidden(end)
		x := f.settlement(end, n == 0)
		reply, err := f.t.send(f.ctx, x)
		switch {
		case err != nil:
			f.end = engine.End{Code: action.StartedUnknown}
			return f.unwritten(end, err)
		case reply.OK:
			f.t.advance(x, reply, nil)
			if k := f.t.engine.keeper; end.Code != action.OK {
				k.agent(f.t.agent.name, true)
			} else {
				k.waits(f.t.agent.name, len(reply.Pending))
			}
			out := f.plain(f.written(x), end)
			f.end, f.charged = end, out.Cost
			f.t.noteLoop(f.call, out.Code)
			return out
		case reply.Failed < 0:
			f.end = engine.End{Code: action.Late}
			return f.superseded(end)
		}
		end = f.reconsider(end)
	}
	f.end = engine.End{Code: action.StartedUnknown}
	return f.unwritten(end, errors.New("the task kept changing"))
}

func (f *flight) written(x *txn.Txn) action.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run.Written(x)
}

func (f *flight) settlement(end engine.End, first bool) *txn.Txn {
	f.t.state.mu.Lock()
	defer f.t.state.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.t.settle(&f.run, end, first)
	if end.Code == action.OK {
		f.view.PinTask(x)
	}
	return x
}

// reconsider looks at why a settle was refused: the task changed, or its counters cannot hold what was used. Where it was
// cancelled, what succeeded was interrupted.
func (f *flight) reconsider(end engine.End) engine.End {
	v, err := f.t.peek(context.WithoutCancel(f.ctx))
	if err != nil {
		return end // the next try to write says so
	}
	f.mu.Lock()
	f.view = v
	end.Cost = f.run.Fit(v, end.Cost)
	f.mu.Unlock()
	if v.Task.Status == engine.Cancelled && end.Code == action.OK {
		return f.stopped(errCancelled, end.Cost, "the function returned Ok")
	}
	return end
}

// unwritten is an end that could not be recorded. If the function ran, nobody may assume how it ended.
func (f *flight) unwritten(end engine.End, err error) action.Outcome {
	fail := action.Fail(action.StartedUnknown, "the call ended as %s, but that could not be recorded; a person must resolve it", end.Code).Because(err)
	if end.Code.Info().Executed == action.No {
		fail = failedStore(err)
	}
	f.t.engine.cfg.Log.Error("end not recorded", "action", f.def.name, "task", f.t.ID(), "intent", f.run.Begun.Intent, "code", end.Code, "error", err)
	return action.Outcome{Intent: f.run.Begun.Intent, Action: f.def.name, Code: fail.Code, Failure: fail}
}

// superseded is an end that comes after another worker has taken over.
func (f *flight) superseded(end engine.End) action.Outcome {
	fail := action.Fail(action.Late, "the call ended as %s after another worker had taken it over", end.Code)
	as, more := f.meanwhile(end.Cost)
	x := f.run.Late(end, as, more)
	if reply, err := f.t.engine.apply(f.ctx, x); err == nil && reply.OK {
		f.t.advance(x, reply, nil)
	}
	return action.Outcome{Intent: f.run.Begun.Intent, Action: f.def.name, Code: action.Late, Failure: fail}
}

// meanwhile says how the intent ended elsewhere, IN_FLIGHT where it has not, and what this worker's last attempt used that
// is charged nowhere else: of an effect that was repeated, all of it. Of one that was not, an operator says what it cost.
func (f *flight) meanwhile(used action.Cost) (action.Code, action.Cost) {
	own := newSight()
	if err := f.t.readRecord(f.ctx, f.run.Begun.Intent, own); err != nil || !f.def.compiled.Repeatable() {
		return action.StartedUnknown, action.Cost{}
	}
	o, ended := engine.Ended(&own.record, f.run.Begun.Intent)
	switch {
	case !ended:
		return action.InFlight, used
	case o.Code == action.Interrupted: // its task had ended: what was reserved counts as used
		return o.Code, engine.Beyond(used, o.Cost)
	}
	return o.Code, used
}
