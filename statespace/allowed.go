package statespace

import "slices"

// MaxNarrow is the most value tuples to which an offered schema is narrowed.
const MaxNarrow = 32

// Allowed is what one bound need leaves of its fields.
type Allowed struct {
	Need   int      // its place in the declaration
	Action string   // the prerequisite
	Fields []string // paths into the action's own input
	Count  int      // tuples that satisfy the need now

	// Tuples holds the values as JSON, one for each field, sorted. It is nil where there are more than MaxNarrow, or
	// where a value is hashed: then the schema keeps its shape and the call itself is judged.
	Tuples [][]string
}

// Allowed returns, for each bound need of the action in the order of the declaration, which values satisfy it at store
// time now (µs). All needs hold together; each narrows on its own.
func (s *Set) Allowed(name string, now int64) []Allowed {
	i, ok := s.g.index[name]
	if !ok {
		return nil
	}
	var out []Allowed
	for k := range s.g.needs[i] {
		n := &s.g.needs[i][k]
		if len(n.mine) == 0 {
			continue
		}
		values := s.fresh(n, now)
		a := Allowed{Need: k, Action: n.Action, Fields: slices.Clone(n.mine), Count: len(values)}
		if len(values) <= MaxNarrow && !slices.ContainsFunc(values, isHash) {
			a.Tuples = make([][]string, len(values))
			for j, v := range values {
				a.Tuples[j] = splitValues(v)
			}
		}
		out = append(out, a)
	}
	return out
}

func isHash(value string) bool { return value[0] == '#' }

// fresh returns the sorted values that satisfy a need.
func (s *Set) fresh(n *need, now int64) []string {
	h := s.held[n.set]
	if h.empty() {
		return nil
	}
	var out []string
	for value, v := range h.values {
		if v.fresh(n.within, now) {
			out = append(out, value)
		}
	}
	slices.Sort(out)
	return out
}
