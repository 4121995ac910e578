package subject

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/conformance"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
)

// Declare implements [conformance.Subject].
func (s *Subject) Declare(a conformance.Agent) error {
	if err := s.declare(a); err != nil {
		return err
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if _, known := s.world.agents[a.Name]; !known {
		s.world.order = append(s.world.order, a.Name)
	}
	s.world.agents[a.Name] = a
	return nil
}

func (s *Subject) declare(a conformance.Agent) error {
	b := delta.NewAgent(a.Name)
	defs := map[string]delta.Definition{}
	for _, spec := range a.Actions {
		def, err := define(spec, defs[spec.Undo])
		if err != nil {
			return err
		}
		defs[spec.Name] = def
		if slices.Contains(a.Grants, spec.Name) {
			b = b.Grant(def)
		} else {
			b = b.Actions(def)
		}
	}
	agent, err := b.Build()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.agents[a.Name] = agent
	s.mu.Unlock()
	return s.current().Register(agent)
}

func define(spec conformance.Action, undo delta.Definition) (delta.Definition, error) {
	if spec.Schema == "" {
		spec.Schema = `{"type":"object"}`
	}
	if spec.Risk == 0 {
		spec.Risk = 2
	}
	estimate, err := cost(spec.Cost)
	if err != nil {
		return nil, fmt.Errorf("action %q: %w", spec.Name, err)
	}
	b := delta.DefineRaw(spec.Name, []byte(spec.Schema), body(spec.Do)).
		Describe("An action of a conformance case").Risk(spec.Risk).Cost(estimate).Effect(effects[spec.Effect]).Retry(spec.Retries)
	if spec.Version != "" {
		b = b.Version(spec.Version)
	}
	if spec.Gated {
		b = b.RequireApproval()
	}
	if spec.Quorum > 0 {
		b = b.Quorum(spec.Quorum)
	}
	if spec.Timeout > 0 {
		b = b.Timeout(spec.Timeout)
	}
	if spec.Price != nil {
		b = b.CostOf(func(in action.Input) action.Cost {
			c, err := cost(spec.Price(json.RawMessage(in.Text())))
			if err != nil {
				panic(err)
			}
			return c
		}, action.Money)
	}
	if spec.Keyed {
		b = b.IdempotencyKey(func(in action.Input) string {
			h := sha256.Sum256([]byte(in.Text()))
			return hex.EncodeToString(h[:])
		})
	}
	if undo != nil {
		b = b.Effect(action.Compensatable).Undo(undo, func(in action.Input, _ action.Output) any { return json.RawMessage(in.Text()) })
	}
	if spec.Before != nil {
		b = b.Hooks(hooks.Hooks{Before: func(ctx context.Context, _ action.View) error { return spec.Before(ctx) }})
	}
	for _, n := range spec.Needs {
		b = b.Needs(prerequisite(n))
	}
	return b.Build()
}

var effects = map[conformance.Effect]action.Effect{
	conformance.Irreversible: action.Irreversible, conformance.Idempotent: action.Idempotent, conformance.NoEffect: action.None,
}

func prerequisite(n conformance.Need) delta.Pre {
	p := delta.Named(n.Action)
	if n.Field != "" {
		p = p.On(n.Field)
	}
	if n.Consumed {
		p = p.Consumed()
	}
	if n.Within > 0 {
		p = p.Within(n.Within)
	}
	return p
}

// body makes a delta function of a case's.
func body(do conformance.Func) func(*delta.Context, action.Input) mo.Result[action.Output] {
	return func(ctx *delta.Context, in action.Input) mo.Result[action.Output] {
		out, err := do(ctx, conformance.Execution{
			Input: json.RawMessage(in.Text()), Key: ctx.IdempotencyKey(),
			Spend: func(c conformance.Cost) error {
				used, err := cost(c)
				if err != nil {
					return err
				}
				return ctx.Spend(used)
			},
		})
		switch {
		case errors.Is(err, conformance.ErrUnknown):
			return mo.Err[action.Output](action.Unknown(err))
		case err != nil:
			return mo.Err[action.Output](err)
		}
		return mo.Ok(action.Output(out))
	}
}

// micro is how many micro-units a unit of money has.
const micro = 1e6

// cost converts floats to the integers that the engine counts in, whose type admits no other: whoever has a NaN has to
// do this, and what a conversion yields of it differs between machines.
func cost(c conformance.Cost) (out action.Cost, err error) {
	if out.Tokens, err = whole("tokens", c.Tokens); err != nil {
		return out, err
	}
	if out.Money, err = whole("money", c.Money*micro); err != nil {
		return out, err
	}
	if out.Money != 0 {
		out.Currency = "EUR"
	}
	return out, nil
}

func whole(axis string, x float64) (int64, error) {
	if math.IsNaN(x) || math.Abs(x) >= math.MaxInt64 {
		return 0, fmt.Errorf("%s: %v is no amount", axis, x)
	}
	return int64(math.Round(x)), nil
}

func limits(l conformance.Limit) (out action.Limit, err error) {
	set := func(b *action.Bound, axis string, x *float64, unit float64) {
		if x == nil || err != nil {
			return
		}
		var n int64
		if n, err = whole(axis, *x*unit); err == nil {
			*b = action.Max(n)
		}
	}
	set(&out.Tokens, "tokens", l.Tokens, 1)
	set(&out.Calls, "calls", l.Calls, 1)
	set(&out.Money, "money", l.Money, micro)
	if l.Money != nil {
		out.Currency = "EUR"
	}
	return out, err
}
