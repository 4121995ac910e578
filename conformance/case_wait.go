package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func waitCases() []Case {
	return []Case{
		{"C16", "waiting too long is stored as a person's rejection", "pending, expired and rejected are three states", []Variant{
			{"approve after the wait", lateDecision(Approve)},
			{"reject after the wait", lateDecision(Reject)},
			{"expiry does not forbid asking again", askedAgain},
			{"a rejection does not expire", rejectionStays},
			{"workers write expiry down as expiry", expiryRecorded},
		}},
		{"C17", "pending approvals live in memory: lost on restart, a later click does nothing", "request, decision and continuation are durable; after a restart the call runs once", []Variant{
			{"restart, approve, a worker runs it", parkedRestart(false)},
			{"approve, restart, a worker runs it", parkedRestart(true)},
			{"two workers and the caller at once", parkedRace},
			{"a click in a task that has ended is answered", clickTooLate},
		}},
		{"C18", "expiry is enforced only while pending: an old approval runs late", "checked at consumption and again at the start", []Variant{
			{"approved in time, proposed too late", approvedThenLate(time.Minute)},
			{"at the very moment", approvedThenLate(0)},
			{"the start is delayed past it", startDelayed},
			{"a worker comes too late", workerLate},
			{"a worker's start is delayed past it", workerDelayed},
			{"an attempt after it", attemptLate},
			{"a worker that takes over after it", takenOverApproved(ttl, 1)},
			{"a worker that takes over in time", takenOverApproved(2*longer, 2)},
			{"in time it runs", approvedInTime},
			{"an override of the need for approvals", overrideEnds},
			{"the start of what an override let through", overrideDelayed},
		}},
	}
}

// ttl is how long requests wait in these cases.
const ttl = 10 * time.Minute

func gatedPay(pay *spy) Action {
	return Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do}
}

func lateDecision(v Verb) func(*T) {
	return func(t *T) {
		pay, clock := &spy{}, need[Clocked](t)
		task := t.open(Goal{TTL: ttl}, gatedPay(pay))
		id := t.asks(task, "pay", `{"amount":10}`)
		clock.Advance(ttl + time.Second)
		if err := t.decide(id, v, boss); err == nil {
			t.Errorf("%s was taken after the wait was over", v)
		}
		if n := len(t.pending(task)); n != 0 {
			t.Errorf("%d requests are still pending", n)
		}
		o := t.want("the call after the wait", t.propose(task, "pay", `{"amount":10}`), action.ApprovalExpired, action.ApprovalRequired)
		if o.Waits() && o.Approval == id {
			t.Errorf("the call still waits for the request that is over")
		}
		t.ran("pay", pay, 0)
		if r := t.recorded(task, Rejected); len(r) != 0 {
			t.Errorf("waiting too long is recorded as a rejection by %q", r[0].By)
		}
	}
}

func askedAgain(t *T) {
	pay, clock := &spy{}, need[Clocked](t)
	task := t.open(Goal{TTL: ttl}, gatedPay(pay))
	old := t.asks(task, "pay", `{"amount":10}`)
	clock.Advance(ttl + time.Second)
	o := t.propose(task, "pay", `{"amount":10}`)
	if o.Code == action.ApprovalExpired {
		o = t.propose(task, "pay", `{"amount":10}`)
	}
	if t.want("asked again", o, action.ApprovalRequired); o.Approval == old {
		t.Fatalf("the request that is over was asked again under the same id")
	}
	if err := t.decide(old, Approve, boss); err == nil {
		t.Errorf("the old request was approved")
	}
	t.approve(o.Approval)
	t.want("the call, approved at last", t.propose(task, "pay", `{"amount":10}`), action.OK)
	t.ran("pay", pay, 1)
}

func rejectionStays(t *T) {
	pay, clock := &spy{}, need[Clocked](t)
	task := t.open(Goal{TTL: ttl}, gatedPay(pay))
	id := t.asks(task, "pay", `{"amount":10}`)
	if err := t.decide(id, Reject, boss); err != nil {
		t.Fatalf("reject: %v", err)
	}
	for range 2 {
		t.want("a rejected call", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRejected)
		clock.Advance(ttl + time.Second)
	}
	t.want("a rejected call, long after", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRejected)
	if n := len(t.pending(task)); n != 0 {
		t.Errorf("a person is asked again about what was rejected")
	}
}

func expiryRecorded(t *T) {
	pay, clock, w := &spy{}, need[Clocked](t), need[Worker](t)
	task := t.open(Goal{TTL: ttl}, gatedPay(pay))
	t.asks(task, "pay", `{"amount":10}`, "x")
	clock.Advance(ttl + time.Second)
	if err := w.Work(t.Context, func() bool { return len(t.recorded(task, Expired)) > 0 }); err != nil {
		t.Errorf("nobody writes down that the wait is over: %v", err)
	}
	o := t.want("the call by its id", t.propose(task, "pay", `{"amount":10}`, "x"), action.ApprovalExpired)
	if o.Code == action.ApprovalRejected || len(t.recorded(task, Rejected)) > 0 {
		t.Errorf("expiry is recorded as a rejection")
	}
	t.ran("pay", pay, 0)
}

func parkedRestart(approveFirst bool) func(*T) {
	return func(t *T) {
		pay := &spy{}
		task := t.open(Goal{}, gatedPay(pay))
		id := t.asks(task, "pay", `{"amount":10}`, "x")
		if approveFirst {
			t.approve(id)
		}
		t.restart()
		if !approveFirst {
			t.approve(id)
		}
		if err := need[Worker](t).Work(t.Context, func() bool { return len(t.recorded(task, Settled)) > 0 }); err != nil {
			t.Errorf("the approved call is not run: %v", err)
		}
		t.want("the call by its id", t.propose(task, "pay", `{"amount":10}`, "x"), action.OK)
		t.ran("pay", pay, 1)
	}
}

func parkedRace(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, gatedPay(pay))
	peer, err := need[Peered](t).Peer()
	if err != nil {
		t.Fatalf("peer: %v", err)
	}
	one, two := need[Worker](t), need[Worker](&T{Subject: peer})
	for i := range 5 {
		input, id := fmt.Sprintf(`{"amount":%d}`, i), fmt.Sprint("x", i)
		t.approve(t.asks(task, "pay", input, id))
		ended := func() bool { return len(t.recorded(task, Settled)) > i }
		together(4, func(k int) {
			switch k {
			case 0:
				_ = one.Work(t.Context, ended)
			case 1:
				_ = two.Work(t.Context, ended)
			case 2:
				t.propose(task, "pay", input, id)
			default:
				peer.Propose(t.Context, task, Call{id, "pay", input})
			}
		})
		t.want("the call by its id", t.propose(task, "pay", input, id), action.OK)
		t.ran("pay, approved that often,", pay, i+1)
	}
}

// clickTooLate approves what can never run: the person must hear that.
func clickTooLate(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, gatedPay(pay))
	id := t.asks(task, "pay", `{"amount":10}`)
	t.cancel(task)
	if n := len(t.pending(task)); n != 0 {
		t.Errorf("a person is still asked about %d calls of a task that was cancelled", n)
	}
	if t.decide(id, Approve, boss) == nil {
		t.Errorf("the approval was taken, and nothing will ever come of it")
	}
	t.ran("pay", pay, 0)
}

func approvedThenLate(after time.Duration) func(*T) {
	return func(t *T) {
		pay, clock := &spy{}, need[Clocked](t)
		task := t.open(Goal{TTL: ttl}, gatedPay(pay))
		id := t.asks(task, "pay", `{"amount":10}`)
		clock.Advance(ttl - time.Millisecond)
		t.approve(id)
		clock.Advance(time.Millisecond + after)
		t.want("an approval that is over", t.propose(task, "pay", `{"amount":10}`), action.ApprovalExpired, action.ApprovalRequired)
		t.ran("pay", pay, 0)
	}
}

func startDelayed(t *T) {
	pay, clock := &spy{}, need[Clocked](t)
	var late atomic.Bool
	act := gatedPay(pay)
	act.Before = func(context.Context) error {
		if late.CompareAndSwap(false, true) {
			clock.Advance(ttl) // whatever holds the executor up between begin and start
		}
		return nil
	}
	task := t.open(Goal{TTL: ttl}, act)
	id := t.asks(task, "pay", `{"amount":10}`)
	clock.Advance(ttl - time.Second)
	t.approve(id)
	t.want("a start after the approval was over", t.propose(task, "pay", `{"amount":10}`), action.NotStarted, action.ApprovalExpired)
	t.ran("pay", pay, 0)
	t.want("the call again", t.propose(task, "pay", `{"amount":10}`), action.ApprovalExpired, action.ApprovalRequired)
	t.ran("pay", pay, 0)
}

func workerLate(t *T) {
	pay, clock := &spy{}, need[Clocked](t)
	task := t.open(Goal{TTL: ttl}, gatedPay(pay))
	t.approve(t.asks(task, "pay", `{"amount":10}`, "x"))
	clock.Advance(ttl)
	if err := need[Worker](t).Work(t.Context, func() bool { return len(t.recorded(task, Expired)) > 0 }); err != nil {
		t.Errorf("nobody writes down that the approval is over: %v", err)
	}
	t.want("the call by its id", t.propose(task, "pay", `{"amount":10}`, "x"), action.ApprovalExpired)
	t.ran("pay", pay, 0)
}

func workerDelayed(t *T) {
	pay, clock := &spy{}, need[Clocked](t)
	act := gatedPay(pay)
	act.Before = func(context.Context) error { clock.Advance(ttl); return nil }
	task := t.open(Goal{TTL: ttl}, act)
	t.approve(t.asks(task, "pay", `{"amount":10}`, "x"))
	if err := need[Worker](t).Work(t.Context, func() bool { return len(t.recorded(task, Settled)) > 0 }); err != nil {
		t.Errorf("the call never ends: %v", err)
	}
	t.ran("pay", pay, 0)
	t.want("the call by its id", t.propose(task, "pay", `{"amount":10}`, "x"), action.NotStarted, action.ApprovalExpired)
}

// attemptLate fails in time; the next attempt would be made after the approval is over.
func attemptLate(t *T) {
	clock := need[Clocked](t)
	pay := &spy{then: func(context.Context, Execution) (json.RawMessage, error) {
		clock.Advance(ttl)
		return nil, errors.New("not yet")
	}}
	act := gatedPay(pay)
	act.Effect, act.Retries = Idempotent, 3
	task := t.open(Goal{TTL: ttl}, act)
	t.approve(t.asks(task, "pay", `{"amount":10}`))
	t.want("the only attempt in time", t.propose(task, "pay", `{"amount":10}`), action.Failed)
	t.ran("pay", pay, 1)
}

// takenOverApproved loses the worker of an effect that may be repeated; another repeats it while the approval stands.
func takenOverApproved(ttl time.Duration, runs int) func(*T) {
	return func(t *T) {
		hold, clock := newGate(), need[Clocked](t)
		pay := slow(t, hold)
		act := gatedPay(pay)
		act.Effect = Idempotent
		task := t.open(Goal{TTL: ttl}, act)
		t.approve(t.asks(task, "pay", `{"amount":10}`))
		out := t.running(task, hold, Call{"", "pay", `{"amount":10}`})
		t.restart()
		clock.Advance(longer)
		if err := need[Worker](t).Work(t.Context, func() bool { return len(t.recorded(task, Settled)) > 0 }); err != nil {
			t.Errorf("nobody takes over: %v", err)
		}
		t.ran("pay, approved for "+ttl.String()+" and taken over after "+longer.String()+",", pay, runs)
		hold.open()
		<-out
	}
}

func approvedInTime(t *T) {
	pay, clock := &spy{}, need[Clocked](t)
	task := t.open(Goal{TTL: ttl}, gatedPay(pay))
	id := t.asks(task, "pay", `{"amount":10}`)
	clock.Advance(ttl / 2)
	t.approve(id)
	clock.Advance(ttl / 4)
	t.want("an approval in time", t.propose(task, "pay", `{"amount":10}`), action.OK)
	t.ran("pay", pay, 1)
}
