package delta

import (
	"context"
	"errors"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// A queue of an agent names tasks, and what it names may be gone: the store keeps a task that ended for a while, and a member
// of a queue until somebody takes it out. What cannot be read of one member must not hide the others.

var (
	errUnreadable  = errors.New("what the store holds of it cannot be read")
	errNoRequestID = errors.New("not an id of an approval")
)

// astray reports an error that is about one member of a queue alone, and not about the store, which answered.
func astray(err error) bool {
	return errors.Is(err, ErrNoTask) || errors.Is(err, ErrNoRequest) || errors.Is(err, errNoRequestID) || errors.Is(err, errUnreadable)
}

// stray takes a member out of its queue whose task is gone; others stay, and are passed over until somebody has looked.
func (e *Engine) stray(ctx context.Context, agent, queue, member string, err error) {
	if gone, fault := e.unqueueGone(ctx, agent, queue, member); fault != nil || !gone {
		e.cfg.Log.Warn("a member of a queue is passed over", "queue", queue, "member", member, "error", errors.Join(err, fault))
	}
}

// unqueueGone takes a member out of an agent's queue whose task the store does not hold any more, and reports whether that
// is so.
func (e *Engine) unqueueGone(ctx context.Context, agent, queue, member string) (bool, error) {
	task := taskIn(queue, member)
	if task == "" || task == engine.EveryTask || queue == txn.Leases { // which the store keeps by itself
		return false, nil
	}
	v, err := e.lookAtTask(ctx, agent, task)
	if err != nil || v.Exists() {
		return false, err
	}
	reply, err := e.apply(ctx, engine.Stray(agent, task, queue, member))
	return err == nil && reply.OK, err
}

// taskIn is the task that a member of a queue names: requests name it in their ids, all others by the agent's name of it.
func taskIn(queue, member string) string {
	if queue == engine.QueueDesk || queue == engine.QueueAsks {
		_, rest, _ := strings.Cut(member, idSeparator)
		task, _, _ := strings.Cut(rest, idSeparator)
		return task
	}
	task, _, _ := strings.Cut(member, "\n")
	return task
}
