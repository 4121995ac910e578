package engine

import (
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// known keeps what a belief says, action by action, as long as it stays the same: every gate that looks at risk asks the
// same. It is handed on from view to view under the agent's lock; a view that leaves the lock leaves it behind.
type known struct {
	gen     int64 // of the belief that it is about
	actions map[string]*saying
	trust   float64
	trusted int64 // generation of trust
}

// saying is what a belief says of one action.
type saying struct {
	risk, costs, permits int64 // generations of what follows

	estimate risk.Estimate
	forecast budget.Forecast
	permit   policy.Decision  // of the grants, of a call that no rule raises
	by       *Agent           // whose grants they are
	shown    ledger.RiskShown // of a call that no rule raises, as it was asked for last
	text     string           // of it
	begins   begins
}

// said returns what is kept of the round's action, nil where nothing may be.
func (r *round) said() *saying {
	if !r.asked {
		r.asked, r.saying = true, r.view.keeps(r.act.Name)
	}
	return r.saying
}

// risk returns the estimate of the risk of the round's action.
func (r *round) risk() *risk.Estimate { return r.view.estimate(r.rules, r.act, r.said()) }

// shownText returns the text of what is shown of an action's risk, "" where none is kept.
func (s *saying) shownText(shown *ledger.RiskShown) string {
	if s == nil || shown.Rule != "" {
		return ""
	}
	if s.text != "" && s.shown == *shown {
		return s.text
	}
	var room [256]byte
	b, ok := ledger.AppendRisk(room[:0], shown)
	if !ok {
		return ""
	}
	s.shown, s.text = *shown, string(b)
	return s.text
}

// believe gives the view a belief, and makes what was kept of the one before outdated.
func (v *View) believe(b risk.Belief) {
	v.Beliefs = b
	if v.known == nil {
		v.known = &known{actions: map[string]*saying{}}
	}
	v.known.gen++
	v.gen = v.known.gen
}

// Apart returns the view for use outside the lock of the agent, beside a snapshot of its own.
func (v *View) Apart(snap *txn.Snapshot) *View {
	apart := *v
	apart.Snap, apart.known = snap, nil
	return &apart
}

// On returns the view beside another snapshot that holds the same, under the lock.
func (v *View) On(snap *txn.Snapshot) *View {
	on := *v
	on.Snap = snap
	return &on
}

// keeps returns what is kept of an action, nil where nothing may be.
func (v *View) keeps(name string) *saying {
	k := v.known
	if k == nil || k.gen != v.gen {
		return nil
	}
	s := k.actions[name]
	if s == nil {
		s = &saying{}
		k.actions[name] = s
	}
	return s
}

// Risk returns the estimate of an action's risk.
func (v *View) Risk(rules *Rules, a *Action) risk.Estimate {
	return *v.estimate(rules, a, v.keeps(a.Name))
}

func (v *View) estimate(rules *Rules, a *Action, s *saying) *risk.Estimate {
	if s == nil {
		e := rules.Model.Risk(v.Beliefs, a.Declaration())
		return &e
	}
	if s.risk != v.gen {
		s.risk, s.estimate = v.gen, rules.Model.Risk(v.Beliefs, a.Declaration())
	}
	return &s.estimate
}

// trust returns the agent's trust.
func (v *View) trust(rules *Rules) float64 {
	k := v.known
	if k == nil || k.gen != v.gen {
		return rules.Model.Trust(v.Beliefs).Score
	}
	if k.trusted != v.gen {
		k.trusted, k.trust = v.gen, rules.Model.Trust(v.Beliefs).Score
	}
	return k.trust
}

// forecast returns what the next call of the action is expected to cost.
func (v *View) forecast(rules *Rules, a *Action, s *saying) budget.Forecast {
	if s == nil {
		return forecastOf(rules, v, a)
	}
	if s.costs != v.gen {
		s.costs, s.forecast = v.gen, forecastOf(rules, v, a)
	}
	return s.forecast
}

// TailKept is how many successes may wait to be folded while decisions go on without them: they lower risk and raise
// trust, and by no more than as many can. A failure is never left out of a decision.
const TailKept = 16

// mayWait reports whether a decision may leave the outcomes out.
func mayWait(tail []txn.Pending) bool {
	if len(tail) > TailKept {
		return false
	}
	for i := range tail {
		if Failed(tail[i].Val) {
			return false
		}
	}
	return true
}

// Successes returns how many outcomes came after the given sequence number, where a decision may leave all that wait out;
// -1 where it may not.
func Successes(tail []txn.Pending, after int64) (n int64) {
	if !mayWait(tail) {
		return -1
	}
	for i := range tail {
		if tail[i].Seq > after {
			n++
		}
	}
	return n
}

// Failed reports whether the text of a pending outcome tells of anything but a success.
func Failed(pending string) bool {
	return strings.Contains(pending, `"err":true`) // no name holds a quote
}

// Folded is what a worker folded itself: the belief that the cells hold while their shared one is this.
type Folded struct {
	shared txn.Cell
	belief risk.Belief

	// For the next fold: where levels are, once it has followed what this one wrote.
	lv       *levels
	outcomes []ledger.Observed
	wrote    map[string]string
}

// levels are those of the cells of an agent, which hold what was folded last if anybody remembers that.
func (f *Folded) levels(rules *Rules, agent *Agent, sp *txn.Space) *levels {
	if f == nil || f.lv == nil || f.lv.agent != agent || f.shared.Ver == 0 || sp.Cells[cellTrust] != f.shared {
		b, _ := f.beliefs(rules, sp) // was read before
		return newLevels(rules, agent, sp, b)
	}
	f.lv.follow(rules, sp, f.outcomes, f.wrote)
	f.outcomes, f.wrote = nil, nil
	return f.lv
}

// Remember tells the view what cells hold that the worker wrote itself, so that they need not be decoded.
func (v *View) Remember(f *Folded) {
	if v != nil && f != nil {
		v.folded = f
	}
}

// Current returns the one cell that a fold on what was folded last learns from, where it is still what the agent's cells
// hold.
func (f *Folded) Current(sp *txn.Space) (only txn.Space, ok bool) {
	if f == nil || f.shared.Ver == 0 || sp.Cells[cellTrust] != f.shared {
		return only, false
	}
	return txn.Space{Cells: map[string]txn.Cell{cellTrust: f.shared}}, true
}

// beliefs returns what the cells of an agent hold.
func (f *Folded) beliefs(rules *Rules, sp *txn.Space) (risk.Belief, error) {
	if f != nil && f.shared.Ver > 0 && sp.Cells[cellTrust] == f.shared {
		return f.belief, nil
	}
	return storedBeliefs(rules, sp)
}

// CountFacts returns how many of the facts that the clauses write there are.
func CountFacts(task *txn.Space, cs []txn.Clause) (n int) {
	for i := range cs {
		c := &cs[i]
		if c.Scope == txn.Task && (c.Op == txn.Set || c.Op == txn.Take) && strings.HasPrefix(c.Key, tokenFact) {
			if _, has := task.Tokens[c.Key]; has {
				n++
			}
		}
	}
	return n
}

// firstUnknown names one of the intents of unknown outcome behind a key.
func firstUnknown(tokens map[string]txn.Token, key string) (intent string) {
	for k, t := range tokens {
		if id, ok := strings.CutPrefix(k, tokenUnknown); ok && slices.Contains(strings.Split(t.Val, "\n"), key) && (intent == "" || id < intent) {
			intent = id
		}
	}
	return intent
}
