package workflow

import (
	"cmp"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// ask parks a step before planning: nothing goes on without the intake.
func (m *machine) ask(i int) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	c := Command{
		Kind: Ask, Who: m.d.who(n), Prompt: m.prompt(n), Description: n.Description, Contract: n.intake(), Critique: st.Critique,
		Storylines: m.storylines(n), Hints: m.hints(n), Intakes: m.given(i),
	}
	if input, err := n.Map.hydrate(m.scope(st)); err == nil {
		c.Input = input
	} else if n.Type == Human {
		m.fail(i, notRun(action.InputInvalid, "step %s: %v", n.Name, err))
		return
	}
	st.Stage = StageIntake
	id := m.issue(i, c)
	m.note(i, Entry{Kind: HitlEscalation, Text: action.Cut(c.Prompt)})
	m.note(i, Entry{Kind: HitlPark, Text: string(WaitIntake)})
	if n.Hitl != nil && n.Hitl.Within > 0 {
		m.issue(i, Command{Kind: Timer, Subject: SubjectAnswer, Ask: id, At: m.s.At + micros(n.Hitl.Within)})
	}
}

func (m *machine) prompt(n *node) string {
	if n.Hitl != nil && n.Hitl.Prompt != "" {
		return n.Hitl.Prompt
	}
	return cmp.Or(n.Description, n.Name)
}

func (n *node) intake() []byte {
	if n.Hitl == nil {
		return nil
	}
	return n.Hitl.Intake
}

// intake is what a person said. It counts once it was verified.
func (m *machine) intake(i int, c Command, e Event) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	if c.Child != "" { // a child's question
		m.note(i, Entry{Kind: HitlIntake, By: e.By, Child: c.Child, Digest: digestOf(e.Output)})
		m.advise(i, c, true, e.Output)
		return
	}
	m.drop(func(o *Command) bool { return o.Kind == Timer && o.Ask == c.ID })
	g := Given{Step: st.Name, By: e.By, Data: e.Output}
	if len(n.intake()) == 0 {
		m.consume(i, g)
		return
	}
	st.Pending, st.Stage = &g, StageCheck
	m.issue(i, Command{Kind: Verify, Subject: SubjectIntake, Document: g.Data, Contract: n.intake()})
}

func (m *machine) intakeVerified(i int, e Event) {
	st := &m.s.Steps[i]
	g := st.Pending
	st.Pending = nil
	ok, text := e.verdict()
	m.note(i, Entry{Kind: Verdict, Text: "intake: " + text, Code: verdictCode(ok, SubjectInput)})
	if ok {
		m.consume(i, *g)
	} else {
		m.reprompt(i, text)
	}
}

// consume takes an intake, which happens once: a fresh iteration of planning begins with it in context.
func (m *machine) consume(i int, g Given) {
	st := &m.s.Steps[i]
	st.Intakes = append(st.Intakes[:len(st.Intakes):len(st.Intakes)], g)
	st.Reprompts = 0
	m.note(i, Entry{Kind: HitlIntake, By: g.By, Digest: digestOf(g.Data)})
	m.plan(i)
}

// reprompt asks again within the budget, and parks after it.
func (m *machine) reprompt(i int, critique string) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	st.Critique = action.Cut(critique)
	budget := 2
	if n.Hitl != nil {
		budget = max(cmp.Or(n.Hitl.Reprompts, budget), 0)
	}
	if st.Reprompts < budget {
		st.Reprompts++
		m.ask(i)
		return
	}
	st.Failure = notRun(action.InputInvalid, "no usable intake after %d questions: %s", budget+1, st.Critique)
	m.park(i, Wait{For: WaitOperator, Code: action.InputInvalid, Reason: st.Failure.Message})
}

// unanswered is a question that waited for as long as it may.
func (m *machine) unanswered(i int, c Command) {
	m.withdraw(i)
	m.drop(func(o *Command) bool { return o.ID == c.Ask })
	m.reprompt(i, "nobody answered in time")
}

// withdraw takes back the questions of a step.
func (m *machine) withdraw(i int) {
	name := m.s.Steps[i].Name
	var asks []string
	for _, c := range m.s.Outstanding {
		if c.Kind == Ask && c.Step == name {
			asks = append(asks, c.ID)
		}
	}
	m.drop(func(c *Command) bool { return c.Kind == Ask && c.Step == name })
	for _, id := range asks {
		m.issue(i, Command{Kind: Withdraw, Ask: id})
	}
}
