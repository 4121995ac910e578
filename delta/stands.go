package delta

import (
	"errors"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
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
	if !behind {
		return nil
	}
	v, err := f.t.look(f.t.snapshot(nil))
	if err != nil {
		return err
	}
	return goes(v)
}

// ownWords is what a planner is told of why a call was not started: no words of whoever cancelled the task.
func ownWords(err error) string {
	if errors.Is(action.Contain(err), errCancelled) {
		return errCancelled.Error()
	}
	return err.Error()
}
