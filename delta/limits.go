package delta

import (
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
)

// Pauses between attempts where an action does not say, see [Builder.Backoff].
const (
	firstPause = 100 * time.Millisecond
	longPause  = 10 * time.Second
)

// Retry allows up to n more attempts after a failed one. It needs an effect that may be repeated, or an idempotency key.
func (b Builder[In, Out]) Retry(n int) Builder[In, Out] {
	b.d.retries = n
	return b
}

// Backoff says how long to wait between attempts: first before the second, twice that before the third and so on, at most
// most, each half as long or half as long again by chance, so that callers that failed together do not come back together.
// Default 100 ms and 10 s.
func (b Builder[In, Out]) Backoff(first, most time.Duration) Builder[In, Out] {
	b.d.pause, b.d.pauseMost = first, most
	if first <= 0 || most < first {
		b.d.fault("backoff from %v to %v: want more than 0, and the longest at least as long as the first", first, most)
	}
	return b
}

// Deadline bounds the call as a whole, from its begin: all attempts and the pauses between them. What is still running then
// has run out of its time, see [Builder.Timeout], and no further attempt is made. Without it only the task's deadline does.
func (b Builder[In, Out]) Deadline(d time.Duration) Builder[In, Out] {
	b.d.deadline = d
	if d <= 0 {
		b.d.fault("deadline is %v, want more than 0", d)
	}
	return b
}

// errOverdue is the cause of a context whose call took longer than its action's deadline.
var errOverdue = fmt.Errorf("the call's deadline passed: %w", errTimeout)

// attempts runs the function, and again where that is declared and the effect may be repeated. Each further attempt is
// written before it starts. The error says that an end must not be written, because nobody knows what is.
func (f *flight) attempts() (engine.End, error) {
	for n := 1; ; n++ {
		end, err := f.readied(n)
		if err != nil {
			return f.notStarted(ownWords(err)), nil
		}
		if n > f.def.retries || !f.mayRetry(end) || !f.backOff(n) || f.lapsed() {
			return end, nil
		}
		if written, err := f.writeAttempt(end); err != nil || !written {
			return end, err
		}
	}
}

// readyings is how often an attempt is tried whose sandbox or connection cannot be made ready. Nothing of it has run, so it
// does not matter whether its effect may be repeated, and nothing is written between the tries.
const readyings = 3

// readied makes attempt n, and makes it again, after a pause, where what it runs in could not be made ready.
func (f *flight) readied(n int) (end engine.End, err error) {
	for m := 1; ; m++ {
		end, err = f.admitted(n)
		if err != nil || end.Code != action.NotStarted || m == readyings || !f.backOff(m) || f.lapsed() {
			return end, err
		}
	}
}

func (f *flight) mayRetry(end engine.End) bool {
	if f.ctx.Err() != nil || !f.def.compiled.Repeatable() {
		return false
	}
	switch end.Code {
	case action.Failed, action.Timeout, action.Panicked, action.OutputInvalid, action.StartedUnknown:
		return true
	}
	return false
}

// backOff waits before attempt n+1; false where none may be made any more.
func (f *flight) backOff(n int) bool {
	if f.leftAlone() {
		return false
	}
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = firstPause, longPause, 2
	if f.def.pause > 0 {
		b.InitialInterval, b.MaxInterval = f.def.pause, f.def.pauseMost
	}
	wait := b.NextBackOff()
	for range n - 1 {
		wait = b.NextBackOff()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-f.ctx.Done():
		return false
	case <-t.C:
		return f.ctx.Err() == nil
	}
}

// Rate allows at most n calls of the action to begin in any period of that length: by one agent, in all its tasks and on
// all workers of a store, in the very transaction that begins them. Attempts of one call count once. One call too many is
// RATE_LIMITED. n is at most 100, the period 1 ms to 24 h.
func (b Builder[In, Out]) Rate(n int, per time.Duration) Builder[In, Out] {
	b.d.throttle.N, b.d.throttle.Per = n, per.Microseconds()
	if err := checkRate(n, per); err != nil {
		b.d.fault("%w", err)
	}
	return b
}

// AtOnce allows at most n calls of the action to be under way at a time: of one agent, in all its tasks and on all workers
// of a store. One call too many is RATE_LIMITED. A function that was abandoned does not count any more.
func (b Builder[In, Out]) AtOnce(n int) Builder[In, Out] {
	b.d.throttle.AtOnce = n
	if n < 1 {
		b.d.fault("at once: %d calls, want at least 1", n)
	}
	return b
}

// Rate is [Builder.Rate] for all calls of the agent together.
func (b AgentBuilder) Rate(n int, per time.Duration) AgentBuilder {
	b.throttle.N, b.throttle.Per = n, per.Microseconds()
	return b.unless(checkRate(n, per))
}

// AtOnce is [Builder.AtOnce] for all calls of the agent together. A call that is made within a call counts too.
func (b AgentBuilder) AtOnce(n int) AgentBuilder {
	b.throttle.AtOnce = n
	if n < 1 {
		return b.unless(fmt.Errorf("at once: %d calls, want at least 1", n))
	}
	return b
}

func (b AgentBuilder) unless(err error) AgentBuilder {
	if err != nil {
		b.unsound = append(slices.Clip(b.unsound), err)
	}
	return b
}

func checkRate(n int, per time.Duration) error {
	if n < 1 || n > engine.MaxRate || per < time.Millisecond || per > 24*time.Hour {
		return fmt.Errorf("rate of %d calls per %v: want 1 to %d, per 1ms to 24h", n, per, engine.MaxRate)
	}
	return nil
}
