package delta

import (
	"fmt"
	"sync/atomic"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// arrival is an agent that a Start or a Delegate brings along, until it is decided whether the task comes to be. Nothing is
// known by its name before that: what is refused leaves the agents of the engine as they were.
type arrival struct {
	e     *Engine
	state *agentState
}

// arriving is how many bring the same agent along at once.
type arriving struct {
	state *agentState
	n     int
}

// arrive takes in the agent of a goal. Another agent of a name that is known, or that somebody else is just bringing along,
// is refused: only Register replaces an agent, or a call that is told to delegate could replace the functions behind other
// people's tasks.
func (e *Engine) arrive(a *Agent) (*arrival, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.agents[a.name]; s != nil && s.agent == a {
		return &arrival{e: e, state: s}, nil
	} else if s != nil && s.agent.card == nil {
		return nil, otherAgent(a.name)
	}
	c := e.coming[a.name]
	switch {
	case c == nil:
		c = &arriving{state: newAgentState(a)}
		e.coming[a.name] = c
	case c.state.agent != a:
		return nil, otherAgent(a.name)
	}
	c.n++
	return &arrival{e: e, state: c.state}, nil
}

func otherAgent(name string) error {
	return fmt.Errorf("another agent named %q is registered with this engine: use that one, or replace it with Engine.Register", name)
}

// leave ends the arrival. Where its task came to be, the agent is known from now on, unless Register was quicker.
func (r *arrival) leave(stays bool) {
	e, a := r.e, r.state.agent
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.coming[a.name]
	if c == nil || c.state != r.state {
		return // it was known already
	}
	if s := e.agents[a.name]; stays && (s == nil || s.agent.card != nil) {
		e.agents[a.name] = r.state
	}
	if c.n--; c.n == 0 {
		delete(e.coming, a.name)
	}
}

// onTheWay are agents that become known if their first task comes to be.
func (e *Engine) onTheWay() (out []*agentState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.coming {
		out = append(out, c.state)
	}
	return out
}

// agentsSeen spreads agents over lanes.
var agentsSeen atomic.Uint32

func newAgentState(a *Agent) *agentState {
	return &agentState{agent: a, lane: uint8(agentsSeen.Add(1)), folding: make(chan struct{}, 1), space: txn.NewSpace(), gap: true}
}
