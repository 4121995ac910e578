package risk

import (
	"math"
	"slices"
)

// Tracker is a belief that is updated in place, without allocation once its actions and tags are known. It gives the very
// numbers that [Model.Update] gives. It is not safe for concurrent use.
type Tracker struct {
	m      *Model
	shared shared
	from   table             // what it goes on from: never changed
	states map[string]*state // of the actions observed since
	frame  *frame
	seen   seen
}

// seen is the prediction that an observation left behind: what the next one of the same action would begin with.
type seen struct {
	by   *Model
	of   *state // nil: none
	risk int
	tags []string
	mix  mixture
}

// is reports whether it was seen of that action, declared so.
func (p *seen) is(s *state, d Declaration) bool {
	return p.of == s && p.risk == d.Risk && slices.Equal(p.tags, d.Tags)
}

// Track returns a tracker that goes on from b, which stays as it is.
func (m *Model) Track(b Belief) (*Tracker, error) {
	b, err := m.adopt(b)
	if err != nil {
		return nil, err
	}
	t := &Tracker{m: m, shared: b.shared, from: b.actions, states: map[string]*state{}, frame: m.frame()}
	if b.seen != nil && b.seen.by == m {
		t.seen = *b.seen
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
	return t.m.observe(t.frame, &t.shared, t.own(d.Name), d, o, &t.seen), nil
}

// own returns what is known of an action, to be changed.
func (t *Tracker) own(name string) *state {
	if s := t.states[name]; s != nil {
		return s
	}
	old, _ := t.from.get(name)
	s := old.clone()
	s.name = name
	t.states[name] = &s
	if t.seen.of == old {
		t.seen.of = &s
	}
	return &s
}

// state returns what is known of an action, an empty one that must not be changed where nothing is.
func (t *Tracker) state(name string) *state {
	if s := t.states[name]; s != nil {
		return s
	}
	s, _ := t.from.get(name)
	return s
}

// Risk returns the estimate for the action d, as [Model.Risk] does.
func (t *Tracker) Risk(d Declaration) Estimate {
	if t.m.admit(&t.shared, d) != nil {
		return unknown
	}
	return t.m.estimate(t.frame, &t.shared, t.state(d.Name), d)
}

// P returns the published probability of Err of the action d, 1 for a declaration that Observe would refuse.
func (t *Tracker) P(d Declaration) float64 { return t.Risk(d).P }

// Trust returns the trust of the agent.
func (t *Tracker) Trust() Trust { return t.shared.trusted() }

// Forecast returns what the next call of d is expected to use, as [Model.Forecast] does.
func (t *Tracker) Forecast(d Declaration) Forecast {
	return t.m.forecast(&t.shared, t.state(d.Name), d)
}

// Belief returns a copy of what is known.
func (t *Tracker) Belief() Belief {
	b := Belief{shared: t.shared.clone(), actions: t.from}
	for _, s := range t.states {
		c := s.clone()
		b.actions = b.actions.with(&c)
	}
	return b
}

// End returns what is known, without copying it. The tracker must not be used any more.
func (t *Tracker) End() Belief {
	last := t.seen
	b := Belief{shared: t.shared, actions: t.from, seen: &last}
	for _, s := range t.states {
		b.actions = b.actions.with(s)
	}
	t.m.pool.Put(t.frame)
	*t = Tracker{}
	return b
}

// unknown is the estimate where none can be made: whoever gates on it stops.
var unknown = Estimate{P: 1, Lo: 0, Hi: 1, Score: maxRisk, Floor: maxRisk, Variance: math.Inf(1)}
