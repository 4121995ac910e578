package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// DefaultTimeout is how long a hook may take where it does not say.
const DefaultTimeout = 5 * time.Second

// NoTimeout says of hooks that no timeout bounds them: for those that surely return, of which those that look at a call and
// count something are most. They run on the goroutine of whoever makes the call, which saves the goroutine and the timer
// that a bound takes. Panics are contained all the same, but one that never returns holds its caller up for ever.
const NoTimeout time.Duration = -1

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
	// Timeout bounds each of them; 0 is DefaultTimeout. See also NoTimeout.
	Timeout time.Duration
}

// Check reports a timeout that is negative and not NoTimeout.
func (h Hooks) Check() error {
	if h.Timeout < 0 && h.Timeout != NoTimeout {
		return errors.New("hook timeout is negative: want 0 (the default), more, or NoTimeout")
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
		if err := r.Run(ctx, c[i].Timeout, pick(&c[i]), v); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// copyView returns a copy that shares nothing a hook could change. It is put together field by field, so that the view
// itself need not live longer than the call.
func copyView(v *action.View) action.View {
	own := action.View{
		Agent: v.Agent, Task: v.Task, Intent: v.Intent, CallID: v.CallID, Action: v.Action, Version: v.Version, Attempt: v.Attempt, Provenance: v.Provenance,
	}
	if v.Outcome == nil {
		own.Input = slices.Clone(v.Input)
		return own
	}
	own.Outcome = new(action.Outcome)
	*own.Outcome = *v.Outcome
	o := own.Outcome
	own.Input, o.Output = copyBoth(v.Input, o.Output)
	o.Failure = copyFailure(o.Failure)
	o.Waived = slices.Clone(o.Waived)
	for i := range o.Waived {
		o.Waived[i] = copyFailure(o.Waived[i])
	}
	return own
}

// copyBoth copies two texts into one piece of memory; neither can grow into the other.
func copyBoth(a, b json.RawMessage) (json.RawMessage, json.RawMessage) {
	if a == nil || b == nil {
		return slices.Clone(a), slices.Clone(b)
	}
	both := make(json.RawMessage, len(a)+len(b))
	n := copy(both, a)
	copy(both[n:], b)
	return both[:n:n], both[n:]
}

func copyFailure(f *action.Failure) *action.Failure {
	if f == nil {
		return nil
	}
	c := *f
	c.Details = maps.Clone(f.Details)
	return &c
}
