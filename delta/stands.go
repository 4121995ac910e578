package delta

import (
	"errors"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

var (
	errPaused = errors.New("the task was paused before the call could start")
	errOver   = errors.New("the task ended before the call could start")
)

// goes is why nothing of a task may start.
func goes(v *engine.View) error {
	switch v.Task.Status {
	case engine.Running:
		return nil
	case engine.Paused:
		return errPaused
	case engine.Cancelled:
		return errCancelled
	}
	return errOver
}

// stands looks whether this engine knows by now that the task was paused or has ended: the code that ran since the begin may
// have done it.
func (f *flight) stands() error {
	f.t.state.mu.Lock()
	defer f.t.state.mu.Unlock()
	f.mu.Lock()
	behind := f.view.Behind(&f.t.space)
	f.mu.Unlock()
	if v := f.t.aheadTask(); v != nil {
		return goes(v)
	}
	if !behind {
		return nil
	}
	v, err := f.t.look(f.t.snapshot(nil))
	if err != nil {
		return err
	}
	return goes(v)
}

// aheadTask is the task as a transaction of this engine made it that is ahead of what is known, nil where none did.
func (t *Task) aheadTask() (v *engine.View) {
	for _, l := range t.flow.ahead {
		for i := range l.clauses {
			c := &l.clauses[i]
			if !engine.MakesTask(c) {
				continue
			}
			s := &txn.Snapshot{State: txn.NewState()}
			s.Write(c, l.now)
			if made, err := engine.LookAtTask(s, nil); err == nil {
				v = made
			}
		}
	}
	return v
}

// ownWords is what a planner is told of why a call was not started: no words of whoever cancelled the task.
func ownWords(err error) string {
	if errors.Is(action.Contain(err), errCancelled) {
		return errCancelled.Error()
	}
	return err.Error()
}
