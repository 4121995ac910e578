package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// forever is how long something without a deadline is due: a hundred years, in µs.
const forever = int64(100 * 365 * 24 * 3600 * 1_000_000)

// Changes returns what an event does to the state, as clauses without limits. The transaction that writes the event adds
// the pins; a fold replays the changes alone. held is the begun or parked event of the same intent, where there is one.
func Changes(e *ledger.Event, held *ledger.Event) []txn.Clause { return changesOf(e, held, "") }

// changesOf is Changes for who has the event's text already; "" is nobody.
func changesOf(e, held *ledger.Event, text string) []txn.Clause {
	var c changes
	c.of(e, held, text)
	return c.list
}

func (c *changes) of(e, held *ledger.Event, text string) {
	c.row(e)
	if e.Wakes {
		c.wake(e)
	}
	switch e.Type {
	case ledger.TaskStarted, ledger.TaskChanged, ledger.PhaseChanged, ledger.TaskCancelled, ledger.TaskClosed:
		c.task(e)
	case ledger.EscalationRaised, ledger.EscalationResolved:
		c.escalated(e)
	case ledger.TaskConcluded:
		c.put(txn.Task, cellTask, string(e.State))
	case ledger.Refused:
		c.refused(e)
	case ledger.RefusalsCounted:
		c.muted(e)
	case ledger.ApprovalRequested:
		c.requested(e, text)
	case ledger.ApprovalVoted, ledger.ApprovalWithdrawn:
		c.votes(e)
	case ledger.GlassBroken, ledger.GlassClosed:
		c.glass(e)
	case ledger.ApprovalApproved:
		c.votes(e)
		c.mark(e)
		c.approvedLast(e)
		c.add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueDesk, Val: e.Approval},
			txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueAsks, Val: e.Approval},
			txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueReady, Val: c.member(e.Task, e.Intent)})
	case ledger.ApprovalRejected, ledger.ApprovalRevoked, ledger.ApprovalExpired:
		c.mark(e)
		c.add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueDesk, Val: e.Approval},
			txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueAsks, Val: e.Approval},
			txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueReady, Val: c.member(e.Task, e.Intent)})
	case ledger.Begun:
		c.begun(e, text)
	case ledger.Attempt:
		c.attempt(e, held)
	case ledger.Settled:
		c.settled(e, held)
	case ledger.PoolLeased, ledger.PoolReceived, ledger.PoolReturned, ledger.PoolRestored:
		c.books(e)
	case ledger.ChildQueued, ledger.ChildGranted, ledger.ChildEnded, ledger.ChildCharged:
		c.child(e, held)
	case ledger.Late:
		c.charge(e.Pools, e.Charged, e.Charged)
		c.beyond(e.Pools, e.Charged, action.Cost{})
		c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueReports, Val: e.Task}) // whoever has a parent tells it
	case ledger.Resolved:
		c.resolved(e, held)
	case ledger.ChildRefused:
		c.refusedOnce(e)
	case ledger.BreakerCount:
		c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueFailures, Val: failureMember(e), N: e.Expires})
	case ledger.FlowDone:
		c.done(e, text)
	case ledger.FlowUndone:
		c.undone(e)
	case ledger.AgentHalted, ledger.AgentResumed, ledger.CallCancelled:
		c.halts(e)
	case ledger.AgentDeclared:
		c.put(txn.Agent, cellCard, string(e.State))
	case ledger.LedgerPruned:
		c.put(txn.Agent, cellCut, cutText(e.ToSeq, e.Digest))
	case ledger.AgentConfigured:
		c.put(txn.Agent, cellConfig, string(e.State))
	}
}

// changes gathers clauses. The strings they name are cut out of a piece of memory; where there is none, each is its own.
type changes struct {
	list []txn.Clause
	text *piece
}

func (c *changes) add(cs ...txn.Clause) { c.list = append(c.list, cs...) }

// cat joins strings in the text.
func (c *changes) cat(parts ...string) string {
	if c.text == nil {
		return strings.Join(parts, "")
	}
	b := c.text.begin()
	for _, p := range parts {
		b = append(b, p...)
	}
	return c.text.end(b)
}

func (c *changes) put(scope txn.Scope, key, val string) {
	c.add(txn.Clause{Op: txn.Put, Scope: scope, Key: key, Val: val})
}

// charge adds to what is granted and what is spent, axis by axis, in the task and in pools.
func (c *changes) charge(pools []string, granted, spent action.Cost) {
	for a := range action.AxisCount {
		c.count(budget.GrantedKey(a), granted.Amount(a))
		c.count(budget.SpentKey(a), spent.Amount(a))
	}
	c.pool(pools, granted, spent)
}

// beyond queues what more was used than had been reserved: where that is more than a shared pool has lent, it is to be told.
func (c *changes) beyond(pools []string, used, reserved action.Cost) {
	if len(pools) == 0 || !exceeds(used, reserved) {
		return
	}
	for _, id := range pools {
		c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueBeyond, Val: id})
	}
}

func (c *changes) count(key string, n int64) {
	if n != 0 {
		k := count(key, n, txn.NoMin, txn.NoMax)
		k.Soft = true // limits are pinned by who begins; what was used is never refused
		c.add(k)
	}
}

func count(key string, n, lo, hi int64) txn.Clause {
	return txn.Clause{Op: txn.Count, Scope: txn.Task, Key: key, N: n, Min: lo, Max: hi}
}

// member names an intent in a queue of the agent.
func member(task, intent string) string { return task + "\n" + intent }

func (c *changes) member(task, intent string) string { return c.cat(task, "\n", intent) }

func (c *changes) task(e *ledger.Event) {
	c.put(txn.Task, cellTask, string(e.State))
	if e.Type == ledger.TaskCancelled || e.Type == ledger.TaskClosed {
		c.add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueTasks, Val: e.Task},
			txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueEscalations, Val: e.Task},
			txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueEnded, Val: e.Task})
		c.endOfFamily(e)
		if e.Child == "" && !e.Cascade { // nobody has to read it any more; others when their family is told
			c.add(txn.Clause{Op: txn.Expire, Scope: txn.Task})
		}
		return
	}
	c.tells(e)
	c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueTasks, Val: e.Task, N: cmp.Or(e.Expires, forever)})
	if e.Type == ledger.TaskStarted {
		c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueHistory, Val: e.Task})
		if e.Flow != nil {
			c.put(txn.Record, cellFlowIn, string(e.Flow.Event))
			if len(e.Flow.Sealed) > 0 {
				c.put(txn.Record, cellSealed, jsonString(e.Flow.Sealed))
			}
			c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueFlows, Val: e.Task})
		}
	}
}

func (c *changes) refused(e *ledger.Event) {
	c.refusedOnce(e)
	if e.Within == "" && e.Code.Info().Violation { // what a function does is not the planner's doing
		c.add(txn.Clause{Op: txn.Count, Scope: txn.Agent, Key: countBreach, N: 1, Min: txn.NoMin, Max: txn.NoMax})
	}
	if e.Returned { // it ends a parked intent
		c.outcome(e, 0)
		c.add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueReady, Val: c.member(e.Task, e.Intent)})
	}
}

func (c *changes) requested(e *ledger.Event, text string) {
	c.add(txn.Clause{Op: txn.Set, Scope: txn.Task, Key: tokenAsk + e.Digest, To: e.ApprovalState, Val: string(e.State), N: e.Expires})
	c.put(txn.Record, cellRequest+e.Approval, e.Digest)
	c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueAsks, Val: e.Approval, N: e.Expires},
		txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueDesk, Val: e.Approval})
	if e.Attempt == 0 { // a first request parks the intent
		c.put(txn.Record, c.cat(cellIntent, e.Intent), orText(text, e))
		c.call(e)
	}
}

// calls is where call ids are recorded. Those of calls within a call are apart from the planner's and the program's, so that
// nobody makes a function's call in its place: they stand below the intent whose function it was, which only the engine says.
func calls(within string) string {
	if within == "" {
		return cellCall
	}
	return cellInner + within + "\n"
}

func (c *changes) call(e *ledger.Event) {
	if e.Call != "" { // the id of a planner's call is used up as long as its task is there, whatever is kept of the call
		c.add(txn.Clause{Op: txn.Put, Scope: txn.Record, Key: c.cat(calls(e.Within), e.Call), Val: c.cat(e.Intent, "\n", cmp.Or(e.Digest, "-")), Soft: e.Within == ""})
	}
}

// mark moves the token of an approval. A rejection is Set, because its reason travels with it and it never expires.
func (c *changes) mark(e *ledger.Event) {
	switch {
	case e.ApprovalState == "":
	case e.State != nil && e.Type == ledger.ApprovalRejected:
		c.add(txn.Clause{Op: txn.Set, Scope: txn.Task, Key: tokenAsk + e.Digest, To: e.ApprovalState, Val: string(e.State)})
		if key := noKey(e.Action, e.Version, e.Value); key != "" { // the same by another spelling is not asked again either
			c.add(txn.Clause{Op: txn.Set, Scope: txn.Task, Key: key, To: e.ApprovalState, Val: string(e.State)})
		}
	default:
		take := txn.Clause{Op: txn.Take, Scope: txn.Task, Key: tokenAsk + e.Digest, From: e.ApprovalFrom, To: e.ApprovalState}
		if e.Type == ledger.ApprovalExpired {
			take.N = -1
		}
		c.add(take)
	}
}

func (c *changes) begun(e *ledger.Event, text string) {
	c.put(txn.Record, c.cat(cellIntent, e.Intent), orText(text, e))
	if e.Fence > 1 {
		return
	}
	c.charge(e.Pools, e.Reserved, action.Cost{})
	c.took(e.Limits)
	for _, k := range e.Claimed {
		op := txn.Take
		if k.From == "" { // of a bulk fact: stamped now, so that a newer listing establishes it again
			op = txn.Set
		}
		c.add(txn.Clause{Op: op, Scope: txn.Task, Key: k.Key, From: k.From, To: k.To})
	}
	if e.Approval != "" {
		c.mark(e)
		c.add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueReady, Val: c.member(e.Task, e.Intent)})
	}
	c.call(e)
}

// attempt charges the attempt that failed, and reserves for the next.
func (c *changes) attempt(e, held *ledger.Event) {
	c.charge(held.Pools, plus(minus(e.Charged, held.Reserved), e.Reserved), e.Charged)
	c.beyond(held.Pools, e.Charged, held.Reserved)
	c.count(countRuns, 1)
	c.put(txn.Record, c.cat(cellIntent, e.Intent), c.event(Continued(held, e)))
	c.learn(e)
}

// Continued returns what an intent holds after an attempt event.
func Continued(held, e *ledger.Event) *ledger.Event {
	h := *held
	h.Attempt = e.Attempt
	h.Reserved = e.Reserved
	if sum, err := h.Charged.Add(e.Charged); err == nil {
		h.Charged = sum
	}
	return &h
}

func (c *changes) learn(e *ledger.Event) {
	if e.Learned != nil {
		c.add(txn.Clause{Op: txn.Pend, Scope: txn.Agent, Val: c.text.end(ledger.AppendObserved(c.text.begin(), e.Learned))})
	}
}

func (c *changes) settled(e, held *ledger.Event) {
	c.left(held.Limits)
	info := e.Code.Info()
	switch info.Charge {
	case action.ChargeReserved:
		keys := unknownKeys(e.Action, string(held.Input), held.Value)
		c.add(txn.Clause{Op: txn.Set, Scope: txn.Task, Key: tokenUnknown + e.Intent, To: unresolved, Val: strings.Join(keys, "\n")})
		c.count(countUnsure+e.Action, 1)
		c.add(txn.Clause{Op: txn.Expire, Scope: txn.Record, Key: e.Intent, N: -1}, // until somebody resolves it
			txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueUnknown, Val: c.member(e.Task, e.Intent)})
		for _, key := range keys {
			c.count(key, 1)
		}
	case action.ChargeReleased:
		c.release(e, held)
	default:
		last := minus(e.Charged, held.Charged) // attempts before were charged when they failed
		c.charge(held.Pools, minus(last, held.Reserved), last)
		c.beyond(held.Pools, last, held.Reserved)
	}
	if info.Executed != action.No && e.Action != PlanAction {
		c.count(countRuns, 1)
	}
	c.facts(e)
	c.learn(e)
	c.outcome(e, held.Attempt)
}

// release gives back what the intent held. What moved on meanwhile is skipped: a settle is refused by its fence alone.
func (c *changes) release(e, held *ledger.Event) {
	c.charge(held.Pools, minus(action.Cost{}, held.Reserved), action.Cost{})
	for _, k := range held.Claimed {
		c.add(txn.Clause{Op: txn.Take, Scope: txn.Task, Key: k.Key, From: k.To, To: k.From, N: -1, Soft: true})
	}
	if held.Approval != "" {
		c.add(txn.Clause{Op: txn.Take, Scope: txn.Task, Key: tokenAsk + held.Digest, From: held.ApprovalState, To: held.ApprovalFrom, N: -1, Soft: true})
	}
}

// minus is a difference for counters; it may be negative on any axis.
func minus(a, b action.Cost) action.Cost {
	d := action.Cost{Currency: cmp.Or(a.Currency, b.Currency)}
	for x := range action.AxisCount {
		d = d.With(x, a.Amount(x)-b.Amount(x))
	}
	return d
}

func (c *changes) facts(e *ledger.Event) {
	for _, k := range e.Facts {
		c.add(txn.Clause{Op: txn.Set, Scope: txn.Task, Key: c.cat(tokenFact, k), To: held})
	}
	var lists []string
	if len(e.Bulk) > 0 {
		lists = slices.Sorted(maps.Keys(e.Bulk))
	}
	for _, k := range lists {
		text, _ := json.Marshal(e.Bulk[k]) // strings: cannot fail
		c.add(txn.Clause{Op: txn.Set, Scope: txn.Task, Key: tokenBulk + k, To: held + ":" + e.Intent, Val: string(text)})
	}
	c.lasting(e)
	if len(e.Facts)+len(e.Bulk) > 0 {
		c.count(countFacts, 1)
	}
}

func (c *changes) resolved(e, held *ledger.Event) {
	last := Beyond(e.Charged, held.Charged)
	c.charge(held.Pools, minus(last, held.Reserved), last)
	c.beyond(held.Pools, last, held.Reserved)
	c.add(txn.Clause{Op: txn.Take, Scope: txn.Task, Key: tokenUnknown + e.Intent, From: unresolved, N: -1})
	c.count(countUnsure+e.Action, -1)
	c.add(txn.Clause{Op: txn.Expire, Scope: txn.Record, Key: e.Intent},
		txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueUnknown, Val: c.member(e.Task, e.Intent)})
	for _, key := range unknownKeys(e.Action, string(held.Input), held.Value) {
		c.count(key, -1)
	}
	c.facts(e)
	c.learn(e)
	c.outcome(e, held.Attempt)
	if e.Learned != nil { // who resolves may hold none of the functions, so others fold it
		c.add(view("trust", "pending", "1"), txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueFolds, Val: c.member(e.Task, e.Intent)})
	}
}

func orText(text string, e *ledger.Event) string {
	if text == "" {
		return eventText(e)
	}
	return text
}

// event writes an event into the text.
func (c *changes) event(e *ledger.Event) string {
	return c.text.end(appendEvent(c.text.begin(), e))
}

func eventText(e *ledger.Event) string {
	b := scratch()
	defer release(b)
	*b = appendEvent((*b)[:0], e)
	return string(*b)
}

func appendEvent(dst []byte, e *ledger.Event) []byte {
	return appendShown(dst, e, "")
}

// appendShown is appendEvent for who may have the text of the risk.
func appendShown(dst []byte, e *ledger.Event, risk string) (out []byte) {
	var err error
	if e.Type == ledger.Begun || e.Type == ledger.Settled { // what they hold passed the strict edge
		out, err = ledger.AppendKnown(dst, e, risk)
	} else {
		out, err = ledger.AppendEvent(dst, e)
	}
	if err != nil { // every event that gets here was made by this package from checked values
		return fmt.Appendf(dst, `{"v":%d,"type":"note","text":%q}`, ledger.Version, err)
	}
	return out
}

// outcome puts what an event says of its intent's end into the cell of the outcome.
func (c *changes) outcome(e *ledger.Event, attempts int) {
	o := outcomeOf(e, attempts)
	c.put(txn.Record, c.cat(cellOutcome, e.Intent), c.text.end(ledger.AppendOutcome(c.text.begin(), &o)))
}

func outcomeOf(e *ledger.Event, attempts int) action.Outcome {
	o := action.Outcome{
		Intent: e.Intent, Action: e.Action, Code: e.Code, Output: e.Output, Cost: e.Charged, Overrun: e.Overrun, Attempts: max(attempts, 1),
		Failure: e.Failure, Waived: e.Waived, Sealed: e.Sealed,
	}
	if e.Code.Info().Executed == action.No {
		o.Attempts = 0
	}
	return o
}

// ReadOutcome decodes a recorded outcome.
func ReadOutcome(text string) (o action.Outcome, err error) {
	if text == "" {
		return o, fmt.Errorf("no outcome is recorded")
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return o, fmt.Errorf("recorded outcome: %w", err)
	}
	return o, nil
}
