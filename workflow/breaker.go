package workflow

import "slices"

// BreakerState counts the failures of the children of one definition.
type BreakerState struct {
	Workflow string  `json:"workflow"`
	Failures []int64 `json:"failures,omitempty"` // when, µs since 1970, those within the window
	Until    int64   `json:"until,omitempty"`    // tripped until then
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

// trip counts a failure, and trips the breaker where there were too many. What tripped it is forgotten: after the cooldown
// it counts anew.
func (m *machine) trip(i int) {
	n := &m.d.nodes[i]
	if n.Breaker == nil {
		return
	}
	at := slices.IndexFunc(m.s.Breakers, func(b BreakerState) bool { return b.Workflow == n.Workflow })
	if at < 0 {
		at = len(m.s.Breakers)
		m.s.Breakers = append(m.s.Breakers, BreakerState{Workflow: n.Workflow})
	}
	b := m.s.Breakers[at]
	from := m.s.At - micros(n.Breaker.Window)
	failures := []int64{}
	for _, t := range append(slices.Clip(b.Failures), m.s.At) {
		if t > from {
			failures = append(failures, t)
		}
	}
	b.Failures = failures
	if len(failures) >= n.Breaker.Failures {
		b.Failures, b.Until = nil, m.s.At+micros(n.Breaker.Cooldown)
		m.note(i, Entry{Kind: BreakerTrip, Text: n.Workflow})
	}
	m.s.Breakers[at] = b
}
