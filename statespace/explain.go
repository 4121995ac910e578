package statespace

import (
	"slices"
	"strings"
	"time"
)

// Reason says why a need is not met.
type Reason string

// The reasons.
const (
	Never    Reason = "never"    // no Ok established it
	Stale    Reason = "stale"    // the Ok is older than the need allows
	Consumed Reason = "consumed" // established and used up
	Missing  Reason = "missing"  // the input does not give a bound field
)

// Unmet is one need that is not met. It names actions that may be hidden from a planner: it is for operators.
type Unmet struct {
	Need     int // its place in the declaration
	Action   string
	Workflow bool   // Action names a workflow, which has not completed
	Version  string // of the workflow, "" for any
	Bind     []Bind
	Values   []string // of a call: JSON, in the order of Bind; nil where secret, missing or not about a call
	Reason   Reason
	Field    string // with Missing: the path
	Within   time.Duration
	Across   bool // an Ok of an earlier task would do
}

// String returns a line such as "needs confirm-order on orderId".
func (u Unmet) String() string {
	var b strings.Builder
	b.WriteString("needs " + whatIs(u.Action, u.Workflow, u.Version))
	for i, bind := range u.Bind {
		b.WriteString([]string{" on ", ", "}[min(i, 1)] + bind.Mine)
		if i < len(u.Values) {
			b.WriteString("=" + u.Values[i])
		}
		switch {
		case bind.Output:
			b.WriteString(" (its output " + bind.Theirs + ")")
		case bind.Theirs != bind.Mine:
			b.WriteString(" (its " + bind.Theirs + ")")
		}
	}
	if u.Within > 0 {
		b.WriteString(" within " + u.Within.String())
	}
	if u.Across {
		b.WriteString(", in this task or an earlier one")
	}
	switch u.Reason {
	case Stale:
		b.WriteString("; it is too long ago")
	case Consumed:
		b.WriteString("; it was used up")
	case Missing:
		b.WriteString("; the input has no " + u.Field)
	}
	return b.String()
}

// Explain returns every need of the action that is not met at store time now (µs), whatever the input; none for a legal
// action. An unknown action is an error.
func (g *Graph) Explain(name string, s *Set, now int64) ([]Unmet, error) {
	i, err := g.find(name)
	if err != nil {
		return nil, err
	}
	var out []Unmet
	for k := range g.needs[i] {
		n := &g.needs[i][k]
		if s.met(n, now) {
			continue
		}
		u := n.unmet(k)
		switch h := s.held[n.set]; {
		case !h.empty():
			u.Reason = Stale
		case h != nil && h.gone > 0:
			u.Reason = Consumed
		}
		out = append(out, u)
	}
	return out, nil
}

func (n *need) unmet(place int) Unmet {
	return Unmet{Need: place, Action: n.Action, Workflow: n.Workflow, Version: n.Version, Bind: slices.Clone(n.Bind), Reason: Never, Within: n.Within, Across: n.Across}
}

// Check judges one call: what it rests on, and which of that does not hold at store time now (µs). The call is
// prerequisite-legal where nothing is unmet. An unknown action is an error.
func (s *Set) Check(name string, input any, now int64) ([]Requirement, []Unmet, error) {
	rs, err := s.g.Required(name, input)
	if err != nil {
		return nil, nil, err
	}
	var out []Unmet
	for k := range rs {
		n := &s.g.needs[s.g.index[name]][k]
		if u, ok := s.check(n, &rs[k], now); !ok {
			u.Need = k
			out = append(out, u)
		}
	}
	return rs, out, nil
}

func (s *Set) check(n *need, r *Requirement, now int64) (Unmet, bool) {
	u := n.unmet(r.Need)
	if r.Missing != "" {
		u.Reason, u.Field = Missing, r.Missing
		return u, false
	}
	if r.Value != "" && !isHash(r.Value) {
		u.Values = splitValues(r.Value)
	}
	h := s.held[n.set]
	if h == nil {
		return u, false
	}
	v := h.values[r.Value]
	switch {
	case v == nil:
	case v.hasToken && isFresh(v.token, n.within, now):
		return u, true
	case v.inBulk && isFresh(v.bulk, n.within, now):
		r.Bulk = true
		return u, true
	case v.live():
		u.Reason = Stale
	case v.removed:
		u.Reason = Consumed
	}
	return u, false
}
