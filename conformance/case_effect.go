package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func effectCases() []Case {
	return []Case{
		{"C09", "the reservation store is unreachable and the call proceeds unreserved", "no reservation, no run; what ran is never reported as not run", []Variant{
			{"down at any access of a call", storeFails(false, 1<<30)},
			{"one or two accesses lost", storeFails(false, 2)},
			{"replies lost", storeFails(true, 2)},
			{"replies lost for good", storeFails(true, 1<<30)},
			{"an approved call: down", approvedFails(false, 1<<30)},
			{"an approved call: an access or two lost", approvedFails(false, 2)},
			{"an approved call: replies lost", approvedFails(true, 2)},
			{"an approved call: replies lost for good", approvedFails(true, 1<<30)},
			{"a worker that runs an approved call: replies lost", workedFails},
		}},
		{"C23", "a call that may not be repeated is retried after a lost reply: the effect happens three times", "repeated only with an idempotency key; an unknown outcome blocks the same call until a person resolves it", []Variant{
			{"retries without a key are refused when declared", retryWithoutKey},
			{"no reply", unknownBlocks(unknownReply)},
			{"a timeout", unknownBlocks(untilTimeout)},
			{"resolved: what had not happened may be done", unknownResolved(false)},
			{"resolved: what had happened counts", unknownResolved(true)},
			{"resolved while replies are lost", resolvedLost},
			{"with a key each attempt carries the same one", retryWithKey},
			{"what may be repeated is, up to its bound", retryIdempotent},
			{"a plain error is not repeated", noRetry},
			{"the caller goes away", callerGone},
			{"a panic is an end, not a reason to repeat", panics},
		}},
		{"C25", "the audit write fails and the action proceeds", "no record, no side effect, of a hook either", []Variant{
			{"the ledger refuses writes", auditFails("pay", `{"amount":1}`, 0)},
			{"an approved call", auditApproved},
			{"a decision, a cancellation and a start", auditOperators},
			{"only the first write is lost: it is repeated or nothing runs", auditFails("pay", `{"amount":1}`, 1)},
		}},
	}
}

// storeFails loses accesses beginning with each one of a call in turn.
func storeFails(reply bool, length int) func(*T) {
	return func(t *T) {
		f, down := need[Faulty](t), 0
		pay := &spy{}
		task := t.open(Goal{Limit: Limit{Calls: UpTo(1000)}}, Action{Name: "pay", Schema: payment, Do: pay.do})
		for from := 1; from <= 8; from++ {
			for i := range 2 { // on a cold and on a warm engine
				before := pay.runs()
				f.FailStore(Fault{From: from, To: from + length - 1, Reply: reply})
				o := t.propose(task, "pay", fmt.Sprintf(`{"amount":%d}`, 10*from+i))
				f.FailStore(Fault{})
				ran, what := pay.runs()-before, fmt.Sprintf("accesses from %d lost", from)
				t.honest(what, o, ran)
				if !o.OK() {
					down++
				}
				if begun := t.recorded(task, Begun); len(begun) < pay.runs() {
					t.Errorf("%s: %d calls ran, %d are recorded as begun", what, pay.runs(), len(begun))
				}
			}
			if from == 4 {
				if r, ok := t.Subject.(Restarter); ok && r.Restart() != nil {
					t.Fatalf("restart failed")
				}
			}
		}
		if down == 0 {
			t.Errorf("no loss of a store access was ever noticed: does the subject use the store that fails?")
		}
		t.want("with the store back", t.propose(task, "pay", `{"amount":1}`), action.OK)
	}
}

// honest checks that an outcome says whether the body ran.
func (t *T) honest(what string, o Outcome, ran int) {
	switch executed := o.Code.Info().Executed; {
	case ran > 1:
		t.Errorf("%s: one call ran %d times", what, ran)
	case o.OK() && ran != 1, executed == action.Yes && ran == 0:
		t.Errorf("%s: %s, but it did not run", what, o.Code)
	case ran == 1 && executed == action.No && !o.OK():
		t.Errorf("%s: it ran, and is reported as %s %s", what, o.Code, orEmpty(o.Err))
	}
}

func retryWithoutKey(t *T) {
	pay := &spy{then: unknownReply}
	err := t.Declare(Agent{Name: clerk, Grants: []string{"pay"}, Actions: []Action{{Name: "pay", Schema: payment, Retries: 3, Do: pay.do}}})
	if err != nil {
		return // said when declared
	}
	t.propose(t.start(Goal{}), "pay", `{"amount":1}`)
	t.ran("pay, of unknown outcome,", pay, 1)
}

func unknownReply(context.Context, Execution) (json.RawMessage, error) { return nil, ErrUnknown }

func untilTimeout(ctx context.Context, _ Execution) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func unknownBlocks(then Func) func(*T) {
	return func(t *T) {
		pay := &spy{then: then}
		act := Action{Name: "pay", Schema: payment, Timeout: 5 * time.Millisecond, Do: pay.do}
		task := t.open(Goal{}, act)
		t.want("a lost reply", t.propose(task, "pay", `{"amount":1}`, "x"), action.StartedUnknown)
		for _, id := range []string{"x", "y", ""} {
			if o := t.propose(task, "pay", `{"amount":1.0}`, id); o.OK() || o.Code == action.Failed {
				t.Errorf("the same call under id %q: %s", id, o.Code)
			}
		}
		act.Version = "2"
		t.declare(clerk, act)
		t.propose(task, "pay", `{"amount":1}`)
		if r, ok := t.Subject.(Restarter); ok {
			if err := r.Restart(); err != nil {
				t.Fatalf("restart: %v", err)
			}
			t.propose(task, "pay", `{"amount":1}`)
		}
		t.ran("pay, of unknown outcome,", pay, 1)
		t.propose(task, "pay", `{"amount":2}`)
		t.ran("pay, with another input besides,", pay, 2)
	}
}

func unknownResolved(ok bool) func(*T) {
	return func(t *T) {
		var known atomic.Bool
		pay := &spy{then: func(context.Context, Execution) (json.RawMessage, error) {
			if known.Load() {
				return json.RawMessage(`{}`), nil
			}
			return nil, ErrUnknown
		}}
		// The highest threshold: an engine may learn from one failure that the action is risky.
		task := t.open(Goal{Threshold: 5}, Action{Name: "pay", Schema: payment, Do: pay.do},
			Action{Name: "ship", Schema: payment, Needs: []Need{{Action: "pay", Field: "amount"}}, Do: answerBody})
		o := t.want("a lost reply", t.propose(task, "pay", `{"amount":1}`, "x"), action.StartedUnknown)
		t.want("what needs it", t.propose(task, "ship", `{"amount":1}`), action.NotLegal)
		r := need[Resolver](t)
		if err := r.Resolve(t.Context, task, o.Intent, ok); err != nil {
			t.Fatalf("resolve: %v", err)
		}
		if r.Resolve(t.Context, task, o.Intent, !ok) == nil {
			t.Errorf("it was resolved twice, each way")
		}
		known.Store(true)
		if ok {
			t.want("what needs it, resolved", t.propose(task, "ship", `{"amount":1}`), action.OK)
			t.want("the call by its id", t.propose(task, "pay", `{"amount":1}`, "x"), action.OK)
			t.ran("pay", pay, 1)
			return
		}
		t.want("what needs it, resolved", t.propose(task, "ship", `{"amount":1}`), action.NotLegal)
		t.want("the call by its id", t.propose(task, "pay", `{"amount":1}`, "x"), action.Failed)
		t.want("the call anew", t.propose(task, "pay", `{"amount":1}`), action.OK)
		t.ran("pay", pay, 2)
	}
}

func resolvedLost(t *T) {
	f, r := need[Faulty](t), need[Resolver](t)
	pay := &spy{then: unknownReply}
	task := t.open(Goal{Threshold: 5}, Action{Name: "pay", Schema: payment, Do: pay.do})
	for from := 1; from <= 5; from++ {
		for _, reply := range []bool{false, true} {
			id := fmt.Sprintf("%d%v", from, reply)
			o := t.want("a lost reply", t.propose(task, "pay", fmt.Sprintf(`{"amount":%d}`, 2*from+map[bool]int{true: 1}[reply]), id), action.StartedUnknown)
			f.FailStore(Fault{From: from, To: from, Reply: reply})
			err := r.Resolve(t.Context, task, o.Intent, true)
			f.FailStore(Fault{})
			again := r.Resolve(t.Context, task, o.Intent, true)
			if (err == nil) == (again == nil) {
				t.Errorf("access %d lost (reply %v): resolved with %v, and again with %v", from, reply, err, again)
			}
		}
	}
}

func retryWithKey(t *T) {
	pay := &spy{then: unknownReply}
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Retries: 2, Keyed: true, Do: pay.do})
	t.want("no reply to any attempt", t.propose(task, "pay", `{"amount":1}`), action.StartedUnknown)
	t.ran("pay, with a key and two retries,", pay, 3)
	keys := slices.Compact(slices.Clone(pay.keys))
	if len(keys) != 1 || keys[0] == "" {
		t.Errorf("the attempts carried the keys %q, want one and the same", pay.keys)
	}
}

func retryIdempotent(t *T) {
	var n atomic.Int32
	put := &spy{then: func(context.Context, Execution) (json.RawMessage, error) {
		if n.Add(1) < 3 {
			return nil, errors.New("not yet")
		}
		return json.RawMessage(`{}`), nil
	}}
	task := t.open(Goal{}, Action{Name: "put", Effect: Idempotent, Retries: 5, Do: put.do})
	t.want("the third attempt succeeds", t.propose(task, "put", `{}`), action.OK)
	t.ran("put", put, 3)
}

func noRetry(t *T) {
	pay := &spy{then: fails("card declined")}
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: pay.do})
	t.want("a plain error", t.propose(task, "pay", `{"amount":1}`), action.Failed)
	t.ran("pay", pay, 1)
}

// auditFails loses every write, or the first ones.
func auditFails(name, input string, to int) func(*T) {
	return func(t *T) {
		pay, looked, f := &spy{}, &spy{}, need[Faulty](t)
		task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: pay.do, Before: hook(looked)})
		f.FailStore(Fault{From: 1, To: to, Writes: true})
		o := t.propose(task, name, input)
		f.FailStore(Fault{})
		t.honest("the ledger refuses writes", o, pay.runs())
		if to == 0 {
			t.want("the ledger refuses writes", o, action.StoreUnavailable)
			t.ran("pay", pay, 0)
			t.ran("its before hook", looked, 0)
		}
		if begun := t.recorded(task, Begun); len(begun) != pay.runs() || len(begun) < looked.runs() {
			t.Errorf("%d runs and %d hooks, %d recorded", pay.runs(), looked.runs(), len(begun))
		}
	}
}

func auditApproved(t *T) {
	pay, f := &spy{}, need[Faulty](t)
	task := t.open(Goal{}, gatedPay(pay))
	t.approve(t.asks(task, "pay", `{"amount":10}`))
	f.FailStore(Fault{From: 1, Writes: true})
	t.want("the ledger refuses writes", t.propose(task, "pay", `{"amount":10}`), action.StoreUnavailable)
	f.FailStore(Fault{})
	t.ran("pay", pay, 0)
	t.want("with the ledger back the approval still stands", t.propose(task, "pay", `{"amount":10}`), action.OK)
	t.ran("pay", pay, 1)
}

// callerGone ends the caller's context while the effect is under way.
func callerGone(t *T) {
	hold := newGate()
	pay := &spy{then: func(ctx context.Context, _ Execution) (json.RawMessage, error) {
		hold.wait(ctx)
		return nil, ctx.Err()
	}}
	task := t.open(Goal{Threshold: 5}, Action{Name: "pay", Schema: payment, Retries: 0, Do: pay.do})
	ctx, cancel := context.WithCancel(t.Context)
	defer cancel()
	out := make(chan Outcome, 1)
	go func() { out <- t.Propose(ctx, task, Call{"x", "pay", `{"amount":1}`}) }()
	hold.arrived(t)
	cancel()
	t.want("the caller went away", <-out, action.StartedUnknown)
	hold.open()
	t.propose(task, "pay", `{"amount":1}`)
	t.want("the call by its id", t.propose(task, "pay", `{"amount":1}`, "x"), action.StartedUnknown)
	t.ran("pay, of unknown outcome,", pay, 1)
}

func panics(t *T) {
	pay := &spy{then: func(context.Context, Execution) (json.RawMessage, error) { panic("after the effect") }}
	task := t.open(Goal{Threshold: 5}, Action{Name: "pay", Schema: payment, Do: pay.do}, Action{Name: "ship", Needs: []Need{{Action: "pay"}}, Do: answerBody})
	t.want("a panic", t.propose(task, "pay", `{"amount":1}`, "x"), action.Panicked, action.StartedUnknown)
	t.want("the call by its id", t.propose(task, "pay", `{"amount":1}`, "x"), action.Panicked, action.StartedUnknown)
	t.want("what needs it", t.propose(task, "ship", `{}`), action.NotLegal)
	t.ran("pay", pay, 1)
}

// auditOperators has people act while nothing can be recorded: they are told, and nothing has changed.
func auditOperators(t *T) {
	pay, f := &spy{}, need[Faulty](t)
	task := t.open(Goal{}, gatedPay(pay))
	id := t.asks(task, "pay", `{"amount":10}`)
	f.FailStore(Fault{From: 1, Writes: true})
	approved, cancelled := t.decide(id, Approve, boss), t.Cancel(t.Context, task, "enough")
	_, started := t.Start(t.Context, Goal{Agent: clerk, ID: "job"})
	f.FailStore(Fault{})
	if approved == nil || cancelled == nil || started == nil {
		t.Errorf("with nothing recorded: approve says %v, cancel %v, start %v", approved, cancelled, started)
	}
	t.want("the call", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRequired)
	t.approve(id)
	t.want("the call, approved", t.propose(task, "pay", `{"amount":10}`), action.OK)
	t.start(Goal{ID: "job"})
	t.ran("pay", pay, 1)
}

// approvedFails loses accesses while an approved call is made, then lets it come to an end by whatever way: one approval is
// one run at most, and the end that is recorded is true.
func approvedFails(reply bool, length int) func(*T) {
	return func(t *T) {
		f := need[Faulty](t)
		pay := &spy{}
		task := t.open(Goal{TTL: 100 * longer}, gatedPay(pay))
		for from := 1; from <= 7; from++ {
			input, id := fmt.Sprintf(`{"amount":%d}`, from), fmt.Sprint("x", from)
			before := pay.runs()
			t.approve(t.asks(task, "pay", input, id))
			f.FailStore(Fault{From: from, To: from + length - 1, Reply: reply})
			o := t.propose(task, "pay", input, id)
			f.FailStore(Fault{})
			what := fmt.Sprintf("an approved call, accesses from %d lost", from)
			t.honest(what, o, pay.runs()-before)
			t.ends(task, what, Call{id, "pay", input}, pay, before)
		}
	}
}

// workedFails is the same with a worker that makes the call.
func workedFails(t *T) {
	f, w := need[Faulty](t), need[Worker](t)
	pay := &spy{}
	task := t.open(Goal{TTL: 100 * longer}, gatedPay(pay))
	for from := 1; from <= 7; from++ {
		input, id := fmt.Sprintf(`{"amount":%d}`, from), fmt.Sprint("x", from)
		before, sweeps := pay.runs(), 0
		t.approve(t.asks(task, "pay", input, id))
		f.FailStore(Fault{From: from, To: from + 1, Reply: true})
		_ = w.Work(t.Context, func() bool { sweeps++; return sweeps > 10 })
		f.FailStore(Fault{})
		t.ends(task, fmt.Sprintf("a worker, replies from %d lost", from), Call{id, "pay", input}, pay, before)
	}
}

// ends brings a call to its end, with a worker and time where it hangs between two workers.
func (t *T) ends(task, what string, c Call, s *spy, before int) {
	o := t.Propose(t.Context, task, c)
	if o.Code == action.InFlight || o.Code == action.StoreUnavailable {
		need[Clocked](t).Advance(longer)
		sweeps := 0
		if err := need[Worker](t).Work(t.Context, func() bool { sweeps++; return sweeps > 20 }); err != nil {
			t.Errorf("%s: work: %v", what, err)
		}
		o = t.Propose(t.Context, task, c)
	}
	t.honest(what+", in the end", o, s.runs()-before)
	if info := o.Code.Info(); o.Waits() || o.Err != nil || info.Retryable && info.Executed == action.No {
		t.Errorf("%s: it never comes to an end: %s %v%s", what, o.Code, orEmpty(o.Err), o.Told)
	}
}
