package statespace

import "time"

// Requirement is one fact that one call rests on.
type Requirement struct {
	Need     int // its place in the declaration
	Action   string
	Workflow bool   // Action names a workflow
	Version  string // of the workflow, "" for any
	Key      string // the fact; "" where Missing says why there is none
	SetKey   string // the field set: the bulk cell that may hold Value instead
	Value    string // the values as they stand in a bulk cell; "" where unbound
	Consumed bool
	Within   time.Duration
	Across   bool   // a fact of an earlier task answers it too
	Missing  string // path of a bound field that the input does not give
	Bulk     bool   // set by [Set.Check]: the bulk cell holds it, and no token does
}

// Required returns what a call of the action with this input rests on, in the order of the declaration. A requirement
// with Missing set cannot be met. An unknown action is an error: it must not pass for one that needs nothing.
func (g *Graph) Required(name string, input any) ([]Requirement, error) {
	i, err := g.find(name)
	if err != nil {
		return nil, err
	}
	out := make([]Requirement, len(g.needs[i]))
	for k := range g.needs[i] {
		out[k] = g.require(&g.needs[i][k], input)
		out[k].Need = k
	}
	return out, nil
}

func (g *Graph) require(n *need, input any) Requirement {
	s := &g.sets[n.set]
	r := Requirement{Action: n.Action, Workflow: n.Workflow, Version: n.Version, SetKey: s.key, Consumed: n.Consumed, Within: n.Within, Across: n.Across}
	values := make([]string, len(n.segs))
	for i, segs := range n.segs {
		v, ok := lookup(input, segs)
		text, err := appendValue(nil, v)
		if !ok || err != nil {
			r.Missing = n.mine[i]
			return r
		}
		values[i] = string(text)
	}
	r.Value, r.Key = makeKey(s.name, s.texts, values, s.hashed, &g.hash)
	return r
}
