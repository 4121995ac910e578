package planner

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/delta"
)

// Scripted plays its steps in order, one for each proposal, whatever became of the one before. After the last it is done.
// It cannot be put off by a refusal; a step that should be is a function that looks at the request.
type Scripted []Step

var _ delta.Planner = Scripted(nil)

// Step makes one proposal. It may look at what is offered and at what became of earlier calls.
type Step func(r delta.Request) delta.Proposal

// Plan returns the proposal of the step whose turn it is. A nil step is an error.
func (s Scripted) Plan(_ context.Context, r delta.Request) (delta.Proposal, error) {
	if r.Step > len(s) {
		return delta.Proposal{Done: true, Why: "the script has ended"}, nil
	}
	step := s[max(0, r.Step-1)]
	if step == nil {
		return delta.Proposal{}, fmt.Errorf("step %d of the script is nil", r.Step)
	}
	return step(r), nil
}

// Propose is a step that makes these calls, in parallel where they are several.
func Propose(calls ...delta.Call) Step {
	return func(delta.Request) delta.Proposal { return delta.Proposal{Calls: calls} }
}

// Finish is a step that ends the run.
func Finish(why string) Step {
	return func(delta.Request) delta.Proposal { return delta.Proposal{Done: true, Why: why} }
}

// Call is a call of an action with an input in JSON; "" is the empty object.
func Call(action, input string) delta.Call {
	return delta.Call{Action: action, Input: json.RawMessage(input)}
}
