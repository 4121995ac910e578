package policy

import (
	"fmt"
	"math"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Request is what a policy decides on. A policy reads it and changes nothing in it.
type Request struct {
	Agent   string
	Action  string
	Version string // of the action
	// Input is the checked input as a tree of map[string]any, []any, string, json.Number, bool and nil. With AnyInput
	// the question is whether any input at all could be permitted, and Input says nothing.
	Input      any
	AnyInput   bool
	Declared   int               // risk, 1 to 5
	Effective  float64           // risk, 1 to 5
	Raises     []int             // levels, 1 to 5, to which a per-argument rule may raise Effective: for AnyInput
	Trust      float64           // in the agent, 0 to 1
	Provenance action.Provenance // the planner's own words: never a ground to permit
	Effect     action.Effect     // side-effect class of the action
	Tool       string            // the tool that executes the action, "" for what the rules say, else the action itself
	Left       action.Limit      // what is left of the task's budget; axes that are not set are unlimited
	Tenant     string            // for whom the task works, "" where nobody said
	Now        int64             // store time, µs since 1970; 0: unknown
}

// Decision is a policy's answer. The zero value does not permit.
type Decision struct {
	Permit  bool
	Forbid  bool   // said so outright: no other policy's permit counts against it
	Reason  string // for operators
	Version string // of the rules that were applied, so that a record can be read later
	// Ask says why the call, where it is permitted, needs a person's consent whatever its risk; "" where it does not. It
	// permits nothing, and no other policy's permit takes it back.
	Ask string
}

// Policy decides. It is pure: the same request gets the same answer, from any goroutine. An error means that it could
// not decide.
type Policy interface {
	Decide(Request) (Decision, error)
}

// Func makes a policy of a function.
type Func func(Request) (Decision, error)

// Decide calls f.
func (f Func) Decide(r Request) (Decision, error) { return f(r) }

// Evaluate asks a policy and always has an answer. Where the policy is nil, fails or panics, or where the request lacks
// an attribute, the answer is a refusal whose reason says so.
func Evaluate(p Policy, r Request) Decision {
	if p == nil {
		return Decision{Reason: "there is no policy"}
	}
	if missing := r.missing(); missing != "" {
		return Decision{Reason: "the request has no " + missing}
	}
	d, err := contain(p, r)
	d.Reason, d.Version, d.Ask = action.Cut(d.Reason), action.Cut(d.Version), action.Cut(d.Ask)
	switch {
	case err != nil:
		return Decision{Reason: "policy failed: " + action.TextOf(err), Version: d.Version}
	case d.Forbid:
		d.Permit = false
	}
	return d
}

// missing names the first attribute that a rule could not compare with: one that is empty, or not a number in its range.
func (r *Request) missing() string {
	switch {
	case r.Agent == "":
		return "agent"
	case r.Action == "":
		return "action"
	case r.Declared < 1 || r.Declared > 5:
		return "declared risk of 1 to 5"
	case !within(r.Effective, 1, 5):
		return "effective risk of 1 to 5"
	case !within(r.Trust, 0, 1):
		return "trust of 0 to 1"
	}
	return ""
}

func within(x, lo, hi float64) bool { return !math.IsNaN(x) && x >= lo && x <= hi }

// contain turns a panic into an error.
func contain(p Policy, r Request) (d Decision, err error) {
	defer func() {
		if v := recover(); v != nil {
			d, err = Decision{}, fmt.Errorf("it panicked: %s", action.TextOf(v))
		}
	}()
	d, err = p.Decide(r)
	return d, action.Contain(err)
}
