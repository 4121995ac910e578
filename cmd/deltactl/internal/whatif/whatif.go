package whatif

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/schema"
)

// Config says what to try.
type Config struct {
	Rules *policy.Bundle
	Since time.Time // decisions before it are not tried, by store time; zero: all are
}

// The decisions of a policy about one call.
const (
	Permitted = "permitted"
	Asked     = "asked" // permitted where a person consents, by the level of autonomy
	Denied    = "denied"
	Perhaps   = "perhaps" // some input would be permitted; the one that was denied is not recorded
)

// Flip is a decision that would have been another.
type Flip struct {
	At     time.Time   `json:"at"`
	Agent  string      `json:"agent"`
	Task   string      `json:"task"`
	Intent string      `json:"intent"`
	Action string      `json:"action"`
	Was    string      `json:"was"`
	Now    string      `json:"now"`
	Reason string      `json:"reason"`
	Cost   action.Cost `json:"cost,omitzero"` // what it used; of a call that was denied, what the action used on average
}

// Group is a kind of flips.
type Group struct {
	Was   string      `json:"was"`
	Now   string      `json:"now"`
	Count int         `json:"count"`
	Cost  action.Cost `json:"cost,omitzero"`
	Mixed bool        `json:"mixed,omitempty"` // money in several currencies, which is left out of the cost
}

// Report is what became of every recorded decision.
type Report struct {
	Version string  `json:"version"` // of the rules
	Tried   int     `json:"tried"`
	Same    int     `json:"same"`
	Untried int     `json:"untried"` // refused after the policy permitted them, without a record of the input
	Groups  []Group `json:"groups"`
	Flips   []Flip  `json:"flips"` // in the order of time
}

// Run tries the rules on the decisions in some ledgers: those of tasks, and those of agents, which say what their actions
// change. What an agent was granted by itself counts as it is recorded. Trust is learned again from the outcomes in these
// ledgers, and what is left of a budget is counted again.
func Run(cfg Config, ledgers []*ledger.Exported) (*Report, error) {
	t := &trial{cfg: cfg, report: &Report{Version: cfg.Rules.Version(), Groups: []Group{}, Flips: []Flip{}}, agents: map[string]*agent{}, tasks: map[string]*task{}, last: map[string]*decided{}, granted: map[string]bool{}}
	var err error
	if t.model, err = risk.New(risk.Config{}); err != nil {
		return nil, err
	}
	all, err := events(ledgers)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if e := &all[i]; t.held(e) {
			t.granted[e.agent+"/"+e.Action] = true
		}
	}
	for i := range all {
		if err := t.take(&all[i]); err != nil {
			return nil, fmt.Errorf("ledger of %s, record %d: %w", all[i].name(), all[i].seq, err)
		}
	}
	t.finish()
	return t.report, nil
}

// event is an event with where it was recorded, and when by the clock of the store.
type event struct {
	ledger.Event
	agent, task string
	seq, stored int64
}

func (e *event) name() string { return e.agent + "~" + e.task }

// events returns what the ledgers hold, in one order: of time, and where that is the same as recorded.
func events(ledgers []*ledger.Exported) (all []event, err error) {
	for _, x := range ledgers {
		for _, r := range x.Records {
			e, err := ledger.Decode(r.Val)
			if err != nil {
				return nil, fmt.Errorf("ledger of %s~%s, record %d: %w", x.Agent, x.Task, r.Seq, err)
			}
			all = append(all, event{e, x.Agent, x.Task, r.Seq, r.At})
		}
	}
	slices.SortStableFunc(all, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.stored, b.stored), cmp.Compare(a.name(), b.name()), cmp.Compare(a.seq, b.seq))
	})
	return all, nil
}

type trial struct {
	cfg    Config
	model  *risk.Model
	agents map[string]*agent
	tasks  map[string]*task
	last   map[string]*decided // by intent
	order  []*decided

	granted map[string]bool // "agent/action" of which a record says so
	report  *Report
}

type agent struct {
	belief  risk.Belief
	effects map[string]action.Effect
}

type task struct {
	state   engine.TaskState
	granted action.Cost
	held    map[string]action.Cost // by intent, what is reserved for it until it ends
}

// decided is the last decision about an intent.
type decided struct {
	event event
	was   string
	now   policy.Decision
	open  bool // tried on any input
	cost  action.Cost
	ended bool
}

func (t *trial) agent(name string) *agent {
	a := t.agents[name]
	if a == nil {
		a = &agent{belief: t.model.Prior(), effects: map[string]action.Effect{}}
		t.agents[name] = a
	}
	return a
}

func (t *trial) task(e *event) *task {
	k := t.tasks[e.name()]
	if k == nil {
		k = &task{held: map[string]action.Cost{}}
		t.tasks[e.name()] = k
	}
	return k
}

func (t *trial) take(e *event) error {
	switch e.Type {
	case ledger.AgentDeclared:
		return t.declared(e)
	case ledger.BeliefReset:
		return t.reset(e)
	case ledger.Begun:
		t.decide(e, began(e))
		k := t.task(e)
		k.granted = plus(k.granted, e.Reserved)
		k.held[e.Intent] = e.Reserved
	case ledger.ApprovalRequested:
		t.decide(e, Permitted)
	case ledger.Refused:
		switch {
		case e.Code == action.Denied:
			t.decide(e, Denied)
		case slices.Contains(later, e.Code) && e.Action != engine.PlanAction && e.stored >= t.cfg.Since.UnixMicro():
			t.report.Untried++
		}
	case ledger.Settled:
		t.settled(e)
	}
	if len(e.State) > 0 && e.task != "" && strings.HasPrefix(string(e.Type), "task_") {
		return json.Unmarshal(e.State, &t.task(e).state)
	}
	return nil
}

// later are the codes of calls that the policy had permitted.
var later = []action.Code{action.RiskCeiling, action.CostInvalid, action.BudgetExhausted, action.RateLimited, action.NoApprover}

// began says what the policy said of a call that ran: in observe mode it may have been no.
func began(e *event) string {
	for _, f := range e.Waived {
		if f.Code == action.Denied {
			return Denied
		}
	}
	return Permitted
}

func (t *trial) declared(e *event) error {
	var c engine.Card
	if err := json.Unmarshal(e.State, &c); err != nil {
		return fmt.Errorf("card of an agent: %w", err)
	}
	for _, a := range c.Actions {
		t.agent(e.agent).effects[a.Name] = a.Effect
	}
	return nil
}

func (t *trial) reset(e *event) error {
	a := t.agent(e.agent)
	for _, c := range e.Changes {
		if c.Belief == "trust" {
			a.belief = t.model.ResetTrust(a.belief)
		} else {
			a.belief = t.model.Reset(a.belief, c.Belief)
		}
	}
	return nil
}

// settled learns of an end, and counts its cost.
func (t *trial) settled(e *event) {
	a, k := t.agent(e.agent), t.task(e)
	if o := e.Learned; o != nil && o.Declared > 0 {
		seen := risk.Observation{Err: o.Err, Cost: o.Cost}
		seen.Skip[action.Duration] = o.Untimed
		if next, _, err := t.model.Update(a.belief, risk.Declaration{Name: o.Action, Risk: o.Declared, Tags: o.Tags}, seen); err == nil {
			a.belief = next // what the model cannot take, the engine did not learn either
		}
	}
	if held, ok := k.held[e.Intent]; ok { // planning too, and what began before the first decision that is tried
		delete(k.held, e.Intent)
		k.granted = plus(engine.Beyond(k.granted, held), e.Charged)
	}
	if d := t.last[e.name()+"\n"+e.Intent]; d != nil {
		d.cost, d.ended = e.Charged, true
	}
}

// decide tries the rules on a call. A decision about the same call that comes later replaces the earlier one.
// What no policy was asked about is no decision of one.
func (t *trial) decide(e *event, was string) {
	if e.Action == engine.PlanAction || e.Action == "" {
		return
	}
	q, open := t.request(e)
	d := t.answer(&q, e)
	if e.stored < t.cfg.Since.UnixMicro() {
		return
	}
	key := e.name() + "\n" + e.Intent
	have := t.last[key]
	if have == nil {
		have = &decided{}
		t.last[key] = have
		t.order = append(t.order, have)
	}
	*have = decided{event: *e, was: was, now: d, open: open}
}

func (t *trial) request(e *event) (policy.Request, bool) {
	a, k := t.agent(e.agent), t.task(e)
	q := policy.Request{
		Agent: e.agent, Action: e.Action, Version: e.Version, Declared: 3, Effective: 3, Provenance: e.Provenance, Effect: a.effects[e.Action], Tool: e.Tool,
		Trust: t.model.Trust(a.belief).Score, Left: k.left(), Tenant: k.state.Tenant, Now: e.stored,
	}
	if r := e.Risk; r != nil {
		q.Declared, q.Effective = r.Declared, r.Effective
	}
	doc, f := schema.Canonical(e.Input, len(e.Input)+1)
	if q.AnyInput = len(e.Input) == 0 || f != nil; !q.AnyInput {
		q.Input = doc.Tree()
	}
	return q, q.AnyInput
}

// answer asks the rules beside what the agent, and everybody it works for, was granted.
func (t *trial) answer(q *policy.Request, e *event) policy.Decision {
	d := policy.Evaluate(t.beside(e.agent, e.Action, t.held(e)), *q)
	for _, b := range t.task(e).state.Bounds {
		if !d.Permit {
			return d
		}
		up := *q
		up.Agent = b.Agent
		passed := slices.Contains(b.Granted, e.Action)
		if !passed && !slices.Contains(b.Held, e.Action) {
			continue // what it does not pass on is no matter of rules
		}
		if x := policy.Evaluate(t.beside(b.Agent, e.Action, passed), up); !x.Permit {
			d.Permit, d.Reason = false, "agent "+b.Agent+", for which it works: "+x.Reason
		} else if d.Ask == "" {
			d.Ask = x.Ask
		}
	}
	return d
}

// beside is the rules beside a grant of an action to an agent, alone where there is none: a reason names no grant that
// nobody holds.
func (t *trial) beside(agent, act string, granted bool) policy.Policy {
	if !granted {
		return t.cfg.Rules
	}
	return policy.Any(policy.NewGrants(map[string][]string{agent: {act}}), t.cfg.Rules)
}

// held reports whether the agent was granted the action by itself, as the recorded answer says: one of its reasons is the
// grant's. A denial that gives no such reason, since a rule forbade the call, is taken beside what other calls show.
func (t *trial) held(e *event) bool {
	reasons := strings.Split(e.reason(), "; ")
	if slices.Contains(reasons, e.agent+" is granted "+e.Action) {
		return true
	}
	return e.Code == action.Denied && t.granted[e.agent+"/"+e.Action] && !slices.Contains(reasons, e.agent+" has no grant of "+e.Action)
}

// reason is why the policy decided as it did. A call for which a person was asked has it in what that person was shown.
func (e *event) reason() string {
	if e.Policy != nil {
		return e.Policy.Reason
	}
	var shown approval.Request
	if e.Type != ledger.ApprovalRequested || json.Unmarshal(e.State, &shown) != nil {
		return ""
	}
	return shown.Permit
}

// finish compares, and sums up.
func (t *trial) finish() {
	mean := t.means()
	groups := map[[2]string]*Group{}
	for _, d := range t.order {
		t.report.Tried++
		now := d.becomes()
		if now == d.was || now == Asked && d.was == Permitted && d.event.Approval != "" {
			t.report.Same++
			continue
		}
		e := &d.event
		f := Flip{At: time.UnixMicro(e.stored).UTC(), Agent: e.agent, Task: e.task, Intent: e.Intent, Action: e.Action, Was: d.was, Now: now, Reason: d.now.Reason, Cost: d.cost}
		if now == Asked {
			f.Reason = d.now.Ask
		}
		if d.was == Denied {
			f.Cost = mean[e.agent+"/"+e.Action]
		}
		t.report.Flips = append(t.report.Flips, f)
		g := groups[[2]string{f.Was, f.Now}]
		if g == nil {
			g = &Group{Was: f.Was, Now: f.Now}
			groups[[2]string{f.Was, f.Now}] = g
		}
		g.add(f.Cost)
	}
	for _, g := range groups {
		t.report.Groups = append(t.report.Groups, *g)
	}
	slices.SortFunc(t.report.Groups, func(a, b Group) int { return cmp.Or(cmp.Compare(a.Was, b.Was), cmp.Compare(a.Now, b.Now)) })
}

func (d *decided) becomes() string {
	switch {
	case !d.now.Permit:
		return Denied
	case d.open && d.was == Denied:
		return Perhaps
	case d.now.Ask != "":
		return Asked
	}
	return Permitted
}

// means returns what each action of each agent used on average.
func (t *trial) means() map[string]action.Cost {
	sums, counts := map[string]action.Cost{}, map[string]int64{}
	for _, d := range t.order {
		if key := d.event.agent + "/" + d.event.Action; d.ended {
			sums[key] = plus(sums[key], d.cost)
			counts[key]++
		}
	}
	for key, c := range sums {
		for a := range action.AxisCount {
			c = c.With(a, c.Amount(a)/counts[key])
		}
		sums[key] = c
	}
	return sums
}

func (g *Group) add(c action.Cost) {
	g.Count++
	sum, err := g.Cost.Add(c)
	if err != nil {
		g.Mixed = true
		c.Money, c.Currency = 0, ""
		if sum, err = g.Cost.Add(c); err != nil {
			return // beyond all counting
		}
	}
	g.Cost = sum
}

// plus adds costs of one task, which are in one currency.
func plus(a, b action.Cost) action.Cost {
	if sum, err := a.Add(b); err == nil {
		return sum
	}
	return a
}

func (k *task) left() action.Limit {
	l := k.state.Limit
	out := action.Limit{Currency: l.Currency}
	for a, bound := range map[action.Axis]*action.Bound{
		action.Tokens: &out.Tokens, action.Duration: &out.Duration, action.Calls: &out.Calls, action.Bytes: &out.Bytes, action.Money: &out.Money,
	} {
		if n, ok := l.On(a).Get(); ok {
			*bound = action.Max(max(0, n-k.granted.Amount(a)))
		}
	}
	return out
}
