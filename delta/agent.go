package delta

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// AgentBuilder declares an agent: a named role and the actions it may ever be offered. It is a value; methods return
// changed copies.
type AgentBuilder struct {
	name, role string
	actions    []Definition
	granted    []string
	delegable  []Definition
	throttle   engine.Throttle
	unsound    []error
	skills     []string
	autonomy   policy.Autonomy
}

// NewAgent declares an agent without any action.
func NewAgent(name string) AgentBuilder { return AgentBuilder{name: name} }

// Role describes the agent to its planner.
func (b AgentBuilder) Role(text string) AgentBuilder {
	b.role = text
	return b
}

// Grant adds actions that may be offered to the agent and that it is permitted to call.
func (b AgentBuilder) Grant(ds ...Definition) AgentBuilder {
	b = b.Actions(ds...)
	for _, d := range ds {
		if !isNil(d) {
			b.granted = append(slices.Clip(b.granted), d.Name())
		}
	}
	return b
}

// Actions adds actions that may be offered to the agent but are permitted only by a policy. Deny is the default.
func (b AgentBuilder) Actions(ds ...Definition) AgentBuilder {
	b.actions = append(slices.Clip(b.actions), ds...)
	return b
}

// Autonomy says how much the agent may do without a person, whatever it is granted; see [policy.Autonomy]. A policy and the
// agents it works for may be stricter, and the strictest counts. Default [policy.Act].
func (b AgentBuilder) Autonomy(level policy.Autonomy) AgentBuilder {
	b.autonomy = level
	return b
}

// Agent is a compiled agent. It is immutable.
type Agent struct {
	name, role string
	defs       map[string]*declaration
	compiled   *engine.Agent
	currency   string
	skills     []string
	delegable  map[string]*declaration // what it may pass on and never call
	card       *engine.Card            // of an agent known from the store alone, nil for others
	counts     bool                    // an approval of one is waived from some trust on: each success counts
	veils      map[string]bool         // actions that take or give something secret, or rest on it; nil for none
}

// Name returns the agent's name.
func (a *Agent) Name() string { return a.name }

// Role returns what the agent is for.
func (a *Agent) Role() string { return a.role }

// Actions returns the names of the agent's actions in the order of their declaration.
func (a *Agent) Actions() []string {
	if a.compiled == nil {
		return nil
	}
	return a.compiled.Graph.Names()
}

// String lists the agent's actions.
func (a *Agent) String() string {
	return fmt.Sprintf("agent %s: %s", a.name, strings.Join(a.Actions(), ", "))
}

// MustBuild is Build for declarations in package variables: it panics on a fault.
func (b AgentBuilder) MustBuild() *Agent {
	a, err := b.Build()
	if err != nil {
		panic(err)
	}
	return a
}

// Build checks what the actions refer to and compiles them; it returns every fault: names that collide or could be taken
// for each other, prerequisites that are unknown, form a cycle or are not held, bindings whose sides do not fit, costs in
// several currencies.
func (b AgentBuilder) Build() (*Agent, error) {
	a := &Agent{name: b.name, role: b.role, defs: map[string]*declaration{}, skills: slices.Clone(b.skills)}
	var faults []error
	if err := action.CheckName(b.name); err != nil {
		faults = append(faults, err)
	}
	order, more := b.collect(a)
	faults = append(faults, more...)
	faults = append(faults, a.checkCurrency(order)...)
	if !b.autonomy.Valid() {
		faults = append(faults, fmt.Errorf("%s is no level of autonomy: want act, act-on-gated or propose-only", b.autonomy))
	}
	graph, err := statespace.Compile(nodes(a.defs, order), a.notHeld(order)...)
	if err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, a.checkBindings(order)...)
	faults = append(faults, a.checkNames(order)...)
	faults = append(faults, a.checkUndo(order)...)
	faults = append(faults, b.collectDelegable(a)...)
	faults = append(faults, b.unsound...)
	if len(faults) > 0 {
		return nil, fmt.Errorf("agent %q: %w", b.name, errors.Join(faults...))
	}
	a.compiled = &engine.Agent{
		Name: a.name, Actions: map[string]*engine.Action{}, Graph: graph,
		Grants: policy.NewGrants(map[string][]string{a.name: b.granted}), Throttle: b.throttle,
	}
	a.compiled.Autonomy = b.autonomy
	for name, d := range a.defs {
		a.compiled.Actions[name] = d.compiled
		a.counts = a.counts || d.untilTrust > 0
	}
	a.markVeiled()
	return a, nil
}

// collect registers the actions. The same action may be named twice (granted and listed); two actions of one name are a
// fault, and so are two names that read alike.
func (b AgentBuilder) collect(a *Agent) (order []string, faults []error) {
	skeletons := map[string]string{}
	for _, def := range b.actions {
		if isNil(def) || def.definition() == nil {
			faults = append(faults, errNotBuilt)
			continue
		}
		d := def.definition()
		switch known := a.defs[d.name]; {
		case known == d:
			continue
		case known != nil:
			faults = append(faults, fmt.Errorf("two actions are named %q: rename one, a call must not reach the wrong one", d.name))
			continue
		}
		skeleton := action.Skeleton(d.name)
		if other, taken := skeletons[skeleton]; taken {
			faults = append(faults, fmt.Errorf("actions %q and %q could be taken for each other: rename one", other, d.name))
		}
		skeletons[skeleton] = d.name
		a.defs[d.name] = d
		order = append(order, d.name)
	}
	return order, faults
}

// checkCurrency finds the one currency of the agent's actions: a budget counts money in one.
func (a *Agent) checkCurrency(order []string) (faults []error) {
	from := ""
	for _, name := range order {
		d := a.defs[name]
		for _, c := range []string{d.estimate.Currency, d.maximum.Currency} {
			switch {
			case c == "" || c == a.currency:
			case a.currency == "":
				a.currency, from = c, name
			default:
				faults = append(faults, fmt.Errorf("%w: %q costs %s, %q costs %s", action.ErrCurrency, from, a.currency, name, c))
			}
		}
	}
	return faults
}

func nodes(defs map[string]*declaration, order []string) []statespace.Node {
	out := make([]statespace.Node, 0, len(order))
	for _, name := range order {
		d := defs[name]
		n := statespace.Node{Name: name, Cost: d.estimate, Fetches: d.fetches}
		if d.in != nil {
			n.Secret = append(n.Secret, d.in.Secrets()...)
		}
		if d.out != nil {
			n.Secret = append(n.Secret, d.out.Secrets()...)
		}
		for _, p := range d.needs {
			n.Needs = append(n.Needs, statespace.Need{Action: p.name, Bind: p.binds, Consumed: p.consumed, Within: p.within, Across: p.across, Workflow: p.flow, Version: p.version})
		}
		out = append(out, n)
	}
	return out
}

// notHeld names the prerequisites that exist but that the agent does not have.
func (a *Agent) notHeld(order []string) (names []string) {
	for _, name := range order {
		for _, p := range a.defs[name].needs {
			if p.action != nil && !p.flow && a.defs[p.name] == nil {
				names = append(names, p.name)
			}
		}
	}
	return names
}

// checkBindings checks the prerequisite's side of every binding: the field exists there and has the same type.
func (a *Agent) checkBindings(order []string) (faults []error) {
	for _, name := range order {
		for _, p := range a.defs[name].needs {
			if p.flow {
				faults = append(faults, fitsFlow(a.defs[name], &p)...)
				continue
			}
			other := a.defs[p.name]
			if other == nil {
				continue // said by the graph
			}
			if p.action != nil && p.action != other {
				faults = append(faults, fmt.Errorf("action %q needs %s: the agent holds another action of that name; grant the one that is needed", name, p.name))
			}
			for _, b := range p.binds {
				if err := fits(a.defs[name], other, b); err != nil {
					faults = append(faults, fmt.Errorf("action %q needs %s: %w", name, p.name, err))
				}
			}
		}
	}
	return faults
}

func fits(mine, theirs *declaration, b statespace.Bind) error {
	side, what := theirs.in, "input"
	if b.Output {
		side, what = theirs.out, "output"
	}
	return fitsSide(mine, side, what, b)
}

// keepsSecret refuses a binding by which a secret would have to be given again in a field that is none, for all to read.
func keepsSecret(mine *declaration, theirs places, what string, b statespace.Bind) error {
	if mine.in == nil || !theirs.covers(segmentsOf(b.Theirs)) || placesOf(mine.in).covers(segmentsOf(b.Mine)) {
		return nil
	}
	return fmt.Errorf("%q in its %s is a secret, and field %q, which is bound to it, is none: tag the field as a secret, or bind on something else", b.Theirs, what, b.Mine)
}

func fitsSide(mine *declaration, side *schema.Schema, what string, b statespace.Bind) error {
	if side == nil { // a raw action says nothing about its output: the value decides
		return nil
	}
	have, err := side.Kind(b.Theirs)
	if err != nil {
		return fmt.Errorf("its %s: %w", what, err)
	}
	want, err := mine.in.Kind(b.Mine)
	if err != nil {
		return nil // said by the action's own Build
	}
	if err := keepsSecret(mine, placesOf(side), what, b); err != nil {
		return err
	}
	if !want.Comparable(have) {
		return fmt.Errorf("bound field %q is %v here and %q is %v in its %s", b.Mine, want, b.Theirs, have, what)
	}
	return nil
}
