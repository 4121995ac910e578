package delta

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
)

// mutes counts refusals that are not recorded one by one, task by task, until their number is recorded. A process that dies
// leaves less uncounted than it had counted of a task, or a few.
type mutes struct {
	mu sync.Mutex
	of map[book]*muted
}

type muted struct {
	now  engine.Muted
	told int64 // recorded before
}

const (
	mutedFirst = 16   // are recorded at first; from then on as many again
	mutedTasks = 1024 // whose refusals are counted at a time; beyond it those of all are recorded
)

// note counts one more and returns what is to be recorded now.
func (m *mutes) note(b book, code action.Code, within string) map[book]*engine.Muted {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[book]*muted{}
	}
	x := m.of[b]
	if x == nil {
		x = &muted{}
		m.of[b] = x
	}
	x.now.Note(code, within)
	if len(m.of) > mutedTasks {
		return m.all()
	}
	if n := x.now.Sum(); n >= max(mutedFirst, x.told) {
		out := x.now
		x.now, x.told = engine.Muted{}, x.told+n
		return map[book]*engine.Muted{b: &out}
	}
	return nil
}

// all takes up whatever is counted; the caller holds the lock.
func (m *mutes) all() map[book]*engine.Muted {
	out := map[book]*engine.Muted{}
	for b, x := range m.of {
		if x.now.Sum() > 0 {
			out[b] = &x.now
		}
	}
	m.of = nil
	return out
}

// mute counts a refusal that was not recorded. That its number cannot be written is said in the log: the answer stands.
func (t *Task) mute(ctx context.Context, code action.Code, within string) {
	if err := t.engine.count(ctx, t.engine.mutes.note(book{t.agent.name, t.local}, code, within)); err != nil {
		t.engine.cfg.Log.Warn("refusals that were not recorded one by one are not counted either", "task", t.ID(), "error", err)
	}
}

func (e *Engine) count(ctx context.Context, all map[book]*engine.Muted) error {
	var faults []error
	for b, m := range all {
		if _, err := e.apply(ctx, engine.CountMuted(b.agent, b.task, m, e.who("", ""))); err != nil {
			faults = append(faults, fmt.Errorf("%d refusals of %s: %w", m.Sum(), b.agent+idSeparator+b.task, err))
		}
	}
	return errors.Join(faults...)
}

// countRest records what is counted when the engine closes.
func (e *Engine) countRest(ctx context.Context) {
	e.mutes.mu.Lock()
	all := e.mutes.all()
	e.mutes.mu.Unlock()
	if err := e.count(ctx, all); err != nil {
		e.cfg.Log.Warn("refusals that were not recorded one by one are not counted either", "error", err)
	}
}
