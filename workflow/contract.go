package workflow

import (
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
func (d *Definition) Contracts() (out []Contract) {
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
	add("input", d.spec.Input)
	for k := range d.spec.Phases {
		p := &d.spec.Phases[k]
		guard(fmt.Sprintf("phase %q", p.Name), p.Guard)
		for i := range p.Steps {
			s := &p.Steps[i]
			of := fmt.Sprintf("step %q", s.Name)
			guard(of, s.Guard)
			add(of+": input", s.Input)
			add(of+": output", s.Output)
			if s.Hitl != nil {
				add(of+": intake", s.Hitl.Intake)
			}
		}
	}
	return out
}
