package workflow

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// maxUndo is how often an undoing that did not start is tried before a person is asked.
const maxUndo = 3

// did records an effect that completed.
func (m *machine) did(d Deed) {
	if d.Child == "" && d.Effect == action.None {
		return // it only read
	}
	m.s.Deeds = append(slices.Clip(m.s.Deeds), d)
}

// perhaps records a call that was broken off and may have taken effect. The same call once more takes the place of it.
func (m *machine) perhaps(i int, o action.Outcome) {
	st := &m.s.Steps[i]
	if o.Code == action.Timeout || o.Code == action.Interrupted || o.Code == action.Panicked {
		m.again(i)
		m.did(Deed{Step: st.Name, Call: st.Call, Intent: o.Intent, Action: m.d.nodes[i].Action, Effect: st.Effect, Input: st.Proposal, Maybe: true})
	}
	if open := o.Code == action.StartedUnknown || o.Code == action.InFlight; !o.OK() && !open && o.Code.Info().Executed != action.No {
		st.Touched = st.Touched || st.Effect == action.Irreversible
	}
}

// again forgets what a call may have effected that is made again.
func (m *machine) again(i int) {
	st := &m.s.Steps[i]
	m.s.Deeds = slices.DeleteFunc(slices.Clone(m.s.Deeds), func(d Deed) bool {
		return d.Maybe && d.Step == st.Name && d.Effect.Repeatable() && bytes.Equal(d.Input, st.Proposal)
	})
}

// undoable reports whether something is declared that undoes a deed. What an action declares takes its output.
func (m *machine) undoable(d Deed) bool {
	return m.d.nodes[m.d.at[d.Step]].Undo != nil || d.Child != "" || d.Effect == action.Compensatable && !d.Maybe
}

// spoiled reports whether a phase cannot be made as if it had not begun: something of it stands, or may, that may not be
// repeated.
func (m *machine) spoiled(k int) bool {
	ps := &m.s.Phases[k]
	return slices.ContainsFunc(m.s.Left[min(ps.Left, len(m.s.Left)):], func(d Deed) bool { return !d.Effect.Repeatable() }) ||
		slices.ContainsFunc(m.s.Steps[m.d.first[k]:m.d.first[k+1]], func(st StepState) bool { return st.Touched })
}

// willSpoil is spoiled once a phase is undone, as far as that can be foreseen.
func (m *machine) willSpoil(k int) bool {
	deeds := m.s.Deeds[min(m.s.Phases[k].Deeds, len(m.s.Deeds)):]
	return m.spoiled(k) || slices.ContainsFunc(deeds, func(d Deed) bool { return !d.Effect.Repeatable() && !m.undoable(d) })
}

// undo takes back deeds in strict reverse of their completion, one at a time.
func (m *machine) undo() {
	for u := m.s.Unwind; u != nil && len(m.s.Deeds) > u.Down; {
		d := m.s.Deeds[len(m.s.Deeds)-1]
		if !m.undoable(d) {
			why := "its effect is " + d.Effect.String() + ", and the step declares no way to undo it"
			if d.Maybe {
				why = "it was broken off and may have taken effect; " + why
			}
			m.leave(why)
			continue
		}
		m.undoLast()
		return
	}
	m.undone()
}

// undoLast issues what undoes the last deed.
func (m *machine) undoLast() {
	u, d := m.s.Unwind, m.s.Deeds[len(m.s.Deeds)-1]
	i := m.d.at[d.Step]
	if u.Attempt++; u.Attempt == 1 {
		m.note(i, Entry{Kind: UndoStart, Call: d.Call, Child: d.Child})
	}
	if d.Child != "" {
		m.issue(i, Command{Kind: Unwind, Child: d.Child})
		return
	}
	c := Command{Kind: Compensate, Attempt: u.Attempt, Call: u.Call, Undoes: d.Call, Intent: d.Intent, Input: u.Input}
	if undo := m.d.nodes[i].Undo; undo != nil {
		c.Action = undo.Action
		if input, err := undo.Map.hydrate(m.scopeOf(d)); len(u.Input) > 0 { // a person's word
		} else if err != nil && d.Maybe {
			m.leave(action.Cut("it was broken off and may have taken effect, and what would undo it needs its output: " + err.Error()))
			m.undo()
			return
		} else if err != nil {
			m.notUndone(notRun(action.InputInvalid, "undo step %s: %v", d.Step, err))
			return
		} else {
			c.Input = input
		}
	}
	if id := m.issue(i, c); u.Call == "" {
		u.Call = id
	}
}

// undoneOne goes on with the deed before.
func (m *machine) undoneOne() {
	d := m.s.Deeds[len(m.s.Deeds)-1]
	m.s.Deeds = m.s.Deeds[:len(m.s.Deeds)-1]
	of := func(other Deed) bool { return other.Step == d.Step }
	m.s.Steps[m.d.at[d.Step]].Undone = !slices.ContainsFunc(m.s.Deeds, of) && !slices.ContainsFunc(m.s.Left, of)
	m.s.Unwind.Attempt, m.s.Unwind.Call, m.s.Unwind.Input = 0, "", nil
	m.undo()
}

// leave gives a deed up: nothing undoes it.
func (m *machine) leave(why string) {
	d := m.s.Deeds[len(m.s.Deeds)-1]
	d.Why = why
	m.s.Left = append(slices.Clip(m.s.Left), d)
	m.s.Deeds = m.s.Deeds[:len(m.s.Deeds)-1]
	m.s.Unwind.Attempt, m.s.Unwind.Call, m.s.Unwind.Input = 0, "", nil
	m.note(m.d.at[d.Step], Entry{Kind: UndoLeft, Call: d.Call, Child: d.Child, Text: why})
}

// undone is the end of undoing: of the instance, or of a phase that is run again.
func (m *machine) undone() {
	k := m.s.Unwind.Phase
	m.s.Unwind = nil
	if k < 0 {
		m.end(m.s.Stop.Status)
		return
	}
	if m.s.Stop != nil {
		return
	}
	if m.spoiled(k) {
		m.abandon(k)
		return
	}
	for i := m.d.first[k]; i < m.d.first[k+1]; i++ {
		m.forget(i)
	}
	ps := &m.s.Phases[k]
	ps.Stage = PhaseBackoff
	pause := m.d.spec.Phases[k].Supervision.Backoff.after(ps.Used, m.s.Instance, ps.Name, m.s.Issued)
	m.issue(-1, Command{Kind: Timer, Subject: SubjectBackoff, At: m.s.At + pause})
}

// abandon gives up a phase that was undone to be run again, of which something stands: to run it again would repeat that.
func (m *machine) abandon(k int) {
	f := action.Fail(action.Failed, "phase %s could not be undone, and is not run again", m.s.Phases[k].Name)
	for i := m.d.first[k]; i < m.d.first[k+1]; i++ {
		if st := &m.s.Steps[i]; st.Stage == StageFailed && !m.handled(i) && st.Failure != nil {
			f = st.Failure
		}
	}
	then := AbortSubtree
	if m.d.spec.Phases[k].Supervision.Then == AbortTree {
		then = AbortTree
	}
	m.notePhase(k, Entry{Kind: Supervised, Text: string(then), Failure: f})
	m.s.Tree = then == AbortTree
	m.stop(Stop{Status: Failed, Failure: f})
}

// compensated is how a compensation ended.
func (m *machine) compensated(o action.Outcome) {
	u, d := m.s.Unwind, m.s.Deeds[len(m.s.Deeds)-1]
	i, f := m.d.at[d.Step], failureOf(o)
	m.note(i, Entry{Kind: UndoEnd, Call: d.Call, Code: o.Code, Cost: o.Cost, Failure: o.Failure})
	wait := Wait{Code: o.Code, Reason: f.Message, Approval: f.Approval(), Intent: o.Intent}
	info := o.Code.Info()
	switch {
	case o.OK():
		m.undoneOne()
	case o.Code == action.StartedUnknown, o.Code == action.InFlight && u.Attempt >= maxUndo:
		wait.For = WaitResolution
		m.unwindWaits(wait)
	case o.Code == action.ApprovalRequired:
		wait.For = WaitApproval
		m.unwindWaits(wait)
	case o.Code == action.Denied:
		wait.For, wait.Policy, wait.Reason = WaitPolicy, u.Policy, forbidden(f)
		m.unwindWaits(wait)
	case info.Executed == action.No && info.Retryable && u.Attempt < maxUndo:
		m.undoLater(f)
	default:
		m.notUndone(f)
	}
}

// undoLater tries again after a pause.
func (m *machine) undoLater(f *action.Failure) {
	u := m.s.Unwind
	if f.Code.Info().Gate > 9 || f.Code == action.ApprovalExpired {
		u.Call = "" // its end is recorded under that id
	}
	u.Pausing = true
	m.issue(-1, Command{Kind: Timer, Subject: SubjectBackoff, At: m.s.At + Backoff{}.after(u.Attempt, m.s.Instance, "undo", m.s.Issued)})
}

// notUndone brings a failing compensation before people: nothing before it is undone until they have decided.
func (m *machine) notUndone(f *action.Failure) {
	i := m.d.at[m.s.Deeds[len(m.s.Deeds)-1].Step]
	m.note(i, Entry{Kind: HitlEscalation, Text: "the compensation failed", Code: f.Code, Failure: f})
	m.unwindWaits(Wait{For: WaitOperator, Code: f.Code, Reason: f.Error()})
}

func (m *machine) unwindWaits(w Wait) {
	i := m.d.at[m.s.Deeds[len(m.s.Deeds)-1].Step]
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	st.Issued++
	w.ID, w.Step, w.Since, w.Who = waitID(m.s.Instance, st), n.Name, m.s.At, m.d.helps(n, w.For)
	m.s.Unwind.Wait = &w
	m.note(i, Entry{Kind: HitlPark, Text: string(w.For), Code: w.Code})
}

// childUnwound is how the undoing of a child ended.
func (m *machine) childUnwound(e Event) {
	d := m.s.Deeds[len(m.s.Deeds)-1]
	if e.OK && e.Failure == nil {
		m.note(m.d.at[d.Step], Entry{Kind: UndoEnd, Child: d.Child, Code: action.OK})
		m.leftBy(m.d.at[d.Step], d.Child, e.Left)
		m.undoneOne()
		return
	}
	f := e.Failure
	if f == nil {
		f = action.Fail(action.Failed, "the child could not be undone")
	}
	m.note(m.d.at[d.Step], Entry{Kind: UndoEnd, Child: d.Child, Code: f.Code, Failure: f})
	m.notUndone(f)
}

// unwindGoesOn ends the wait of an undoing.
func (m *machine) unwindGoesOn(w Wait, e Event) Absorbed {
	want := map[EventKind]bool{
		Approval:      w.For == WaitApproval,
		PolicyChanged: w.For == WaitPolicy,
		Amended:       (w.For == WaitPolicy || w.For == WaitOperator) && m.s.Deeds[len(m.s.Deeds)-1].Child == "",
		Resolved:      w.For == WaitResolution,
		Resumed:       w.For == WaitOperator,
	}
	switch {
	case !want[e.Kind]:
		return AbsorbedKind
	case e.Kind == Amended && !json.Valid(e.Output):
		return AbsorbedMalformed
	case e.Kind == PolicyChanged && (e.Text == "" || e.Text == w.Policy):
		return AbsorbedAlready
	}
	u := m.s.Unwind
	if u.Wait = nil; e.Kind == PolicyChanged {
		u.Policy = e.Text
	}
	note := Entry{Kind: Control, Text: string(e.Kind), By: e.By}
	if e.Kind == Amended {
		note.Digest = digestOf(e.Output)
	}
	m.note(m.d.at[w.Step], note)
	switch {
	case e.Kind == Amended:
		u.Attempt, u.Call, u.Input = 0, "", e.Output
		m.undoLast()
	case e.Kind == Resolved && e.OK:
		m.undoneOne()
	case e.Kind == Resumed && e.OK:
		u.Attempt, u.Call = 0, ""
		m.undoLast()
	case e.Kind == Resumed:
		m.leave("its compensation failed, and it was given up: " + w.Reason)
		m.undo()
	case e.Kind == PolicyChanged, e.Kind == Approval && e.OK:
		m.undoLast()
	case e.Kind == Approval && e.Text == Expired && u.Attempt < maxUndo:
		m.undoLater(action.Fail(action.ApprovalExpired, "nobody approved the compensation in time"))
	case e.Kind == Approval && e.Text == Expired:
		m.notUndone(action.Fail(action.ApprovalExpired, "nobody approved the compensation in time"))
	case e.Kind == Approval:
		m.notUndone(action.Fail(action.ApprovalRejected, "a person rejected the compensation"))
	default:
		m.notUndone(action.Fail(action.Failed, "a person says that the compensation did not succeed"))
	}
	return ""
}

// unwound is the parent's wish that an instance that completed undoes itself.
func (m *machine) unwound(e Event) Absorbed {
	switch {
	case m.s.Status == Unwinding:
		return AbsorbedAlready
	case m.s.Status != Completed:
		return AbsorbedEnded
	}
	m.note(-1, Entry{Kind: Control, Text: "unwind", By: e.By})
	m.s.Status, m.s.Output = Unwinding, nil
	m.s.Stop = &Stop{Status: Stopped, Failure: action.Fail(action.Cancelled, "it was undone at its parent's request")}
	m.s.Unwind = &Undoing{Phase: -1}
	m.undo()
	return ""
}
