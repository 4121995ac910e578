package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// set is a file as written.
type set struct {
	agent, role string
	actions     []declared
	goal        goal
	done        []call
}

type declared struct {
	line              int
	name, description string
	risk              int
	cost              action.Cost
	maximum           action.Limit
	effect            action.Effect
	input             json.RawMessage
	needs             []need
	granted, fetches  bool
	approval          bool
	untilTrust        float64
	context           []string
}

type need struct {
	line     int
	action   string // "" where it is that a workflow completed
	workflow string
	version  string // of the workflow, "" for any
	binds    []bind
	consumed bool
	within   time.Duration
}

type bind struct {
	line          int
	on            []string
	other, output string
}

type goal struct {
	text               string
	limit              action.Limit
	threshold, ceiling float64
	approvers, context []string
}

type call struct {
	line          int
	action        string // "" where a workflow completed
	workflow      string
	version       string
	def           *workflow.Definition // that stands for it
	input, output json.RawMessage
	ok            bool
	times         int64
}

// parse reads a file. Every fault is in the error.
func parse(src []byte) (*set, error) {
	d := yaml.NewDecoder(bytes.NewReader(src))
	var doc, more yaml.Node
	if err := d.Decode(&doc); err == io.EOF {
		return nil, errors.New("the file is empty; want agent and actions")
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(&more); err != io.EOF {
		return nil, errors.New("the file holds more than one document")
	}
	s := &set{agent: "agent"}
	root := doc.Content[0]
	err := mapping(root, "the file", text("agent", &s.agent), text("role", &s.role), list("actions", s.action),
		field{"goal", s.goal.read}, list("done", s.call))
	if err == nil && len(s.actions) == 0 {
		err = at(root, "the file declares no actions")
	}
	return s, err
}

func (s *set) action(n *yaml.Node) error {
	a := declared{line: n.Line, risk: 3, granted: true}
	err := mapping(n, "an action",
		text("name", &a.name), text("description", &a.description), whole("risk", func(v int64) { a.risk = int(v) }),
		cost("cost", &a.cost), limit("max_cost", &a.maximum),
		scalar("effect", "none, idempotent, compensatable or irreversible", func(n *yaml.Node) error { return a.effect.UnmarshalText([]byte(n.Value)) }, "!!str", "!!null"),
		document("input", &a.input), list("needs", a.need), truth("granted", &a.granted), field{"approval", a.approve},
		truth("fetches", &a.fetches), texts("context", &a.context))
	if err == nil && a.name == "" {
		err = at(n, "an action has no name")
	}
	s.actions = append(s.actions, a)
	return err
}

// need reads "look-up" or a mapping.
func (a *declared) need(n *yaml.Node) error {
	d := need{line: n.Line}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		d.action = n.Value
		a.needs = append(a.needs, d)
		return nil
	}
	one := bind{line: n.Line}
	err := mapping(n, "a need", append(one.fields(),
		text("action", &d.action), text("workflow", &d.workflow), text("version", &d.version), truth("consumed", &d.consumed), duration("within", func(v time.Duration) { d.within = v }),
		list("bind", func(n *yaml.Node) error {
			b := bind{line: n.Line}
			err := mapping(n, "a binding", b.fields()...)
			d.binds = append(d.binds, b)
			return errors.Join(err, b.check())
		}))...)
	if one.on != nil || one.other != "" || one.output != "" {
		d.binds = append([]bind{one}, d.binds...)
		err = errors.Join(err, one.check())
	}
	if err == nil {
		err = of(n, "a need", d.action, d.workflow, d.version)
	}
	a.needs = append(a.needs, d)
	return err
}

// of reports what names neither an action nor a workflow, or both.
func of(n *yaml.Node, what, action, workflow, version string) error {
	switch {
	case action == "" && workflow == "":
		return at(n, "%s names no action, and no workflow", what)
	case action != "" && workflow != "":
		return at(n, "%s names an action and a workflow: write one for each", what)
	case action != "" && version != "":
		return at(n, "%s asks for a version, which only workflows have here", what)
	}
	return nil
}

func (b *bind) fields() []field {
	names := texts("on", &b.on)
	one := scalar("on", "text, or a list of it", func(n *yaml.Node) error { b.on = []string{n.Value}; return nil }, "!!str")
	on := field{"on", func(n *yaml.Node) error {
		if n.Kind == yaml.SequenceNode {
			return names.read(n)
		}
		return one.read(n)
	}}
	return []field{on, text("as", &b.other), text("output", &b.output)}
}

func (b *bind) check() error {
	switch n := (&yaml.Node{Line: b.line}); {
	case len(b.on) == 0:
		return at(n, "a binding needs \"on\": the field of this action's input")
	case b.other != "" && b.output != "":
		return at(n, "a binding has \"as\" or \"output\", not both")
	case len(b.on) > 1 && (b.other != "" || b.output != ""):
		return at(n, "several fields \"on\" have the same names on both sides; write one \"bind\" for each with \"as\" or \"output\"")
	}
	return nil
}

// approve reads true, false or a mapping.
func (a *declared) approve(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return truth("approval", &a.approval).read(n)
	}
	a.approval = true
	return mapping(n, "an approval", number("until_trust", &a.untilTrust))
}

func (g *goal) read(n *yaml.Node) error {
	return mapping(n, "the goal", text("text", &g.text), limit("limit", &g.limit), number("threshold", &g.threshold),
		number("ceiling", &g.ceiling), texts("approvers", &g.approvers), texts("context", &g.context))
}

// maxTimes bounds how often a call is repeated.
const maxTimes = 1000

func (s *set) call(n *yaml.Node) error {
	c := call{line: n.Line, ok: true, times: 1}
	err := mapping(n, "a call", text("action", &c.action), text("workflow", &c.workflow), text("version", &c.version), document("input", &c.input), document("output", &c.output),
		truth("ok", &c.ok), whole("times", func(v int64) { c.times = v }))
	if err == nil && (c.times < 1 || c.times > maxTimes) {
		err = at(n, "times is %d, want 1 to %d", c.times, maxTimes)
	}
	if err == nil {
		err = of(n, "what was done", c.action, c.workflow, c.version)
	}
	if err == nil && !c.ok && c.workflow != "" {
		err = at(n, "a workflow that is not ok did not complete: leave it out")
	}
	if err == nil && !c.ok && c.output != nil {
		err = at(n, "a call that is not ok has no output")
	}
	s.done = append(s.done, c)
	return err
}

func cost(name string, to *action.Cost) field {
	return field{name, func(n *yaml.Node) error {
		err := mapping(n, name, whole("tokens", func(v int64) { to.Tokens = v }), duration("duration", func(v time.Duration) { to.Duration = v }),
			whole("calls", func(v int64) { to.Calls = v }), whole("bytes", func(v int64) { to.Bytes = v }),
			money("money", func(v int64) { to.Money = v }), text("currency", &to.Currency))
		if err == nil {
			err = place(n, to.Check())
		}
		return err
	}}
}

func limit(name string, to *action.Limit) field {
	return field{name, func(n *yaml.Node) error {
		bound := func(b *action.Bound) func(int64) { return func(v int64) { *b = action.Max(v) } }
		err := mapping(n, name, whole("tokens", bound(&to.Tokens)),
			duration("duration", func(v time.Duration) { to.Duration = action.Max(int64(v)) }),
			whole("calls", bound(&to.Calls)), whole("bytes", bound(&to.Bytes)),
			money("money", bound(&to.Money)), text("currency", &to.Currency))
		if err == nil {
			err = place(n, to.Check())
		}
		return err
	}}
}

// place adds the line to an error that has none.
func place(n *yaml.Node, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("line %d: %w", n.Line, err)
}
