package workflowfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/yamljson"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// reader builds a workflow out of nodes and collects what is wrong with them.
type reader struct {
	faults []error
	lines  map[string]int // step "x", phase "x", or a key of the workflow → its line
	hurt   []hurt
	parts  int // how many of the faults are those of steps and phases, and not of the keys that hold these
}

func (r *reader) fault(n *yaml.Node, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...)))
}

// table says what to do with the value of each key.
type table map[string]func(*yaml.Node)

// mapping reads the keys of a mapping, each known and given once. It returns those whose value could not be read, or that may have
// been meant by one that is not known; "" where it is none at all.
func (r *reader) mapping(n *yaml.Node, what string, t table) (bad []string) {
	if n.Kind != yaml.MappingNode {
		r.fault(n, "%s is a mapping", what)
		return []string{""}
	}
	skipped := r.each(n, func(key, value *yaml.Node) {
		read, known := t[key.Value]
		if !known {
			meant := suggest(key.Value, t)
			r.fault(key, "%s has no key %q%s", what, action.CutTo(key.Value, action.MaxName), didYouMean(meant))
			if meant != "" {
				bad = append(bad, meant)
			}
			return
		}
		before := len(r.faults) - r.parts
		if read(value); len(r.faults)-r.parts > before {
			bad = append(bad, key.Value)
		}
	})
	return append(bad, skipped...)
}

// each does something for each key, and returns those that it left out.
func (r *reader) each(n *yaml.Node, do func(key, value *yaml.Node)) (skipped []string) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			r.fault(key, "a key is not text")
			continue
		}
		if line, twice := seen[key.Value]; twice {
			r.fault(key, "the key %q was given in line %d already", key.Value, line)
			continue
		}
		seen[key.Value] = key.Line
		if value.Kind == yaml.AliasNode || value.Anchor != "" {
			r.fault(value, "aliases are not supported")
			skipped = append(skipped, key.Value)
			continue
		}
		do(key, value)
	}
	return skipped
}

func suggest(key string, t table) string {
	best, at := "", 3
	for _, k := range slices.Sorted(maps.Keys(t)) {
		if n := action.Distance(key, k); n < at {
			best, at = k, n
		}
	}
	return best
}

func didYouMean(key string) string {
	if key == "" {
		return ""
	}
	return "; did you mean " + key + "?"
}

// list reads the elements of a sequence.
func (r *reader) list(n *yaml.Node, what string, read func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, "%s is a list", what)
		return
	}
	for _, e := range n.Content {
		if e.Kind == yaml.AliasNode || e.Anchor != "" {
			r.fault(e, "aliases are not supported")
			continue
		}
		read(e)
	}
}

func (r *reader) text(into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			r.fault(n, "want text")
			return
		}
		*into = n.Value
	}
}

func (r *reader) texts(into *[]string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		r.list(n, "it", func(e *yaml.Node) {
			var s string
			r.text(&s)(e)
			*into = append(*into, s)
		})
	}
}

func (r *reader) number(into *int) func(*yaml.Node) {
	return func(n *yaml.Node) {
		v, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			r.fault(n, "want a whole number")
			return
		}
		*into = v
	}
}

func (r *reader) flag(into *bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(into) != nil {
			r.fault(n, "want true or false")
		}
	}
}

func (r *reader) time(into *time.Duration) func(*yaml.Node) {
	return func(n *yaml.Node) {
		v, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			r.fault(n, "want a time such as 30s, 5m or 24h")
			return
		}
		*into = v
	}
}

func (r *reader) json(into *json.RawMessage) func(*yaml.Node) {
	return func(n *yaml.Node) {
		b, err := yamljson.Form{}.Append(nil, n)
		if err != nil {
			r.faults = append(r.faults, err)
			return
		}
		*into = b
	}
}

func (r *reader) workflow(n *yaml.Node) (s workflow.Spec) {
	var steps []workflow.Step
	bad := r.mapping(n, "a workflow", table{
		"workflow": r.text(&s.Name), "version": r.text(&s.Version), "description": r.text(&s.Description),
		"input": r.json(&s.Input), "output": r.source(&s.Output), "limits": r.limits(&s.Limits), "owners": r.texts(&s.Owners),
		"phases": func(n *yaml.Node) {
			r.list(n, "phases", func(e *yaml.Node) { s.Phases = append(s.Phases, r.phase(e)) })
		},
		"steps": func(n *yaml.Node) { steps = r.steps(n) },
	})
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if key := n.Content[i]; r.lines[key.Value] == 0 {
			r.lines[key.Value] = key.Line
		}
	}
	r.hurts("workflow", s.Name, bad)
	if steps != nil && s.Phases != nil {
		r.fault(n, "a workflow has steps, or phases that have them")
	}
	if steps != nil {
		s.Phases = []workflow.Phase{{Name: s.Name, Steps: steps}}
		r.lines[fmt.Sprintf("phase %q", s.Name)] = r.lines["steps"]
	}
	return s
}

func (r *reader) phase(n *yaml.Node) (p workflow.Phase) {
	own := len(r.faults) - r.parts
	bad := r.mapping(n, "a phase", table{
		"name": r.text(&p.Name), "storyline": r.text(&p.Storyline), "guard": r.guard(&p.Guard), "ordered": r.flag(&p.Ordered),
		"supervision": r.supervision(&p.Supervision), "hints": r.hints(&p.Hints),
		"steps": func(n *yaml.Node) { p.Steps = r.steps(n) },
	})
	r.place("phase", p.Name, n)
	r.hurts("phase", p.Name, bad)
	r.parts = len(r.faults) - own
	return p
}

// place remembers the line of the first of a name; faults of two of one name are about the second.
func (r *reader) place(what, name string, n *yaml.Node) {
	r.lines[fmt.Sprintf("%s %q", what, name)] = n.Line
}

func (r *reader) steps(n *yaml.Node) []workflow.Step {
	out := []workflow.Step{}
	r.list(n, "steps", func(e *yaml.Node) { out = append(out, r.step(e)) })
	return out
}

func (r *reader) step(n *yaml.Node) (s workflow.Step) {
	kind, own := "", len(r.faults)-r.parts
	bad := r.mapping(n, "a step", table{
		"name": r.text(&s.Name), "type": r.text(&kind), "description": r.text(&s.Description), "needs": r.needs(&s.Needs),
		"guard": r.guard(&s.Guard), "map": r.source(&s.Map), "input": r.json(&s.Input), "output": r.json(&s.Output),
		"limits": r.limits(&s.Limits), "hitl": r.hitl(&s.Hitl), "ladder": r.ladder(&s.Ladder), "backoff": r.backoff(&s.Backoff),
		"planner": r.text(&s.Planner), "verifier": r.text(&s.Verifier), "action": r.text(&s.Action), "effect": r.effect(&s.Effect),
		"undo": func(n *yaml.Node) {
			s.Undo = &workflow.Undo{}
			r.mapping(n, "an undo", table{"action": r.text(&s.Undo.Action), "map": r.source(&s.Undo.Map)})
		},
		"workflow": r.text(&s.Workflow),
		"breaker": func(n *yaml.Node) {
			s.Breaker = &workflow.Breaker{}
			r.mapping(n, "a breaker", table{"failures": r.number(&s.Breaker.Failures), "window": r.time(&s.Breaker.Window), "cooldown": r.time(&s.Breaker.Cooldown)})
		},
		"hints": r.hints(&s.Hints),
	})
	s.Type = workflow.Type(kind)
	r.place("step", s.Name, n)
	r.hurts("step", s.Name, bad)
	r.parts = len(r.faults) - own
	return s
}

func (r *reader) needs(into *[]workflow.Need) func(*yaml.Node) {
	return func(n *yaml.Node) {
		r.list(n, "needs", func(e *yaml.Node) {
			var need workflow.Need
			when := ""
			if e.Kind == yaml.ScalarNode {
				r.text(&need.Step)(e)
			} else {
				r.mapping(e, "a need", table{"step": r.text(&need.Step), "when": r.text(&when)})
			}
			need.When = workflow.When(when)
			*into = append(*into, need)
		})
	}
}

func (r *reader) guard(into **workflow.Guard) func(*yaml.Node) {
	return func(n *yaml.Node) {
		g := &workflow.Guard{}
		*into = g
		if n.Kind == yaml.ScalarNode {
			r.text(&g.Name)(n)
			return
		}
		r.mapping(n, "a guard", table{"name": r.text(&g.Name), "schema": r.json(&g.Schema)})
	}
}

// source reads a mapping of places to where their values come from: text is a path.
func (r *reader) source(into *workflow.Mapping) func(*yaml.Node) {
	return func(n *yaml.Node) {
		m := workflow.Mapping{}
		*into = m
		if n.Kind != yaml.MappingNode {
			r.fault(n, "a map is a mapping of places to sources")
			return
		}
		r.each(n, func(key, value *yaml.Node) {
			var s workflow.Source
			if value.Kind == yaml.ScalarNode {
				r.text(&s.From)(value)
			} else {
				r.mapping(value, "a source", table{"from": r.text(&s.From), "const": r.json(&s.Const), "default": r.json(&s.Default)})
			}
			m[key.Value] = s
		})
	}
}

func (r *reader) limits(into *workflow.Limits) func(*yaml.Node) {
	return func(n *yaml.Node) {
		r.mapping(n, "limits", table{
			"iterations": r.number(&into.Iterations), "attempts": r.number(&into.Attempts), "time": r.time(&into.Time), "cost": r.cost(&into.Cost),
		})
	}
}

func (r *reader) cost(into *action.Limit) func(*yaml.Node) {
	bound := func(b *action.Bound) func(*yaml.Node) {
		return func(n *yaml.Node) {
			v, err := strconv.ParseInt(n.Value, 10, 64)
			if n.Kind != yaml.ScalarNode || err != nil {
				r.fault(n, "want a whole number")
				return
			}
			*b = action.Max(v)
		}
	}
	return func(n *yaml.Node) {
		r.mapping(n, "a cost", table{
			"tokens": bound(&into.Tokens), "calls": bound(&into.Calls), "bytes": bound(&into.Bytes), "money": bound(&into.Money), "currency": r.text(&into.Currency),
			"duration": func(n *yaml.Node) {
				var d time.Duration
				r.time(&d)(n)
				into.Duration = action.Max(int64(d))
			},
		})
	}
}

func (r *reader) hitl(into **workflow.Hitl) func(*yaml.Node) {
	return func(n *yaml.Node) {
		h := &workflow.Hitl{}
		*into = h
		r.mapping(n, "a hitl", table{
			"who": r.texts(&h.Who), "prompt": r.text(&h.Prompt), "intake": r.json(&h.Intake), "reprompts": r.number(&h.Reprompts),
			"within": r.time(&h.Within), "first": r.flag(&h.First),
		})
	}
}

func (r *reader) ladder(into *[]workflow.Rung) func(*yaml.Node) {
	return func(n *yaml.Node) {
		*into = []workflow.Rung{}
		r.list(n, "a ladder", func(e *yaml.Node) {
			var g workflow.Rung
			kind := ""
			if e.Kind == yaml.ScalarNode {
				r.text(&kind)(e)
			} else {
				r.mapping(e, "a rung", table{"kind": r.text(&kind), "planner": r.text(&g.Planner), "attempts": r.number(&g.Attempts), "cost": r.cost(&g.Cost)})
			}
			g.Kind = workflow.RungKind(kind)
			*into = append(*into, g)
		})
	}
}

func (r *reader) backoff(into *workflow.Backoff) func(*yaml.Node) {
	return func(n *yaml.Node) {
		r.mapping(n, "a backoff", table{"base": r.time(&into.Base), "max": r.time(&into.Max), "jitter": r.number(&into.Jitter)})
	}
}

func (r *reader) supervision(into *workflow.Supervision) func(*yaml.Node) {
	return func(n *yaml.Node) {
		strategy, then := "", ""
		if n.Kind == yaml.ScalarNode {
			r.text(&strategy)(n)
		} else {
			r.mapping(n, "a supervision", table{"strategy": r.text(&strategy), "max": r.number(&into.Max), "then": r.text(&then), "backoff": r.backoff(&into.Backoff)})
		}
		into.Strategy, into.Then = workflow.Strategy(strategy), workflow.Strategy(then)
	}
}

func (r *reader) hints(into *workflow.Hints) func(*yaml.Node) {
	return func(n *yaml.Node) {
		r.mapping(n, "hints", table{"tools": r.texts(&into.Tools), "skills": r.texts(&into.Skills), "hooks": r.texts(&into.Hooks)})
	}
}

func (r *reader) effect(into *action.Effect) func(*yaml.Node) {
	return func(n *yaml.Node) {
		e, err := action.ParseEffect(n.Value)
		if err != nil {
			r.fault(n, "%v", err)
		}
		*into = e
	}
}
