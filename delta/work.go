package delta

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// workPage is how many due members of a queue are taken at a time.
const workPage = 64

// Work does what nobody waits for: it runs parked calls once they are approved, takes over calls whose worker
// disappeared, writes down approvals that expired and tasks whose deadline passed. It serves the registered agents until
// ctx ends, then finishes what it has in hand. Any number of engines may work on one store.
func (e *Engine) Work(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("work: %w", errNoContext)
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.inside.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.stop, func() { cancel(context.Cause(e.stop)) })()
	poll := time.NewTicker(e.cfg.Poll)
	defer poll.Stop()
	w := &shift{e: e, slots: make(chan struct{}, e.cfg.Workers), hand: map[string]bool{}}
	defer w.all.Wait()
	w.all.Go(func() { w.present(ctx) })
	for {
		w.sweep(ctx)
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), ErrClosed) {
				return nil
			}
			return context.Cause(ctx)
		case <-poll.C:
		case <-e.wake:
		case <-e.draining:
			return nil
		}
	}
}

// shift is what one Work has in hand: at most Workers things at a time, none of them twice. A long call keeps its place and
// holds up nothing else.
type shift struct {
	e     *Engine
	slots chan struct{}
	all   sync.WaitGroup

	mu   sync.Mutex
	hand map[string]bool
}

// sweep takes in hand what is due now.
func (w *shift) sweep(ctx context.Context) {
	e := w.e
	e.inheritHalts(ctx)
	for _, s := range e.known() {
		if s.agent.card != nil {
			continue // others have its functions
		}
		if err := e.noteConfig(ctx, s); err != nil {
			e.cfg.Log.Warn("it cannot be recorded by what is decided", "agent", s.agent.name, "error", err)
		}
		w.askRules(ctx, s)
		for _, duty := range []struct {
			queue string
			do    func(context.Context, *agentState, string) error
		}{
			{txn.Leases, e.takeOver},
			{engine.QueueReady, e.runReady},
			{engine.QueueAsks, e.expireAsk},
			{engine.QueueGlass, e.endGlass},
			{engine.QueueTasks, e.endTask},
			{engine.QueueEnds, func(ctx context.Context, s *agentState, task string) error {
				return e.endChildren(ctx, s.agent.name, task)
			}},
			{engine.QueueHolds, e.tellHeld},
			{engine.QueueReports, func(ctx context.Context, s *agentState, task string) error {
				return e.reportChild(ctx, s.agent.name, task)
			}},
			{engine.QueueStarts, e.startDue},
			{engine.QueueFolds, e.foldTold},
			{engine.QueueBeyond, func(ctx context.Context, s *agentState, id string) error { return e.tellPool(ctx, s.agent.name, id) }},
			{engine.QueueLasting, e.forgetLasting},
			{engine.QueueFailures, e.forgetFailures},
			{engine.QueueFlows, e.driveDue},
		} {
			if err := w.serve(ctx, s, duty.queue, duty.do); err != nil && ctx.Err() == nil {
				e.cfg.Log.Warn("work queue cannot be read", "queue", duty.queue, "agent", s.agent.name, "error", err)
			}
		}
	}
}

// serve goes through all of a queue that is due: what this worker cannot do must not keep it from what is behind.
func (w *shift) serve(ctx context.Context, s *agentState, queue string, do func(context.Context, *agentState, string) error) error {
	for after := (txn.Queued{}); ; {
		due, err := w.e.store.Queued(ctx, s.agent.name, queue, after, true, workPage)
		if err != nil {
			return err
		}
		for _, q := range due {
			if !w.take(ctx, s, queue, q.Member, do) {
				return nil
			}
			after = q
		}
		if len(due) < workPage {
			return nil
		}
	}
}

// take does one thing beside the others, once there is room; false where nothing more is to be taken in hand.
func (w *shift) take(ctx context.Context, s *agentState, queue, member string, do func(context.Context, *agentState, string) error) bool {
	key := s.agent.name + "\n" + queue + "\n" + member
	w.mu.Lock()
	has := w.hand[key]
	w.mu.Unlock()
	if has {
		return true
	}
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	case <-w.e.draining:
		return false
	}
	if w.e.winding(ctx) {
		<-w.slots
		return false
	}
	w.mu.Lock()
	w.hand[key] = true
	w.mu.Unlock()
	place := &slot{places: w.slots, ends: ctx.Done()}
	w.all.Go(func() {
		defer func() { // also where a function ends the goroutine
			w.mu.Lock()
			delete(w.hand, key)
			w.mu.Unlock()
			place.leave()
		}()
		err := do(context.WithValue(context.WithoutCancel(ctx), slotKey{}, place), s, member)
		if err != nil {
			if gone, _ := w.e.unqueueGone(context.WithoutCancel(ctx), s.agent.name, queue, member); gone {
				err = nil // nothing is left to be done
			}
		}
		if err != nil && ctx.Err() == nil {
			w.e.cfg.Log.Warn("work failed; it is tried again", "queue", queue, "agent", s.agent.name, "member", member, "error", err)
		}
	})
	return true
}

// winding reports whether nothing more is to be taken in hand. What is in hand is finished: a worker that is told to go
// must not interrupt effects; Close does, when its own context ends.
func (e *Engine) winding(ctx context.Context) bool {
	select {
	case <-e.draining:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// recorded opens the task of a queue's member and reads its intent.
func (e *Engine) recorded(ctx context.Context, s *agentState, member string) (*Task, ledger.Event, *sight, error) {
	task, intent, _ := strings.Cut(member, "\n")
	t := e.adopt(s, task)
	own := newSight()
	if err := t.readRecord(ctx, intent, own); err != nil {
		return nil, ledger.Event{}, nil, err
	}
	held, err := engine.Held(&own.record, intent)
	return t, held, own, err
}

// runReady runs a parked call that was approved.
func (e *Engine) runReady(ctx context.Context, s *agentState, member string) error {
	t, parked, _, err := e.recorded(ctx, s, member)
	if err != nil {
		return err
	}
	if v, err := t.peek(ctx); err != nil || !v.Task.Status.Ended() && v.Withheld(parked.Action) {
		return err // it waits on
	} else if v.Task.Flow != nil {
		if left, err := t.leftToFlow(ctx, parked.Call); left || err != nil {
			return err
		}
	}
	o, err := t.again(ctx, parked)
	if err != nil {
		return err // another worker may hold that version
	}
	o.call.Alone = true
	out := t.do(ctx, o)
	t.passOnAfter(ctx, out.Code)
	t.tellConcern(ctx)
	e.forgetEnded(t)
	return nil
}

// takeOver ends or repeats a call whose lease ran out.
func (e *Engine) takeOver(ctx context.Context, s *agentState, member string) error {
	t, begun, own, err := e.recorded(ctx, s, member)
	if err != nil {
		return err
	}
	lease := own.leases[begun.Intent]
	if lease.Phase != txn.Begin || t.aloft.runs(begun.Intent) {
		return nil
	}
	owner := e.newOwner()
	v, err := t.peek(ctx)
	if err != nil {
		return err // not a reason to end what may be repeated
	}
	if v.Task.Status.Ended() {
		defer e.forget(t)
	}
	input, sealed := t.inputOf(ctx, &begun)
	o := t.observe(ctx, Call{ID: begun.Call, Action: begun.Action, Input: input, Provenance: begun.Provenance, own: true})
	if o.err != nil {
		return o.err
	}
	_, key, _ := strings.Cut(begun.Repeats, " ")
	if sealed == nil && o.call.Edge == nil { // else it is not ended for want of its input, but left to whoever can open that
		t.keyed(ctx, o)
		key = o.call.Key
	}
	x, run := engine.Takeover(t.agent.compiled, v, begun, key, lease, owner, e.cfg.Lease.Microseconds(), e.clock())
	if run != nil && v.Task.Status == engine.Paused {
		return nil // it is repeated when the task goes on
	}
	switch {
	case run == nil || sealed == nil:
	case errors.Is(sealed, ErrErased):
		x, run = engine.TakeoverStopped(t.agent.compiled, begun, lease, owner, keyUnavailable(sealed).Message, e.clock()), nil
	default:
		return fmt.Errorf("intent %s: its input cannot be opened: %w", begun.Intent, sealed) // another worker may have the key
	}
	if run != nil {
		o.call.Now = v.Snap.Now
		no := engine.Recheck(&e.rules, t.agent.compiled, v, &begun, &o.call)
		if e.stop.Err() != nil {
			return context.Cause(e.stop) // the policy may have been cut short: that is no reason to end the call
		}
		if no != nil {
			x, run = engine.TakeoverStopped(t.agent.compiled, begun, lease, owner, no.Error(), e.clock()), nil
		} else if o.call.Intent.Digest != begun.Digest {
			return fmt.Errorf("intent %s: action %q is not held here in the form that began", begun.Intent, begun.Action)
		}
	}
	sent := time.Now()
	reply, err := e.apply(ctx, x)
	if err != nil || !reply.OK {
		return err // somebody else was quicker, or its worker came back
	}
	t.advance(x, reply, nil)
	if run == nil {
		return nil
	}
	t.repeat(ctx, o, run, v, reply, sent)
	return nil
}

// repeat runs an effect that may be repeated once more, under the lease just taken.
// The view is the one that the takeover pinned: what changed since is noticed by pins and heartbeat.
func (t *Task) repeat(ctx context.Context, o *observed, run *engine.Run, view *engine.View, reply txn.Reply, sent time.Time) {
	run.Input, run.Veil = o.call.Intent.Input.Tree(), o.call.Veil
	f := t.flight(ctx, o, *run, view, reply, sent)
	f.expires = view.Covered(run.Begun)
	defer f.land()
	f.fly()
}

// expireAsk writes down that a request waited too long, and ends the call that waited.
func (e *Engine) expireAsk(ctx context.Context, s *agentState, id string) error {
	a, _, err := e.approval(ctx, id)
	if err != nil {
		return err
	}
	t, err := e.Open(ctx, a.Task)
	if err != nil {
		return err
	}
	parked, err := t.parked(ctx, a.Intent)
	if err != nil {
		return err
	}
	defer e.decided(id)
	return t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		return engine.ExpireAsk(v, a.Digest, parked, e.who("", "")), nil
	})
}

// endTask closes a task whose deadline has passed, or whose escalation nobody resolved in time.
func (e *Engine) endTask(ctx context.Context, s *agentState, local string) error {
	t := e.adopt(s, local)
	err := t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		why := v.Overdue(v.Snap.Now)
		if why == "" {
			return nil, nil // it was resumed meanwhile
		}
		who := e.who("", why)
		who.By = engine.ByClock
		return engine.CloseTask(v, who)
	})
	if err != nil {
		return fmt.Errorf("close %s: %w", t, err)
	}
	e.forgetEnded(t)
	return nil
}
