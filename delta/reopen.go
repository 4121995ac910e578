package delta

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// again builds the call of a recorded intent, from the event under which it was parked.
func (t *Task) again(ctx context.Context, e ledger.Event) (*observed, error) {
	input, err := t.inputOf(ctx, &e)
	if err != nil && !errors.Is(err, ErrErased) {
		return nil, fmt.Errorf("intent %s: its input cannot be opened: %w", e.Intent, err) // another worker may have the key
	}
	o := t.observe(ctx, Call{ID: e.Call, Action: e.Action, Input: input, Provenance: e.Provenance, own: true})
	switch {
	case o.err != nil:
		return nil, o.err
	case err != nil:
		o.call.Edge, o.call.Barred, o.call.Intent.Digest = nil, keyUnavailable(err), e.Digest
	case o.def == nil:
		return nil, fmt.Errorf("intent %s: agent %q does not hold action %q here", e.Intent, t.agent.name, e.Action)
	case o.def.version != e.Version:
		return nil, fmt.Errorf("intent %s: action %q is version %q here, %q was asked for", e.Intent, e.Action, o.def.version, e.Version)
	case o.call.Barred != nil && o.call.Barred.Code == action.KeyUnavailable:
		return nil, fmt.Errorf("intent %s: %w", e.Intent, o.call.Barred) // another worker may have the key
	case o.call.Intent.Digest != e.Digest:
		return nil, fmt.Errorf("intent %s: action %q has another schema here than was asked for", e.Intent, e.Action)
	}
	o.call.Intent.ID, o.call.Intent.Within, o.call.Resume = e.Intent, e.Within, true
	return o, nil
}
