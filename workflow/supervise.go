package workflow

import (
	"cmp"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// fail is the end of a step that failed: a branch handles it, or the phase's supervision does.
func (m *machine) fail(i int, f *action.Failure) {
	m.markFailed(i, f)
	if !m.handled(i) {
		m.supervise(i)
	}
}

func (m *machine) markFailed(i int, f *action.Failure) {
	m.ended(i, StageFailed)
	m.s.Steps[i].Failure = f
	m.note(i, Entry{Kind: StepFailed, Code: f.Code, Failure: f, Cost: m.s.Steps[i].Cost})
}

// handled reports whether a step that may still run needs the failure of step i.
func (m *machine) handled(i int) bool {
	return slices.ContainsFunc(m.d.nodes[i].handlers, func(h int) bool { return !m.s.Steps[h].Stage.Ended() })
}

// supervise does what the phase says about a failure that nobody handles.
func (m *machine) supervise(i int) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	ps := &m.s.Phases[n.phase]
	if m.s.Stop != nil || ps.Stage != PhaseRunning {
		return
	}
	s := m.strategy(i)
	m.note(i, Entry{Kind: Supervised, Text: string(s), Failure: st.Failure})
	switch s {
	case SuperviseRetry:
		ps.Used++
		m.rerun(i)
	case SuperviseRestart:
		ps.Used++
		ps.Stage = PhaseUndoing
		m.closeSteps(m.d.first[n.phase], m.d.first[n.phase+1], "the phase is run again")
	case SuperviseResume:
	case SuperviseEscalate:
		st.Referred = true
		m.note(i, Entry{Kind: HitlEscalation, Text: action.Cut(st.Failure.Error())})
		m.park(i, Wait{For: WaitOperator, Code: st.Failure.Code, Reason: st.Failure.Error()})
	default:
		m.s.Tree = s == AbortTree
		m.stop(Stop{Status: Failed, Failure: st.Failure})
	}
}

// strategy is the phase's, or what it says once that is used up or cannot be done.
func (m *machine) strategy(i int) Strategy {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	sup, used := m.d.spec.Phases[n.phase].Supervision, m.s.Phases[n.phase].Used
	then := cmp.Or(sup.Then, AbortSubtree)
	if then == SuperviseEscalate && st.Referred {
		then = AbortSubtree
	}
	switch s := cmp.Or(sup.Strategy, AbortSubtree); {
	case s == SuperviseRestart && used < cmp.Or(sup.Max, 1) && m.willSpoil(n.phase) && sup.Then == "" && !st.Referred:
		return SuperviseEscalate // what stands, people look at first
	case s == SuperviseRestart && m.willSpoil(n.phase):
		return then
	case (s == SuperviseRetry || s == SuperviseRestart) && used >= cmp.Or(sup.Max, 1),
		s == SuperviseRetry && (st.Effected || st.Touched || !mayRepeat(n, st, st.Failure)),
		s == SuperviseEscalate && st.Referred:
		return then
	default:
		return s
	}
}

// rerun runs a step again, from its start, after a pause.
func (m *machine) rerun(i int) {
	st := &m.s.Steps[i]
	m.reopen(i)
	st.Stage, st.Then = StageBackoff, stageAgain
	k := m.d.nodes[i].phase
	pause := m.d.spec.Phases[k].Supervision.Backoff.after(m.s.Phases[k].Used, m.s.Instance, st.Name, st.Issued)
	m.issue(i, Command{Kind: Timer, Subject: SubjectBackoff, At: m.s.At + pause})
}

// reopen makes a step as if it had not begun, and so all that were skipped because it had failed.
func (m *machine) reopen(i int) {
	m.forget(i)
	k := m.d.nodes[i].phase
	for j := m.d.first[k]; j < m.d.first[k+1]; j++ {
		if m.s.Steps[j].Stage == StageSkipped && slices.Contains(m.d.nodes[j].before, i) {
			m.forget(j)
		}
	}
}

// forget makes a step as if it had not begun. Its numbers go on, so that no id is given twice.
func (m *machine) forget(i int) {
	st := &m.s.Steps[i]
	*st = StepState{Name: st.Name, Run: st.Run, Iteration: st.Iteration, Attempt: st.Attempt, Issued: st.Issued, Asked: st.Asked}
}

// closeStep ends a step from outside. What it executes is stopped first, and its end awaited: an effect that completes all
// the same has to be undone, and one of unknown outcome to be resolved.
func (m *machine) closeStep(i int, f *action.Failure) {
	st := &m.s.Steps[i]
	switch c := m.outstanding(func(c *Command) bool { return c.Step == st.Name && (c.Kind == Call || c.Kind == Spawn) }); {
	case st.Stage.Ended() || st.Closing != nil:
	case c != nil && c.Kind == Spawn:
		st.Closing = f
		spawn := *c
		m.drop(func(o *Command) bool { return o.ID == spawn.ID })
		m.issue(i, Command{Kind: CancelChild, Child: spawn.Child, Ask: spawn.ID, Keep: m.s.Stop != nil && m.s.Stop.Keep})
	case c != nil:
		st.Closing = f
		id := c.ID
		m.drop(func(o *Command) bool { return o.ID == id })
		m.interrupt(i, id)
	case st.Wait != nil && st.Wait.For == WaitApproval:
		st.Closing = f
		m.interrupt(i, "")
	case st.Wait != nil && st.Wait.For == WaitResolution, st.Stage == StageBackoff && st.Then == stagePoll:
		st.Closing = f
	default:
		m.fail(i, f)
	}
}

// closeSteps ends what has begun of the nodes from one to before another.
func (m *machine) closeSteps(from, to int, why string) {
	for i := from; i < to; i++ {
		if m.s.Steps[i].Stage != StagePending {
			m.closeStep(i, notRun(action.Cancelled, "%s", why))
		}
	}
}

// stop starts no further step, and ends the instance once what runs has ended.
func (m *machine) stop(s Stop) {
	if m.s.Stop != nil && !m.s.Stop.Gentle {
		return
	}
	m.s.Stop = &s
	if s.Gentle {
		return
	}
	m.closeSteps(0, len(m.d.nodes), "the workflow is ending")
	if u := m.s.Unwind; u != nil { // a phase was being undone
		u.Phase, u.Down = -1, 0
		if m.s.Status = Unwinding; s.Keep {
			u.Down = max(len(m.s.Deeds)-1, 0) // what is being undone is
		}
	}
}

// control handles pause, resume and cancel.
func (m *machine) control(e Event) Absorbed {
	switch e.Kind {
	case Paused:
		if !m.pauses(e.Tree) {
			return AbsorbedAlready
		}
		m.hold()
	case Resumed:
		if !m.goesOn(e.Tree) {
			return AbsorbedAlready
		}
	case Cancelled:
		if m.s.Status == Unwinding || m.s.Stop != nil && (!m.s.Stop.Gentle || e.After) {
			return AbsorbedAlready
		}
		f := action.Fail(action.Cancelled, "the workflow was cancelled").Quoting(e.Text)
		m.note(-1, Entry{Kind: Control, Text: "cancel", By: e.By})
		m.stop(Stop{Status: Stopped, Keep: e.Keep, Gentle: e.After, Failure: f, By: e.By})
		if !e.After {
			m.release() // what undoes is not held back
		}
		return ""
	}
	m.note(-1, Entry{Kind: Control, Text: string(e.Kind), By: e.By})
	return ""
}

// pauses notes a pause, a person's or the parent's; false where that is so already.
func (m *machine) pauses(above bool) bool {
	switch {
	case above && m.s.Above, !above && m.s.Held && (!m.s.Above || m.s.Own):
		return false
	case above:
		m.s.Above, m.s.Own = true, m.s.Held
	default:
		m.s.Own = m.s.Above
	}
	m.s.Held = true
	return true
}

// goesOn ends a pause, a person's or the parent's; false where there is none such. The other's goes on.
func (m *machine) goesOn(above bool) bool {
	switch s := &m.s; {
	case !s.Held, above && !s.Above, !above && s.Above && !s.Own:
		return false
	case above && s.Own:
		s.Above, s.Own = false, false
	case s.Own:
		s.Own = false
	default:
		m.release()
		m.hold()
	}
	return true
}

// release ends a pause, whoever's it is.
func (m *machine) release() {
	m.s.Held, m.s.Above, m.s.Own = false, false, false
	for k := range m.s.Outstanding {
		if c := &m.s.Outstanding[k]; c.Held {
			c.Held = false
			m.t.Commands = append(m.t.Commands, *c)
		}
	}
}
