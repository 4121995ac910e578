package delta

import (
	"context"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// CancelCall cancels one call of the task by its intent, which [Context.ExecutionID] and outcomes name: where it runs it is
// told to stop, here at once and on another worker with its next heartbeat; where it waits for a person it will not start.
// The rest of the task goes on. A call that has ended stays as it ended.
func (t *Task) CancelCall(ctx context.Context, intent, reason string) error {
	return t.cancelCall(ctx, intent, t.engine.who("", reason))
}

// CancelCallBy is CancelCall by somebody whom the engine knows, who is recorded. Anybody may stop a call.
func (t *Task) CancelCallBy(ctx context.Context, intent string, by Identity, reason string) error {
	if err := t.opened(); err != nil {
		return err
	}
	if err := t.engine.mine(by); err != nil {
		return fmt.Errorf("cancel a call of %s: %w", t, err)
	}
	return t.cancelCall(ctx, intent, t.engine.whoIs(by, reason))
}

func (t *Task) cancelCall(ctx context.Context, intent string, who engine.Who) error {
	if err := t.opened(); err != nil {
		return err
	}
	if len(intent) > maxCallID || checkCallID(intent) != nil || intent == "" {
		return fmt.Errorf("cancel a call of %s: %q is no intent", t, action.CutTo(intent, action.MaxName))
	}
	err := t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		if v.Task.Status.Ended() {
			return nil, nil
		}
		return engine.CancelCall(v, intent, who), nil
	})
	if err != nil {
		return fmt.Errorf("cancel call %s of %s: %w", intent, t, err)
	}
	t.aloft.interruptCall(intent, stoppedBy("the call was cancelled: "+who.Reason))
	return nil
}

// interruptCall stops one call under way.
func (a *aloft) interruptCall(intent string, why error) {
	a.interruptIf(func(f *flight) bool { return f.intent == intent }, why)
}

// interruptIf stops the calls under way that are meant.
func (a *aloft) interruptIf(meant func(*flight) bool, why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for f := range a.flights {
		if meant(f) {
			f.stop(why)
		}
	}
}
