package delta

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Which fields of what a workflow carries are secret is said by schemas: of its input, of its steps, of what people are asked
// for, and of the actions that it calls. A field is one too where a mapping takes it to one: what a call takes as a secret
// was a secret when a person gave it, three steps before.

// places are dotted paths in a document, segment by segment, where "*" is any member or element. A path without segments is
// the whole document.
type places [][]string

// anywhere is a segment that stands for any.
const anywhere = "*"

func placesOf(s *schema.Schema) (out places) {
	for _, path := range s.Secrets() {
		out = append(out, segmentsOf(path))
	}
	return out
}

// segmentsOf splits a path of a schema, in which dots that belong to names are escaped.
func segmentsOf(path string) (out []string) {
	var seg strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '\\' && i+1 < len(path):
			i++
			seg.WriteByte(path[i])
		case c == '.':
			out = append(out, seg.String())
			seg.Reset()
		default:
			seg.WriteByte(c)
		}
	}
	return append(out, seg.String())
}

func secretPlaces(paths []string) (out places) {
	for _, p := range paths {
		out = append(out, segmentsOf(p))
	}
	return out
}

// below returns what of the secret places lies at or below a path of the document, as paths from there. What lies inside of
// a secret is all secret.
func (p places) below(path []string) (out places) {
	for _, secret := range p {
		n := min(len(path), len(secret))
		if !meets(path[:n], secret[:n]) {
			continue
		}
		out = append(out, secret[n:])
	}
	return out
}

// covers reports whether a place is secret, all of it.
func (p places) covers(path []string) bool {
	return slices.ContainsFunc(p, func(secret []string) bool { return len(secret) <= len(path) && meets(secret, path[:len(secret)]) })
}

func meets(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] && a[i] != anywhere && b[i] != anywhere {
			return false
		}
	}
	return true
}

// stepPlaces are the secrets of a step: in what it is carried out with, in what it gives, in what people give it, and in what
// the call takes that undoes it.
type stepPlaces struct{ in, out, intake, undo places }

// flowPlaces are the secrets of a workflow as one agent works on it.
type flowPlaces struct {
	input places
	steps map[string]*stepPlaces
	types map[string]workflow.Type
	spilt []error // what the workflow hands to fields that are none
}

// any reports whether there are any.
func (f *flowPlaces) any() bool {
	for _, s := range f.steps {
		if len(s.in)+len(s.out)+len(s.intake)+len(s.undo) > 0 {
			return true
		}
	}
	return len(f.input) > 0
}

// asked are the secrets in what people are asked for, anywhere in the workflow.
func (f *flowPlaces) asked() (out places) {
	for _, s := range f.steps {
		out = append(out, s.intake...)
	}
	return out
}

// taint finds the secrets of a workflow.
type taint struct {
	e    *Engine
	a    *Agent
	spec workflow.Spec
	f    *flowPlaces
	more bool // something was found since it was last asked
}

// maxPlaces bounds the secret places of one document; maxNested how deep workflows are looked into that nest each other.
const (
	maxPlaces = 1000
	maxNested = 16
)

// placesIn returns the secrets of a workflow. A contract that cannot be used is reported where it is used.
func (e *Engine) placesIn(d *workflow.Definition, a *Agent) *flowPlaces {
	of := placesKey{d, a}
	if got, ok := e.flows.places.Load(of); ok {
		f, _ := got.(*flowPlaces)
		return f
	}
	f := e.placesWithin(d, a, 0)
	f.spilt = e.spills(d, a, f)
	if e.flows.definition(d.Name(), d.Version()) == d && a.card == nil { // else it is made anew each time
		e.flows.places.Store(of, f)
	}
	return f
}

type placesKey struct {
	d *workflow.Definition
	a *Agent
}

func (e *Engine) placesWithin(d *workflow.Definition, a *Agent, depth int) *flowPlaces {
	w := &taint{e: e, a: a, spec: d.Spec(), f: &flowPlaces{steps: map[string]*stepPlaces{}, types: map[string]workflow.Type{}}}
	w.add(&w.f.input, w.contract(w.spec.Input)...)
	w.each(func(s *workflow.Step) { w.f.steps[s.Name], w.f.types[s.Name] = w.declared(s, depth), s.Type })
	if !w.f.any() {
		return w.f
	}
	for w.more = true; w.more; {
		w.more = false
		w.each(w.back)
	}
	return w.f
}

func (w *taint) each(do func(*workflow.Step)) {
	for k := range w.spec.Phases {
		for i := range w.spec.Phases[k].Steps {
			do(&w.spec.Phases[k].Steps[i])
		}
	}
}

// declared is what schemas say of a step.
func (w *taint) declared(s *workflow.Step, depth int) *stepPlaces {
	takes, gives := w.a.secretsOf(s.Action)
	p := &stepPlaces{
		in:  append(w.contract(s.Input), secretPlaces(takes)...),
		out: append(w.contract(s.Output), secretPlaces(gives)...),
	}
	if s.Hitl != nil {
		p.intake = w.contract(s.Hitl.Intake)
	}
	for _, name := range w.a.undoers(s) {
		takes, _ := w.a.secretsOf(name)
		w.add(&p.undo, secretPlaces(takes)...)
	}
	if s.Workflow == "" || depth >= maxNested {
		return p
	}
	if child := w.e.flows.latest(s.Workflow); child != nil {
		agent := w.e.flows.Agents[s.Workflow]
		if agent == nil {
			agent = w.a
		}
		nested := w.e.placesWithin(child, agent, depth+1)
		p.in = append(p.in, nested.input...)
		p.intake = append(p.intake, nested.asked()...) // its questions may be put to this step's people
	}
	return p
}

// undoers are the actions of which one undoes a step: the step's own, or the one that its action declares; where only the
// agent's card is at hand that one may be any.
func (a *Agent) undoers(s *workflow.Step) []string {
	switch d := a.defs[s.Action]; {
	case s.Undo != nil:
		return []string{s.Undo.Action}
	case s.Action == "":
		return nil
	case a.card != nil:
		return a.Actions()
	case d == nil || d.undoneBy == "":
		return nil
	default:
		return []string{d.undoneBy}
	}
}

func (w *taint) contract(text []byte) places {
	if len(text) == 0 {
		return nil
	}
	s, err := w.e.flows.contract(text)
	if err != nil {
		return nil
	}
	return placesOf(s)
}

// add notes places that are not known yet. Too many of them are the whole document.
func (w *taint) add(to *places, found ...[]string) {
	for _, p := range found {
		if to.covers(p) {
			continue
		}
		if len(*to) >= maxPlaces {
			p = nil
		}
		*to, w.more = append(*to, p), true
	}
}

// back marks what a step's secrets come from.
func (w *taint) back(s *workflow.Step) {
	p := w.f.steps[s.Name]
	switch {
	case s.Type == workflow.Human: // its artifact is what a person said
		w.add(&p.out, p.intake...)
		w.add(&p.intake, p.out...)
	case s.Type == workflow.Reasoning && s.Planner == "":
		w.add(&p.in, p.out...) // its artifact is what was mapped
		w.add(&p.out, p.in...)
	}
	w.sources(s.Map, p.in, p)
	if s.Undo != nil {
		takes, _ := w.a.secretsOf(s.Undo.Action)
		w.sources(s.Undo.Map, secretPlaces(takes), p)
	}
}

func (w *taint) sources(m workflow.Mapping, secret places, own *stepPlaces) {
	if len(secret) == 0 {
		return
	}
	for target, src := range m {
		if to, rest := w.source(src.From, own); to != nil {
			for _, below := range secret.below(targetOf(target)) {
				w.add(to, append(slices.Clone(rest), below...))
			}
		}
	}
}

func targetOf(path string) []string {
	if path == "." {
		return nil
	}
	return strings.Split(path, ".")
}

// source returns the document that a path of a mapping leads into, and where in it.
func (w *taint) source(from string, own *stepPlaces) (to *places, rest []string) {
	p := strings.Split(from, ".")
	switch {
	case p[0] == "input":
		return &w.f.input, p[1:]
	case p[0] == "intake":
		return &own.intake, p[1:]
	case p[0] == "call" && len(p) > 1 && p[1] == "input":
		return &own.in, p[2:]
	case p[0] == "call" && len(p) > 1 && p[1] == "output":
		return &own.out, p[2:]
	case p[0] == "steps" && len(p) > 2 && p[2] == "output" && w.f.steps[p[1]] != nil:
		return &w.f.steps[p[1]].out, p[3:]
	}
	return nil, nil
}

// spills reports secrets that the workflow hands to fields of calls that are none: they would stand there for all to read,
// and the call is refused when it is made.
func (e *Engine) spills(d *workflow.Definition, a *Agent, f *flowPlaces) (faults []error) {
	if !f.any() {
		return nil
	}
	w := &taint{e: e, a: a, spec: d.Spec(), f: f}
	w.each(func(s *workflow.Step) {
		if takes, _ := a.secretsOf(s.Action); s.Planner == "" { // else it is the planner's input
			faults = append(faults, w.spilt(s.Name, s.Action, s.Map, secretPlaces(takes), w.f.steps[s.Name])...)
		}
		if s.Undo != nil {
			takes, _ := a.secretsOf(s.Undo.Action)
			faults = append(faults, w.spilt(s.Name, s.Undo.Action, s.Undo.Map, secretPlaces(takes), w.f.steps[s.Name])...)
		}
	})
	return faults
}

func (w *taint) spilt(step, action string, m workflow.Mapping, takes places, own *stepPlaces) (faults []error) {
	if action == "" {
		return nil
	}
	for _, target := range slices.Sorted(maps.Keys(m)) {
		from, rest := w.source(m[target].From, own)
		if from == nil {
			continue
		}
		for _, below := range from.below(rest) {
			if at := append(targetOf(target), below...); !takes.covers(at) {
				faults = append(faults, fmt.Errorf("step %q hands the secret %q to field %q of action %q, which is none: tag that as a secret, or do not map it",
					step, m[target].From, strings.Join(at, "."), action))
				break
			}
		}
	}
	return faults
}
