package delta

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// ErrNoCalls answers a call on a task whose agent is known from the store alone.
var ErrNoCalls = errors.New("the agent is known from the store alone, without its functions; register it to make calls")

// Agents returns up to limit names of agents that the store holds, in the order of their names, after the given one. It is
// an error where the store cannot list them, see [memory.Lister].
func (e *Engine) Agents(ctx context.Context, after string, limit int) ([]string, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	l, ok := e.raw().(memory.Lister)
	if !ok {
		return nil, errors.New("list agents: this store cannot; name the agent")
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.StoreTimeout)
	defer cancel()
	var out []string
	for len(out) < limit {
		names, err := l.Agents(ctx, after, limit)
		if err != nil {
			return nil, fmt.Errorf("list agents: %w", err)
		}
		for _, name := range names {
			after = name
			if action.CheckName(name) == nil && len(out) < limit { // else the account of a pool, or where a halt of everything stands: nobody
				out = append(out, name)
			}
		}
		if len(names) < limit {
			break
		}
	}
	return out, nil
}

// notKnown says that an engine knows nothing of an agent, and how it would.
func notKnown(agent string) error {
	return fmt.Errorf("agent %q is not registered with this engine: Register it where its functions are, or Adopt it to operate on what the store has of it", agent)
}

// raw is the store without what this engine puts around it.
func (e *Engine) raw() memory.Store {
	if e.cfg.Store != nil {
		return e.cfg.Store
	}
	return e.instant
}

// Adopt makes agents known by name, from the cards that they left in the store: whoever has the store can look into them
// and operate on their tasks without their functions. Nothing of theirs runs here: Start, Do and Offer are refused, and Work
// leaves them to others. Agents that are registered stay as they are; those that the store does not know are an error.
// Register replaces what Adopt made known.
func (e *Engine) Adopt(ctx context.Context, names ...string) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.inside.Done()
	if err := alive(ctx); err != nil {
		return err
	}
	for _, name := range names {
		if err := e.adoptStored(ctx, name); err != nil {
			return fmt.Errorf("adopt agent %q: %w", action.CutTo(name, action.MaxName), err)
		}
	}
	return nil
}

// What the store may not have.
var (
	ErrNoAgent   = errors.New("no such agent in the store")
	ErrNoRequest = errors.New("there is no such request")
	ErrNoIntent  = engine.ErrNoIntent // also once the store has let it go
)

func (e *Engine) adoptStored(ctx context.Context, name string) error {
	if err := action.CheckName(name); err != nil {
		return err
	}
	e.mu.Lock()
	known := e.agents[name]
	e.mu.Unlock()
	if known != nil && known.agent.card == nil {
		return nil
	}
	snap, err := e.store.Load(ctx, name, "", nil)
	if err != nil {
		return err
	}
	if snap.Agent.Rev == 0 {
		records, err := e.store.Records(ctx, name, "", 1, 1)
		if err != nil {
			return err
		}
		tasks, err := e.tasksIn(ctx, name, engine.QueueHistory, 1)
		if err != nil {
			return err
		}
		if len(records)+len(tasks) == 0 {
			return ErrNoAgent
		}
	}
	card, err := engine.ReadCard(snap)
	if err != nil {
		return err
	}
	compiled, err := engine.AgentOf(name, card)
	if err != nil {
		return err
	}
	e.state(standIn(name, &card, compiled))
	return nil
}

// standIn is an agent without functions and schemas. Its declarations say as much as the card does: whoever walks through
// an agent's actions finds one for each.
func standIn(name string, card *engine.Card, compiled *engine.Agent) *Agent {
	a := &Agent{name: name, role: card.Role, defs: map[string]*declaration{}, compiled: compiled, card: card}
	for n, c := range compiled.Actions {
		a.defs[n] = &declaration{
			name: n, version: c.Version, description: c.Description, risk: c.Risk, tags: c.Tags, estimate: c.Estimate, effect: c.Effect,
			approve:  true, // nobody is to be warned here of what is not known here
			compiled: c,
		}
	}
	a.markVeiled()
	return a
}

// callable reports why no call can be made in the task.
func (t *Task) callable() error {
	if err := t.opened(); err != nil {
		return err
	}
	if t.agent.card != nil {
		return ErrNoCalls
	}
	return nil
}

// cardOf is what an agent leaves of itself in the store.
func (a *Agent) cardOf() engine.Card {
	c := engine.Card{Role: a.role, Actions: []engine.CardAction{}}
	for _, n := range nodes(a.defs, a.Actions()) {
		d := a.defs[n.Name]
		x := engine.CardAction{
			Name: d.name, Version: d.version, Description: d.description, Risk: d.compiled.Risk, Tags: d.compiled.Tags, Estimate: d.compiled.Estimate,
			Effect: d.compiled.Effect, Keyed: d.compiled.Keyed, Fetches: n.Fetches, Needs: n.Needs,
		}
		if d.in != nil {
			x.Secret, x.Input, x.Members = d.in.Secrets(), d.in.Hash(), d.in.Members(approval.MaxDeclared)
		}
		if d.out != nil {
			x.Results = d.out.Secrets()
		}
		c.Actions = append(c.Actions, x)
	}
	return c
}

// leaveCard writes the agent's card, once in this engine, where the store is one that people look into.
func (e *Engine) leaveCard(ctx context.Context, s *agentState) error {
	if !e.rules.Show || s.agent.card != nil || s.carded.Load() {
		return nil
	}
	for range rounds {
		snap, err := e.store.Load(ctx, s.agent.name, "", nil)
		if err != nil {
			return err
		}
		x, err := engine.DeclareAgent(snap, s.agent.name, s.agent.cardOf(), e.clock())
		if err != nil {
			return err
		}
		if x == nil {
			s.carded.Store(true)
			return nil
		}
		reply, err := e.apply(ctx, x)
		if err != nil {
			return err
		}
		if reply.OK {
			s.carded.Store(true)
			return nil
		}
	}
	return nil // others write theirs at the same time: one of them stands
}

// shownOf returns what is known of an action for showing a call of it: what it does, "" where that version is not known
// here, and how its inputs are shown.
func (a *Agent) shownOf(name, version string) (does string, look approval.Look) {
	if d := a.defs[name]; d != nil && d.version == version && a.card == nil {
		if d.in != nil {
			look = approval.Look{Secrets: d.in.Secrets(), Declared: d.in.Members(approval.MaxDeclared)}
		}
		return d.description, look
	}
	if a.card == nil {
		return "", look
	}
	for _, x := range a.card.Actions {
		if x.Name == name {
			if x.Version == version {
				does = x.Description
			}
			return does, approval.Look{Secrets: x.Secret, Declared: x.Members} // of another version too: rather too much is hidden than too little
		}
	}
	return "", look
}
