package deltatest

import (
	"sync"
	"time"
)

// Start is where a [Clock] starts that is not told otherwise.
var Start = time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)

// Clock stands still until it is moved. It is safe for concurrent use. Its zero value starts at [Start].
type Clock struct {
	mu     sync.Mutex
	passed time.Duration
	from   time.Time
}

// NewClock returns a clock that starts at that time.
func NewClock(at time.Time) *Clock { return &Clock{from: at} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := c.from
	if from.IsZero() {
		from = Start
	}
	return from.Add(c.passed)
}

// Advance lets time pass. A negative duration turns the clock back, as an administrator might; the store's time stands
// still then until it is caught up.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
}
