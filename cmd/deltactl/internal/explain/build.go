package explain

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// build makes the agent. Faults of an action name the line where it is declared.
func (s *set) build(play *player) (*delta.Agent, error) {
	b := delta.NewAgent(s.agent).Role(s.role)
	schemas := inputs(s.actions)
	var faults []error
	for _, a := range s.actions {
		act, err := a.build(schemas[a.name], play)
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", a.line, err))
			continue
		}
		if a.granted {
			b = b.Grant(act)
		} else {
			b = b.Actions(act)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return b.Build()
}

func (a *declared) build(schema []byte, play *player) (*delta.Action[action.Input, action.Output], error) {
	description := a.description
	if description == "" {
		description = a.name // nobody plans with this set: the engine wants one, the reader may do without
	}
	b := delta.DefineRaw(a.name, schema, play.answer).Describe(description).Risk(a.risk).Cost(a.cost).MaxCost(a.maximum).
		Effect(a.effect).Context(a.context...)
	for _, n := range a.needs {
		b = b.Needs(n.pre())
	}
	if a.fetches {
		b = b.Fetches()
	}
	switch {
	case a.untilTrust != 0:
		b = b.RequireApproval(delta.UntilTrust(a.untilTrust))
	case a.approval:
		b = b.RequireApproval()
	}
	return b.Build()
}

func (n *need) pre() delta.Pre {
	p := delta.Named(n.action)
	if n.workflow != "" {
		p = delta.CompletedNamed(n.workflow)
	}
	if n.version != "" {
		p = p.Version(n.version)
	}
	for _, b := range n.binds {
		for _, on := range b.on {
			if b.output != "" {
				p = p.OnOutput(on, b.output)
			} else {
				p = p.OnAs(on, b.theirs(on))
			}
		}
	}
	if n.consumed {
		p = p.Consumed()
	}
	if n.within != 0 {
		p = p.Within(n.within)
	}
	return p
}

// player stands for every action's function: it answers with what the file says of the call under way.
type player struct{ now call }

func (p *player) answer(*delta.Context, action.Input) mo.Result[action.Output] {
	if !p.now.ok {
		return mo.Err[action.Output](errors.New("the file says that it failed"))
	}
	if p.now.output == nil {
		return mo.Ok(action.Output("{}"))
	}
	return mo.Ok(action.Output(json.RawMessage(p.now.output)))
}
