package workflow

import (
	"encoding/json"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// begin starts a step whose needs have ended as it wants.
func (m *machine) begin(i int) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	st.Run++
	st.Started = m.s.At
	m.ground(i)
	m.note(i, Entry{Kind: StepStart})
	if t := n.Limits.Time; t > 0 {
		m.issue(i, Command{Kind: Timer, Subject: SubjectDeadline, At: m.s.At + micros(t)})
	}
	if n.Guard != nil {
		st.Stage = StageGuard
		m.issue(i, Command{Kind: Evaluate, Guard: n.Guard, Document: m.view()})
		return
	}
	m.admit(i)
}

func (m *machine) guarded(i int, e Event) {
	switch {
	case e.Failure != nil:
		m.fail(i, e.Failure) // who does not know whether it may begin does not try again
	case e.OK:
		m.admit(i)
	default:
		m.skip(i, "its guard does not hold")
	}
}

// admit lets a step in: past a person, where one has to be asked first, to planning.
func (m *machine) admit(i int) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	if n.Type == Human || n.Hitl != nil && n.Hitl.First && len(st.Intakes) == 0 {
		m.ask(i)
		return
	}
	m.plan(i)
}

// plan begins an iteration: a planner proposes or, where none is named, what is hydrated is the proposal.
func (m *machine) plan(i int) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	st.Iteration++
	st.Calls = 0
	if !st.Amended {
		input, err := n.Map.hydrate(m.scope(st))
		if err != nil {
			m.failed(i, notRun(action.InputInvalid, "step %s: %v", n.Name, err))
			return
		}
		st.Input = input
	}
	planner := n.Planner
	if st.Rung >= 0 && st.Rung < len(n.ladder) && n.ladder[st.Rung].Kind == RungPlanner {
		planner = n.ladder[st.Rung].Planner
	}
	if planner == "" || st.Amended {
		m.verify(i, st.Input)
		return
	}
	if f := m.overspent(i); f != nil {
		m.failed(i, f)
		return
	}
	st.Stage = StagePlan
	m.issue(i, Command{
		Kind: Plan, Iteration: st.Iteration, Planner: planner, Description: n.Description, Input: st.Input, Contract: n.planned(),
		Action: n.Action, Workflow: n.Workflow, Critique: st.Critique, Intakes: m.given(i), Storylines: m.storylines(n), Hints: m.hints(n), Limit: m.left(i),
	})
}

// planned is the contract of what is proposed.
func (n *node) planned() json.RawMessage {
	if n.Type == Reasoning || n.Type == Human {
		return n.Output
	}
	return n.Input
}

func (m *machine) planned(i int, e Event) {
	switch {
	case e.Failure != nil:
		f := *e.Failure
		f.Executed = action.No // a planner is given nothing that it could execute with
		m.failed(i, &f)
	case !json.Valid(e.Output):
		m.failed(i, notRun(action.InputMalformed, "the proposal is no JSON"))
	default:
		m.verify(i, e.Output)
	}
}

// verify has a proposal judged. Nothing is executed, and nothing is an artifact, before it has passed.
func (m *machine) verify(i int, proposal json.RawMessage) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	st.Proposal = proposal
	c := Command{Kind: Verify, Subject: SubjectInput, Iteration: st.Iteration, Document: proposal, Contract: n.planned(), Verifier: n.Verifier, Description: n.Description}
	if n.Type == Reasoning {
		c.Subject = SubjectProposal
	}
	if len(c.Contract) == 0 && c.Verifier == "" || n.Type == Human && n.Verifier == "" {
		m.execute(i)
		return
	}
	st.Stage = StageVerify
	m.issue(i, c)
}

// verified is a verdict.
func (m *machine) verified(i int, c Command, e Event) {
	if c.Subject == SubjectIntake {
		m.intakeVerified(i, e)
		return
	}
	ok, text := e.verdict()
	m.note(i, Entry{Kind: Verdict, Text: string(c.Subject) + ": " + text, Code: verdictCode(ok, c.Subject)})
	switch {
	case ok && c.Subject == SubjectOutput:
		m.commit(i, m.s.Steps[i].Result)
	case ok:
		m.execute(i)
	case c.Subject == SubjectOutput:
		m.failed(i, action.Fail(action.OutputInvalid, "%s", text))
	default:
		m.failed(i, notRun(verdictCode(false, c.Subject), "%s", text))
	}
}

// verdict is what a [Verified] says: passed, or the critique.
func (e *Event) verdict() (ok bool, text string) {
	switch {
	case e.Failure != nil:
		return false, action.Cut(e.Failure.Error())
	case e.OK:
		return true, "passed"
	}
	return false, action.Cut(e.Text)
}

func verdictCode(ok bool, s Subject) action.Code {
	switch {
	case ok:
		return action.OK
	case s == SubjectInput:
		return action.InputInvalid
	}
	return action.OutputInvalid
}

// execute is where the types differ.
func (m *machine) execute(i int) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	switch n.Type {
	case Human:
		m.commit(i, st.Intakes[len(st.Intakes)-1].Data)
	case Reasoning:
		m.commit(i, st.Proposal)
	case Execution:
		m.call(i)
	case SubSOP:
		m.spawn(i)
	}
}

// validate has judged what was executed, where there is a contract for it.
func (m *machine) validate(i int, output json.RawMessage) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	if len(output) == 0 {
		output = json.RawMessage("null")
	}
	st.Result = output
	if len(n.Output) == 0 {
		m.commit(i, output)
		return
	}
	st.Stage = StageValidate
	m.issue(i, Command{Kind: Verify, Subject: SubjectOutput, Iteration: st.Iteration, Attempt: st.Attempt, Document: output, Contract: n.Output})
}

// commit makes the artifact, and a checkpoint.
func (m *machine) commit(i int, artifact json.RawMessage) {
	st := &m.s.Steps[i]
	st.Output = artifact
	st.Proposal, st.Result, st.Critique, st.Failure = nil, nil, "", nil
	m.ended(i, StageDone)
	m.note(i, Entry{Kind: StepComplete, Cost: st.Cost, Digest: digestOf(artifact)})
	m.note(i, Entry{Kind: CheckpointMade})
	m.t.Checkpoint = true
}

// ended is any end of a step: whatever it still waited for is waited for no more.
func (m *machine) ended(i int, end Stage) {
	st := &m.s.Steps[i]
	st.Stage, st.Ended = end, m.s.At
	st.Wait, st.Pending, st.Closing, st.Then = nil, nil, nil, ""
	m.withdraw(i)
	m.drop(func(c *Command) bool {
		return c.Step == st.Name && c.Kind != Withdraw && c.Kind != Advise && c.Kind != Compensate && c.Kind != Unwind
	})
}

// skip ends a step that is not to run.
func (m *machine) skip(i int, why string) {
	m.ended(i, StageSkipped)
	m.note(i, Entry{Kind: StepSkipped, Text: why})
	for _, e := range m.d.nodes[i].needs {
		if e.when == OnErr && m.s.Steps[e.to].Stage == StageFailed && !m.handled(e.to) {
			m.supervise(e.to) // whoever was to handle that failure does not
		}
	}
}

// given is what people said before a step is planned: to the steps before it, and to itself.
func (m *machine) given(i int) (out []Given) {
	for _, k := range m.d.nodes[i].before {
		if m.s.Steps[k].Stage == StageDone {
			out = append(out, m.s.Steps[k].Intakes...)
		}
	}
	return append(out, m.s.Steps[i].Intakes...)
}

func (m *machine) storylines(n *node) (out []string) {
	for _, p := range m.d.spec.Phases[:n.phase+1] {
		if p.Storyline != "" {
			out = append(out, p.Storyline)
		}
	}
	return out
}

func (m *machine) hints(n *node) Hints {
	p := m.d.spec.Phases[n.phase].Hints.clone()
	return Hints{append(p.Tools, n.Hints.Tools...), append(p.Skills, n.Hints.Skills...), append(p.Hooks, n.Hints.Hooks...)}
}
