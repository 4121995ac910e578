package delta

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// work performs what is outstanding and hands in what comes of it.
func (r *flowRun) work(ctx context.Context) (err error) {
	r.keep = time.NewTicker(max(r.e.cfg.Lease/3, time.Millisecond))
	defer r.keep.Stop()
	r.poll = time.NewTicker(r.e.cfg.Poll) // a word from elsewhere does not wait for a call that takes long
	defer r.poll.Stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.e.stop, func() { cancel(ErrClosed) })()
	err = r.loop(ctx)
	if late := r.finish(ctx, err == nil); err == nil { // what is under way ends first: after an error its answers are handed in by whoever takes the instance up
		err = late
	}
	return err
}

// loop is work on goroutines of the instance's own. One at a time goes round; that it hands the work on, see [flowRun.here].
func (r *flowRun) loop(ctx context.Context) error {
	r.done = make(chan flowEnd, 1)
	go r.round(ctx)
	end := <-r.done
	if end.panicked != nil {
		panic(end.panicked)
	}
	return end.err
}

// flowEnd is how the work on an instance ended: with a panic, that is.
type flowEnd struct {
	err      error
	panicked any
}

// round goes round until there is nothing more to do, or another goroutine does so. One that is ended on the way, by the
// function of an action without a timeout, is followed by another.
func (r *flowRun) round(ctx context.Context) {
	var d duty
	defer func() {
		p := recover()
		switch {
		case p != nil:
			r.done <- flowEnd{panicked: p}
		case d.ended:
			r.done <- flowEnd{err: d.err}
		case d.shift.Load() != handedOn:
			go r.round(ctx)
		}
	}()
	roomy()
	for d.ended, d.err = false, nil; !d.ended; {
		if d.ended, d.err = r.turnRound(ctx, &d); d.err != nil {
			d.ended = true
		} else if d.shift.Load() == handedOn {
			return
		}
	}
}

// turnRound launches what is outstanding, and waits for something to come of it.
func (r *flowRun) turnRound(ctx context.Context, d *duty) (over bool, err error) {
	if r.e.winding(ctx) || leaving(ctx) { // effects are not interrupted: that does Close, when it waits no longer
		return true, errors.Join(r.finish(ctx, true), r.letGo(context.WithoutCancel(ctx)))
	}
	if err := r.notice(ctx); err != nil {
		return true, errors.Join(err, r.letGo(context.WithoutCancel(ctx)))
	}
	c := r.launch(ctx)
	switch {
	case c != nil:
		if a, mine := r.here(ctx, c, d); mine {
			return false, r.came(ctx, a)
		}
		return false, nil
	case len(r.hand) == 0:
		return r.rest(ctx)
	}
	return false, r.wait(ctx)
}

// duty is a goroutine's turn to go round.
type duty struct {
	shift atomic.Int32
	ended bool
	err   error
}

// What becomes of a duty while a command is performed.
const (
	atCommand int32 = iota + 1 // the goroutine performs it
	handedOn                   // that takes long, and another one goes round
)

// handOn is how long a command is waited for before another goroutine goes round: words from elsewhere do not wait for a call
// that takes long.
const handOn = time.Millisecond

// here performs the only command there is on the goroutine that goes round, which is no longer its duty where that takes
// long: then the answer comes as that of any other command.
func (r *flowRun) here(ctx context.Context, c *workflow.Command, d *duty) (a flowAnswer, mine bool) {
	a = flowAnswer{id: c.ID, err: errExited}
	d.shift.Store(atCommand)
	late := time.AfterFunc(handOn, func() {
		if d.shift.CompareAndSwap(atCommand, handedOn) {
			r.round(ctx)
		}
	})
	back := false
	defer func() {
		late.Stop()
		r.landed(c)
		if mine = d.shift.CompareAndSwap(atCommand, 0); !mine || !back {
			r.back <- a
		}
	}()
	a.event, a.err = r.performed(ctx, c)
	back = true
	return a, mine
}

// performed is perform, that what has to wait for a key is tried again.
func (r *flowRun) performed(ctx context.Context, c *workflow.Command) (*workflow.Event, error) {
	ev, err := r.perform(ctx, c)
	if keyless(err) {
		err = errLater
	}
	return ev, err
}

// wait waits for what is under way, or for it to be time to look elsewhere.
func (r *flowRun) wait(ctx context.Context) error {
	select {
	case a := <-r.back:
		return r.came(ctx, a)
	case <-r.keep.C:
		x := engine.KeepFlow(r.t.agent.name, r.t.local, r.holder, r.ttl())
		switch reply, err := r.e.apply(ctx, x); {
		case err != nil: // it is tried again
		case !reply.OK:
			return errSuperseded // another worker has it; what is under way here is answered by its id
		default:
			r.t.advance(x, reply, nil)
		}
	case <-r.poll.C:
		if err := r.look(ctx, true); errors.Is(err, errMoved) {
			return errors.Join(err, r.letGo(context.WithoutCancel(ctx)))
		} else if err != nil {
			r.e.cfg.Log.Warn("an instance cannot be read while it is at work", "instance", r.t.ID(), "error", err)
		}
	case <-ctx.Done():
	}
	return nil
}

// came hands in what came of a command.
func (r *flowRun) came(ctx context.Context, a flowAnswer) error {
	delete(r.hand, a.id)
	switch {
	case errors.Is(a.err, errLater):
		r.idle[a.id], r.later = true, r.e.cfg.Lease/3
	case a.err != nil:
		return errors.Join(a.err, r.letGo(context.WithoutCancel(ctx)))
	case a.event == nil:
		r.idle[a.id] = true
	default:
		if err := r.feed(context.WithoutCancel(ctx), *a.event); err != nil {
			return errors.Join(err, r.letGo(context.WithoutCancel(ctx)))
		}
		if r.stands(a.id) { // it came to nothing: asked again at once it would come to nothing again
			r.idle[a.id], r.later = true, r.e.cfg.Lease/3
		}
	}
	return nil
}

// finish waits for what is under way, and hands it in as long as that works.
func (r *flowRun) finish(ctx context.Context, handIn bool) (err error) {
	for len(r.hand) > 0 {
		a := <-r.back
		delete(r.hand, a.id)
		if handIn && err == nil && a.err == nil && a.event != nil {
			err = r.feed(context.WithoutCancel(ctx), *a.event)
		}
	}
	return err
}

// launch performs what is outstanding and not under way. Where that is one command it returns it instead.
func (r *flowRun) launch(ctx context.Context) (only *workflow.Command) {
	r.veil.meet(r.k.Sealed)
	alone := len(r.hand) == 0
	for i := range r.k.State.Outstanding {
		if len(r.hand) >= r.e.flows.Parallel {
			break
		}
		c := &r.k.State.Outstanding[i]
		if r.hand[c.ID] || r.idle[c.ID] || c.Held || c.Kind == workflow.Timer || c.Kind == workflow.Ask {
			continue
		}
		if gated(c.Kind) && r.view != nil && r.view.Withheld(c.Action) { // it is not asked for in vain, time and again
			r.idle[c.ID], r.later = true, r.e.cfg.Lease/3
			continue
		}
		r.hand[c.ID] = true
		if c.Kind == workflow.Spawn {
			r.under.Store(c.ID, true)
		}
		own := *c // the state goes on meanwhile
		if alone {
			alone, only = false, &own
			continue
		}
		if only != nil {
			r.start(ctx, only)
			only = nil
		}
		r.start(ctx, &own)
	}
	return only
}

// landed notes that a command has come back.
func (r *flowRun) landed(c *workflow.Command) {
	if c.Kind == workflow.Spawn {
		r.under.Delete(c.ID)
	}
}

// start performs a command beside what else goes on.
func (r *flowRun) start(ctx context.Context, c *workflow.Command) {
	go func() {
		roomy()
		a := flowAnswer{id: c.ID, err: errExited}
		defer func() {
			r.landed(c)
			r.back <- a
		}()
		a.event, a.err = r.performed(ctx, c)
	}()
}
