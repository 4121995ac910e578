package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Call is one proposed call as the shell observed it. What depends on the input alone, user code included, has been
// evaluated once: Edge and Rule.
type Call struct {
	Intent action.Intent
	Barred *action.Failure // what else the call needs and does not have, as the shell found it
	Wants  *string         // the channel over which it sends, which the task must have; nil: it sends nothing
	Edge   *action.Failure // verdict of the strict edge and the schema
	Rule   int             // level that a per-argument rule demands, 0 for none
	Named  string          // the rule's name
	Price  action.Limit    // what the input says that it costs, on the axes on which the action is priced
	Costly *action.Failure // why that is not known, or too much
	Resume bool            // the parked intent itself, not a new call of the same input
	Alone  bool            // nobody waits for it: it sits out what may pass, until its approval expires
	Leased bool            // a lease of a shared pool was tried: what the agent has is what there is
	Flow   bool            // the task's workflow commands it
	Key    string          // digest of the idempotency key, "" where the action declares none, or it has none for this input
	Again  bool            // the call was given back unstarted and is decided anew: its id points to the new intent from now on

	Now   int64         // store time, estimated, µs
	At    int64         // worker time, µs
	Owner string        // of the lease
	TTL   int64         // of the lease, µs
	AskID string        // id of the approval request, should one be opened
	Asks  func() string // makes AskID where it is needed and ""; nil: it stays so
	Room  *Room         // memory for what is handed out, nil: it is allocated
	Veil  *Veil         // nil: everything in the call may be read
}

// Decision is what to do, in the order of the fields: the first that is set and not yet done.
type Decision struct {
	// Lookup names an intent whose outcome and lease must be read before the call can be decided: its call id was used
	// before.
	Lookup string
	// Lease is to be leased from a shared pool before the call can be decided; where that fails, decide again with Leased.
	Lease *PoolNeed
	// Recorded is the answer: the call was made before. Nothing is written.
	Recorded *action.Outcome
	// Txn must be accepted before anything below may be done. Refused: merge what the reply brought and decide again.
	// Nil together with Refusal: answer without writing.
	Txn *txn.Txn
	// Refusal is the answer once Txn is accepted; nothing may run.
	Refusal *action.Failure
	// Held says that the refused call is parked, and waits until a halt is lifted.
	Held bool
	// Muted says that Txn holds pins alone: enough refusals of the task were recorded one by one, and this one is to be
	// counted. See [CountMuted].
	Muted bool
	// Ask is to be made known to approvers, after Txn.
	Ask *approval.Request
	// Begun is what the intent holds from here to its settle: it may run under the lease that Txn took.
	Begun *ledger.Event
	// Expires is the store time after which the consumed approval no longer covers the start, 0 for never.
	Expires int64
}

// gates 1 to 8, in order. Those of observe mode are waived: what they would have refused is recorded.
var gates = [...]struct {
	check  func(*round) *action.Failure
	waived bool
}{
	{(*round).taskRuns, false},
	{(*round).notHalted, false},
	{(*round).actionExists, false},
	{(*round).inputIsValid, false},
	{(*round).prerequisiteLegal, true},
	{(*round).outcomeKnown, false},
	{(*round).policyPermits, true},
	{(*round).riskUnderCeiling, true},
	{(*round).affordable, true},
	{(*round).withinRates, true},
	{(*round).approved, true},
	{(*round).callStands, false},
}

// Decide passes one call through the gates.
func Decide(rules *Rules, agent *Agent, view *View, call *Call) Decision {
	r := newRound(rules, agent, view, call)
	defer r.done()
	if call.Resume {
		r.parked = call.Intent.ID // until gate 8 adopts it: a refusal before that ends it too
	}
	if d, done := r.seenBefore(); done {
		return d
	}
	switch f := r.pass(); {
	case f == nil:
		return r.begin()
	case r.lookup != "":
		return Decision{Lookup: r.lookup}
	case r.lease != nil:
		return Decision{Lease: r.lease}
	default:
		return r.refuse(f)
	}
}

// pass goes through the gates up to the first that refuses.
func (r *round) pass() *action.Failure {
	for i := range gates {
		mark := len(r.pins)
		f := gates[i].check(r)
		switch {
		case f == nil:
		case gates[i].waived && r.rules.Observe && r.lookup == "":
			r.pins = r.pins[:mark]
			r.ask, r.closing, r.silent = nil, nil, false
			r.waived = append(r.waived, f)
		default:
			return f
		}
	}
	return nil
}

// seenBefore looks the call id up first: else a repeated call of a consumed fact would read NOT_LEGAL instead of its
// recorded outcome.
func (r *round) seenBefore() (Decision, bool) {
	id := r.call.Intent.CallID
	if id == "" || r.call.Resume || r.call.Barred != nil && r.call.Barred.Code == action.KeyUnavailable { // its digest is not known
		return Decision{}, false
	}
	snap := r.view.Snap
	key := calls(r.call.Intent.Within) + id
	cell := snap.Record.Cells[key]
	r.pin(txn.Clause{Op: txn.Expect, Scope: txn.Record, Key: key, N: cell.Ver})
	if cell.Ver == 0 || r.call.Again {
		return Decision{}, false
	}
	intent, digest, _ := strings.Cut(cell.Val, "\n")
	if digest != callDigest(&r.call.Intent) {
		f := action.Fail(action.InputInvalid, "call id %q was already used for another call; give every call an id of its own", id)
		return r.refuse(f.With(action.DetailIntent, intent)), true
	}
	lease, known := snap.Leases[intent]
	if !known {
		return Decision{Lookup: intent}, true
	}
	switch lease.Phase {
	case txn.Settle:
		if _, read := snap.Record.Cells[cellOutcome+intent]; !read { // it ended since its record was read
			return Decision{Lookup: intent}, true
		}
		return r.recorded(intent), true
	case txn.Begin:
		r.pin(txn.Clause{Op: txn.Expect, Scope: txn.Record, Key: cellOutcome + intent, N: snap.Record.Cells[cellOutcome+intent].Ver})
		f := action.Fail(action.InFlight, "a call with id %q is running", id)
		return r.refuse(f.With(action.DetailIntent, intent)), true
	case 0: // nothing is kept of it but its id
		f := action.Fail(action.InputInvalid, "call id %q was used by a call that ended so long ago that its outcome is kept in the ledger alone; give every call an id of its own", id)
		return r.refuse(f.With(action.DetailIntent, intent)), true
	}
	r.parked = intent
	return Decision{}, false
}

func (r *round) recorded(intent string) Decision {
	o, err := ReadOutcome(r.view.Snap.Record.Cells[cellOutcome+intent].Val)
	if err != nil {
		return r.refuse(action.Fail(action.StoreUnavailable, "the recorded outcome of intent %s cannot be read", intent).Because(err))
	}
	o.Recorded = true
	return Decision{Recorded: &o}
}

// gate 1

func (r *round) taskRuns() *action.Failure {
	v := r.view
	r.pin(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellTask, N: v.taskVer})
	switch {
	case v.taskVer == 0:
		r.silent = true // there is nowhere to write it
		return action.Fail(action.TaskClosed, "there is no such task: it was never started, or has ended and expired; start it first")
	case v.Task.Status == Cancelled:
		return v.Task.Because(action.Fail(action.Cancelled, "the task was cancelled"))
	case v.Task.Status == Paused:
		return v.paused()
	case v.Task.Status != Running:
		return v.Task.Because(action.Fail(action.TaskClosed, "the task has ended"))
	case v.Task.Deadline == 0:
		return nil
	case r.call.Now >= v.Task.Deadline:
		r.pin(txn.Clause{Op: txn.Time, Min: v.Task.Deadline, Max: txn.NoMax})
		return action.Fail(action.TaskClosed, "the deadline of the task has passed")
	}
	r.pin(txn.Clause{Op: txn.Time, Min: txn.NoMin, Max: v.Task.Deadline - 1})
	return nil
}

// gate 2

func (r *round) actionExists() *action.Failure {
	if r.act == nil {
		if action.CheckName(r.call.Intent.Action) != nil { // perhaps long, or not even text
			return action.Fail(action.ActionUnknown, "there is no action of that name; choose one of those offered")
		}
		return action.Fail(action.ActionUnknown, "there is no action %q; choose one of those offered", r.call.Intent.Action)
	}
	if f := r.channelGiven(); f != nil {
		return f
	}
	if f := r.call.Barred; f != nil {
		return f
	}
	for _, need := range r.act.Context {
		if !slices.Contains(r.view.Task.Context, need) {
			return action.Fail(action.ContextMissing, "action %q needs the context %q, which this task does not have", r.act.Name, need)
		}
	}
	return nil
}

// gate 3

// What is wrong with the input of an action that does not exist for the planner now must not describe it: its fields and
// values are for operators.
func (r *round) inputIsValid() *action.Failure {
	f := r.call.Edge
	if f == nil || r.visible(r.act.Name) {
		return f
	}
	return action.Fail(f.Code, "the input of this call is not acceptable").With(action.DetailRule, f.Explain())
}

// visible reports whether an action exists for the planner now.
func (r *round) visible(name string) bool {
	if r.rules.Observe {
		return true
	}
	set := FactsOf(r.agent, r.view.Snap)
	return Stand(r.rules, r.agent, r.view, set, name, r.call.Now).Status != action.Blocked
}

// gate 4

func (r *round) prerequisiteLegal() *action.Failure {
	if f := r.outsideFlow(); f != nil {
		return f
	}
	var input any
	if reads, _, _ := r.agent.Graph.Reads(r.act.Name); reads {
		input = r.call.Intent.Input.Tree()
	}
	needs, err := r.call.Veil.graph(r.agent).Required(r.act.Name, input)
	if err != nil {
		return action.Fail(action.ActionUnknown, "there is no action %q; choose one of those offered", r.act.Name).Because(err)
	}
	for i := range needs {
		if f := r.satisfied(&needs[i]); f != nil {
			return f
		}
	}
	return nil
}

// satisfied checks one requirement and pins what it found.
func (r *round) satisfied(need *statespace.Requirement) *action.Failure {
	if need.Missing != "" {
		return r.notLegal(need, "the input has no "+need.Missing)
	}
	name, within, tokens := tokenFact+need.Key, need.Within.Microseconds(), r.view.Snap.Task.Tokens
	t, has := tokens[name]
	bulk, listed := tokens[tokenBulk+need.SetKey]
	from := held
	switch {
	case inBulk(bulk, need.Value) && (!has || t.At < bulk.At): // the newer of the two counts, so that one use is one use
		r.pinToken(name, t, has)
		name, t, from = tokenBulk+need.SetKey, bulk, ""
	case has && t.State == held:
		if need.Consumed { // a listing that came later would hold what this call uses up
			r.pinToken(tokenBulk+need.SetKey, bulk, listed)
		}
	default:
		if r.earlier(need) {
			return nil
		}
		r.pinToken(name, t, has)
		r.pinToken(tokenBulk+need.SetKey, bulk, listed)
		return r.notLegal(need, gone(t, has))
	}
	if within > 0 && t.At+within < r.call.Now {
		n := r.view.Snap.Task.Counters[countFacts] // nothing was established since, the same again included
		r.pin(count(countFacts, 0, n, n), txn.Clause{Op: txn.Time, Min: t.At + within + 1, Max: txn.NoMax})
		return r.notLegal(need, "it is too long ago")
	}
	r.pin(txn.Clause{Op: txn.Have, Scope: txn.Task, Key: name, From: t.State, N: within})
	if need.Consumed {
		return r.claim(need, from)
	}
	return nil
}

// claim takes a fact for this call alone: what answers one of its needs is used up and cannot answer another.
func (r *round) claim(need *statespace.Requirement, from string) *action.Failure {
	c := ledger.Claim{Key: tokenFact + need.Key, From: from}
	if slices.ContainsFunc(r.claims, func(have ledger.Claim) bool { return have.Key == c.Key }) {
		return r.notLegal(need, "it would be used twice by this call")
	}
	r.claims = append(r.claims, c)
	return nil
}

// inBulk reports whether the bulk token of a field set holds the value.
func inBulk(t txn.Token, value string) bool {
	if t.State == "" {
		return false
	}
	var values []string
	if json.Unmarshal([]byte(t.Val), &values) != nil {
		return false
	}
	_, found := slices.BinarySearch(values, value)
	return found
}

// pinToken pins that the token is as it is: absent, or in that very state.
func (r *round) pinToken(name string, t txn.Token, has bool) {
	c := txn.Clause{Op: txn.Have, Scope: txn.Task, Key: name}
	if has {
		c.From, c.N = t.State, -1
	}
	r.pin(c)
}

func (r *round) notLegal(need *statespace.Requirement, why string) *action.Failure {
	f := action.Fail(action.NotLegal, "action %q is not available for this input now%s", r.act.Name, r.hint(need))
	return f.With(action.DetailUnmet, cmp.Or(need.Key, need.Action)+": "+why)
}

// outcomeKnown refuses the same action and input while an outcome of it is unknown.
func (r *round) outcomeKnown() *action.Failure {
	if f := r.unsureAbove(); f != nil {
		return f
	}
	if key := r.act.unsure(); r.view.Snap.Task.Counters[key] <= 0 { // of no input whatever
		r.pin(count(key, 0, txn.NoMin, 0))
		return nil
	}
	for _, key := range r.named() {
		if r.view.Snap.Task.Counters[key] <= 0 {
			r.pin(count(key, 0, txn.NoMin, 0))
			continue
		}
		r.pin(count(key, 0, 1, txn.NoMax))
		f := action.Fail(action.NotLegal, "it is not known whether an earlier call of %q with this input took effect; a person must resolve it", r.act.Name)
		if intent := firstUnknown(r.view.Snap.Task.Tokens, key); intent != "" {
			return f.With(action.DetailIntent, intent)
		}
		return f.With(action.DetailReason, "the child "+r.view.unsureOf(key)+" made it")
	}
	return nil
}

// gate 5

func (r *round) policyPermits() *action.Failure {
	r.policy = r.permits(false)
	if r.policy.Permit {
		return nil
	}
	r.pinLevel() // a rule may look at risk
	return action.Fail(action.Denied, "agent %q has no permission to call %q this way", r.agent.Name, r.act.Name).With(action.DetailRule, r.policy.Reason)
}

// gate 6

func (r *round) riskUnderCeiling() *action.Failure {
	r.shown = r.assess()
	r.pinLevel()
	if c := r.view.Task.Ceiling; c > 0 && r.shown.Effective > c {
		f := action.Fail(action.RiskCeiling, "action %q is too risky for this task now", r.act.Name)
		return f.With(action.DetailRule, fmt.Sprintf("effective risk %.2f is above the ceiling %.2f", r.shown.Effective, c))
	}
	return nil
}

// pinLevel pins the cell that is rewritten when the action's estimated level moves.
func (r *round) pinLevel() {
	key := r.act.level()
	r.pin(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: key, N: r.view.Snap.Agent.Cells[key].Ver})
}

func (r *round) assess() ledger.RiskShown {
	e := r.risk()
	return ledger.RiskShown{
		Declared: r.act.Risk, Score: e.Score, Floor: e.Floor, Effective: e.Effective(r.act.Risk, r.call.Rule),
		P: e.P, Lo: e.Lo, Hi: e.Hi, N: e.N, Rule: r.call.Named,
	}
}

// gate 7

func (r *round) affordable() *action.Failure {
	if f := r.call.Costly; f != nil {
		if r.rules.Observe {
			g, _ := afford(r.rules, r.view, r.act, action.Limit{}, r.said())
			r.reserved = g.Reserved
		}
		return f
	}
	g, no := afford(r.rules, r.view, r.act, r.call.Price, r.said())
	return r.reserve(g, no)
}

// afford asks the budget what a call of the action reserves.
func afford(rules *Rules, v *View, a *Action, price action.Limit, s *saying) (budget.Grant, *budget.Refusal) {
	return budget.Reserve(budget.Granting(v.Task.Limit, v.Snap.Task.Counters),
		budget.Ask{Estimate: a.Estimate, Max: a.Maximum, Forecast: v.forecast(rules, a, s), Exact: price})
}

// reserve pins that the reservation keeps every limit; what it adds comes with the begin.
func (r *round) reserve(g budget.Grant, no *budget.Refusal) *action.Failure {
	limit := r.view.Task.Limit
	r.reserved = g.Reserved
	if no != nil {
		if n, ok := limit.On(no.Axis).Get(); ok && no.Left < no.Least {
			r.pin(count(budget.GrantedKey(no.Axis), 0, n-no.Least+1, txn.NoMax))
		}
		f := action.Fail(action.BudgetExhausted, "the budget does not allow %q: %s", r.act.Name, no.Message)
		return f.With(action.DetailAxis, no.Axis.String())
	}
	for a := range action.AxisCount {
		if n, ok := limit.On(a).Get(); ok {
			r.pin(count(budget.GrantedKey(a), 0, txn.NoMin, n-g.Reserved.Amount(a)))
		}
	}
	if len(r.view.pools) > 0 {
		return r.fromPools(g.Reserved)
	}
	return nil
}
