package workflowfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Format writes a workflow as YAML that [Parse] reads as the same definition, keys in the order of doc/workflows.md.
func Format(d *workflow.Definition) ([]byte, error) {
	s := d.Spec()
	w := &writer{}
	top := w.object()
	top.text("workflow", s.Name).text("version", s.Version).text("description", s.Description)
	top.json("input", s.Input).put("output", w.mapping(s.Output)).put("limits", w.limits(s.Limits)).put("owners", w.texts(s.Owners))
	if len(s.Phases) == 1 && plain(s.Phases[0], s.Name) {
		top.put("steps", w.steps(s.Phases[0].Steps))
	} else {
		var phases []*yaml.Node
		for _, p := range s.Phases {
			phases = append(phases, w.phase(p))
		}
		top.put("phases", sequence(phases))
	}
	if w.err != nil {
		return nil, fmt.Errorf("workflow %s: %w", s.Name, w.err)
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(top.n); err != nil {
		return nil, fmt.Errorf("workflow %s: %w", s.Name, err)
	}
	return b.Bytes(), enc.Close()
}

// plain reports whether a phase is the one that a workflow with steps of its own has.
func plain(p workflow.Phase, name string) bool {
	return p.Name == name && p.Storyline == "" && p.Guard == nil && !p.Ordered && p.Supervision == (workflow.Supervision{}) &&
		len(p.Hints.Tools)+len(p.Hints.Skills)+len(p.Hints.Hooks) == 0
}

type writer struct{ err error }

// object is a mapping that is being written. What is empty is left out.
type object struct {
	w *writer
	n *yaml.Node
}

func (w *writer) object() object { return object{w, &yaml.Node{Kind: yaml.MappingNode}} }

func (o object) put(key string, v *yaml.Node) object {
	if v != nil && (v.Kind == yaml.ScalarNode || len(v.Content) > 0) {
		o.n.Content = append(o.n.Content, scalar(key), v)
	}
	return o
}

func (o object) text(key, s string) object {
	if s == "" {
		return o
	}
	return o.put(key, scalar(s))
}

func (o object) number(key string, n int) object {
	if n == 0 {
		return o
	}
	return o.put(key, &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(n)})
}

func (o object) flag(key string, v bool) object {
	if !v {
		return o
	}
	return o.put(key, &yaml.Node{Kind: yaml.ScalarNode, Value: "true"})
}

func (o object) time(key string, d time.Duration) object {
	if d == 0 {
		return o
	}
	return o.text(key, d.String())
}

func (o object) json(key string, text json.RawMessage) object {
	if len(text) == 0 {
		return o
	}
	n, err := nodeOf(text)
	if err != nil {
		o.w.err = fmt.Errorf("%s: %w", key, err)
		return o
	}
	if len(n.Content) == 0 && n.Kind != yaml.ScalarNode { // an empty object is written too
		n.Style = yaml.FlowStyle
	}
	o.n.Content = append(o.n.Content, scalar(key), n)
	return o
}

func sequence(items []*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Content: items}
}

func (w *writer) texts(list []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, s := range list {
		n.Content = append(n.Content, scalar(s))
	}
	return n
}

func (w *writer) phase(p workflow.Phase) *yaml.Node {
	o := w.object().text("name", p.Name).text("storyline", p.Storyline).put("guard", w.guard(p.Guard)).flag("ordered", p.Ordered)
	sup := w.object().text("strategy", string(p.Supervision.Strategy)).number("max", p.Supervision.Max).
		text("then", string(p.Supervision.Then)).put("backoff", w.backoff(p.Supervision.Backoff))
	return o.put("supervision", sup.n).put("hints", w.hints(p.Hints)).put("steps", w.steps(p.Steps)).n
}

func (w *writer) steps(list []workflow.Step) *yaml.Node {
	var out []*yaml.Node
	for i := range list {
		out = append(out, w.step(&list[i]))
	}
	return sequence(out)
}

func (w *writer) step(s *workflow.Step) *yaml.Node {
	o := w.object().text("name", s.Name).text("type", string(s.Type)).text("description", s.Description).put("needs", w.needs(s.Needs)).put("guard", w.guard(s.Guard))
	o.text("planner", s.Planner).text("verifier", s.Verifier).text("action", s.Action).text("workflow", s.Workflow)
	if s.Effect != action.Irreversible {
		o.text("effect", s.Effect.String())
	}
	o.put("map", w.mapping(s.Map)).json("input", s.Input).json("output", s.Output).put("hitl", w.hitl(s.Hitl)).put("limits", w.limits(s.Limits))
	if s.Ladder != nil {
		o.put("ladder", w.ladder(s.Ladder))
	}
	o.put("backoff", w.backoff(s.Backoff))
	if s.Undo != nil {
		o.put("undo", w.object().text("action", s.Undo.Action).put("map", w.mapping(s.Undo.Map)).n)
	}
	if b := s.Breaker; b != nil {
		o.put("breaker", w.object().number("failures", b.Failures).time("window", b.Window).time("cooldown", b.Cooldown).n)
	}
	return o.put("hints", w.hints(s.Hints)).n
}

func (w *writer) needs(list []workflow.Need) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, need := range list {
		e := scalar(need.Step)
		if need.When != "" {
			e = w.object().text("step", need.Step).text("when", string(need.When)).n
		}
		n.Content = append(n.Content, e)
	}
	return n
}

func (w *writer) guard(g *workflow.Guard) *yaml.Node {
	switch {
	case g == nil:
		return nil
	case g.Name != "":
		return scalar(g.Name)
	}
	return w.object().json("schema", g.Schema).n
}

func (w *writer) mapping(m workflow.Mapping) *yaml.Node {
	o := w.object()
	for _, path := range slices.Sorted(maps.Keys(m)) {
		s := m[path]
		if s.From != "" && len(s.Default) == 0 {
			o.put(path, scalar(s.From))
			continue
		}
		o.put(path, w.object().text("from", s.From).json("const", s.Const).json("default", s.Default).n)
	}
	return o.n
}

func (w *writer) limits(l workflow.Limits) *yaml.Node {
	return w.object().number("iterations", l.Iterations).number("attempts", l.Attempts).time("time", l.Time).put("cost", w.cost(l.Cost)).n
}

func (w *writer) cost(l action.Limit) *yaml.Node {
	o := w.object()
	for a := range action.AxisCount {
		n, bounded := l.On(a).Get()
		switch {
		case !bounded:
		case a == action.Duration:
			o.text(a.String(), time.Duration(n).String())
		default:
			o.put(a.String(), &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(n)})
		}
	}
	return o.text("currency", l.Currency).n
}

func (w *writer) hitl(h *workflow.Hitl) *yaml.Node {
	if h == nil {
		return nil
	}
	return w.object().put("who", w.texts(h.Who)).text("prompt", h.Prompt).json("intake", h.Intake).number("reprompts", h.Reprompts).
		time("within", h.Within).flag("first", h.First).n
}

func (w *writer) ladder(list []workflow.Rung) *yaml.Node {
	var out []*yaml.Node
	for _, r := range list {
		out = append(out, w.object().text("kind", string(r.Kind)).text("planner", r.Planner).number("attempts", r.Attempts).put("cost", w.cost(r.Cost)).n)
	}
	return sequence(out)
}

func (w *writer) backoff(b workflow.Backoff) *yaml.Node {
	return w.object().time("base", b.Base).time("max", b.Max).number("jitter", b.Jitter).n
}

func (w *writer) hints(h workflow.Hints) *yaml.Node {
	return w.object().put("tools", w.texts(h.Tools)).put("skills", w.texts(h.Skills)).put("hooks", w.texts(h.Hooks)).n
}
