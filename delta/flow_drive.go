package delta

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// driveAll drives an instance and those nested in it; it rests where nothing goes on any more.
func (e *Engine) driveAll(ctx context.Context, t *Task) (rests bool, s workflow.State, err error) {
	for {
		was, err := e.drive(ctx, t)
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return false, s, err
		}
		if s = was.State; was.Ver > 0 && s.Status.Terminal() && len(s.Outstanding) == 0 {
			return true, s, nil
		}
		k, err := e.readFlowOn(ctx, t.agent.name, t.local, &was)
		if err == nil && k.Ver == 0 {
			s, err = t.unbegun(ctx)
		}
		if err != nil || k.Ver == 0 {
			return s.Status.Terminal(), s, err
		}
		if s = k.State; s.Status.Terminal() && len(s.Outstanding) == 0 {
			return true, s, nil
		}
		if v, err := t.stands(ctx); err != nil || v.Task.Status == engine.Paused {
			return true, s, err
		}
		nested := true
		if slices.ContainsFunc(s.Outstanding, ofChild) {
			if nested, err = e.driveParts(ctx, t, k); err != nil {
				return false, s, err
			}
			again, err := e.readFlowOn(ctx, t.agent.name, t.local, &k)
			if err != nil {
				return false, s, err
			}
			if again.Ver != k.Ver || again.Wakes != k.Wakes {
				continue
			}
		}
		own := s
		own.Outstanding = slices.DeleteFunc(slices.Clone(s.Outstanding), ofChild)
		return nested && (s.Status.Terminal() || own.Parked()), s, nil
	}
}

// ofChild reports whether a nested instance has to go on before the command is answered.
func ofChild(c workflow.Command) bool {
	return c.Kind == workflow.Spawn || c.Kind == workflow.Unwind || c.Kind == workflow.CancelChild
}

// driveParts drives the nested instances at the same time, and their parent where something happens to it meanwhile: a word
// from outside does not wait for a call below that takes long. It returns when they have all been put down, and whether all
// of them rest.
func (e *Engine) driveParts(ctx context.Context, t *Task, k engine.FlowKnown) (rest bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type part struct {
		rests bool
		err   error
	}
	back, left := make(chan part), 0
	for _, c := range k.State.Outstanding {
		if !ofChild(c) {
			continue
		}
		left++
		go func() {
			p := part{err: errExited}
			defer func() { back <- p }()
			p.rests, p.err = e.drivePart(ctx, t, c.Child)
		}()
	}
	poll := time.NewTicker(e.cfg.Poll)
	defer poll.Stop()
	for rest = true; left > 0; {
		select {
		case p := <-back:
			left--
			rest = rest && p.rests
			if p.err != nil && err == nil {
				err = p.err
				cancel()
			}
		case <-poll.C:
			if err != nil {
				continue
			}
			if k, err = e.driveBeside(ctx, t, k); err != nil {
				cancel()
			}
		}
	}
	return rest, err
}

func (e *Engine) drivePart(ctx context.Context, t *Task, name string) (rests bool, err error) {
	child, err := t.Child(ctx, name)
	if err != nil {
		return false, err
	}
	task, err := child.Task(ctx)
	if err != nil {
		return false, err
	}
	rests, _, err = e.driveAll(ctx, task)
	return rests, err
}

// driveBeside drives an instance again where something happened to it since, or its time has come.
func (e *Engine) driveBeside(ctx context.Context, t *Task, k engine.FlowKnown) (engine.FlowKnown, error) {
	now, err := e.readFlowOn(ctx, t.agent.name, t.local, &k)
	if err != nil {
		return k, err
	}
	at, timed := timerOf(&now.State)
	if now.Ver == k.Ver && now.Wakes == k.Wakes && (!timed || at > e.clock()) {
		return k, nil
	}
	was, err := e.drive(ctx, t)
	if errors.Is(err, errMoved) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	return e.readFlowOn(ctx, t.agent.name, t.local, &was)
}
