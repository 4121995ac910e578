package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// flow checks what is mapped: that sources are there, and that what flows from a contract into another one can fit.
func (c *checker) flow() {
	for i := range c.d.nodes {
		n := &c.d.nodes[i]
		what := fmt.Sprintf("step %q", n.Name)
		into := n.Input
		if n.Type != Execution && n.Type != SubSOP {
			into = nil // it cannot have one, as it was told
		}
		c.sources(what, i, n.Map, into, false)
		if n.Undo != nil {
			c.sources(what+": undo", i, n.Undo.Map, nil, true)
		}
	}
	c.sources("the output of the workflow", -1, c.d.spec.Output, nil, false)
}

// sources checks a mapping of step i, or of the workflow where that is -1, into a contract.
func (c *checker) sources(what string, i int, m Mapping, into json.RawMessage, undo bool) {
	target := c.shape(into)
	for _, path := range sorted(m) {
		s := m[path]
		here := target
		if path != wholeDocument {
			here = target.at(strings.Split(path, "."))
		}
		at := fmt.Sprintf("%s maps %q", what, path)
		if here.closed {
			c.fault("%s, which its input contract does not have", at)
			continue
		}
		for _, constant := range []json.RawMessage{s.Const, s.Default} {
			if why := here.refuses(constant); why != "" {
				c.fault("%s to %s, but its input contract %s", at, constant, why)
			}
		}
		if s.From == "" {
			continue
		}
		from, ok := c.source(at, i, s, undo)
		if !ok {
			continue
		}
		hard, soft := from.into(here, "")
		if hard != "" {
			c.fault("%s from %q: %s", at, s.From, hard)
		} else if soft != "" {
			c.warn("%s from %q: %s", at, s.From, soft)
		}
	}
	if i >= 0 && c.d.nodes[i].Planner == "" && len(into) > 0 {
		for _, missing := range target.unmapped(m, "") {
			c.fault("%s maps nothing to %q, which its input contract requires", what, missing)
		}
	}
}

// source finds the schema of what a path leads to.
func (c *checker) source(at string, i int, s Source, undo bool) (shape, bool) {
	p := strings.Split(s.From, ".")
	rest := func(k int) []string { return p[min(k, len(p)):] }
	var sh shape
	switch {
	case p[0] == "instance" && len(p) == 1:
		return c.shape([]byte(`{"type":"string"}`)), true
	case p[0] == "input":
		sh = c.shape(c.d.spec.Input).at(rest(1))
	case p[0] == "intake" && i >= 0:
		sh = c.shape(c.d.nodes[i].intake()).at(rest(1))
		if n := &c.d.nodes[i]; len(s.Default) == 0 && (n.Type == Human || n.Hitl == nil || !n.Hitl.First) {
			c.fault("%s from %q, which is not there before somebody was asked: give a default, or ask first", at, s.From)
			return sh, false
		}
	case p[0] == "call" && undo && len(p) > 1 && p[1] == "input":
		sh = c.shape(c.d.nodes[i].Input).at(rest(2))
	case p[0] == "call" && undo && len(p) > 1 && p[1] == "output":
		sh = c.shape(c.d.nodes[i].Output).at(rest(2))
	case p[0] == "steps" && len(p) >= 3 && (p[2] == "output" || p[2] == "failure"):
		return c.fromStep(at, i, s, p, undo)
	default:
		c.fault("%s from %q: sources are input, intake, instance, steps.NAME.output and steps.NAME.failure", at, s.From)
		return sh, false
	}
	if sh.closed && len(s.Default) == 0 {
		c.fault("%s from %q, which its contract does not have", at, s.From)
	}
	return sh, !sh.closed
}

func (c *checker) fromStep(at string, i int, s Source, p []string, undo bool) (shape, bool) {
	from, known := c.d.at[p[1]]
	if !known {
		c.fault("%s from %q: there is no step %q%s", at, s.From, p[1], c.suggest(p[1]))
		return shape{}, false
	}
	sure := i < 0 || !c.unsure[i]
	if i >= 0 && sure && from != i && !slices.Contains(c.d.nodes[i].before, from) && !undo || from == i && !undo {
		c.fault("%s from %q, which need not have ended before: let it need %q", at, s.From, p[1])
		return shape{}, false
	}
	if p[2] == "failure" {
		return c.shape([]byte(`{"type":"object","properties":{"code":{"type":"string"},"message":{"type":"string"}},"required":["code","message"],"additionalProperties":false}`)).at(p[3:]), true
	}
	n := &c.d.nodes[from]
	contract := n.Output
	if n.Type == Human {
		contract = n.intake()
	}
	sh := c.shape(contract).at(p[3:])
	switch {
	case len(s.Default) > 0:
	case sh.closed:
		c.fault("%s from %q, which the output contract of step %q does not have", at, s.From, p[1])
	case i >= 0 && sure && !c.surely(i, from):
		c.warn("%s from %q, which is not there where step %q was skipped or failed: give a default", at, s.From, p[1])
	case sh.optional:
		c.warn("%s from %q, which the output contract of step %q does not require: give a default", at, s.From, p[1])
	}
	return sh, !sh.closed
}

// surely reports whether a step has been committed wherever another one runs.
func (c *checker) surely(i, from int) bool {
	if c.ends == nil || c.endsOf != i {
		c.ends, c.endsOf = make([]When, len(c.d.nodes)), i
		c.d.requires(i, c.ends)
	}
	if c.always == nil {
		c.always = map[int]bool{}
	}
	return c.ends[from] == OnOk || c.d.always(from, c.always)
}

// shape reads a schema, each once: many places may be mapped from one large contract.
func (c *checker) shape(text json.RawMessage) shape {
	if len(text) == 0 {
		return parseSchema(text)
	}
	h, known := c.shapes[&text[0]]
	if !known {
		if c.shapes == nil {
			c.shapes = map[*byte]shape{}
		}
		h = parseSchema(text)
		c.shapes[&text[0]] = h
	}
	if h.fuel != nil {
		fuel := *h.fuel
		h.fuel = &fuel
	}
	return h
}

// always reports whether nothing goes on after a step unless it was committed. It asks each step once.
func (d *Definition) always(i int, asked map[int]bool) (yes bool) {
	if known, ok := asked[i]; ok {
		return known
	}
	defer func() { asked[i] = yes }()
	n, p := &d.nodes[i], &d.spec.Phases[d.nodes[i].phase]
	if n.Guard != nil || p.Guard != nil || len(n.handlers) > 0 || p.Supervision.Strategy == SuperviseResume || p.Supervision.Then == SuperviseResume {
		return false
	}
	for _, e := range n.needs {
		if e.when == OnErr || e.when == OnOk && !d.always(e.to, asked) {
			return false
		}
	}
	return true
}
