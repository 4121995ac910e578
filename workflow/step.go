package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// MaxInstance is how long the id of an instance may be, in bytes, so that what is made of it stays a name.
const MaxInstance = 96

// Start is the first turn of an instance. It does not look at whether the input satisfies [Spec.Input]: the driver has, at
// the strict edge. The error says what is wrong with b.
func (d *Definition) Start(b Begin) (Turn, error) {
	if err := action.CheckName(b.Instance); err != nil {
		return Turn{}, fmt.Errorf("start %s: instance: %w", d.spec.Name, err)
	}
	if len(b.Instance) > MaxInstance {
		return Turn{}, fmt.Errorf("start %s: instance %s is %d bytes long, at most %d are allowed", d.spec.Name, b.Instance, len(b.Instance), MaxInstance)
	}
	if len(b.Input) > 0 && !json.Valid(b.Input) {
		return Turn{}, fmt.Errorf("start %s: the input is no JSON", d.spec.Name)
	}
	m := &machine{d: d, s: State{
		Format: Format, Workflow: d.spec.Name, Version: d.spec.Version, Digest: d.digest,
		Instance: b.Instance, Parent: b.Parent, Input: b.Input, Status: Running, Held: b.Held, Above: b.Held, Begun: b.At, At: b.At,
	}}
	for _, p := range d.spec.Phases {
		m.s.Phases = append(m.s.Phases, PhaseState{Name: p.Name})
	}
	for i := range d.nodes {
		m.s.Steps = append(m.s.Steps, StepState{Name: d.nodes[i].Name})
	}
	m.note(-1, Entry{Kind: WorkflowStart, Digest: d.digest})
	if t := d.spec.Limits.Time; t > 0 {
		m.issue(-1, Command{Kind: Timer, Subject: SubjectDeadline, At: b.At + micros(t)})
	}
	m.advance()
	return m.turn(), nil
}

// ErrOther is found in the error of a state that is not one of the definition.
var ErrOther = errors.New("the state belongs to another definition")

// Step takes one event. The error says that the state is not one of this definition, and nothing else: whatever an event
// says, the instance goes on, parks or ends.
func (d *Definition) Step(s State, e Event) (Turn, error) {
	if s.Format != Format || s.Digest != d.digest || len(s.Steps) != len(d.nodes) || len(s.Phases) != len(d.spec.Phases) {
		return Turn{}, fmt.Errorf("step %s of %s %s: %w (%s %s, format %d)", s.Instance, d.spec.Name, d.spec.Version, ErrOther, s.Workflow, s.Version, s.Format)
	}
	m := &machine{d: d, s: s.own(), t: Turn{Trail: make([]Entry, 0, 8)}}
	m.s.At = max(m.s.At, e.At)
	if a := m.take(e); a != "" {
		return Turn{State: s, Absorbed: a}, nil
	}
	m.advance()
	return m.turn(), nil
}

// machine is one turn in the making.
type machine struct {
	d *Definition
	s State
	t Turn
}

func (m *machine) turn() Turn {
	m.t.State = m.s
	return m.t
}

// own copies what a turn changes in place.
func (s State) own() State {
	s.Steps = slices.Clone(s.Steps)
	s.Phases = slices.Clone(s.Phases)
	s.Outstanding = slices.Clone(s.Outstanding)
	s.Breakers = slices.Clone(s.Breakers)
	if s.Unwind != nil {
		u := *s.Unwind
		s.Unwind = &u
	}
	return s
}

// issue makes a command outstanding, and has it performed unless the instance is paused. It belongs to step i, or to the
// instance where that is -1.
func (m *machine) issue(i int, c Command) string {
	at, count := m.s.Instance, &m.s.Issued
	if i >= 0 {
		st := &m.s.Steps[i]
		c.Step, count = st.Name, &st.Issued
		at += "/" + st.Name
	}
	*count++
	c.ID = fmt.Sprintf("%s/%s.%d", at, c.Kind, *count)
	if c.At == 0 {
		c.At = m.s.At
	}
	switch c.Kind {
	case Timer, Interrupt, CancelChild, Withdraw, Hold:
	default:
		c.Held = m.s.Held
	}
	if (c.Kind == Call || c.Kind == Compensate) && c.Call == "" {
		c.Call = c.ID
	}
	m.s.Outstanding = append(m.s.Outstanding, c)
	if !c.Held {
		m.t.Commands = append(m.t.Commands, c)
	}
	return c.ID
}

// drop forgets outstanding commands: whatever answers them is absorbed.
func (m *machine) drop(which func(*Command) bool) {
	gone := func(c Command) bool { return which(&c) }
	m.s.Outstanding = slices.DeleteFunc(m.s.Outstanding, gone)
	m.t.Commands = slices.DeleteFunc(m.t.Commands, gone)
}

// outstanding returns the first command of that description, nil for none.
func (m *machine) outstanding(which func(*Command) bool) *Command {
	for k := range m.s.Outstanding {
		if which(&m.s.Outstanding[k]) {
			return &m.s.Outstanding[k]
		}
	}
	return nil
}

// note writes a line of the trail about step i, or about the instance where that is -1.
func (m *machine) note(i int, e Entry) {
	e.At = m.s.At
	if i >= 0 {
		n, st := &m.d.nodes[i], &m.s.Steps[i]
		e.Step, e.Type, e.Phase = n.Name, n.Type, m.d.spec.Phases[n.phase].Name
		e.Iteration, e.Attempt = st.Iteration, st.Attempt
	}
	m.t.Trail = append(m.t.Trail, e)
}

func hashOf(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never fails
	return h.Sum64()
}
