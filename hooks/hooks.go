package hooks

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// DefaultTimeout is how long a hook may take where it does not say.
const DefaultTimeout = 5 * time.Second

// Func is one hook. The view is the hook's own copy. The context ends with the timeout or with the call's own context,
// whichever is first; a hook must return then.
type Func func(context.Context, action.View) error

// Hooks watch the calls of an action or of an agent. Any of them may be nil.
type Hooks struct {
	// Before runs when the intent is durable and nothing has happened yet; an error keeps the call from running.
	Before Func
	// After runs when a call that succeeded is settled. Its error is recorded and changes nothing.
	After Func
	// OnError runs when a call that ran, or may have run, is settled with any other end. Its error is recorded and
	// changes nothing.
	OnError Func
	// Timeout bounds each of them; 0 is DefaultTimeout.
	Timeout time.Duration
}

// Check reports a timeout that is negative.
func (h Hooks) Check() error {
	if h.Timeout < 0 {
		return errors.New("hook timeout is negative: want 0 (the default) or more")
	}
	return nil
}

// Chain is hooks that run one after the other.
type Chain []Hooks

// Join returns the hooks as a chain. They run in the order given, each under its own timeout and with its own copy of the
// view, and all of them run whatever the others return.
func Join(hs ...Hooks) Chain { return slices.Clone(hs) }

// Before runs the Before hooks and returns their errors joined.
func (c Chain) Before(ctx context.Context, r *Runner, v action.View) error {
	return c.run(ctx, r, v, func(h *Hooks) Func { return h.Before })
}

// After runs the After hooks and returns their errors joined.
func (c Chain) After(ctx context.Context, r *Runner, v action.View) error {
	return c.run(ctx, r, v, func(h *Hooks) Func { return h.After })
}

// OnError runs the OnError hooks and returns their errors joined.
func (c Chain) OnError(ctx context.Context, r *Runner, v action.View) error {
	return c.run(ctx, r, v, func(h *Hooks) Func { return h.OnError })
}

func (c Chain) run(ctx context.Context, r *Runner, v action.View, pick func(*Hooks) Func) error {
	var errs []error
	for i := range c {
		errs = append(errs, r.Run(ctx, c[i].Timeout, pick(&c[i]), v))
	}
	return errors.Join(errs...)
}

// copyView returns a copy that shares nothing a hook could change.
func copyView(v action.View) action.View {
	v.Input = slices.Clone(v.Input)
	if v.Outcome != nil {
		o := *v.Outcome
		o.Output = slices.Clone(o.Output)
		o.Failure = copyFailure(o.Failure)
		o.Waived = slices.Clone(o.Waived)
		for i := range o.Waived {
			o.Waived[i] = copyFailure(o.Waived[i])
		}
		v.Outcome = &o
	}
	return v
}

func copyFailure(f *action.Failure) *action.Failure {
	if f == nil {
		return nil
	}
	c := *f
	c.Details = maps.Clone(f.Details)
	return &c
}
