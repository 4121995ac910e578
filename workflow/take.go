package workflow

import (
	"encoding/json"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// answers says which events answer which commands.
var answers = map[CommandKind]EventKind{
	Plan: Planned, Verify: Verified, Evaluate: Guarded, Call: Called, Spawn: ChildEnded, Ask: Intake, Escalate: Advised,
	Timer: Fired, Compensate: Called, Unwind: ChildUnwound, Interrupt: Called, CancelChild: ChildEnded, Advise: Performed,
	Withdraw: Performed, Hold: Performed,
}

// take folds an event into the state, or says why it has no effect.
func (m *machine) take(e Event) Absorbed {
	switch e.Kind {
	case Performed:
		return m.performed(e)
	case Unwound:
		return m.unwound(e)
	}
	if m.s.Status.Terminal() {
		return AbsorbedEnded
	}
	switch e.Kind {
	case Paused, Cancelled:
		return m.control(e)
	case Resumed:
		if e.Of == "" {
			return m.control(e)
		}
		return m.ends(e)
	case Approval, PolicyChanged, Amended, Resolved:
		return m.ends(e)
	case ChildAsked:
		return m.childAsked(e)
	}
	c := m.outstanding(func(c *Command) bool {
		return c.ID == e.Of || (c.Kind == Interrupt || c.Kind == CancelChild) && c.Ask == e.Of
	})
	switch {
	case c == nil || e.Of == "":
		return AbsorbedNobody
	case answers[c.Kind] != e.Kind:
		return AbsorbedKind
	case e.lacks():
		return AbsorbedMalformed
	}
	return m.answer(*c, e)
}

// lacks reports whether an event cannot be what it says it is. A proposal that is no JSON is the planner's failure.
func (e *Event) lacks() bool {
	switch e.Kind {
	case Called:
		return e.Outcome == nil
	case Intake:
		return len(e.Output) == 0 || !json.Valid(e.Output)
	case Advised:
		return e.OK && !json.Valid(e.Output)
	}
	return false
}

// answer handles the answer to a command, which is outstanding no more.
func (m *machine) answer(c Command, e Event) Absorbed {
	m.drop(func(o *Command) bool { return o.ID == c.ID })
	i, ofStep := m.d.at[c.Step]
	if !ofStep || c.Kind == Compensate || c.Kind == Unwind {
		m.answerInstance(c, e)
		return ""
	}
	m.charge(i, e)
	switch c.Kind {
	case Plan:
		m.planned(i, e)
	case Verify:
		m.verified(i, c, e)
	case Evaluate:
		m.guarded(i, e)
	case Call, Interrupt:
		if e.Outcome.Code == action.Denied && e.Text != "" {
			m.s.Steps[i].Policy = e.Text
		}
		m.called(i, *e.Outcome, e.Effect)
	case Spawn, CancelChild:
		m.childEnded(i, c, e)
	case Ask:
		m.intake(i, c, e)
	case Escalate:
		if c.Child != "" {
			m.advise(i, c, e.OK, e.Output)
		} else {
			m.advised(i, e)
		}
	case Timer:
		m.fired(i, c)
	}
	return ""
}

// answerInstance handles what belongs to no step, and what undoes one.
func (m *machine) answerInstance(c Command, e Event) {
	switch {
	case c.Kind == Compensate:
		m.s.Cost, m.s.Used = plus(m.s.Cost, e.Outcome.Cost), plus(m.s.Used, e.Outcome.Cost)
		if e.Outcome.Code == action.Denied && e.Text != "" {
			m.s.Unwind.Policy = e.Text
		}
		m.compensated(*e.Outcome)
	case c.Kind == Unwind:
		m.childUnwound(e)
	case c.Kind == Evaluate:
		m.phaseGuarded(e)
	case c.Subject == SubjectBackoff && m.s.Unwind != nil:
		m.s.Unwind.Pausing = false
		m.undo()
	case c.Subject == SubjectBackoff:
		if k := m.phase(); k < len(m.s.Phases) && m.s.Phases[k].Stage == PhaseBackoff && m.s.Stop == nil {
			m.enterNow(k)
		}
	case c.Subject == SubjectDeadline:
		m.stop(Stop{Status: Failed, Failure: action.Fail(action.Timeout, "the time of the workflow is up")})
	}
}

func (m *machine) performed(e Event) Absorbed {
	c := m.outstanding(func(c *Command) bool { return c.ID == e.Of })
	switch {
	case c == nil:
		return AbsorbedNobody
	case answers[c.Kind] != Performed:
		return AbsorbedKind
	}
	id := c.ID
	m.drop(func(o *Command) bool { return o.ID == id })
	return ""
}

// ends handles what ends a wait.
func (m *machine) ends(e Event) Absorbed {
	if u := m.s.Unwind; u != nil && u.Wait != nil && u.Wait.ID == e.Of {
		return m.unwindGoesOn(*u.Wait, e)
	}
	i := slices.IndexFunc(m.s.Steps, func(st StepState) bool { return st.Wait != nil && st.Wait.ID == e.Of })
	if i < 0 || e.Of == "" {
		return AbsorbedNobody
	}
	w := *m.s.Steps[i].Wait
	if a := m.mayEnd(i, w, e); a != "" {
		return a
	}
	st := &m.s.Steps[i]
	st.Wait = nil
	m.charge(i, e)
	switch e.Kind {
	case Approval:
		m.approval(i, e)
	case PolicyChanged:
		st.Policy = e.Text
		m.callAgain(i)
	case Amended:
		m.amended(i, e)
	case Resolved:
		m.resolved(i, w, e)
	case Resumed:
		m.resumed(i, w, e)
	}
	return ""
}

// mayEnd says why an event does not end a wait.
func (m *machine) mayEnd(i int, w Wait, e Event) Absorbed {
	executes := m.d.nodes[i].Type == Execution || m.d.nodes[i].Type == SubSOP
	want := map[EventKind]bool{
		Approval:      w.For == WaitApproval,
		PolicyChanged: w.For == WaitPolicy,
		Amended:       executes && m.s.Steps[i].Closing == nil && (w.For == WaitPolicy || w.For == WaitOperator && !m.s.Steps[i].Effected),
		Resolved:      w.For == WaitResolution,
		Resumed:       w.For == WaitOperator,
	}
	switch {
	case !want[e.Kind]:
		return AbsorbedKind
	case e.Kind == PolicyChanged && (e.Text == "" || e.Text == w.Policy):
		return AbsorbedAlready
	case (e.Kind == Amended || e.Kind == Resolved && e.OK && len(e.Output) > 0) && !json.Valid(e.Output):
		return AbsorbedMalformed
	}
	return ""
}

// resumed is an operator's word on a step that waits for one.
func (m *machine) resumed(i int, w Wait, e Event) {
	st := &m.s.Steps[i]
	m.note(i, Entry{Kind: Control, Text: "resume", By: e.By})
	if !e.OK || st.Effected { // an effect stands that may not be repeated, whoever wishes it
		f := st.Failure
		if f == nil {
			f = action.Fail(w.Code, "%s", w.Reason)
		}
		m.fail(i, f)
		return
	}
	if w.Code == action.BudgetExhausted {
		m.s.Used = action.Cost{}
	}
	if st.Referred { // it had failed: it begins anew, at its guard
		m.reopen(i)
		return
	}
	st.Cost, st.Calls, st.Children, st.Reprompts = action.Cost{}, 0, 0, 0
	m.ground(i)
	m.admit(i)
}

// fired is the end of a wait by time.
func (m *machine) fired(i int, c Command) {
	st := &m.s.Steps[i]
	switch c.Subject {
	case SubjectBackoff:
		m.next(i, st.Then)
	case SubjectAnswer:
		m.unanswered(i, c)
	case SubjectDeadline:
		m.closeStep(i, action.Fail(action.Timeout, "the time of step %s is up", st.Name))
	}
}
