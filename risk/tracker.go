package risk

import "math"

// Tracker is a belief that is updated in place, without allocation once its actions and tags are known. It gives the very
// numbers that [Model.Update] gives. It is not safe for concurrent use.
type Tracker struct {
	m      *Model
	shared shared
	states map[string]*state
	frame  frame
}

// Track returns a tracker that goes on from b, which stays as it is.
func (m *Model) Track(b Belief) (*Tracker, error) {
	b, err := m.adopt(b)
	if err != nil {
		return nil, err
	}
	t := &Tracker{m: m, shared: b.shared, states: map[string]*state{}}
	for _, n := range b.Names() {
		old, _ := b.actions.get(n)
		s := old.clone()
		t.states[n] = &s
	}
	return t, nil
}

// Observe folds one executed outcome of the action d. On an error nothing changed.
func (t *Tracker) Observe(d Declaration, o Observation) (Innovation, error) {
	if err := t.m.admit(&t.shared, d); err != nil {
		return Innovation{}, err
	}
	if err := o.check(d); err != nil {
		return Innovation{}, err
	}
	t.m.learnTags(&t.shared, d)
	s := t.states[d.Name]
	if s == nil {
		s = &state{name: d.Name}
		t.states[d.Name] = s
	}
	return t.m.observe(&t.frame, &t.shared, s, d, o), nil
}

// Risk returns the estimate for the action d, as [Model.Risk] does.
func (t *Tracker) Risk(d Declaration) Estimate {
	if t.m.admit(&t.shared, d) != nil {
		return unknown
	}
	s := t.states[d.Name]
	if s == nil {
		s = &state{name: d.Name}
	}
	return t.m.estimate(&t.frame, &t.shared, s, d)
}

// P returns the published probability of Err of the action d, 1 for a declaration that Observe would refuse.
func (t *Tracker) P(d Declaration) float64 { return t.Risk(d).P }

// Trust returns the trust of the agent.
func (t *Tracker) Trust() Trust { return t.shared.trusted() }

// Forecast returns what the next call of d is expected to use, as [Model.Forecast] does.
func (t *Tracker) Forecast(d Declaration) Forecast {
	s := t.states[d.Name]
	if s == nil {
		s = &state{}
	}
	return t.m.forecast(&t.shared, s, d)
}

// Belief returns a copy of what is known.
func (t *Tracker) Belief() Belief {
	b := Belief{shared: t.shared.clone()}
	for _, s := range t.states {
		c := s.clone()
		b.actions = b.actions.with(&c)
	}
	return b
}

// unknown is the estimate where none can be made: whoever gates on it stops.
var unknown = Estimate{P: 1, Lo: 0, Hi: 1, Score: maxRisk, Floor: maxRisk, Variance: math.Inf(1)}
