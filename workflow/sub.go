package workflow

import (
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// spawn starts a child: a new one each time, never one that failed.
func (m *machine) spawn(i int) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	if f := m.overspent(i); f != nil {
		m.failed(i, f)
		return
	}
	if until := m.tripped(n); until != 0 {
		f := notRun(action.Unavailable, "the breaker of workflow %s is open", n.Workflow)
		m.failed(i, f)
		return
	}
	st.Attempt++
	st.Children++
	st.Stage = StageExecute
	child := childID(m.s.Instance, n.Name, st.Attempt)
	m.note(i, Entry{Kind: ChildTrail, Child: child, Text: "started"})
	m.issue(i, Command{
		Kind: Spawn, Iteration: st.Iteration, Attempt: st.Attempt, Child: child, Workflow: n.Workflow, Input: st.Proposal,
		Description: n.Description, Hints: m.hints(n), Limit: m.left(i),
	})
}

// childID names a child after its place. A name that would be too long ends in its hash.
func childID(instance, step string, n int) string {
	id := fmt.Sprintf("%s.%s.%d", instance, step, n)
	if len(id) <= MaxInstance {
		return id
	}
	return id[:MaxInstance-17] + "." + digestOf([]byte(id))[:16]
}

func (m *machine) childEnded(i int, c Command, e Event) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	m.withdraw(i) // its questions are nobody's now
	m.drop(func(o *Command) bool { return o.Child == c.Child && (o.Kind == Advise || o.Kind == Escalate) })
	if e.OK && e.Failure == nil {
		m.note(i, Entry{Kind: ChildTrail, Child: c.Child, Text: "completed", Cost: e.Cost})
		m.did(Deed{Step: n.Name, Child: c.Child, Effect: action.Compensatable, Output: e.Output})
		st.Effected = true
		if st.Closing != nil {
			m.fail(i, st.Closing)
			return
		}
		m.validate(i, e.Output)
		return
	}
	f := e.Failure
	if f == nil {
		f = action.Fail(action.Failed, "the child failed")
	}
	m.note(i, Entry{Kind: ChildTrail, Child: c.Child, Text: "failed", Code: f.Code, Cost: e.Cost, Failure: f})
	if f.Code != action.Cancelled && !m.shut(i, f) {
		m.trip(i, c.Child)
	}
	if e.Tree && st.Closing == nil {
		m.markFailed(i, f)
		m.s.Tree = true
		m.stop(Stop{Status: Failed, Failure: f})
		return
	}
	m.failed(i, f)
}

// childAsked takes up a question of a child: the step's people are asked or, where there are none, the parent's own parent.
func (m *machine) childAsked(e Event) Absorbed {
	c := m.outstanding(func(c *Command) bool { return c.ID == e.Of && c.Kind == Spawn })
	if c == nil {
		return AbsorbedNobody
	}
	i := m.d.at[c.Step]
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	switch {
	case e.Ask == "":
		return AbsorbedMalformed
	case slices.Contains(st.Asked, e.Ask):
		return AbsorbedAlready
	}
	child := c.Child
	st.Asked = append(slices.Clip(st.Asked), e.Ask)
	m.note(i, Entry{Kind: Climb, Text: string(RungParent), Child: child})
	q := Command{Child: child, Ask: e.Ask, Prompt: action.Cut(e.Text)}
	switch who := m.d.who(n); {
	case len(who) > 0:
		q.Kind, q.Who, q.Description, q.Storylines = Ask, who, n.Description, m.storylines(n)
		m.issue(i, q)
		m.note(i, Entry{Kind: HitlEscalation, Text: q.Prompt, Child: child})
	case m.s.Parent != "":
		q.Kind = Escalate
		m.issue(i, q)
	default:
		m.advise(i, q, false, nil)
	}
	return ""
}

// advise answers a child.
func (m *machine) advise(i int, q Command, ok bool, data []byte) {
	m.issue(i, Command{Kind: Advise, Child: q.Child, Ask: q.Ask, OK: ok, Input: data})
}
