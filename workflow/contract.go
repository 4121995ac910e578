package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Contract is a JSON Schema that a definition holds, and where.
type Contract struct {
	Of     string // such as: step "ask": intake
	Schema json.RawMessage
}

// Contracts returns every schema of the definition, in the order of its text: what a driver compiles before it starts an
// instance. The machine itself reads of them only their structure.
func (d *Definition) Contracts() []Contract { return d.spec.Contracts() }

// Contracts returns every schema of a workflow that was not checked yet, see [Definition.Contracts].
func (s *Spec) Contracts() (out []Contract) {
	add := func(of string, s json.RawMessage) {
		if len(s) > 0 {
			out = append(out, Contract{of, s})
		}
	}
	guard := func(of string, g *Guard) {
		if g != nil {
			add(of+": guard", g.Schema)
		}
	}
	add("input", s.Input)
	for k := range s.Phases {
		p := &s.Phases[k]
		guard(fmt.Sprintf("phase %q", p.Name), p.Guard)
		for i := range p.Steps {
			st := &p.Steps[i]
			of := fmt.Sprintf("step %q", st.Name)
			guard(of, st.Guard)
			add(of+": input", st.Input)
			add(of+": output", st.Output)
			if st.Hitl != nil {
				add(of+": intake", st.Hitl.Intake)
			}
		}
	}
	return out
}

// Resolves says what a person's word lacks that the call of a step succeeded: an output of which the step's undo can be made,
// as its map needs it. It returns the schema that the output has to satisfy besides, nil where there is none; to check it is
// for the caller. A step that the state does not know lacks nothing.
func (d *Definition) Resolves(s *State, step string, output json.RawMessage) (contract json.RawMessage, err error) {
	i, ok := d.at[step]
	if !ok || len(s.Steps) != len(d.nodes) {
		return nil, nil
	}
	n := &d.nodes[i]
	if n.Undo != nil {
		m := machine{d: d, s: *s}
		deed := Deed{Step: step, Input: s.Steps[i].Proposal, Output: output}
		if _, err := n.Undo.Map.hydrate(m.scopeOf(deed)); err != nil {
			err = fmt.Errorf("step %q could not be undone: %w", step, err)
			return bytes.Clone(n.Output), err
		}
	}
	return bytes.Clone(n.Output), nil
}
