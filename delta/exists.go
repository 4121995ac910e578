package delta

import (
	"context"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// exists says why a task cannot be started under an id that was used before: an id is
// taken until its task was pruned.
func (e *Engine) exists(ctx context.Context, a *agentState, local string) error {
	t := &Task{engine: e, agent: a.agent, state: a, local: local}
	if v, err := t.peek(ctx); err == nil && v.Exists() && !v.Task.Status.Ended() {
		return action.Fail(action.InFlight, "task %q of agent %q is %s: open it with Engine.Open, or choose another id", local, a.agent.name, v.Task.Status)
	}
	return action.Fail(action.TaskClosed, "task %q of agent %q has been, and a task that ended stays ended: choose another id", local, a.agent.name)
}
