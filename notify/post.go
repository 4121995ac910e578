package notify

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// post is one notifier with its queue.
type post struct {
	d     *Desk
	to    Notifier
	queue chan Notice

	// What became of notices by id: guarded by the desk's lock. Bounded: when it is full it is forgotten, and what still
	// waits is told once more.
	standing map[string]state
}

type state byte

const (
	queued state = iota + 1
	delivered
)

// standingKept bounds the ids that a post remembers.
const standingKept = 8192

// put queues a notice, unless it is queued or delivered already; the caller holds the desk's lock. False where there is no
// room.
func (p *post) put(n Notice) bool {
	if p.standing[n.ID] != 0 {
		return true
	}
	select {
	case p.queue <- n:
		if len(p.standing) >= standingKept {
			clear(p.standing)
		}
		p.standing[n.ID] = queued
		return true
	default:
		return false
	}
}

// work is the goroutine.
func (p *post) work() {
	for n := range p.queue {
		err := p.deliver(n)
		p.d.mu.Lock()
		if err == nil {
			p.standing[n.ID] = delivered
		} else {
			delete(p.standing, n.ID)
		}
		p.d.mu.Unlock()
		if err != nil {
			p.d.cfg.Log.Warn("a notice was not delivered; a reminder tells it if it still waits", "notice", n.ID, "kind", n.Kind, "task", n.Task, "error", err)
		}
	}
}

// deliver tries until it succeeds, is not worth repeating, or has been tried often enough.
func (p *post) deliver(n Notice) error {
	pauses := backoff.NewExponentialBackOff() // with jitter of half a pause
	pauses.InitialInterval, pauses.Multiplier, pauses.MaxInterval = p.d.cfg.Pause, 2, time.Minute
	_, err := backoff.Retry(p.d.ctx, func() (struct{}, error) { return struct{}{}, p.try(n) },
		backoff.WithBackOff(pauses), backoff.WithMaxTries(uint(p.d.cfg.Tries)), backoff.WithMaxElapsedTime(0))
	var final *backoff.PermanentError
	if errors.As(err, &final) {
		return final.Unwrap()
	}
	return err
}

// try hands the notice to the notifier once. What it does wrong is an error, also where it ends its goroutine, which is its
// own for that.
func (p *post) try(n Notice) error {
	ctx, cancel := context.WithTimeout(p.d.ctx, p.d.cfg.Timeout)
	defer cancel()
	back := make(chan error, 1)
	go func() {
		err := errExited
		defer func() { back <- err }() // apart from what reads a panic's value: that may end the goroutine too
		defer func() {
			if v := recover(); v != nil {
				err = said(v)
			}
		}()
		err = p.to.Notify(ctx, n)
	}()
	return <-back
}

var errExited = errors.New("the notifier ended its goroutine")
