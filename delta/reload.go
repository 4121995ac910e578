package delta

import (
	"context"
	"time"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// reload takes a new reading over, of each space unless replies have overtaken it; false where what is known lags all the
// same. Of a space that did not change the revision alone is read.
func (t *Task) reload(ctx context.Context) (bool, error) {
	t.state.mu.Lock()
	have := t.snapshot(nil)
	if t.gap {
		have.Task.Rev = -1
	}
	if t.state.gap {
		have.Agent.Rev = -1
	}
	told := [2]int64{t.flow.told, t.state.flow.told}
	t.state.mu.Unlock()
	loaded, err := t.engine.store.Load(ctx, t.agent.name, t.local, have)
	if err == nil {
		err = t.opened() // what was read may be of another task of its id: this one was pruned
	}
	if err != nil {
		return false, err
	}
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	return t.take(loaded, told), nil
}

// unchanged reports whether nobody has written to the task or its agent since what is known of them, where looking costs no
// trip: then there is nothing to be read but the time.
func (t *Task) unchanged(ctx context.Context) bool {
	e, a := t.engine, t.state
	if e.instant == nil || ctx == nil || ctx.Err() != nil {
		return false
	}
	task, agent, now := e.instant.Revisions(a.agent.name, t.local)
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.behind() || a.behind() || t.space.Rev != task || a.space.Rev != agent {
		return false
	}
	if now >= a.now {
		a.now, a.at = now, e.cfg.Now()
	}
	return true
}

// take is reload's last step; told is what had been heard of both spaces before.
func (t *Task) take(loaded *txn.Snapshot, told [2]int64) bool {
	a := t.state
	a.edition++
	if rev := loaded.Task.Rev; rev > t.space.Rev || rev == t.space.Rev && t.gap {
		t.space, t.gap = loaded.Task, false
		t.set, t.facted = nil, -1
		t.shelf.Drop()
	}
	if rev := loaded.Agent.Rev; rev > a.space.Rev || rev == a.space.Rev && a.gap {
		a.space, a.pending, a.gap = loaded.Agent, loaded.Pending, false
		a.worse = loaded.Agent.Rev
		t.shelf.Drop()
	}
	if loaded.Now >= a.now {
		a.now, a.at = loaded.Now, t.engine.cfg.Now()
	}
	t.flow.read(told[0], loaded.Task.Rev)
	a.flow.read(told[1], loaded.Agent.Rev)
	t.flow.since, a.flow.since = a.sent, a.sent
	t.moved()
	return !t.lags() && !a.lags()
}

// freshView is what is known at this moment, at least what the reply to a begin told of: what this engine knows where nobody
// else wrote in between, else a new reading. Replies that are on their way to this engine are waited for a moment. Successes
// that wait to be folded are left out as in the decision before. It is the view of that decision itself where nothing was
// written since that could make anything worse.
func (t *Task) freshView(ctx context.Context, decided *engine.View, action string, begun txn.Reply) (*engine.View, error) {
	var patience <-chan time.Time
	for {
		v, moved, err := t.knownView(decided, action, begun)
		if moved == nil {
			if v == nil && err == nil {
				break
			}
			return v, err
		}
		if patience == nil {
			timer := time.NewTimer(patient)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-moved:
			continue
		case <-patience:
		case <-ctx.Done():
		}
		break
	}
	return t.peek(context.WithoutCancel(ctx))
}

// patient is how long replies under way are waited for before the store is asked.
const patient = 5 * time.Millisecond

// knownView is what this engine knows, nil where it lags; the channel, where there is one, closes when it knows more.
func (t *Task) knownView(decided *engine.View, action string, begun txn.Reply) (*engine.View, <-chan struct{}, error) {
	a := t.state
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.lags() || a.lags() {
		return nil, nil, nil
	}
	if t.space.Rev < begun.TaskRev || a.space.Rev < begun.AgentRev {
		if a.moved == nil {
			a.moved = make(chan struct{})
		}
		return nil, a.moved, nil
	}
	if a.worse <= decided.Snap.Agent.Rev {
		return decided, nil, nil
	}
	s, look := t.snapshot(nil), t.glance
	if t.counts(action) {
		look = t.look
	}
	v, err := look(s)
	if err != nil {
		return nil, nil, err
	}
	s.State = s.State.Clone() // it is used without the lock
	return v.Apart(s), nil, nil
}
