package workflow

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// check returns the faults of a definition, in the order of its text, and fills in its edges. What is not known of a step, as what
// it needs is not known or goes round in circles, is not held against what flows to it.
func (d *Definition) check() []error {
	c := &checker{d: d}
	s := &d.spec
	if c.size(); len(c.faults) > 0 {
		return c.faults
	}
	c.name("workflow", s.Name)
	c.name("version of workflow "+s.Name, s.Version)
	if len(d.nodes) == 0 {
		c.fault("workflow %q has no steps", s.Name)
	}
	c.limits("workflow "+s.Name, s.Limits)
	if s.Limits.Iterations != 0 || s.Limits.Attempts != 0 {
		c.fault("workflow %q: the limits of a workflow are time and cost; iterations and attempts are those of steps", s.Name)
	}
	c.phases()
	for i := range d.nodes {
		c.step(i)
	}
	c.edges()
	c.order()
	c.shares()
	c.flow()
	return c.faults
}

type checker struct {
	d         *Definition
	faults    []error
	suggested int             // how often a name that may have been meant was looked for
	shapes    map[*byte]shape // of the schemas that were read, by where they are
	ends      []When          // how what stands before step endsOf must have ended, see requires
	endsOf    int
	always    map[int]bool // see Definition.always
	owners    bool         // those of the workflow were looked at, as people who are asked
	pairs     int          // of steps that were looked at, see excluded
	unsure    []bool       // steps of which it is not known what stands before them
}

// Bounds of a workflow. What is checked of a definition, and what an instance of it holds, grows with them.
const (
	// MaxSteps is how many steps a workflow has at most, those of all phases together.
	MaxSteps = 2000
	// MaxNeeds is how many needs the steps of a workflow have at most, all together.
	MaxNeeds = 20_000
)

// size refuses what is too much to be looked at.
func (c *checker) size() {
	needs := 0
	for i := range c.d.nodes {
		needs += len(c.d.nodes[i].Needs)
	}
	if n := len(c.d.nodes); n > MaxSteps {
		c.fault("workflow %q has %d steps, want at most %d: run parts of it as workflows of their own, by steps of type SUB_SOP", c.d.spec.Name, n, MaxSteps)
	}
	if needs > MaxNeeds {
		c.fault("the steps of workflow %q have %d needs, want at most %d: leave out those that follow from others, or let phases follow each other", c.d.spec.Name, needs, MaxNeeds)
	}
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

func (c *checker) warn(format string, args ...any) {
	c.d.warnings = append(c.d.warnings, fmt.Sprintf(format, args...))
}

func (c *checker) name(what, name string) {
	if err := action.CheckName(name); err != nil {
		c.fault("%s: %w", what, err)
	}
}

// checkStepName: dots and slashes stand between names in paths and ids.
func checkStepName(s string) error {
	if err := action.CheckName(s); err != nil {
		return err
	}
	if strings.ContainsAny(s, "./") || len(s) > maxStepName {
		return fmt.Errorf("name %q: want at most %d letters, digits, '-' and '_'", s, maxStepName)
	}
	return nil
}

const maxStepName = 48

func (c *checker) phases() {
	seen := map[string]bool{}
	for k := range c.d.spec.Phases {
		p := &c.d.spec.Phases[k]
		what := fmt.Sprintf("phase %q", p.Name)
		c.name(what, p.Name)
		if seen[p.Name] {
			c.fault("%s: there are two of that name", what)
		}
		seen[p.Name] = true
		if len(p.Steps) == 0 {
			c.fault("%s has no steps", what)
		}
		c.guard(what, p.Guard)
		c.supervision(what, p.Supervision)
	}
}

var strategies = []Strategy{SuperviseRetry, SuperviseRestart, SuperviseResume, SuperviseEscalate, AbortSubtree, AbortTree}

func (c *checker) supervision(what string, s Supervision) {
	if s.Strategy != "" && !slices.Contains(strategies, s.Strategy) {
		c.fault("%s: there is no supervision %q; want one of %q", what, s.Strategy, strategies)
	}
	if s.Then != "" && !slices.Contains(strategies[2:], s.Then) {
		c.fault("%s: supervision cannot go on with %q; want one of %q", what, s.Then, strategies[2:])
	}
	if s.Max < 0 {
		c.fault("%s: supervision %d times, want a positive number", what, s.Max)
	}
	c.backoff(what, s.Backoff)
}

func (c *checker) backoff(what string, b Backoff) {
	if b.Base < 0 || b.Max < 0 || b.Max > 0 && b.Max < b.Base || b.Jitter > 100 {
		c.fault("%s: a backoff from %v to %v with %d%% jitter is none", what, b.Base, b.Max, b.Jitter)
	}
}

func (c *checker) guard(what string, g *Guard) {
	if g == nil {
		return
	}
	if (g.Name == "") == (len(g.Schema) == 0) {
		c.fault("%s: a guard is either the name of a predicate or a schema", what)
	}
	c.schema(what+": guard", g.Schema)
}

func (c *checker) limits(what string, l Limits) {
	if l.Iterations < 0 || l.Attempts < 0 || l.Time < 0 {
		c.fault("%s: limits are positive: %d iterations, %d attempts, %v", what, l.Iterations, l.Attempts, l.Time)
	}
	if err := l.Cost.Check(); err != nil {
		c.fault("%s: %w", what, err)
	}
}

// step checks what a step says by itself.
func (c *checker) step(i int) {
	n := &c.d.nodes[i]
	what := fmt.Sprintf("step %q", n.Name)
	if err := checkStepName(n.Name); err != nil {
		c.fault("%s: %w", what, err)
	}
	if at, twice := c.d.at[n.Name]; twice {
		c.fault("%s: there are two of that name, in phases %q and %q", what, c.d.spec.Phases[c.d.nodes[at].phase].Name, c.d.spec.Phases[n.phase].Name)
	} else {
		c.d.at[n.Name] = i
	}
	c.limits(what, n.Limits)
	c.backoff(what, n.Backoff)
	c.guard(what, n.Guard)
	c.schema(what+": input", n.Input)
	c.schema(what+": output", n.Output)
	c.hitl(what, n)
	c.rungs(what, n)
	c.mapping(what, n.Map)
	if n.Undo != nil {
		c.mapping(what+": undo", n.Undo.Map)
	}
	if !n.Effect.Valid() {
		c.fault("%s: there is no such effect", what)
	}
	switch n.Type {
	case Human:
		c.human(what, n)
	case Reasoning:
		c.reasoning(what, n)
	case Execution:
		c.execution(what, n)
	case SubSOP:
		c.sub(what, n)
	default:
		c.fault("%s: there is no type %q; want HUMAN, REASONING, EXECUTION or SUB_SOP", what, n.Type)
	}
}

// without says that a type of step cannot have a field.
func (c *checker) without(what string, n *node, fields ...string) {
	has := map[string]bool{
		"an action": n.Action != "", "a workflow": n.Workflow != "", "a planner": n.Planner != "", "an undo": n.Undo != nil,
		"a breaker": n.Breaker != nil, "an input contract": len(n.Input) > 0, "an output contract": len(n.Output) > 0,
	}
	for _, f := range fields {
		if has[f] {
			c.fault("%s is %s and cannot have %s", what, n.Type, f)
		}
	}
}

func (c *checker) human(what string, n *node) {
	c.without(what, n, "an action", "a workflow", "an undo", "a breaker", "an input contract", "an output contract")
	if n.Hitl == nil || len(n.Hitl.Intake) == 0 {
		c.fault("%s is HUMAN and declares no intake: say with a schema what the person is to give", what)
	}
	if len(c.d.who(n)) == 0 {
		c.fault("%s is HUMAN and nobody is asked: name people in its hitl, or owners of the workflow", what)
	}
}

func (c *checker) reasoning(what string, n *node) {
	c.without(what, n, "an action", "a workflow", "an undo", "a breaker", "an input contract")
	if n.Planner == "" {
		c.fault("%s is REASONING and names no planner", what)
	}
	if len(n.Output) == 0 && n.Verifier == "" {
		c.fault("%s is REASONING and nothing verifies its proposal: declare an output contract or a verifier", what)
	}
}

func (c *checker) execution(what string, n *node) {
	c.without(what, n, "a workflow", "a breaker")
	c.name(what+": action", n.Action)
	if n.Undo != nil {
		c.name(what+": undo", n.Undo.Action)
	}
	if n.Effect == action.Irreversible && n.Undo == nil {
		c.warn("%s is irreversible and nothing undoes it, should the workflow fail after it: declare its effect, an undo, or have it approved", what)
	}
}

func (c *checker) sub(what string, n *node) {
	c.without(what, n, "an action", "an undo")
	c.name(what+": workflow", n.Workflow)
	if n.Workflow != "" && n.Workflow == c.d.spec.Name {
		c.fault("%s runs the workflow it is a step of", what)
	}
	b := n.Breaker
	if b == nil {
		return
	}
	if b.Failures <= 0 || b.Window <= 0 || b.Cooldown <= 0 {
		c.fault("%s: a breaker has a positive number of failures, window and cooldown", what)
	}
	for i := range c.d.nodes {
		if o := &c.d.nodes[i]; o.Workflow == n.Workflow && o.Breaker != nil && *o.Breaker != *b {
			c.fault("%s and step %q declare different breakers of workflow %q", what, o.Name, n.Workflow)
			return
		}
	}
}

func (c *checker) hitl(what string, n *node) {
	h := n.Hitl
	if h == nil {
		return
	}
	c.schema(what+": intake", h.Intake)
	if h.Within < 0 {
		c.fault("%s: a question waits for %v, want a positive time", what, h.Within)
	}
	asked := c.d.who(n)
	if len(h.Who) == 0 { // the owners: each is looked at once
		if c.owners {
			asked = nil
		}
		c.owners = true
	}
	for _, w := range asked {
		if err := action.CheckIdentity(w); err != nil {
			c.fault("%s: who is asked: %w", what, err)
		}
	}
	if h.First && len(c.d.who(n)) == 0 {
		c.fault("%s asks first, and nobody: name people in its hitl, or owners of the workflow", what)
	}
}

func (c *checker) rungs(what string, n *node) {
	kinds := []RungKind{RungRetry, RungPlanner, RungPeople, RungParent, RungPark}
	for k, r := range n.Ladder {
		at := fmt.Sprintf("%s: rung %d of its ladder", what, k+1)
		if !slices.Contains(kinds, r.Kind) {
			c.fault("%s: there is no %q; want one of %q", at, r.Kind, kinds)
		}
		if r.Attempts < 0 {
			c.fault("%s: %d attempts, want a positive number", at, r.Attempts)
		}
		if (r.Kind == RungPlanner) != (r.Planner != "") {
			c.fault("%s: a rung planner names one, and no other does", at)
		}
		if r.Kind == RungPeople && len(c.d.who(n)) == 0 {
			c.fault("%s: there is nobody to ask", at)
		}
		if r.Kind == RungPark && k < len(n.Ladder)-1 {
			c.fault("%s: nothing comes after park", at)
		}
		if err := r.Cost.Check(); err != nil {
			c.fault("%s: %w", at, err)
		}
	}
}

// mapping checks the places that a mapping writes to.
func (c *checker) mapping(what string, m Mapping) {
	if _, whole := m[wholeDocument]; whole && len(m) > 1 {
		c.fault("%s maps the whole document and parts of it", what)
		return
	}
	root := &branch{}
	for _, path := range sorted(m) {
		s := m[path]
		if (s.From == "") == (len(s.Const) == 0) || s.From == "" && len(s.Default) > 0 {
			c.fault("%s maps %q from a path, which may have a default, or from a constant", what, path)
		}
		segments := strings.Split(path, ".")
		if path != wholeDocument && slices.Contains(segments, "") {
			c.fault("%s maps %q, which has an empty part", what, path)
			continue
		}
		if err := root.put(segments, []byte("null")); err != nil {
			c.fault("%s maps %q: %w", what, path, err)
		}
	}
}

func (c *checker) schema(what string, text []byte) {
	if len(text) == 0 {
		return
	}
	if t := strings.TrimSpace(string(text)); t != "true" && t != "false" && !strings.HasPrefix(t, "{") {
		c.faults = append(c.faults, errors.New(what+": a JSON Schema is an object, true or false"))
	}
}
