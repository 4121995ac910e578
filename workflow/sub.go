package workflow

import (
	"cmp"
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
	m.leftBy(i, c.Child, e.Left)
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

// leftBy takes over what stands of a child that is over: no other child repeats it.
func (m *machine) leftBy(i int, child string, left []Deed) {
	st := &m.s.Steps[i]
	m.s.Left = slices.Clip(m.s.Left)
	for _, d := range left {
		why := action.Cut("in its step " + d.Step + ": " + d.Why)
		m.s.Left = append(m.s.Left, Deed{Step: st.Name, Child: child, Intent: d.Intent, Action: d.Action, Effect: d.Effect, Maybe: d.Maybe, Why: why})
		m.note(i, Entry{Kind: ChildTrail, Child: child, Text: action.Cut("left an effect: " + why)})
		st.Effected = st.Effected || !d.Effect.Repeatable()
	}
}

// Standing are the effects that stand, or may, of an instance that is over and did not complete: what nothing undid and, where
// it was broken off, what may have been under way. Documents are left out.
func (s *State) Standing() (out []Deed) {
	add := func(d Deed, why string) {
		out = append(out, Deed{Step: d.Step, Intent: d.Intent, Action: d.Action, Effect: d.Effect, Child: d.Child, Maybe: d.Maybe, Why: cmp.Or(d.Why, why)})
	}
	for _, d := range s.Left {
		add(d, "")
	}
	for _, d := range s.Deeds {
		add(d, "it was not undone")
	}
	const unknown = "it is not known how it ended"
	for _, c := range s.Outstanding {
		if !c.Held && (c.Kind == Call || c.Kind == Interrupt || c.Kind == Spawn || c.Kind == CancelChild) {
			add(Deed{Step: c.Step, Action: c.Action, Child: c.Child, Effect: action.Irreversible, Maybe: true}, unknown)
		}
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		if w := st.Wait; w != nil && w.For == WaitResolution {
			add(Deed{Step: st.Name, Intent: w.Intent, Effect: st.Effect, Maybe: true}, unknown)
		} else if st.Stage == StageBackoff && st.Then == stagePoll {
			add(Deed{Step: st.Name, Effect: action.Irreversible, Maybe: true}, unknown)
		}
	}
	return out
}

// hold tells the children whether this instance is paused.
func (m *machine) hold() {
	m.drop(func(c *Command) bool { return c.Kind == Hold })
	for _, c := range slices.Clone(m.s.Outstanding) {
		if i, ok := m.d.at[c.Step]; ok && (c.Kind == Spawn || c.Kind == Unwind || c.Kind == CancelChild) && !c.Held {
			m.issue(i, Command{Kind: Hold, Child: c.Child})
		}
	}
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
