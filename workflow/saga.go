package workflow

import (
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

// undo takes back deeds in strict reverse of their completion, one at a time.
func (m *machine) undo() {
	for u := m.s.Unwind; u != nil && len(m.s.Deeds) > u.Down; {
		d := m.s.Deeds[len(m.s.Deeds)-1]
		if m.d.nodes[m.d.at[d.Step]].Undo == nil && d.Child == "" && d.Effect != action.Compensatable {
			m.leave("its effect is " + d.Effect.String() + ", and the step declares no way to undo it")
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
	m.s.Deeds = m.s.Deeds[:len(m.s.Deeds)-1]
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
	for i := m.d.first[k]; i < m.d.first[k+1]; i++ {
		m.forget(i)
	}
	ps := &m.s.Phases[k]
	ps.Stage = PhaseBackoff
	pause := m.d.spec.Phases[k].Supervision.Backoff.after(ps.Used, m.s.Instance, ps.Name, m.s.Issued)
	m.issue(-1, Command{Kind: Timer, Subject: SubjectBackoff, At: m.s.At + pause})
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
		wait.For, wait.Policy = WaitPolicy, u.Policy
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
	w.ID, w.Step, w.Since, w.Who = waitID(m.s.Instance, st), n.Name, m.s.At, m.d.who(n)
	m.s.Unwind.Wait = &w
	m.note(i, Entry{Kind: HitlPark, Text: string(w.For), Code: w.Code})
}

// childUnwound is how the undoing of a child ended.
func (m *machine) childUnwound(e Event) {
	d := m.s.Deeds[len(m.s.Deeds)-1]
	if e.OK && e.Failure == nil {
		m.note(m.d.at[d.Step], Entry{Kind: UndoEnd, Child: d.Child, Code: action.OK})
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
