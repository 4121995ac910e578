package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func cancelCases() []Case {
	return []Case{
		{"C15", "a cancelled run still starts calls already prepared in its batch", "cancelled is looked at again right before the start; what had not started is NOT_STARTED", []Variant{
			{"the task, while a before hook waits", stoppedBefore(func(t *T, task string, _ context.CancelFunc) { t.cancel(task) }, false)},
			{"the task, by another engine", stoppedByPeer},
			{"the caller's context", stoppedBefore(func(_ *T, _ string, cancel context.CancelFunc) { cancel() }, true)},
			{"the engine", stoppedListening(func(t *T, _ string, _ context.CancelFunc) {
				if err := need[Stopper](t).Stop(); err != nil {
					t.Errorf("stop: %v", err)
				}
			})},
			{"siblings of one turn", stoppedSiblings},
			{"between two attempts", stoppedAttempts(false)},
			{"between two attempts, by another engine", stoppedAttempts(true)},
			{"nothing starts afterwards, after a restart either", stoppedStays},
		}},
		{"C28", "a cancelled run is later written as success", "CANCELLED absorbs: no Ok is recorded behind it, and nothing depends on one", []Variant{
			{"the function returns Ok after the cancel", okAfterCancel(Irreversible, action.StartedUnknown)},
			{"an effect that may be repeated", okAfterCancel(Idempotent, action.Interrupted)},
			{"another engine cancels", okAfterPeerCancel},
			{"an Ok that comes after the call was given up", okTooLate},
			{"cancel races the Ok", cancelRace(false)},
			{"another engine's cancel races the Ok", cancelRace(true)},
			{"cancelled twice", cancelTwice},
		}},
	}
}

func (t *T) cancel(task string) {
	if err := t.Cancel(t.Context, task, "enough"); err != nil {
		t.Errorf("cancel: %v", err)
	}
}

// stoppedBefore stops something while a before hook holds the call up. The hook does not listen.
func stoppedBefore(stop func(*T, string, context.CancelFunc), undecided bool) func(*T) {
	return func(t *T) {
		pay, hold := &spy{}, newGate()
		task := t.open(Goal{Limit: Limit{Tokens: UpTo(100)}}, Action{Name: "pay", Schema: payment, Cost: Cost{Tokens: 10}, Do: pay.do,
			Before: func(context.Context) error { hold.wait(t.Context); return nil }})
		ctx, cancel := context.WithCancel(t.Context)
		defer cancel()
		out := make(chan Outcome, 1)
		go func() { out <- t.Propose(ctx, task, Call{Action: "pay", Input: `{"amount":1}`}) }()
		hold.arrived(t)
		stop(t, task, cancel)
		hold.open()
		o := <-out
		t.ran("pay, stopped before its start,", pay, 0)
		if !(undecided && o.Err != nil) {
			t.want("stopped before the start", o, action.NotStarted)
		}
		if undecided {
			return
		}
		if a, ok := t.Subject.(Accountant); ok {
			if b, err := a.Budget(t.Context, task); err != nil || b.Reserved.Tokens != 0 || b.Spent.Tokens != 0 {
				t.Errorf("what never started holds or cost %+v (%v)", b, err)
			}
		}
	}
}

// stoppedListening stops something that waits for its hooks; the hook returns when it is told to, without an error.
func stoppedListening(stop func(*T, string, context.CancelFunc)) func(*T) {
	return func(t *T) {
		pay, hold := &spy{}, newGate()
		task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: pay.do, Before: func(ctx context.Context) error { hold.wait(ctx); return nil }})
		ctx, cancel := context.WithCancel(t.Context)
		defer cancel()
		out := make(chan Outcome, 1)
		go func() { out <- t.Propose(ctx, task, Call{Action: "pay", Input: `{"amount":1}`}) }()
		hold.arrived(t)
		stop(t, task, cancel)
		hold.open()
		if o := <-out; o.Err == nil {
			t.want("stopped before the start", o, action.NotStarted)
		}
		t.ran("pay, stopped before its start,", pay, 0)
	}
}

// stoppedByPeer cancels where the call does not run: the engine that runs it must look before it starts.
func stoppedByPeer(t *T) {
	pay, hold := &spy{}, newGate()
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: pay.do, Before: func(context.Context) error { hold.wait(t.Context); return nil }})
	peer, err := need[Peered](t).Peer()
	if err != nil {
		t.Fatalf("peer: %v", err)
	}
	out := make(chan Outcome, 1)
	go func() { out <- t.propose(task, "pay", `{"amount":1}`) }()
	hold.arrived(t)
	if err := peer.Cancel(t.Context, task, "enough"); err != nil {
		t.Errorf("cancel: %v", err)
	}
	hold.open()
	t.want("cancelled elsewhere before the start", <-out, action.NotStarted)
	t.ran("pay, cancelled elsewhere before its start,", pay, 0)
}

func stoppedSiblings(t *T) {
	pay, hold := &spy{}, newGate()
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: pay.do, Before: func(context.Context) error { hold.wait(t.Context); return nil }})
	turner := need[Turner](t)
	calls := make([]Call, 6)
	for i := range calls {
		calls[i] = Call{fmt.Sprint(i), "pay", fmt.Sprintf(`{"amount":%d}`, i)}
	}
	type answer struct {
		out []Outcome
		err error
	}
	done := make(chan answer, 1)
	go func() {
		out, err := turner.Turn(t.Context, task, calls)
		done <- answer{out, err}
	}()
	hold.arrived(t)
	t.cancel(task)
	hold.open()
	a := <-done
	if a.err != nil {
		t.Fatalf("turn: %v", a.err)
	}
	for i, o := range a.out {
		t.want(calls[i].ID, o, action.NotStarted, action.Cancelled)
	}
	t.ran("pay, cancelled before its start,", pay, 0)
}

// stoppedAttempts cancels while an attempt fails that would be made again.
func stoppedAttempts(byPeer bool) func(*T) {
	return func(t *T) {
		put, hold := &spy{}, newGate()
		put.then = func(context.Context, Execution) (json.RawMessage, error) {
			hold.wait(t.Context)
			return nil, errors.New("not yet")
		}
		task := t.open(Goal{}, Action{Name: "put", Effect: Idempotent, Retries: 3, Do: put.do})
		by := t.Subject
		if byPeer {
			peer, err := need[Peered](t).Peer()
			if err != nil {
				t.Fatalf("peer: %v", err)
			}
			by = peer
		}
		out := t.running(task, hold, Call{Action: "put", Input: `{}`})
		if err := by.Cancel(t.Context, task, "enough"); err != nil {
			t.Errorf("cancel: %v", err)
		}
		hold.open()
		t.want("cancelled between attempts", <-out, action.Failed, action.Interrupted)
		t.ran("put, cancelled after its first attempt,", put, 1)
	}
}

func stoppedStays(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: pay.do})
	t.cancel(task)
	t.want("after the cancel", t.propose(task, "pay", `{"amount":1}`), action.Cancelled)
	t.restart()
	t.want("after the restart", t.propose(task, "pay", `{"amount":2}`), action.Cancelled)
	t.ran("pay", pay, 0)
}

// okAfterCancel has a function that ignores the cancellation and returns Ok.
func okAfterCancel(e Effect, want action.Code) func(*T) {
	return func(t *T) {
		hold := newGate()
		pay := &spy{then: func(context.Context, Execution) (json.RawMessage, error) {
			hold.wait(t.Context)
			return json.RawMessage(`{"paid":true}`), nil
		}}
		task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Effect: e, Do: pay.do})
		out := make(chan Outcome, 1)
		go func() { out <- t.propose(task, "pay", `{"amount":1}`, "x") }()
		hold.arrived(t)
		t.cancel(task)
		hold.open()
		o := t.want("cancelled while it ran", <-out, want)
		if o.Output != nil {
			t.Errorf("a cancelled call hands out %s", o.Output)
		}
		if again := t.propose(task, "pay", `{"amount":1}`, "x"); again.OK() {
			t.Errorf("the record of the cancelled call says OK")
		}
		t.absorbed(task)
	}
}

func okAfterPeerCancel(t *T) {
	hold := newGate()
	pay := slow(t, hold)
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: pay.do})
	peer, err := need[Peered](t).Peer()
	if err != nil {
		t.Fatalf("peer: %v", err)
	}
	out := t.running(task, hold, Call{"x", "pay", `{"amount":1}`})
	if err := peer.Cancel(t.Context, task, "enough"); err != nil {
		t.Errorf("cancel: %v", err)
	}
	hold.open()
	t.want("cancelled elsewhere while it ran", <-out, action.StartedUnknown, action.Interrupted)
	t.absorbed(task)
}

// patience is how long an engine may take to go on without a function: much longer than it needs on a busy machine.
const patience = 20 * time.Second

// okTooLate has a function return Ok when nobody waits for it any more.
func okTooLate(t *T) {
	hold, back := newGate(), make(chan struct{})
	pay := &spy{then: func(context.Context, Execution) (json.RawMessage, error) {
		defer close(back)
		hold.wait(t.Context)
		return json.RawMessage(`{"paid":true}`), nil
	}}
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Effect: Idempotent, Timeout: time.Millisecond, Do: pay.do},
		Action{Name: "ship", Needs: []Need{{Action: "pay"}}, Do: answerBody})
	out := t.running(task, hold, Call{"x", "pay", `{"amount":1}`})
	select {
	case o := <-out:
		t.want("a function that ignores its timeout", o, action.Timeout)
	case <-time.After(patience):
		t.Errorf("a function that ignores its timeout is waited for")
	}
	hold.open()
	<-back
	t.want("what needs its Ok", t.propose(task, "ship", `{}`), action.NotLegal)
	t.want("the call by its id", t.propose(task, "pay", `{"amount":1}`, "x"), action.Timeout)
	for _, r := range t.recorded(task, Settled) {
		if r.Code == action.OK {
			t.Errorf("an Ok that came too late is recorded as success")
		}
	}
	t.cancel(task)
	t.absorbed(task)
}

// absorbed checks that no success is recorded behind a cancellation.
func (t *T) absorbed(task string) {
	cancelled := false
	for _, r := range t.ledger(task) {
		switch {
		case r.Kind == Stopped:
			cancelled = true
		case cancelled && r.Kind == Settled && r.Code == action.OK:
			t.Errorf("an Ok of %s is recorded behind the cancellation", r.Action)
		case cancelled && r.Kind == Begun:
			t.Errorf("a call of %s began behind the cancellation", r.Action)
		}
	}
	if !cancelled {
		t.Errorf("the cancellation is not recorded")
	}
}

func cancelRace(byPeer bool) func(*T) {
	return func(t *T) {
		t.declare(clerk, Action{Name: "pay", Schema: payment, Effect: Idempotent, Do: answerBody})
		by := t.Subject
		if byPeer {
			peer, err := need[Peered](t).Peer()
			if err != nil {
				t.Fatalf("peer: %v", err)
			}
			by = peer
		}
		for range 40 {
			task := t.start(Goal{})
			var oks sync.Map
			together(5, func(i int) {
				if i == 4 {
					if err := by.Cancel(t.Context, task, "enough"); err != nil {
						t.Errorf("cancel: %v", err)
					}
					return
				}
				if o := t.propose(task, "pay", fmt.Sprintf(`{"amount":%d}`, i)); o.OK() {
					oks.Store(o.Intent, true)
				}
			})
			for _, r := range t.recorded(task, Settled) {
				if _, said := oks.Load(r.Intent); said != (r.Code == action.OK) {
					t.Errorf("the caller heard OK: %v, the ledger says %s", said, r.Code)
				}
			}
			t.absorbed(task)
		}
	}
}

func cancelTwice(t *T) {
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: answerBody})
	t.want("before", t.propose(task, "pay", `{"amount":1}`), action.OK)
	t.cancel(task)
	_ = t.Cancel(t.Context, task, "again") // an error or nothing: both are fine
	if n := len(t.recorded(task, Stopped)); n != 1 {
		t.Errorf("%d cancellations are recorded", n)
	}
	t.absorbed(task)
}
