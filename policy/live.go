package policy

import (
	"errors"
	"sync"
)

// Changing is a policy whose rules are replaced while it is in use. Each of its own decisions is of one set of rules.
type Changing interface {
	Policy
	// Current returns the rules as they are, for whoever asks several times and wants one set to answer; not nil.
	Current() Policy
}

// Versioned is a policy that can name the rules in force. Version returns at once: it is asked before every decision, and an
// engine records each version that it has not seen. "" is none.
type Versioned interface {
	Policy
	Version() string
}

// VersionOf names the rules in force, of a [Changing] policy that does not say so itself those that are current; "" where a
// policy does not say, or panics.
func VersionOf(p Policy) (version string) {
	defer func() {
		if recover() != nil {
			version = ""
		}
	}()
	if v, ok := p.(Versioned); ok {
		return v.Version()
	}
	if c, ok := p.(Changing); ok {
		if v, ok := c.Current().(Versioned); ok {
			return v.Version()
		}
	}
	return ""
}

// Pinned returns a policy that answers by one set of rules: of a [Changing] policy those that are current when it is first
// asked, else p itself.
func Pinned(p Policy) Policy {
	if c, ok := p.(Changing); ok {
		return &pinned{of: c}
	}
	return p
}

type pinned struct {
	of   Changing
	once sync.Once
	now  Policy
}

// Decide asks the rules that were current the first time.
func (p *pinned) Decide(r Request) (Decision, error) {
	p.once.Do(func() { p.now = p.of.Current() })
	if p.now == nil { // or Current panicked
		return Decision{}, errors.New("the policy has no current rules")
	}
	return p.now.Decide(r)
}
