package main

import (
	"context"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/delta"
)

// roll is the live workers of agents, each asked for once.
type roll map[string][]delta.Worker

// lacks says that nobody goes on with an instance that has not ended.
func (l roll) lacks(ctx context.Context, d *desk, agent string, run *delta.Instance, r *instanceRow) (*delta.NoWorkerError, error) {
	if over(r) {
		return nil, nil
	}
	live, asked := l[agent]
	if !asked {
		var err error
		if live, err = d.engine.Workers(ctx, agent); err != nil {
			return nil, err
		}
		l[agent] = live
	}
	return run.UnheldBy(live), nil
}

// unheldBrief is the same in few words.
func unheldBrief(no *delta.NoWorkerError) string {
	out := fmt.Sprintf("no worker holds %s@%s", no.Workflow, no.Version)
	if no.Digest != "" {
		out += fmt.Sprintf(" (digest %.12s)", no.Digest)
	}
	return out
}
