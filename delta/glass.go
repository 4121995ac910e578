package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Glass is what an operator may break in an emergency: for a limited time, calls of a task run without the approval that
// they need. It waives nothing else: the schema, prerequisites, what the policy forbids, the ceiling and the budget hold,
// and what a person rejected stays rejected.
type Glass struct {
	// Actions are those that it is for. Empty: every action of the task's agent.
	Actions []string
	// For is how long it stands, by the store's clock. It must be given, and be at most Config.GlassLimit.
	For time.Duration
}

// Override is a broken glass.
type Override struct {
	ID      string
	By      string // the operator who opened it
	Reason  string
	Actions []string // empty: every action
	Until   time.Time
}

// BreakGlass opens an override. Opening it, every call that it lets through and its end are recorded. Only the engine's
// operators may, never whoever requested the task or works on it, and they must say why. One override stands at a time.
// A call that waits for a person already runs where DoWait waits for it, and when it is proposed again.
func (t *Task) BreakGlass(ctx context.Context, by Identity, g Glass, reason string) (Override, error) {
	var out Override
	err := t.glassChange(ctx, "break the glass", by, func(v *engine.View, who engine.Who) (*txn.Txn, error) {
		if action.Blank(who.Reason) { // as it is recorded: cut
			return nil, errors.New("an override needs a reason that can be read")
		}
		if g.For < time.Millisecond || g.For > t.engine.cfg.GlassLimit {
			return nil, fmt.Errorf("it is to stand for %v, want a millisecond to %v (Config.GlassLimit)", g.For, t.engine.cfg.GlassLimit)
		}
		for _, name := range g.Actions {
			if t.agent.defs[name] == nil {
				return nil, fmt.Errorf("agent %q has no action %q", t.agent.name, name)
			}
		}
		out = Override{ID: t.engine.cfg.ID(), By: who.Identity, Reason: who.Reason, Actions: slices.Clone(g.Actions)}
		out.Until = time.UnixMicro(v.Snap.Now).Add(g.For)
		return engine.BreakGlass(v, engine.Glass{ID: out.ID, Actions: out.Actions}, g.For.Microseconds(), who)
	}, reason)
	return out, err
}

// RestoreGlass ends the override before its time. It is for the engine's operators. Without one it does nothing.
func (t *Task) RestoreGlass(ctx context.Context, by Identity, reason string) error {
	return t.glassChange(ctx, "restore the glass", by, func(v *engine.View, who engine.Who) (*txn.Txn, error) {
		return engine.CloseGlass(v, false, who), nil
	}, reason)
}

// Override returns the override that stands now, and whether there is one.
func (t *Task) Override(ctx context.Context) (Override, bool, error) {
	v, err := t.peek(ctx)
	if err != nil {
		return Override{}, false, err
	}
	g, ok := engine.OpenGlass(v, v.Snap.Now)
	return Override{g.ID, g.By, g.Reason, g.Actions, time.UnixMicro(g.Until)}, ok, nil
}

func (t *Task) glassChange(ctx context.Context, what string, by Identity, change func(*engine.View, engine.Who) (*txn.Txn, error), reason string) error {
	if err := t.opened(); err != nil {
		return err
	}
	e := t.engine
	if err := e.mine(by); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.inside.Done()
	who := e.whoIs(by, reason)
	err := t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		if err := engine.MayBreakGlass(v, e.cfg.Operators, who); err != nil {
			return nil, err
		}
		return change(v, who)
	})
	if err != nil {
		return fmt.Errorf("%s of %s: %w", what, t, err)
	}
	return nil
}

// endGlass writes down that an override expired.
func (e *Engine) endGlass(ctx context.Context, s *agentState, member string) error {
	local, _, _ := strings.Cut(member, "\n")
	return e.adopt(s, local).change(ctx, func(v *engine.View) (*txn.Txn, error) {
		return engine.CloseGlass(v, true, e.who("", "")), nil
	})
}
