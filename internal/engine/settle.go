package engine

import (
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Run is one execution of an intent as the shell holds it, from an accepted begin to its settle.
type Run struct {
	Agent *Agent
	Begun *ledger.Event // what the intent holds, never changed; an attempt puts another one in its place
	Fence int64
	Owner string
	Step  int64           // of the last attempt written
	Spent action.Cost     // of earlier attempts
	Input any             // the tree of the input, for facts
	Doc   action.Document // the input, where Input is nil
	Room  *Room           // as in Call; nil: what is handed out is allocated
	Veil  *Veil           // as in Call
	wrote action.Outcome  // by the last Settle, where it reads as it was said
}

// End is how an execution ended, as the shell saw it.
type End struct {
	Code    action.Code
	Failure *action.Failure // nil where Code is OK
	Output  action.Document // where Code is OK
	Shown   action.Document // the output as it is written down, where that is sealed
	Sealed  string          // the output, "" where it may be read
	Cost    action.Cost     // of the last attempt
	At      int64           // worker time, µs
}

// event returns an event of the run.
func (x *Run) event(t ledger.Type, at int64) (e ledger.Event) {
	x.eventInto(&e, t, at)
	return e
}

// eventInto is event into one that is empty: it is large.
func (x *Run) eventInto(e *ledger.Event, t ledger.Type, at int64) {
	b := x.Begun
	e.V, e.Type, e.At, e.Agent, e.Task, e.Intent, e.Call, e.Action = ledger.Version, t, at, b.Agent, b.Task, b.Intent, b.Call, b.Action
	e.Version, e.Tool, e.Digest, e.Within, e.Fence, e.Owner, e.Attempt = b.Version, b.Tool, b.Digest, b.Within, x.Fence, x.Owner, b.Attempt
}

func (x *Run) txn(phase txn.Phase) *txn.Txn { return x.on(new(page), phase) }

// on writes the head of a transaction on a page.
func (x *Run) on(p *page, phase txn.Phase) *txn.Txn {
	p.Txn = txn.Txn{Agent: x.Begun.Agent, Task: x.Begun.Task, Phase: phase, Intent: x.Begun.Intent, Fence: x.Fence, Owner: x.Owner}
	p.Clauses = p.room[:0]
	return &p.Txn
}

// Settle ends the run. It rests on nothing but its fence.
func (x *Run) Settle(end End) *txn.Txn {
	t, e := x.on(x.Room.transaction(), txn.Settle), blank()
	defer e.done()
	x.settles(&e.Event, &end)
	write(t, &e.Event, x.Begun)
	if e.Failure == nil && len(e.Waived) == 0 { // else a text may be written otherwise than it was said
		x.wrote = outcomeOf(&e.Event, x.Begun.Attempt)
	}
	return t
}

// Written returns the outcome that the run's last Settle records, as a later reader will read it. The caller owns it.
func (x *Run) Written(settle *txn.Txn) action.Outcome {
	if x.wrote.Intent == "" {
		return Written(settle)
	}
	o := x.wrote
	o.Output = slices.Clone(o.Output)
	if o.Cost.IsZero() {
		o.Cost = action.Cost{}
	}
	return o
}

// Written returns the outcome that a transaction of Settle records, as a later reader will read it.
func Written(settle *txn.Txn) action.Outcome {
	for i := range settle.Clauses {
		if c := &settle.Clauses[i]; c.Op == txn.Put && c.Scope == txn.Record && c.Key == cellOutcome+settle.Intent {
			o, _ := ReadOutcome(c.Val) // written by this package
			return o
		}
	}
	return action.Outcome{Intent: settle.Intent}
}

// recorded is the end as it is written down, where that is otherwise. A worker before, or an attempt before, may have run the call: then nothing is
// given back as if it had not started, and what was reserved counts as used.
func (x *Run) recorded(end *End) (as End, otherwise bool) {
	if end.Code.Info().Executed != action.No || x.Fence == 1 && x.Begun.Attempt <= 1 {
		return as, false
	}
	why := "it was not repeated"
	if end.Failure != nil {
		why = end.Failure.Message
	}
	return End{Code: action.Interrupted, At: end.At, Cost: Beyond(x.used(), x.Spent),
		Failure: action.Fail(action.Interrupted, "another worker or attempt may have run this call before: %s", why)}, true
}

// used is what counts as used of a run that cannot tell: what earlier attempts are known to have used, and all that was
// reserved for the last.
func (x *Run) used() action.Cost {
	c, err := x.Begun.Charged.Add(x.Begun.Reserved)
	if err != nil { // beyond the range: what is known counts
		return x.Begun.Charged
	}
	return c
}

func (x *Run) settled(end End) (e ledger.Event) {
	x.settles(&e, &end)
	return e
}

// settles is settled into an event that is empty.
func (x *Run) settles(e *ledger.Event, end *End) {
	x.wrote = action.Outcome{}
	if recorded, otherwise := x.recorded(end); otherwise {
		end = &recorded
	}
	x.eventInto(e, ledger.Settled, end.At)
	info := end.Code.Info()
	e.Code, e.Failure, e.Waived = end.Code, end.Failure, x.Begun.Waived
	e.Returned = info.Charge == action.ChargeReleased
	if info.Charge == action.ChargeActual {
		e.Charged = x.total(end.Cost)
		e.Overrun = exceeds(end.Cost, x.Begun.Reserved)
	}
	if info.Satisfies {
		e.Output = jsonOf(end.Output)
		if end.Sealed != "" {
			e.Output, e.Sealed = jsonOf(end.Shown), end.Sealed
		}
		x.satisfy(e, end.Output)
	}
	if info.Learns != action.LearnsNothing {
		e.Learned = x.learnedIn(x.Room.lesson(), info.Learns == action.LearnsErr, end.Cost, end.At)
	}
}

// satisfy adds the facts that an Ok establishes.
func (x *Run) satisfy(e *ledger.Event, out action.Document) {
	input, output := x.Input, any(nil)
	_, reads, results := x.Agent.Graph.Reads(x.Begun.Action)
	if reads && input == nil && !x.Doc.IsZero() {
		input = x.Doc.Tree()
	}
	if results {
		output = out.Tree()
	}
	facts, err := x.Veil.graph(x.Agent).Facts(x.Begun.Action, input, output)
	if err != nil { // the action left the agent between begin and settle: nobody can depend on it
		return
	}
	e.Facts, e.Bulk = facts.Keys, facts.Bulk
	if x.Agent.Graph.Across() {
		e.Tenant = x.Begun.Tenant
	}
}

func (x *Run) learned(failed bool, cost action.Cost, at int64) *ledger.Observed {
	return x.learnedIn(new(ledger.Observed), failed, cost, at)
}

func (x *Run) learnedIn(o *ledger.Observed, failed bool, cost action.Cost, at int64) *ledger.Observed {
	*o = ledger.Observed{Action: x.Begun.Action, Err: failed, Cost: cost, At: at}
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

// Attempt writes the next attempt before it starts: the one before failed, which is charged and learned now, and the gates
// are passed again on what is known since, save that nobody is asked anew. It reserves anew. The failure says why there must be no further attempt; the
// transaction is refused where the task's cell is no longer at the version of the view, or the budget has no room any more.
func (x *Run) Attempt(rules *Rules, v *View, call *Call, end End, ttl int64) (*txn.Txn, *ledger.Event, *action.Failure) {
	e := x.event(ledger.Attempt, end.At)
	e.Attempt = x.Begun.Attempt + 1
	e.Code, e.Failure, e.Charged = end.Code, end.Failure, end.Cost
	known := *v.Apart(v.Snap)
	if end.Code.Info().Learns == action.LearnsErr {
		e.Learned = x.learned(true, end.Cost, end.At)
		b, _, err := learnOne(rules, x.Agent, v.Beliefs, *e.Learned)
		if err != nil {
			return nil, nil, action.Fail(action.StoreUnavailable, "the outcome of the attempt cannot be learned").Because(err)
		}
		known.Beliefs, known.known = b, nil
	}
	if f := mayGoOn(rules, x.Agent, &known, x.Begun, call); f != nil {
		return nil, nil, f
	}
	acc := v.Account()
	acc.Granted = plus(acc.Granted, minus(end.Cost, x.Begun.Reserved))
	a := x.Agent.Actions[x.Begun.Action]
	g, no := budget.Reserve(acc, budget.Ask{Estimate: a.Estimate, Max: a.Maximum, Forecast: known.forecast(rules, a, nil), Exact: x.Begun.Priced})
	if no != nil && !rules.Observe {
		return nil, nil, action.Fail(action.BudgetExhausted, "the budget does not allow another attempt: %s", no.Message)
	}
	e.Reserved = g.Reserved
	t := x.txn(txn.Renew)
	t.Step, t.TTL = x.Step+1, ttl
	v.PinTask(t)
	x.pinStop(t, v)
	more := plus(minus(end.Cost, x.Begun.Reserved), e.Reserved)
	for axis := range action.AxisCount {
		if n, ok := v.Task.Limit.On(axis).Get(); ok && !rules.Observe {
			t.Add(count(budget.GrantedKey(axis), 0, txn.NoMin, min(n-more.Amount(axis), txn.NoMax)))
		}
	}
	if !rules.Observe {
		if no := v.again(t, x.Begun.Pools, more); no != nil {
			return nil, nil, action.Fail(action.BudgetExhausted, "a budget pool does not allow another attempt: %s", no.Message)
		}
	}
	write(t, &e, x.Begun)
	return t, &e, nil
}

// plus adds differences, of either sign.
func plus(a, b action.Cost) action.Cost { return minus(a, minus(action.Cost{}, b)) }

// Attempted moves the run on after its attempt was accepted.
func (x *Run) Attempted(e *ledger.Event, spent action.Cost) {
	x.Begun = Continued(x.Begun, e)
	x.Spent = x.total(spent)
	x.Step++
}

// Renew prolongs the lease; it is refused where the task's cell has changed, so that a cancellation is noticed.
func (x *Run) Renew(view *View, ttl int64) *txn.Txn {
	t := x.txn(txn.Renew)
	t.TTL = ttl
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellTask, N: view.taskVer})
	x.pinStop(t, view)
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
	if settledAs == action.InFlight {
		e.Failure = action.Fail(action.Late, "the function returned %s after another worker had taken its intent over", end.Code)
	}
	if settledAs != action.StartedUnknown {
		e.Charged, e.Pools = more, x.Begun.Pools
	}
	write(t, &e, nil)
	return t
}

// HookFailed records a hook that went wrong; it changes nothing.
func (x *Run) HookFailed(name string, err error, at int64) *txn.Txn {
	t := x.txn(txn.Plain)
	t.Intent = ""
	e := x.event(ledger.HookFailed, at)
	e.Text, e.Reason = name, action.TextOf(err)
	write(t, &e, nil)
	return t
}

// Takeover decides about an intent whose lease ran out. An effect that may not be repeated ends as STARTED_UNKNOWN, in
// one transaction; another one may run again under the next fence, holding what it held, if the task is still as the view
// saw it. What it began as decides, not what the action was declared to be since: it is repeated by the same promise, see
// [Action.Promise], and by the same tool. key is the digest of the key that it has here.
func Takeover(agent *Agent, v *View, begun ledger.Event, key string, lease txn.Lease, owner string, ttl, at int64) (t *txn.Txn, run *Run) {
	x := &Run{Agent: agent, Begun: &begun, Fence: lease.Fence + 1, Owner: owner}
	if begun.Action == PlanAction {
		return x.lostPlan(at), nil
	}
	a := agent.Actions[begun.Action]
	if a == nil || a.Version != begun.Version || begun.Repeats == "" || a.Promise(key) != begun.Repeats || a.Tool != begun.Tool {
		return x.GiveUp(at), nil
	}
	t = x.txn(txn.Begin)
	t.TTL = ttl
	v.PinTask(t)
	t.Add(v.haltPin())
	again := begun
	again.Fence, again.Owner, again.At = x.Fence, owner, at
	write(t, &again, nil)
	x.Begun, x.Spent = &again, again.Charged
	return t, x
}

// lostPlan ends a proposal whose worker disappeared: what was reserved for it counts as used.
func (x *Run) lostPlan(at int64) *txn.Txn {
	t := x.txn(txn.Takeover)
	e := x.event(ledger.Settled, at)
	e.Code, e.Charged = action.Interrupted, x.Begun.Reserved
	e.Failure = action.Fail(action.Interrupted, "the worker that waited for the planner disappeared")
	write(t, &e, x.Begun)
	return t
}

// GiveUp is the takeover that ends the intent as STARTED_UNKNOWN.
func (x *Run) GiveUp(at int64) *txn.Txn {
	t := x.txn(txn.Takeover)
	end := End{Code: action.StartedUnknown, At: at, Failure: action.Fail(action.StartedUnknown,
		"the worker that ran this call disappeared; it is not known whether the call took effect")}
	e := x.settled(end)
	write(t, &e, x.Begun)
	return t
}

// Interrupt is what an end becomes when the task was cancelled or timed out while an effect of that class was running, so
// that every shell says the same.
func Interrupt(a *Action, code action.Code, cause string) *action.Failure {
	if a.Repeatable() {
		return action.Fail(code, "%s", cause)
	}
	f := action.Fail(action.StartedUnknown, "%s; it is not known whether the call took effect", cause)
	return f.With(action.DetailRule, fmt.Sprintf("%s of an effect of class %s", code, a.Effect))
}

func forecastOf(rules *Rules, v *View, a *Action) budget.Forecast {
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

// Fit cuts the cost of the last attempt to what the counters of the task can still hold: an end is never refused because
// a function reported an absurd amount.
func (x *Run) Fit(v *View, cost action.Cost) action.Cost {
	acc := v.Account()
	for a := range action.AxisCount {
		granted := acc.Granted.Amount(a) - x.Begun.Reserved.Amount(a)
		room := action.MaxAmount - max(granted, acc.Spent.Amount(a))
		cost = cost.With(a, min(cost.Amount(a), max(room, 0)))
	}
	return cost
}

// Beyond is what cost exceeds charged by, axis by axis.
func Beyond(cost, charged action.Cost) action.Cost {
	d := minus(cost, charged)
	for a := range action.AxisCount {
		d = d.With(a, max(d.Amount(a), 0))
	}
	return d
}
