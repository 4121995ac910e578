package conformance_test

import (
	"context"

	"github.com/seed-ab2cfece/delta-agents/conformance"
)

// Compensate undoes the last step and then the others from the first on, around the gates, and goes on whatever comes of it.
func (n *naive) Compensate(ctx context.Context, task string) error {
	n.mu.Lock()
	var done []conformance.Record
	for _, r := range n.tasks[task].book {
		if r.Kind == conformance.Begun && n.actions[r.Action].Undo != "" {
			done = append(done, r)
		}
	}
	n.mu.Unlock()
	if last := len(done) - 1; last > 0 {
		done = append([]conformance.Record{done[last]}, done[:last]...)
	}
	for _, r := range done {
		_, _ = n.execute(ctx, task, n.actions[n.actions[r.Action].Undo], r.Input)
	}
	return nil
}

func (n *naive) Escalated(context.Context, string) (bool, error) { return false, nil }
