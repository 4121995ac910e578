package engine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// levelSteps is how finely the level cell follows the score: a decision that pins it is refused when the score moves by
// about a quarter of a level. Smaller moves by outcomes not yet folded are seen by [Recheck].
const levelSteps = 4

// step is what folding one outcome did.
type step struct {
	observed   ledger.Observed
	innovation risk.Innovation
}

// foldPending applies pending outcomes, in their order, to a belief.
func foldPending(rules *Rules, agent *Agent, b risk.Belief, pending []txn.Pending) (risk.Belief, []step, error) {
	steps := make([]step, 0, len(pending))
	t, err := rules.Model.Track(b)
	if err != nil {
		return b, nil, fmt.Errorf("pending outcomes of %s: %w", agent.Name, err)
	}
	for _, p := range pending {
		o, err := ledger.DecodeObserved(p.Val)
		if err != nil {
			return b, steps, fmt.Errorf("pending outcome %d of %s: %w", p.Seq, agent.Name, err)
		}
		o.Seq = p.Seq
		in, err := learn(rules, agent, t, o)
		if err != nil {
			return b, steps, fmt.Errorf("pending outcome %d of %s: %w", p.Seq, agent.Name, err)
		}
		steps = append(steps, step{o, in})
	}
	return t.End(), steps, nil
}

// learn folds one outcome. What the model cannot take of it (a currency that differs from the declared one, tags beyond
// what it is configured for) must not keep the rest from being learned. Money in another currency is not known in this one,
// which is not to say that nothing was spent.
func learn(rules *Rules, agent *Agent, t *risk.Tracker, o ledger.Observed) (risk.Innovation, error) {
	d := declarationOf(rules, agent, o)
	seen := risk.Observation{Err: o.Err, Cost: o.Cost}
	seen.Skip[action.Duration] = o.Untimed
	in, err := t.Observe(d, seen)
	if errors.Is(err, action.ErrCurrency) {
		seen.Cost.Money, seen.Cost.Currency, seen.Skip[action.Money] = 0, "", true
		in, err = t.Observe(d, seen)
	}
	if err != nil && len(d.Tags) > 0 {
		d.Tags = nil
		in, err = t.Observe(d, seen)
	}
	return in, err
}

// learnOne is what one outcome makes of a belief.
func learnOne(rules *Rules, agent *Agent, b risk.Belief, o ledger.Observed) (risk.Belief, risk.Innovation, error) {
	t, err := rules.Model.Track(b)
	if err != nil {
		return b, risk.Innovation{}, err
	}
	in, err := learn(rules, agent, t, o)
	if err != nil {
		return b, in, err
	}
	return t.End(), in, nil
}

// declarationOf returns the declaration under which an action was observed: level and tags are those recorded with the
// outcome, so that workers that hold another version of the action, or do not hold it, fold alike. The estimate is that of
// the action where this worker holds it.
func declarationOf(rules *Rules, agent *Agent, o ledger.Observed) risk.Declaration {
	d := risk.Declaration{Name: o.Action, Risk: o.Declared, Tags: o.Tags}
	if a := agent.Actions[o.Action]; a != nil {
		d.Estimate = a.Estimate
		if o.Declared == 0 {
			d = a.Declaration()
		}
	}
	if d.Risk < 1 || d.Risk > 5 {
		d.Risk = 3
	}
	if rules.Model.Check(d) != nil {
		d.Tags = nil
	}
	return d
}

// Fold moves the pending outcomes of the snapshot into the stored beliefs, by compare-and-set on their shared block. Nil
// where nothing is pending.
func Fold(rules *Rules, agent *Agent, snap *txn.Snapshot, at int64) (*txn.Txn, error) {
	t, _, err := FoldOn(nil, rules, agent, snap, at)
	return t, err
}

// FoldOn is Fold for who folded last, and remembers what it folds: that counts once the transaction is accepted. One at a
// time may fold on what was folded last.
func FoldOn(last *Folded, rules *Rules, agent *Agent, snap *txn.Snapshot, at int64) (*txn.Txn, *Folded, error) {
	if len(snap.Pending) == 0 {
		return nil, last, nil
	}
	l, err := Learn(last, rules, agent, &snap.Agent, snap.Pending)
	if err != nil {
		return nil, nil, err
	}
	t, now := l.Txn(&snap.Agent, at)
	return t, now, nil
}

// Lesson is what pending outcomes teach: a fold on the way.
type Lesson struct {
	rules   *Rules
	agent   *Agent
	last    *Folded
	trust   txn.Cell // it was learned on
	after   risk.Belief
	steps   []step
	pending []txn.Pending
}

// Learn begins a fold: it works out what the pending outcomes, of which there are some, make of the belief that the agent's
// cells hold. Of them it keeps nothing, and none is looked at where what was folded last is what they hold.
func Learn(last *Folded, rules *Rules, agent *Agent, sp *txn.Space, pending []txn.Pending) (*Lesson, error) {
	before, err := last.beliefs(rules, sp)
	if err != nil {
		return nil, err
	}
	l := &Lesson{rules: rules, agent: agent, last: last, trust: sp.Cells[cellTrust], pending: pending}
	l.after, l.steps, err = foldPending(rules, agent, before, pending)
	return l, err
}

// Stands reports whether the agent's cells still hold what was learned on.
func (l *Lesson) Stands(sp *txn.Space) bool { return sp.Cells[cellTrust].Ver == l.trust.Ver }

// Txn ends the fold, see [FoldOn]. The cells must hold what was learned on, which the transaction expects too.
func (l *Lesson) Txn(sp *txn.Space, at int64) (*txn.Txn, *Folded) {
	e := foldedEvent(l.rules, l.agent, l.pending, l.after, l.steps, at)
	lv := l.last.levels(l.rules, l.agent, sp)
	cells, wrote := beliefCells(l.rules, l.agent, sp, l.after, e.Outcomes, lv)
	t := &txn.Txn{Agent: l.agent.Name, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: cellTrust, N: l.trust.Ver})
	t.Add(txn.Clause{Op: txn.Event, Scope: txn.Agent, Val: eventText(&e)})
	t.Add(cells...)
	t.Add(txn.Clause{Op: txn.Trim, Scope: txn.Agent, N: e.ToSeq})
	if l.rules.Show {
		t.Add(shown(l.rules, l.agent, sp, l.after, l.steps, at)...)
	}
	now := &Folded{belief: l.after, lv: lv, outcomes: e.Outcomes, wrote: wrote}
	now.shared = txn.Cell{Ver: l.trust.Ver + 1, Val: cells[0].Val} // the shared block comes first
	return t, now
}

// foldedEvent says which outcomes were folded, and which of them changed a belief enough to be shown.
func foldedEvent(rules *Rules, agent *Agent, pending []txn.Pending, after risk.Belief, steps []step, at int64) ledger.Event {
	e := ledger.Event{V: ledger.Version, Type: ledger.BeliefsFolded, At: at, Agent: agent.Name, Version: rules.Estimator, FromSeq: pending[0].Seq, ToSeq: lastSeq(pending)}
	e.Outcomes = make([]ledger.Observed, 0, len(steps))
	for _, s := range steps {
		e.Outcomes = append(e.Outcomes, s.observed)
		if s.innovation.Flag {
			e.Changes = append(e.Changes, changeOf(rules, after, declarationOf(rules, agent, s.observed), s.innovation))
		}
	}
	return e
}

func changeOf(rules *Rules, b risk.Belief, d risk.Declaration, in risk.Innovation) ledger.Change {
	e := rules.Model.Risk(b, d)
	c := ledger.Change{Belief: d.Name, Was: in.ScoreBefore, Now: in.ScoreAfter, Level: risk.Level(in.ScoreAfter), P: e.P, Lo: e.Lo, Hi: e.Hi, N: e.N}
	c.Reason = "surprise of " + strconv.FormatFloat(in.Surprise, 'f', 2, 64) + " nats"
	if in.Change != "" {
		c.Reason = "change detected: " + string(in.Change)
	} else if in.AgentChange != "" {
		c.Reason = "change of the agent detected: " + string(in.AgentChange)
	}
	return c
}

// beliefCells writes the shared block, the blocks that the outcomes touched, and the level cells that moved, of which it
// returns the names too: those of other actions as well, which share a part of their risk with the ones that ran.
func beliefCells(rules *Rules, agent *Agent, sp *txn.Space, b risk.Belief, outcomes []ledger.Observed, lv *levels) ([]txn.Clause, map[string]string) {
	var c changes
	c.put(txn.Agent, cellTrust, string(b.Shared()))
	done := map[string]risk.Declaration{}
	for _, o := range outcomes {
		if _, is := done[o.Action]; is {
			continue
		}
		if a := agent.Actions[o.Action]; a != nil {
			done[o.Action] = a.Declaration()
		} else {
			done[o.Action] = declarationOf(rules, agent, o)
		}
		if block, ok := b.Action(o.Action); ok {
			c.put(txn.Agent, cellBelief+o.Action, string(block))
		}
	}
	moved := lv.moved(rules, sp, b, done)
	if len(moved) > 0 {
		for _, name := range slices.Sorted(maps.Keys(moved)) {
			c.put(txn.Agent, cellLevel+name, moved[name])
		}
	}
	return c.list, moved
}

// learned returns the risk that outcomes alone speak for.
func learned(rules *Rules, b risk.Belief, d risk.Declaration) float64 {
	return rules.Model.Risk(b, d).Effective(0, 0)
}

func levelText(score float64) string {
	return strconv.FormatFloat(math.Floor(score*levelSteps)/levelSteps, 'f', 2, 64)
}

// FoldLedger derives the state of a task, and what it added to its agent's, from the task's ledger alone; of an agent's own
// ledger, the state that follows from that. Where its beginning was pruned it goes on from what the checkpoint carries over.
func FoldLedger(records []txn.Stored) (txn.State, error) { return foldFrom(records, len(records)) }

// foldFrom is FoldLedger of the first n records; the checkpoint may come behind them.
func foldFrom(records []txn.Stored, n int) (txn.State, error) {
	s := txn.NewState()
	before, err := carriedIn(records)
	if err != nil {
		return s, err
	}
	if before != nil {
		s.Agent = before.space()
	}
	intents := map[string]*ledger.Event{}
	for _, r := range records[:n] {
		e, err := ledger.Decode(r.Val)
		if err != nil {
			return s, fmt.Errorf("record %d: %w", r.Seq, err)
		}
		id := e.Intent
		if id == "" {
			id = cellChild + e.Child
		}
		if needsHeld(e.Type) && intents[id] == nil {
			return s, fmt.Errorf("record %d: %s of %q, which no record begins", r.Seq, e.Type, id)
		}
		s.Replay(changesOf(&e, intents[id], r.Val), r.At)
		switch e.Type {
		case ledger.ChildQueued, ledger.ChildGranted, ledger.ChildEnded, ledger.ChildCharged:
			intents[id] = &e
		case ledger.Begun:
			intents[e.Intent] = &e
		case ledger.Attempt:
			intents[e.Intent] = Continued(intents[e.Intent], &e)
		}
	}
	return s, nil
}

// needsHeld reports whether what an event changes depends on what its intent holds.
func needsHeld(t ledger.Type) bool {
	switch t {
	case ledger.Attempt, ledger.Settled, ledger.Resolved, ledger.ChildEnded, ledger.ChildCharged:
		return true
	}
	return false
}

// FoldBeliefs derives the beliefs of an agent from the agent's own ledger, see [BeliefFold].
func FoldBeliefs(rules *Rules, agent *Agent, records []txn.Stored) (risk.Belief, error) {
	f, err := NewBeliefFold(rules, agent, records)
	if err != nil {
		return rules.Model.Prior(), err
	}
	err = f.Add(records)
	return f.belief, err
}

func reset(rules *Rules, b risk.Belief, name string) risk.Belief {
	if name == "" {
		return rules.Model.ResetTrust(b)
	}
	return rules.Model.Reset(b, name)
}

// Seal links records that are not yet part of the hash chain, from the link of the record before the first. Links are a
// function of the records, so two workers that seal the same stretch write the same.
func Seal(agent, task, prev string, records []txn.Stored) (*txn.Txn, string) {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	scope := txn.Task
	if task == "" {
		scope = txn.Agent
	}
	t.Clauses = make([]txn.Clause, 0, len(records))
	p := pieces.Get().(*piece)
	defer pieces.Put(p)
	for _, r := range records {
		if r.Link == "" {
			r.Link = p.end(ledger.AppendLink(p.begin(), prev, r))
			t.Add(txn.Clause{Op: txn.Link, Scope: scope, N: r.Seq, Val: r.Link})
		}
		prev = r.Link
	}
	return t, prev
}
