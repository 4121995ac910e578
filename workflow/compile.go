package workflow

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Definition is a workflow that was checked. It does not change and may be used by any number of goroutines.
type Definition struct {
	spec     Spec
	text     string         // spec as JSON
	nodes    []node         // the steps, phase by phase
	at       map[string]int // name → place in nodes
	first    []int          // of each phase: its first node; one more at the end
	digest   string
	warnings []string
}

// node is a step with what follows from where it stands.
type node struct {
	Step
	phase    int
	needs    []edge
	handlers []int // steps that run where this one fails
	before   []int // all steps that end before it begins, in their order
	ladder   []Rung
	digest   string
}

type edge struct {
	to   int
	when When
}

// Compile checks a workflow. The error names every fault that there is: what is written wrongly, what is not known, and what flows
// between steps, apart from what follows from others.
func Compile(s Spec) (*Definition, error) { return compile(s, nil) }

func compile(s Spec, faults []error) (*Definition, error) {
	s, illegible := s.legible()
	faults = append(slices.Clip(faults), illegible...)
	s, err := s.clone()
	if err != nil {
		return nil, errors.Join(append(faults, err)...)
	}
	d := &Definition{spec: s, at: map[string]int{}}
	for k := range s.Phases {
		d.first = append(d.first, len(d.nodes))
		for _, st := range s.Phases[k].Steps {
			d.nodes = append(d.nodes, node{Step: st, phase: k})
		}
	}
	d.first = append(d.first, len(d.nodes))
	if faults = append(faults, d.check()...); len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	for i := range d.nodes {
		n := &d.nodes[i]
		n.ladder = d.ladderOf(n)
		n.digest = digest(n.Step)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err // clone has written it
	}
	d.text, d.digest = string(text), digestOf(text)
	return d, nil
}

// legible names the schemas and constants that are no JSON, and puts others in their place.
func (s Spec) legible() (Spec, []error) {
	var faults []error
	check := func(what string, text *json.RawMessage) {
		if len(*text) > 0 && !json.Valid(*text) {
			faults = append(faults, errors.New(what+" is no JSON"))
			*text = json.RawMessage("true") // a schema that lets everything pass; a constant that is rarely what is wanted
		}
	}
	mapping := func(what string, m *Mapping) {
		*m = maps.Clone(*m)
		for _, path := range sorted(*m) {
			v := (*m)[path]
			check(fmt.Sprintf("%s maps %q: its constant", what, path), &v.Const)
			check(fmt.Sprintf("%s maps %q: its default", what, path), &v.Default)
			(*m)[path] = v
		}
	}
	guard := func(what string, g **Guard) {
		if *g != nil {
			own := **g
			check(what+": the schema of its guard", &own.Schema)
			*g = &own
		}
	}
	check("the input schema of the workflow", &s.Input)
	mapping("the output of the workflow", &s.Output)
	s.Phases = slices.Clone(s.Phases)
	for k := range s.Phases {
		p := &s.Phases[k]
		guard(fmt.Sprintf("phase %q", p.Name), &p.Guard)
		p.Steps = slices.Clone(p.Steps)
		for i := range p.Steps {
			st := &p.Steps[i]
			what := fmt.Sprintf("step %q", st.Name)
			guard(what, &st.Guard)
			check(what+": its input contract", &st.Input)
			check(what+": its output contract", &st.Output)
			mapping(what, &st.Map)
			if st.Hitl != nil {
				h := st.Hitl.clone()
				check(what+": its intake", &h.Intake)
				st.Hitl = &h
			}
			if st.Undo != nil {
				u := *st.Undo
				mapping(what+": undo", &u.Map)
				st.Undo = &u
			}
		}
	}
	return s, faults
}

// clone also refuses what would not survive being written: schemas and constants that are no JSON.
func (s Spec) clone() (out Spec, err error) {
	text, err := json.Marshal(s)
	if err != nil {
		return s, fmt.Errorf("a schema or a constant is no JSON: %w", err)
	}
	return out, json.Unmarshal(text, &out)
}

func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "" // clone has written it
	}
	return digestOf(text)
}

func digestOf(text []byte) string {
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:])
}

// Spec returns the workflow as it was written.
func (d *Definition) Spec() Spec {
	s, err := d.spec.clone()
	if err != nil {
		return d.spec
	}
	return s
}

// Text returns the workflow as it was written, as JSON: that of [Definition.Spec]. The bytes are the caller's.
func (d *Definition) Text() json.RawMessage { return json.RawMessage(d.text) }

// Input returns the JSON Schema of the input, nil where any object will do. The bytes are the caller's.
func (d *Definition) Input() json.RawMessage { return bytes.Clone(d.spec.Input) }

// Calls yields each step that names an action, with the name of the action; what undoes a step among them.
func (d *Definition) Calls() iter.Seq2[string, string] {
	return func(yield func(step, action string) bool) {
		for i := range d.nodes {
			n := &d.nodes[i]
			if n.Action != "" && !yield(n.Name, n.Action) {
				return
			}
			if n.Undo != nil && n.Undo.Action != "" && !yield(n.Name, n.Undo.Action) {
				return
			}
		}
	}
}

// Name returns the name of the workflow.
func (d *Definition) Name() string { return d.spec.Name }

// Version returns the version its author gave it.
func (d *Definition) Version() string { return d.spec.Version }

// Digest names exactly this definition: SHA-256, hex.
func (d *Definition) Digest() string { return d.digest }

// Warnings are what is sound and still should be looked at.
func (d *Definition) Warnings() []string { return slices.Clone(d.warnings) }

// Children returns the names of the definitions that its SUB_SOPs run, each once, in the order of the steps.
func (d *Definition) Children() (out []string) {
	for i := range d.nodes {
		if w := d.nodes[i].Workflow; w != "" && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// String lists the phases and steps, one a line.
func (d *Definition) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "workflow %s %s\n", d.spec.Name, d.spec.Version)
	for k, p := range d.spec.Phases {
		fmt.Fprintf(&b, "phase %s\n", p.Name)
		for i := d.first[k]; i < d.first[k+1]; i++ {
			b.WriteString("  " + d.nodes[i].line() + "\n")
		}
	}
	return b.String()
}

func (n *node) line() string {
	s := string(n.Type) + " " + n.Name
	switch n.Type {
	case Execution:
		s += " calls " + n.Action
	case SubSOP:
		s += " runs " + n.Workflow
	case Reasoning:
		s += " by " + n.Planner
	}
	var after []string
	for _, e := range n.Needs {
		a := e.Step
		if e.When != "" && e.When != OnOk {
			a += " (" + string(e.When) + ")"
		}
		after = append(after, a)
	}
	if len(after) > 0 {
		s += " after " + strings.Join(after, ", ")
	}
	return s
}
