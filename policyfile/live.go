package policyfile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/policy"
)

// Live is a policy whose rules come from a file and are replaced while it is in use: a decision is of the rules before or of
// those after, and its version says which. It is safe for concurrent use. Make one with [Open].
type Live struct {
	path string
	now  atomic.Pointer[policy.Bundle]
	mu   sync.Mutex // one reading at a time
}

var (
	_ policy.Changing  = (*Live)(nil)
	_ policy.Versioned = (*Live)(nil)
)

// Open reads a file of rules. Rules that do not compile at the start are an error: there are no earlier ones.
func Open(path string) (*Live, error) {
	b, err := Load(path)
	if err != nil {
		return nil, err
	}
	l := &Live{path: path}
	l.now.Store(b)
	return l, nil
}

// Decide asks the rules in force. A Live that Open did not make permits nothing.
func (l *Live) Decide(r policy.Request) (policy.Decision, error) { return l.Current().Decide(r) }

// Current returns the rules in force.
func (l *Live) Current() policy.Policy {
	if b := l.Bundle(); b != nil {
		return b
	}
	return policy.Func(func(policy.Request) (policy.Decision, error) {
		return policy.Decision{}, errors.New("no rules were read; make one with Open")
	})
}

// Version names the rules in force, "" of a Live that Open did not make.
func (l *Live) Version() string {
	if b := l.Bundle(); b != nil {
		return b.Version()
	}
	return ""
}

// Bundle returns the rules in force.
func (l *Live) Bundle() *policy.Bundle { return l.now.Load() }

// Change is what became of reading the rules again.
type Change struct {
	At       time.Time // when they were read; set by Watch
	From, To string    // versions; the same where nothing changed
	Warnings []string  // of the new rules
	Err      error     // why the earlier rules stay in force; nil where they do not, or nothing changed
}

// String says it in a line.
func (c Change) String() string {
	switch {
	case c.Err != nil:
		return fmt.Sprintf("the rules stay those of %s: %v", c.From, c.Err)
	case c.From == c.To:
		return "the rules are still those of " + c.To
	}
	return fmt.Sprintf("the rules are now those of %s, no longer %s", c.To, c.From)
}

// Reload reads the files again. Where they compile, their rules are in force when it returns; where they do not, the earlier
// ones stay, and Err says why.
func (l *Live) Reload() Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.Bundle()
	if was == nil {
		return Change{Err: errors.New("no rules were read; make one with Open")}
	}
	c := Change{From: was.Version(), To: was.Version()}
	b, err := Load(l.path)
	if err != nil {
		c.Err = err
		return c
	}
	if b.Version() != c.From {
		c.To, c.Warnings = b.Version(), b.Warnings()
		l.now.Store(b)
	}
	return c
}

// Watch reads the files every so often until ctx ends, and tells of every change and of every new fault, once. The interval
// is at least 100 ms; tell may be nil. It runs in the goroutine of its caller and returns nil.
func (l *Live) Watch(ctx context.Context, every time.Duration, tell func(Change)) error {
	if every < 100*time.Millisecond {
		return fmt.Errorf("rules are read every %v, want at least 100ms", every)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case at := <-tick.C:
			c := l.Reload()
			c.At = at
			fault := ""
			if c.Err != nil {
				fault = c.Err.Error()
			}
			if tell != nil && (c.From != c.To || fault != "" && fault != said) {
				tell(c)
			}
			said = fault
		}
	}
}
