package delta

import (
	"context"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// SetPhase moves the task into another phase, which planners and functions are told from then on. The change is recorded;
// to the phase it is in already is none.
func (t *Task) SetPhase(ctx context.Context, phase, reason string) error {
	if err := t.opened(); err != nil {
		return err
	}
	return t.setPhase(ctx, phase, t.engine.who("", reason))
}

// SetPhase moves the task into another phase. The change is recorded with the call that made it.
func (c *Context) SetPhase(phase, reason string) error {
	if err := c.mayAct(); err != nil {
		return fmt.Errorf("set phase: %w", err)
	}
	who := c.flight.t.engine.who("", reason)
	who.Intent = c.begun.Intent
	return c.flight.t.setPhase(c, phase, who)
}

func (t *Task) setPhase(ctx context.Context, phase string, who engine.Who) error {
	if err := action.CheckName(phase); err != nil {
		return fmt.Errorf("phase of %s: %w", t, err)
	}
	err := t.change(ctx, func(v *engine.View) (*txn.Txn, error) { return engine.SetPhase(v, phase, who) })
	if err != nil {
		return fmt.Errorf("phase of %s: %w", t, err)
	}
	return nil
}

// mayAct reports why a function may not act through its context any more: it was told to stop, or its call has ended.
func (c *Context) mayAct() error {
	if c.Err() != nil {
		return context.Cause(c)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errLanded
	}
	return nil
}
