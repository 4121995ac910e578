package risk

import (
	"errors"
	"fmt"
	"maps"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Fleet is the belief about many agents that use the same tools: what one agent's calls say of a tool speaks of the tool
// in every other hand. In place of the agent's part every call has two, that of its agent and that of its tool, and what
// the pair has of its own:
//
//	eta = base(declared) + s·(declared−3) + x_fleet + x_agent + x_tool + Σ x_tag + x_pair
//
// Agents and tools are tags of one common belief, so that there may be some two hundred of both together, and the cost of
// an outcome grows with the square of their number. It is for evaluation, and for fleets whose outcomes are folded in one
// place; the engine keeps one belief per agent. It is not safe for concurrent use.
type Fleet struct {
	m      *Model
	t      *Tracker
	names  map[string]string // of agents, tools and pairs, which may be longer together than a name may be
	trusts map[string]*shared
}

// FleetBank returns the members used by default for a fleet: tools and agents differ from each other as much as agents do.
func FleetBank() []Member {
	ms := Bank()
	for i, v := range []float64{.3, 1, 1} {
		ms[i].Tag = v
	}
	return ms
}

// NewFleet returns a fleet that never ran anything, with the constants of cfg and [FleetBank] where it names no members.
// Tags cannot be restricted: agents and tools are tags of the fleet's own.
func NewFleet(cfg Config) (*Fleet, error) {
	if len(cfg.Tags) > 0 {
		return nil, errors.New("risk: config Tags: a fleet needs them unrestricted, agents and tools are tags of its own")
	}
	if len(cfg.Members) == 0 {
		cfg.Members = FleetBank()
	}
	m, err := New(cfg)
	if err != nil {
		return nil, err
	}
	t, err := m.Track(m.Prior())
	if err != nil {
		return nil, err
	}
	return &Fleet{m: m, t: t, names: map[string]string{}, trusts: map[string]*shared{}}, nil
}

// Observe folds one executed outcome of the tool d in the hands of an agent. On an error nothing changed.
func (f *Fleet) Observe(agent string, d Declaration, o Observation) (Innovation, error) {
	pair, fresh, err := f.pair(agent, d)
	if err != nil {
		return Innovation{}, err
	}
	in, err := f.t.Observe(pair, o)
	if err != nil {
		return in, fmt.Errorf("risk: agent %q, action %q: %w", agent, d.Name, err)
	}
	maps.Copy(f.names, fresh)
	s := f.trusts[agent]
	if s == nil {
		s = &shared{trust: f.m.priorTrust()}
		f.trusts[agent] = s
	}
	f.m.learnTrust(s, o.Err)
	return in, nil
}

// Risk returns the estimate for the tool d in the hands of an agent, who need not have used it before; of what Observe would
// refuse, the one that is certain to fail.
func (f *Fleet) Risk(agent string, d Declaration) Estimate {
	pair, _, err := f.pair(agent, d)
	if err != nil {
		return unknown
	}
	return f.t.Risk(pair)
}

// Trust returns the trust of an agent.
func (f *Fleet) Trust(agent string) Trust {
	s := f.trusts[agent]
	if s == nil {
		s = &shared{trust: f.m.priorTrust()}
	}
	return s.trusted()
}

// pair returns the declaration of a tool in the hands of an agent, and the names that it needs and that are not there yet.
func (f *Fleet) pair(agent string, d Declaration) (Declaration, map[string]string, error) {
	if err := action.CheckName(agent); err != nil {
		return d, nil, fmt.Errorf("risk: agent: %w", err)
	}
	if err := f.m.Check(d); err != nil {
		return d, nil, err
	}
	fresh := map[string]string{}
	tags := []string{f.name(fresh, "agent", agent), f.name(fresh, "tool", d.Name)}
	for _, t := range d.Tags {
		tags = append(tags, f.name(fresh, "tag", t))
	}
	d.Name, d.Tags = f.name(fresh, "pair", agent+" "+d.Name), tags
	return d, fresh, f.m.Check(d)
}

// name returns a name that stands for another, of a kind. Names are numbered as they come; one that is new is added to
// fresh.
func (f *Fleet) name(fresh map[string]string, kind, of string) string {
	key := kind + " " + of
	if n, ok := f.names[key]; ok {
		return n
	}
	n := fmt.Sprintf("%s-%d", kind, len(f.names)+len(fresh))
	fresh[key] = n
	return n
}
