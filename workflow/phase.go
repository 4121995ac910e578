package workflow

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// advance goes on as far as nothing is waited for.
func (m *machine) advance() {
	for !m.s.Status.Terminal() && m.s.Unwind == nil && m.stride() {
	}
}

// stride makes one step of advance, and reports whether there was one to make.
func (m *machine) stride() bool {
	if m.s.Stop != nil {
		return m.stopped()
	}
	k := m.phase()
	if k == len(m.s.Phases) {
		m.complete()
		return true
	}
	switch ps := &m.s.Phases[k]; ps.Stage {
	case PhasePending:
		m.enter(k)
	case PhaseRunning:
		return m.run(k)
	case PhaseUndoing:
		if !m.settled(m.d.first[k], m.d.first[k+1]) {
			return false
		}
		m.s.Unwind = &Undoing{Down: ps.Deeds, Phase: k}
		m.undo()
	default:
		return false
	}
	return true
}

// phase is the first that has not ended.
func (m *machine) phase() int {
	k := slices.IndexFunc(m.s.Phases, func(p PhaseState) bool { return p.Stage != PhaseEnded && p.Stage != PhaseSkipped })
	if k < 0 {
		return len(m.s.Phases)
	}
	return k
}

func (m *machine) notePhase(k int, e Entry) {
	e.Phase = m.s.Phases[k].Name
	m.note(-1, e)
}

func (m *machine) enter(k int) {
	ps := &m.s.Phases[k]
	if g := m.d.spec.Phases[k].Guard; g != nil {
		ps.Stage = PhaseGuard
		m.issue(-1, Command{Kind: Evaluate, Guard: g, Document: m.view()})
		return
	}
	m.enterNow(k)
}

func (m *machine) enterNow(k int) {
	ps := &m.s.Phases[k]
	ps.Stage, ps.Deeds, ps.Left = PhaseRunning, len(m.s.Deeds), len(m.s.Left)
	m.notePhase(k, Entry{Kind: PhaseStart, Text: action.Cut(m.d.spec.Phases[k].Storyline)})
}

func (m *machine) phaseGuarded(e Event) {
	k := m.phase()
	switch {
	case k == len(m.s.Phases) || m.s.Phases[k].Stage != PhaseGuard:
	case e.Failure != nil:
		m.stop(Stop{Status: Failed, Failure: e.Failure})
	case e.OK:
		m.enterNow(k)
	default:
		m.s.Phases[k].Stage = PhaseSkipped
		for i := m.d.first[k]; i < m.d.first[k+1]; i++ {
			m.skip(i, "the guard of its phase does not hold")
		}
	}
}

// run begins and skips what can be, and ends the phase once all has ended.
func (m *machine) run(k int) (changed bool) {
	all := true
	for i := m.d.first[k]; i < m.d.first[k+1] && m.s.Stop == nil && m.s.Phases[k].Stage == PhaseRunning; i++ {
		if m.s.Steps[i].Stage == StagePending {
			ready, never := m.ready(i)
			switch {
			case never:
				m.skip(i, "what it needs ended otherwise")
				changed = true
			case ready:
				m.begin(i)
				changed = true
			}
		}
		all = all && m.s.Steps[i].Stage.Ended()
	}
	if changed || m.s.Stop != nil || m.s.Phases[k].Stage != PhaseRunning {
		return changed
	}
	if all {
		m.s.Phases[k].Stage = PhaseEnded
		m.notePhase(k, Entry{Kind: PhaseEnd})
	}
	return all
}

// ready reports whether all needs of a step have ended as it wants, and whether one never will.
func (m *machine) ready(i int) (ready, never bool) {
	ready = true
	for _, e := range m.d.nodes[i].needs {
		stage := m.s.Steps[e.to].Stage
		switch {
		case !stage.Ended():
			ready = false
		case e.when == OnEnd, e.when == OnOk && stage == StageDone, e.when == OnErr && stage == StageFailed:
		default:
			never = true
		}
	}
	return ready && !never, never && m.allEnded(i)
}

// allEnded: a step is not skipped before everything it needs has ended, so that nothing it was to handle is decided early.
func (m *machine) allEnded(i int) bool {
	return !slices.ContainsFunc(m.d.nodes[i].needs, func(e edge) bool { return !m.s.Steps[e.to].Stage.Ended() })
}

// settled reports whether nothing of the nodes from one to before another is under way.
func (m *machine) settled(from, to int) bool {
	return !slices.ContainsFunc(m.s.Steps[from:to], func(st StepState) bool { return st.Stage != StagePending && !st.Stage.Ended() })
}

// stopped goes on with an instance that starts no further step.
func (m *machine) stopped() bool {
	if !m.settled(0, len(m.d.nodes)) {
		return false
	}
	for i := range m.s.Steps {
		if m.s.Steps[i].Stage == StagePending {
			m.skip(i, "the workflow is ending")
		}
	}
	if m.s.Stop.Keep {
		m.end(m.s.Stop.Status)
		return true
	}
	m.s.Status = Unwinding
	m.s.Unwind = &Undoing{Phase: -1}
	m.undo()
	return true
}

// complete gives the terminal artifacts.
func (m *machine) complete() {
	out, err := m.output()
	if err != nil {
		m.stop(Stop{Status: Failed, Failure: notRun(action.OutputInvalid, "the output of the workflow: %v", err)})
		return
	}
	m.s.Output = out
	m.end(Completed)
}

func (m *machine) output() (json.RawMessage, error) {
	if len(m.d.spec.Output) > 0 {
		return m.d.spec.Output.hydrate(m.scope(nil))
	}
	root := &branch{}
	for i := range m.s.Steps {
		if st := &m.s.Steps[i]; st.Stage == StageDone && !m.d.needed(i) {
			if err := root.put([]string{st.Name}, st.Output); err != nil {
				return nil, err
			}
		}
	}
	var b bytes.Buffer
	if err := root.write(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// needed reports whether another step needs step i.
func (d *Definition) needed(i int) bool {
	return slices.ContainsFunc(d.nodes, func(n node) bool {
		return slices.ContainsFunc(n.needs, func(e edge) bool { return e.to == i && e.when != OnErr })
	})
}

// end is the end of the instance. What it told others to do is still to be done.
func (m *machine) end(s Status) {
	m.s.Status, m.s.Unwind = s, nil
	var f *action.Failure
	if m.s.Stop != nil {
		f = m.s.Stop.Failure
	}
	m.s.Failure = f
	m.drop(func(c *Command) bool { return c.Kind != Withdraw && c.Kind != Advise })
	m.release()
	e := Entry{Kind: WorkflowEnd, Text: string(s), Cost: m.s.Cost, Failure: f}
	if s == Completed {
		e.Digest = digestOf(m.s.Output)
	}
	m.note(-1, e)
}
