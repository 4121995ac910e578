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
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// FactsOf builds the prerequisite-legal set from the tokens of a snapshot, in the order in which they were set: a listing
// establishes again what an earlier call had used up.
func FactsOf(agent *Agent, snap *txn.Snapshot) *statespace.Set {
	s := agent.Graph.NewSet()
	fill(s, snap)
	return s
}

func fill(s *statespace.Set, snap *txn.Snapshot) {
	s.Clear()
	for _, f := range earlierOf(snap) {
		s.Put(f.Key, f.At)
	}
	tokens := snap.Task.Tokens
	keys := slices.SortedFunc(maps.Keys(tokens), func(a, b string) int {
		return cmp.Or(cmp.Compare(tokens[a].At, tokens[b].At), cmp.Compare(a, b)) // at one time the listing ("F") comes first
	})
	for _, k := range keys {
		noteFact(s, k, tokens[k])
	}
}

// NoteFacts keeps the set up to date with an accepted transaction, visiting only the dependents of what it touched. Where
// listings are concerned it is filled anew: which of a listing and a use of one of its values counts is a matter of their
// stamps.
func NoteFacts(s *statespace.Set, snap *txn.Snapshot, cs []txn.Clause) {
	for i := range cs {
		c := &cs[i]
		if c.Scope != txn.Task || c.Op != txn.Set && c.Op != txn.Take {
			continue
		}
		used := c.Op == txn.Set && c.To != held || c.Op == txn.Take && c.To == "" // out of a listing, or given back to it
		if strings.HasPrefix(c.Key, tokenBulk) || used && strings.HasPrefix(c.Key, tokenFact) {
			fill(s, snap)
			return
		}
		noteFact(s, c.Key, snap.Task.Tokens[c.Key])
	}
}

func noteFact(s *statespace.Set, key string, t txn.Token) {
	if set, ok := strings.CutPrefix(key, tokenBulk); ok {
		var values []string
		if json.Unmarshal([]byte(t.Val), &values) == nil {
			s.RemoveBulk(set)
			s.PutBulk(set, values, t.At)
		}
		return
	}
	fact, ok := strings.CutPrefix(key, tokenFact)
	switch {
	case !ok:
	case t.State == held:
		s.Put(fact, t.At)
	default:
		s.Use(fact)
	}
}

// Guidance is what the planner should know before a refusal tells it.
func Guidance(v *View, repeats int) []string {
	if v.Task.Status == Paused {
		return []string{"The task is paused until a person has looked at it: nothing can be done now."}
	}
	acc := v.Account()
	share, _ := acc.Share()
	p := budget.Progress{Share: share, Attempts: int(v.Runs()), Facts: v.Facts()}
	return budget.Guidance(acc, p, repeats)
}

// Differences says how the later offer differs from the earlier, in words that name nothing a planner was never offered.
func Differences(earlier, later action.Offer) string {
	var out []string
	for _, o := range earlier.Actions {
		switch n, ok := later.Find(o.Name); {
		case !ok:
			out = append(out, fmt.Sprintf("%s is no longer available", o.Name))
		case n.Status != o.Status:
			out = append(out, fmt.Sprintf("%s is now %s", o.Name, n.Status))
		case string(n.Schema) != string(o.Schema):
			out = append(out, fmt.Sprintf("%s accepts other values now", o.Name))
		}
	}
	for _, o := range later.Actions {
		if _, ok := earlier.Find(o.Name); !ok {
			out = append(out, fmt.Sprintf("%s is available now", o.Name))
		}
	}
	return strings.Join(out, "; ")
}

// Standing says how one action stands for the agent now, with every reason. It is for operators: it names what a planner
// must not know.
type Standing struct {
	Action   string
	Status   action.Status
	Reasons  []string // why it is blocked, or gated
	Risk     ledger.RiskShown
	Forecast action.Cost
	Priced   []string        // the axes on which only an input says what a call costs; nothing is forecast there
	Path     statespace.Path // what would make it legal, where prerequisites are missing
	Asks     []string        // the per-argument rules that make some inputs of a legal action need an approval
}

// Stand evaluates gates 2 and 4 to 8 for an action without an input. On axes on which only an input says what a call costs it
// is taken to cost nothing: some call of it may.
func Stand(rules *Rules, agent *Agent, v *View, set *statespace.Set, name string, now int64) Standing {
	st := Standing{Action: name, Status: action.Blocked}
	a := agent.Actions[name]
	if a == nil {
		st.Reasons = []string{fmt.Sprintf("agent %q has no action %q", agent.Name, name)}
		return st
	}
	r := &round{rules: rules, agent: agent, view: v, act: a, call: &Call{Now: now, Intent: action.Intent{Agent: agent.Name, Task: v.Task.ID, Action: name}}}
	if f := r.taskRuns(); f != nil {
		st.Reasons = append(st.Reasons, f.Explain())
	}
	if f := r.notHalted(); f != nil {
		st.Reasons = append(st.Reasons, f.Explain())
	}
	if f := r.actionExists(); f != nil {
		st.Reasons = append(st.Reasons, f.Explain())
	}
	if !set.Fresh(name, now) {
		unmet, _ := agent.Graph.Explain(name, set, now) // the action is known
		for _, u := range unmet {
			st.Reasons = append(st.Reasons, u.String())
		}
		st.Path, _ = agent.Graph.Path(name, set, now, nil)
	}
	if r.policy = r.permits(true); !r.policy.Permit {
		st.Reasons = append(st.Reasons, "no permission: "+r.policy.Reason)
	}
	st.Risk = r.assess()
	r.shown = st.Risk
	if c := v.Task.Ceiling; c > 0 && st.Risk.Effective > c {
		st.Reasons = append(st.Reasons, fmt.Sprintf("effective risk %.2f is above the ceiling %.2f", st.Risk.Effective, c))
	}
	grant, no := afford(rules, v, a, a.free(), r.said())
	st.Forecast, st.Priced = grant.Reserved, a.pricedOn()
	if id, full := v.poolFor(grant.Reserved, now); no == nil && full != nil {
		st.Reasons = append(st.Reasons, "budget pool "+id+": "+full.Message)
	}
	if no != nil {
		st.Reasons = append(st.Reasons, "budget: "+no.Message)
	}
	why := r.whyApproval()
	switch {
	case len(st.Reasons) > 0:
	case len(why) == 0:
		st.Status, st.Asks = action.Legal, a.ask(v.Task.Threshold)
	case r.throughGlass():
		st.Status = action.Legal
	case rules.unreachable(&v.Task, a) != "":
		st.Reasons = append(why, string(action.NoApprover)+": "+rules.unreachable(&v.Task, a))
	default:
		st.Status, st.Reasons = action.Gated, why
	}
	return st
}

// Offer returns what exists for the planner now, in declaration order. In observe mode nothing is withheld but what the
// task itself cannot run.
func Offer(rules *Rules, agent *Agent, v *View, set *statespace.Set, now int64) ([]action.Offered, error) {
	return offerOf(rules, agent, v, set, now, func(agent *Agent, name string, now int64) (json.RawMessage, bool, error) {
		return narrow(agent.Actions[name], set, now)
	})
}

// narrower returns the schema of an action for the planner, and whether anything satisfies its prerequisites.
type narrower func(agent *Agent, name string, now int64) (text json.RawMessage, possible bool, err error)

func offerOf(rules *Rules, agent *Agent, v *View, set *statespace.Set, now int64, narrow narrower) ([]action.Offered, error) {
	var out []action.Offered
	names := set.Names()
	if rules.Observe {
		names = agent.Graph.Names()
	}
	for _, name := range names {
		st := Stand(rules, agent, v, set, name, now)
		if rules.Observe && v.Task.Status == Running && v.Halted() == nil {
			st.Status = action.Legal
		}
		if st.Status == action.Blocked {
			continue
		}
		a := agent.Actions[name]
		if rules.Observe { // calls that nothing satisfies pass too
			out = append(out, offered(a, st, a.Input.JSON()))
			continue
		}
		text, possible, err := narrow(agent, name, now)
		if err != nil {
			return nil, fmt.Errorf("action %q: narrow its schema: %w", name, err)
		}
		if possible { // else nothing that the prerequisites allow is an input at all
			out = append(out, offered(a, st, text))
		}
	}
	return out, nil
}

// together leaves of needs that bind the same fields the values that satisfy all of them; possible is false where there
// are none. Needs that bind other fields are narrowed each on its own.
func together(allowed []statespace.Allowed) (out []statespace.Allowed, possible bool) {
	for _, a := range allowed {
		same := func(b statespace.Allowed) bool { return b.Tuples != nil && slices.Equal(a.Fields, b.Fields) }
		i := slices.IndexFunc(out, same)
		if i < 0 || a.Tuples == nil {
			out = append(out, a)
			continue
		}
		out[i].Tuples = slices.DeleteFunc(slices.Clone(out[i].Tuples), func(t []string) bool {
			return !slices.ContainsFunc(a.Tuples, func(u []string) bool { return slices.Equal(t, u) })
		})
		if len(out[i].Tuples) == 0 {
			return nil, false
		}
	}
	return out, true
}

func offered(a *Action, st Standing, text json.RawMessage) action.Offered {
	o := action.Offered{
		Name: a.Name, Version: a.Version, Description: a.Description, Schema: text, Status: st.Status,
		Risk: st.Risk.Effective, Forecast: st.Forecast, Priced: st.Priced, Effect: a.Effect,
	}
	switch {
	case st.Status == action.Gated:
		o.Why = "a person will be asked to approve it"
	case len(st.Asks) > 0:
		o.Why = "some inputs need an approval: " + strings.Join(st.Asks, ", ")
	}
	return o
}

// narrowed restricts the schema to the values that satisfy the prerequisites, where they are few.
func narrowed(a *Action, allowed []statespace.Allowed) (json.RawMessage, error) {
	var few []schema.Allowed
	for _, w := range allowed {
		if w.Tuples == nil {
			continue
		}
		n := schema.Allowed{Fields: w.Fields}
		for _, t := range w.Tuples {
			tuple := make([]json.RawMessage, len(t))
			for i, v := range t {
				tuple[i] = json.RawMessage(v)
			}
			n.Tuples = append(n.Tuples, tuple)
		}
		few = append(few, n)
	}
	if len(few) == 0 {
		return a.Input.JSON(), nil
	}
	return schema.Narrow(a.Input, few)
}
