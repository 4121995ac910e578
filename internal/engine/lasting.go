package engine

import "github.com/seed-ab2cfece/delta-agents/ledger"

// Lasting is the verdict that a call of an action would begin, where that rests on nothing of the call but that its input
// is valid. It holds for every such call for as long as the snapshot stays the same and its time has not come; so does the
// text of the event, but for what is the call's own.
type Lasting struct {
	form  ledger.Form
	until int64 // store time from which it does not hold, µs; 0: it does at any time
}

// Until returns the store time from which the verdict does not hold any more, µs, 0 for none.
func (l *Lasting) Until() int64 { return l.until }

// Append appends the event that a begin of the call would write to dst, as [Preview] does.
func (l *Lasting) Append(dst []byte, e *ledger.Entry) []byte { return l.form.Append(dst, e) }

// Last returns the verdict on the call as one on every call of its action, nil where it is none.
func Last(rules *Rules, agent *Agent, view *View, call *Call) *Lasting {
	r := newRound(rules, agent, view, call)
	defer r.done()
	if !r.general() || r.pass() != nil || !r.simple() {
		return nil
	}
	g, l := r.preview(), &Lasting{until: view.Task.Deadline}
	r.begun(g)
	if !l.form.Set(&g.event, r.riskText(&g.event)) {
		return nil
	}
	return l
}

// general reports whether no gate looks at more of the call than its action, and at no time but the task's deadline.
func (r *round) general() bool {
	if r.act == nil || r.rules.Policy != nil || len(r.act.Rules) > 0 || r.act.priced() || len(r.view.Task.Bounds) > 0 {
		return false
	}
	if r.view.Snap.Task.Counters[r.act.unsure()] > 0 { // then it matters which input
		return false
	}
	c := r.call
	if c.Veil != nil || c.Barred != nil || c.Wants != nil || c.Edge != nil || c.Rule != 0 || c.Named != "" || c.Costly != nil || c.Resume || c.Leased || c.Again {
		return false
	}
	reads, _, _ := r.agent.Graph.Reads(r.act.Name)
	return !reads && !r.agent.Graph.Timed(r.act.Name)
}

// simple reports whether what the gates found, none of which refused, is the same for the next call.
func (r *round) simple() bool {
	return len(r.claims)+len(r.pools)+len(r.limits)+len(r.waived)+len(r.closing) == 0 && r.lease == nil &&
		r.glass == nil && r.expires == 0 && r.ask == nil && r.parked == "" && r.lookup == ""
}

// Mark tells views apart that a verdict may rest on: two views of a task with the same mark, beside the same snapshot, say
// the same.
type Mark struct {
	known                 *known
	gen, taskVer, haltVer int64
}

// Mark returns the mark of the view.
func (v *View) Mark() Mark { return Mark{v.known, v.gen, v.taskVer, v.haltVer} }
