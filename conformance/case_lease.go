package conformance

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func leaseCases() []Case {
	return []Case{
		{"C24", "a lock expires during long work, a second worker runs the same job", "one lease at a time and a fencing token at settle; what may not be repeated is not", []Variant{
			{"another worker gives up what may not be repeated", takenOver(Irreversible, 1, action.StartedUnknown)},
			{"another worker repeats what may be; the first result is late", takenOver(Idempotent, 2, action.OK)},
			{"nobody takes over: an expired lease still settles", expiredSettles},
			{"the same call meanwhile", sameMeanwhile},
		}},
	}
}

// longer is beyond any lease that an engine would give.
const longer = 24 * time.Hour

// slow is a body whose first run waits at the gate, whatever its context says.
func slow(t *T, hold *gate) *spy {
	var first atomic.Bool
	return &spy{then: func(context.Context, Execution) (json.RawMessage, error) {
		if first.CompareAndSwap(false, true) {
			hold.wait(t.Context)
			return json.RawMessage(`{"by":"first"}`), nil
		}
		return json.RawMessage(`{"by":"second"}`), nil
	}}
}

// running starts a call that waits at the gate and returns its outcome when it has ended.
func (t *T) running(task string, hold *gate, c Call) <-chan Outcome {
	out := make(chan Outcome, 1)
	go func() { out <- t.Propose(t.Context, task, c) }()
	hold.arrived(t)
	return out
}

func takenOver(e Effect, runs int, want action.Code) func(*T) {
	return func(t *T) {
		hold, clock := newGate(), need[Clocked](t)
		peer, err := need[Peered](t).Peer()
		if err != nil {
			t.Fatalf("peer: %v", err)
		}
		other, ok := peer.(Worker)
		if !ok {
			t.Skip("needs Worker")
		}
		pay := slow(t, hold)
		act := Action{Name: "pay", Schema: payment, Effect: e, Do: pay.do}
		task := t.open(Goal{}, act)
		a := Agent{Name: clerk, Actions: []Action{act}, Grants: []string{"pay"}}
		if err := peer.Declare(a); err != nil {
			t.Fatalf("declare: %v", err)
		}
		first := t.running(task, hold, Call{"x", "pay", `{"amount":1}`})
		clock.Advance(longer)
		if err := other.Work(t.Context, func() bool { return len(t.recorded(task, Settled)) > 0 }); err != nil {
			t.Errorf("nobody takes over: %v", err)
		}
		hold.open()
		if o := <-first; o.OK() {
			t.Errorf("the worker that was superseded reports OK")
		}
		t.ran("pay", pay, runs)
		o := t.want("the call by its id", t.propose(task, "pay", `{"amount":1}`, "x"), want)
		if o.OK() && string(o.Output) != `{"by":"second"}` {
			t.Errorf("the record holds %s, of the worker that was superseded", o.Output)
		}
		if n := len(t.recorded(task, Settled)); n != 1 {
			t.Errorf("one call settled %d times", n)
		}
	}
}

func expiredSettles(t *T) {
	hold, clock := newGate(), need[Clocked](t)
	pay := slow(t, hold)
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: pay.do})
	out := t.running(task, hold, Call{"x", "pay", `{"amount":1}`})
	clock.Advance(longer)
	hold.open()
	t.want("long work", <-out, action.OK)
	t.want("the call by its id", t.propose(task, "pay", `{"amount":1}`, "x"), action.OK)
	t.ran("pay", pay, 1)
}

func sameMeanwhile(t *T) {
	hold, clock := newGate(), need[Clocked](t)
	pay := slow(t, hold)
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: pay.do})
	out := t.running(task, hold, Call{"x", "pay", `{"amount":1}`})
	t.want("the same call while it runs", t.propose(task, "pay", `{"amount":1}`, "x"), action.InFlight)
	clock.Advance(longer)
	t.want("and beyond its lease", t.propose(task, "pay", `{"amount":1}`, "x"), action.InFlight, action.StartedUnknown)
	t.ran("pay", pay, 1)
	hold.open()
	<-out
}
