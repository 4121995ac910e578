package engine

import (
	"encoding/json"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Run is one execution of an intent as the shell holds it, from an accepted begin to its settle.
type Run struct {
	Agent *Agent
	Begun ledger.Event // what the intent holds; Attempt and Reserved move with attempts
	Fence int64
	Owner string
	Step  int64       // of the last attempt written
	Spent action.Cost // of earlier attempts
	Input any         // the tree of the input, for facts
}

// End is how an execution ended, as the shell saw it.
type End struct {
	Code    action.Code
	Failure *action.Failure // nil where Code is OK
	Output  action.Document // where Code is OK
	Cost    action.Cost     // of the last attempt
	At      int64           // worker time, µs
}

// event returns an event of the run.
func (x *Run) event(t ledger.Type, at int64) ledger.Event {
	b := &x.Begun
	return ledger.Event{
		V: ledger.Version, Type: t, At: at, Agent: b.Agent, Task: b.Task, Intent: b.Intent, Call: b.Call, Action: b.Action,
		Version: b.Version, Digest: b.Digest, Fence: x.Fence, Owner: x.Owner, Attempt: b.Attempt,
	}
}

func (x *Run) txn(phase txn.Phase) *txn.Txn {
	return &txn.Txn{Agent: x.Begun.Agent, Task: x.Begun.Task, Phase: phase, Intent: x.Begun.Intent, Fence: x.Fence, Owner: x.Owner}
}

// Settle ends the run. It rests on nothing but its fence.
func (x *Run) Settle(end End) *txn.Txn {
	t := x.txn(txn.Settle)
	e := x.settled(end)
	write(t, &e, &x.Begun)
	return t
}

// Outcome is what Settle records.
func (x *Run) Outcome(end End) action.Outcome {
	e := x.settled(end)
	o, _ := ReadOutcome(outcomeText(&e, x.Begun.Attempt)) // written by this package
	return o
}

func (x *Run) settled(end End) ledger.Event {
	e := x.event(ledger.Settled, end.At)
	info := end.Code.Info()
	e.Code, e.Failure, e.Waived = end.Code, end.Failure, x.Begun.Waived
	e.Returned = info.Charge == action.ChargeReleased
	if info.Charge == action.ChargeActual {
		e.Charged = x.total(end.Cost)
		e.Overrun = exceeds(e.Charged, x.Begun.Reserved)
	}
	if info.Satisfies {
		e.Output = json.RawMessage(end.Output.Text())
		x.satisfy(&e, end.Output)
	}
	if info.Learns != action.LearnsNothing {
		e.Learned = x.learned(info.Learns == action.LearnsErr, end.Cost, end.At)
	}
	return e
}

// satisfy adds the facts that an Ok establishes.
func (x *Run) satisfy(e *ledger.Event, out action.Document) {
	facts, err := x.Agent.Graph.Facts(x.Begun.Action, x.Input, out.Tree())
	if err != nil { // the action left the agent between begin and settle: nobody can depend on it
		return
	}
	e.Facts, e.Bulk = facts.Keys, facts.Bulk
}

func (x *Run) learned(failed bool, cost action.Cost, at int64) *ledger.Observed {
	o := &ledger.Observed{Action: x.Begun.Action, Err: failed, Cost: cost, At: at}
	if a := x.Agent.Actions[x.Begun.Action]; a != nil {
		o.Declared, o.Tags = a.Risk, a.Tags
	}
	return o
}

// total is the cost of all attempts. What cannot be added was refused when it was reported; the sum is kept in range.
func (x *Run) total(last action.Cost) action.Cost {
	sum, err := x.Spent.Add(last)
	if err == nil {
		return sum
	}
	sum = action.Cost{Currency: last.Currency}
	for a := range action.AxisCount {
		sum = sum.With(a, min(x.Spent.Amount(a)+last.Amount(a), action.MaxAmount))
	}
	return sum
}

func exceeds(c, than action.Cost) bool {
	for a := range action.AxisCount {
		if a != action.Duration && c.Amount(a) > than.Amount(a) {
			return true
		}
	}
	return false
}

// Attempt writes the next attempt before it starts: the one before failed, which is learned now. It reserves one more
// call and is refused where the budget does not allow that, or where the task's cell is no longer at the version given.
func (x *Run) Attempt(view *View, end End, ttl int64) (*txn.Txn, *ledger.Event) {
	t := x.txn(txn.Renew)
	t.Step, t.TTL = x.Step+1, ttl
	e := x.event(ledger.Attempt, end.At)
	e.Attempt = x.Begun.Attempt + 1
	e.Code, e.Failure, e.Charged = end.Code, end.Failure, end.Cost
	e.Reserved = action.Cost{Calls: 1}
	if end.Code.Info().Learns == action.LearnsErr {
		e.Learned = x.learned(true, end.Cost, end.At)
	}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellTask, N: view.taskVer})
	if n, ok := view.Task.Limit.Calls.Get(); ok {
		t.Add(count(budget.GrantedKey(action.Calls), 0, txn.NoMin, n-1))
	}
	write(t, &e, &x.Begun)
	return t, &e
}

// Attempted moves the run on after its attempt was accepted.
func (x *Run) Attempted(e *ledger.Event, spent action.Cost) {
	x.Begun = *Continued(&x.Begun, e)
	x.Spent = x.total(spent)
	x.Step++
}

// Renew prolongs the lease; it is refused where the task's cell has changed, so that a cancellation is noticed.
func (x *Run) Renew(view *View, ttl int64) *txn.Txn {
	t := x.txn(txn.Renew)
	t.TTL = ttl
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellTask, N: view.taskVer})
	return t
}

// Keep prolongs the lease whatever happened to the task: a cancelled call must still settle.
func (x *Run) Keep(ttl int64) *txn.Txn {
	t := x.txn(txn.Renew)
	t.TTL = ttl
	return t
}

// Late records a result that came after the end was written. It changes no outcome; what was used beyond what had been
// charged is charged, unless the outcome is unknown, which an operator settles.
func (x *Run) Late(end End, settledAs action.Code, more action.Cost) *txn.Txn {
	t := x.txn(txn.Plain)
	t.Intent = ""
	e := x.event(ledger.Late, end.At)
	e.Code = action.Late
	e.Failure = action.Fail(action.Late, "the function returned %s after its intent had ended as %s", end.Code, settledAs)
	if settledAs != action.StartedUnknown {
		e.Charged = more
	}
	write(t, &e, nil)
	return t
}

// HookFailed records a hook that went wrong; it changes nothing.
func (x *Run) HookFailed(name string, err error, at int64) *txn.Txn {
	t := x.txn(txn.Plain)
	t.Intent = ""
	e := x.event(ledger.HookFailed, at)
	e.Text, e.Reason = name, err.Error()
	write(t, &e, nil)
	return t
}

// Takeover decides about an intent whose lease ran out. An effect that may not be repeated ends as STARTED_UNKNOWN, in
// one transaction; another one may run again under the next fence, holding what it held.
func Takeover(agent *Agent, begun ledger.Event, lease txn.Lease, owner string, ttl, at int64) (t *txn.Txn, run *Run) {
	x := &Run{Agent: agent, Begun: begun, Fence: lease.Fence + 1, Owner: owner}
	if begun.Action == PlanAction {
		return x.lostPlan(at), nil
	}
	a := agent.Actions[begun.Action]
	if a == nil || a.Version != begun.Version || !a.Repeatable() {
		return x.GiveUp(at), nil
	}
	t = x.txn(txn.Begin)
	t.TTL = ttl
	e := x.event(ledger.Begun, at)
	again := begun
	again.Fence, again.Owner, again.At = x.Fence, owner, at
	e = again
	write(t, &e, nil)
	x.Begun, x.Spent = again, again.Charged
	return t, x
}

// lostPlan ends a proposal whose worker disappeared: what was reserved for it counts as used.
func (x *Run) lostPlan(at int64) *txn.Txn {
	t := x.txn(txn.Takeover)
	e := x.event(ledger.Settled, at)
	e.Code, e.Charged = action.Interrupted, x.Begun.Reserved
	e.Failure = action.Fail(action.Interrupted, "the worker that waited for the planner disappeared")
	write(t, &e, &x.Begun)
	return t
}

// GiveUp is the takeover that ends the intent as STARTED_UNKNOWN.
func (x *Run) GiveUp(at int64) *txn.Txn {
	t := x.txn(txn.Takeover)
	end := End{Code: action.StartedUnknown, At: at, Failure: action.Fail(action.StartedUnknown,
		"the worker that ran this call disappeared; it is not known whether the call took effect")}
	e := x.settled(end)
	write(t, &e, &x.Begun)
	return t
}

// Result of gate 12, kept here so that shell and replay agree: what an end becomes when the task was cancelled or timed
// out while an effect of that class was running.
func Interrupt(a *Action, code action.Code, cause string) *action.Failure {
	if a.Repeatable() {
		return action.Fail(code, "%s", cause)
	}
	f := action.Fail(action.StartedUnknown, "%s; it is not known whether the call took effect", cause)
	return f.With(action.DetailRule, fmt.Sprintf("%s of an effect of class %s", code, a.Effect))
}

// forecast returns what the next call of the action is expected to cost.
func forecast(rules *Rules, v *View, a *Action) budget.Forecast {
	learned := rules.Model.Forecast(v.Beliefs, a.Declaration())
	f := budget.Forecast{Currency: learned.Currency}
	for x := range action.AxisCount {
		if x == action.Calls { // a call is a call: each further attempt reserves its own
			continue
		}
		f.On[x] = budget.Learned{P95: learned.On(x).P95, N: int64(learned.On(x).N)}
	}
	return f
}

// PinTask makes a transaction depend on the task's cell being as the view saw it.
func (v *View) PinTask(t *txn.Txn) {
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellTask, N: v.taskVer})
}

// Beyond is what cost exceeds charged by, axis by axis.
func Beyond(cost, charged action.Cost) action.Cost {
	d := minus(cost, charged)
	for a := range action.AxisCount {
		d = d.With(a, max(d.Amount(a), 0))
	}
	return d
}

// TakeoverStopped ends, under the next fence, an effect that could be repeated but whose task has ended: it was
// interrupted, and what was reserved counts as used.
func TakeoverStopped(agent *Agent, begun ledger.Event, lease txn.Lease, owner string, at int64) *txn.Txn {
	x := &Run{Agent: agent, Begun: begun, Fence: lease.Fence + 1, Owner: owner}
	t := x.txn(txn.Takeover)
	used, err := begun.Reserved.Max(begun.Charged)
	if err != nil { // two currencies: attempts that are known count
		used = begun.Charged
	}
	e := x.settled(End{Code: action.Interrupted, At: at, Cost: used, Failure: action.Fail(action.Interrupted,
		"the worker that ran this call disappeared and its task has ended")})
	write(t, &e, &x.Begun)
	return t
}
