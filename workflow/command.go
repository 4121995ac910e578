package workflow

import (
	"encoding/json"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// CommandKind says what to do.
type CommandKind string

// The kinds of commands, each with the event that answers it.
const (
	// Plan asks Planner for a proposal: → [Planned]. It is given Description, Input, Intakes, Critique, Contract, Storylines
	// and Hints, and no means to act.
	Plan CommandKind = "plan"
	// Verify judges Document by Contract, and by Verifier where one is named: → [Verified]. Subject says what it is.
	Verify CommandKind = "verify"
	// Evaluate evaluates Guard on Document: → [Guarded].
	Evaluate CommandKind = "evaluate"
	// Call makes the governed call of Action with Input under the call id Call: → [Called].
	Call CommandKind = "call"
	// Spawn starts the child instance Child of Workflow with Input: → [ChildEnded]. A child that exists is not started again.
	// Limit is what it may spend.
	Spawn CommandKind = "spawn"
	// Ask brings Prompt before Who: → [Intake]. Contract is that of the answer.
	Ask CommandKind = "ask"
	// Escalate asks the parent (its event is [ChildAsked]): → [Advised].
	Escalate CommandKind = "escalate"
	// Timer wakes the instance at At: → [Fired].
	Timer CommandKind = "timer"
	// Compensate undoes the call Undoes (its call id; Intent is the engine's id): by a governed call of Action with Input
	// under the call id Call or, where Action is "", as the action that was called declares, with Input where that is a
	// person's: → [Called].
	Compensate CommandKind = "compensate"
	// Unwind has the child Child, which had completed, undo itself: its event is [Unwound]: → [ChildUnwound].
	Unwind CommandKind = "unwind"

	// Interrupt asks the call with the id Call to stop or, where it waits for an approval, not to begin. It takes the place
	// of the command Ask, and is answered as that would be, by [Called]: how the call ended, CANCELLED where it did not begin.
	Interrupt CommandKind = "interrupt"
	// CancelChild cancels Child. It takes the place of the command Ask, a [Spawn], and is answered as that: → [ChildEnded].
	CancelChild CommandKind = "cancel_child"
	// Advise gives the child Child its event [Advised] of Ask: OK and Input, or not OK: → [Performed].
	Advise CommandKind = "advise"
	// Withdraw takes back the question Ask, which somebody may still see: → [Performed].
	Withdraw CommandKind = "withdraw"
)

// Subject says what a [Verify] judges, or what a [Timer] is for.
type Subject string

// The subjects.
const (
	SubjectIntake   Subject = "intake"   // what a person said
	SubjectInput    Subject = "input"    // what is to be executed with
	SubjectProposal Subject = "proposal" // what a planner proposes as an artifact
	SubjectOutput   Subject = "output"   // what was executed gave

	SubjectDeadline Subject = "deadline" // the time of a step or of the instance is up
	SubjectBackoff  Subject = "backoff"  // a pause before another try is over
	SubjectAnswer   Subject = "answer"   // a question has waited for as long as it may
)

// Given is what a person gave, as planners are told.
type Given struct {
	Step string          `json:"step"`
	By   string          `json:"by,omitempty"`
	Data json.RawMessage `json:"data"`
}

// Command is one thing to do. There is one struct for all kinds; which fields are set is said at the [CommandKind].
//
// The id is made of the instance, the step, the kind and a number: the same events give the same ids. A driver that does not
// know whether it performed a command performs it again; Plan, Verify and Evaluate change nothing, a governed call with a
// call id that was used is answered with what was recorded, and a child that exists is not started again.
type Command struct {
	ID        string      `json:"id"`
	Kind      CommandKind `json:"kind"`
	Step      string      `json:"step,omitempty"`
	Iteration int         `json:"iteration,omitempty"` // of planning, 1 is the first
	Attempt   int         `json:"attempt,omitempty"`   // of calling, 1 is the first
	// Call is the call id for the engine. It stays the same while the call may have begun or waits for an approval.
	Call string `json:"call,omitempty"`

	Action   string          `json:"action,omitempty"`
	Workflow string          `json:"workflow,omitempty"`
	Child    string          `json:"child,omitempty"`
	Planner  string          `json:"planner,omitempty"`
	Verifier string          `json:"verifier,omitempty"`
	Guard    *Guard          `json:"guard,omitempty"`
	Subject  Subject         `json:"subject,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Document json.RawMessage `json:"document,omitempty"`
	Contract json.RawMessage `json:"contract,omitempty"`

	Description string   `json:"description,omitempty"`
	Prompt      string   `json:"prompt,omitempty"`
	Who         []string `json:"who,omitempty"`
	Storylines  []string `json:"storylines,omitempty"`
	Critique    string   `json:"critique,omitempty"`
	Intakes     []Given  `json:"intakes,omitempty"`
	Hints       Hints    `json:"hints,omitzero"`

	At     int64        `json:"at,omitempty"`   // µs since 1970
	Limit  action.Limit `json:"limit,omitzero"` // what is left of what the step may spend
	Undoes string       `json:"undoes,omitempty"`
	Intent string       `json:"intent,omitempty"`
	Ask    string       `json:"ask,omitempty"`
	OK     bool         `json:"ok,omitempty"`
	// Held says, in [State.Outstanding], that it was issued while the instance was paused: it is performed once it goes on.
	Held bool `json:"held,omitempty"`
}

// Pure reports whether performing the command changes nothing anywhere, so that a driver may perform it and hand in its
// event before the turn that commands it is durable, and write both at once.
func (c Command) Pure() bool {
	return c.Kind == Verify && c.Verifier == "" || c.Kind == Evaluate
}
