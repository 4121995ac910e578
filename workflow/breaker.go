package workflow

import (
	"slices"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// BreakerState counts the failures of the children of one definition.
type BreakerState struct {
	Workflow string  `json:"workflow"`
	Failures []int64 `json:"failures,omitempty"` // when, µs since 1970, those within the window
	Until    int64   `json:"until,omitempty"`    // tripped until then
}

// Breaker returns the breaker of a step's child workflow, false where it has none.
func (d *Definition) Breaker(step string) (b Breaker, has bool) {
	i, known := d.at[step]
	if !known || d.nodes[i].Breaker == nil {
		return b, false
	}
	return *d.nodes[i].Breaker, true
}

// Keeps is for how long a failure is kept where those of many instances are counted together, see [Breaker.Open].
func (b Breaker) Keeps() time.Duration { return 2 * (b.Window + b.Cooldown) }

// Open says until when (µs) children must not be started, given when children of all instances failed (µs, rising) and the
// time now; 0 where one may be. It is for drivers, who answer [Spawn] with the failure [BreakerIsOpen] then.
func (b Breaker) Open(failures []int64, now int64) int64 {
	var s BreakerState
	for _, at := range failures {
		s, _ = b.count(s, at)
	}
	if s.Until > now {
		return s.Until
	}
	return 0
}

// count is the state after one more failure, and whether that trips it. What tripped it is forgotten: after the cooldown it
// counts anew.
func (b Breaker) count(s BreakerState, at int64) (BreakerState, bool) {
	from := at - micros(b.Window)
	failures := []int64{}
	for _, t := range append(slices.Clip(s.Failures), at) {
		if t > from {
			failures = append(failures, t)
		}
	}
	s.Failures = failures
	if len(failures) < b.Failures {
		return s, false
	}
	s.Failures, s.Until = nil, at+micros(b.Cooldown)
	return s, true
}

// ruleBreaker marks the failure of a child that was not started because its breaker is open.
const ruleBreaker = "breaker"

// BreakerIsOpen is the failure of a child that was not started, because too many of other instances failed: its breaker is
// open for as long as that.
func BreakerIsOpen(workflow string, remains time.Duration) *action.Failure {
	f := notRun(action.Unavailable, "the breaker of workflow %s is open", workflow)
	return f.With(action.DetailRule, ruleBreaker).With(action.DetailAfter, remains.String())
}

// tripped returns until when no child of the step's definition is started, 0 where one may be.
func (m *machine) tripped(n *node) int64 {
	if n.Breaker == nil {
		return 0
	}
	for _, b := range m.s.Breakers {
		if b.Workflow == n.Workflow && b.Until > m.s.At {
			return b.Until
		}
	}
	return 0
}

// breakerOf finds or makes the state of a step's breaker.
func (m *machine) breakerOf(n *node) *BreakerState {
	at := slices.IndexFunc(m.s.Breakers, func(b BreakerState) bool { return b.Workflow == n.Workflow })
	if at < 0 {
		at = len(m.s.Breakers)
		m.s.Breakers = append(m.s.Breakers, BreakerState{Workflow: n.Workflow})
	}
	return &m.s.Breakers[at]
}

// trip counts a failure, and trips the breaker where there were too many.
func (m *machine) trip(i int, child string) {
	n := &m.d.nodes[i]
	if n.Breaker == nil {
		return
	}
	m.note(i, Entry{Kind: BreakerCount, Text: n.Workflow, Child: child, Lasts: micros(n.Breaker.Keeps())})
	b := m.breakerOf(n)
	var trips bool
	if *b, trips = n.Breaker.count(*b, m.s.At); trips {
		m.note(i, Entry{Kind: BreakerTrip, Text: n.Workflow})
	}
}

// shut takes up that a child was not started because the breaker is open elsewhere: false where that is not why.
func (m *machine) shut(i int, f *action.Failure) bool {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	if n.Breaker == nil || f.Details[action.DetailRule] != ruleBreaker || f.Executed != action.No {
		return false
	}
	st.Children-- // it never was
	remains, err := time.ParseDuration(f.Details[action.DetailAfter])
	if b := m.breakerOf(n); err == nil {
		b.Until = max(b.Until, m.s.At+micros(min(remains, maxAfter)))
	}
	m.note(i, Entry{Kind: BreakerTrip, Text: n.Workflow})
	return true
}
