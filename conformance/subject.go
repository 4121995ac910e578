package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Open returns a fresh engine over a fresh, empty store.
type Open func() (Subject, error)

// Subject is an engine under test. Its methods may be called from many goroutines.
type Subject interface {
	// Declare makes an agent and its actions known, or says why it cannot be. Declaring an agent of the same name again
	// replaces it, for running tasks too: a new release of its actions.
	Declare(Agent) error
	// Start opens a task and returns a handle for it, the same after a restart.
	Start(context.Context, Goal) (task string, err error)
	// Propose makes one call and returns when it has ended or waits for a person; it does not itself wait for one.
	Propose(ctx context.Context, task string, c Call) Outcome
	// Pending lists the requests of the task that nobody has decided.
	Pending(ctx context.Context, task string) ([]Request, error)
	// Decide is what a person does; By is whom the transport vouches for. An error means that nothing was decided.
	Decide(context.Context, Decision) error
	// Cancel ends the task. It returns once that is durable.
	Cancel(ctx context.Context, task, reason string) error
	// Ledger returns the task's records in order.
	Ledger(ctx context.Context, task string) ([]Record, error)
	// Close releases everything, the store included.
	Close() error
}

// What a Subject may be able to do besides. A variant that needs more than the Subject offers is skipped.
type (
	// Restarter can lose its process: a new engine over the same store takes its place, with the same declarations.
	// Nothing of the old one is closed or flushed.
	Restarter interface{ Restart() error }
	// Peered can bring up a second engine over the same store. Closing the Subject closes its peers.
	Peered interface{ Peer() (Subject, error) }
	// Pricer reserves for a call what [Action.Price] says of its input.
	Pricer interface{ PricesCalls() }
	// Clocked can move the clock of engine and store forward.
	Clocked interface{ Advance(time.Duration) }
	// Faulty can lose accesses to its store.
	Faulty interface {
		// FailStore plans what happens to accesses from now on; it replaces the plan before. The zero Fault heals.
		FailStore(Fault)
	}
	// Worker runs calls whose approval came after their proposal returned.
	Worker interface {
		// Work works until the condition holds; it is an error where that does not happen soon.
		Work(ctx context.Context, until func() bool) error
	}
	// Turner makes several calls in parallel as one turn of a planner, and returns what the planner is told.
	Turner interface {
		Turn(ctx context.Context, task string, calls []Call) ([]Outcome, error)
	}
	// Accountant tells how the budget of a task stands.
	Accountant interface {
		Budget(ctx context.Context, task string) (Account, error)
	}
	// Policed asks a policy besides the grants. It permits, does not, or cannot say.
	Policed interface {
		SetPolicy(func(agent, action string, input json.RawMessage) (permit bool, err error))
	}
	// Thresholder changes the risk from which on the calls of a running task need an approval.
	Thresholder interface {
		SetThreshold(ctx context.Context, task string, threshold float64) error
	}
	// Resolver takes an operator's word on a call of unknown outcome.
	Resolver interface {
		Resolve(ctx context.Context, task, intent string, ok bool) error
	}
	// Voter honours Action.Quorum.
	Voter interface {
		// Votes returns how many people have consented to a request that is pending.
		Votes(ctx context.Context, approval string) (int, error)
	}
	// Overrider lets an operator waive the need for approvals in a task for a while.
	Overrider interface {
		Override(ctx context.Context, task, by string, lasts time.Duration) error
	}
	// Delegator gives part of a task to an agent, as a task of its own: the child, of which it returns the handle. The same
	// name finds the same child of a task, also after a restart.
	Delegator interface {
		Delegate(ctx context.Context, task, name string, g Goal) (child string, err error)
	}
	// Compensator undoes what completed in a task by the actions that Action.Undo names.
	Compensator interface {
		// Compensate undoes what it can. An error says that something that could be undone is not.
		Compensate(ctx context.Context, task string) error
		// Escalated reports whether the task was brought before a person.
		Escalated(ctx context.Context, task string) (bool, error)
	}
	// Procedural runs procedures: tasks that make their calls by themselves, step by step, and undo them where one fails.
	Procedural interface {
		// Define makes procedures known, each after those that its steps run. It may restart the subject.
		Define(...Procedure) error
		// Begin opens a task that runs a procedure. Nothing runs by itself.
		Begin(ctx context.Context, procedure string, g Goal) (task string, err error)
		// Proceed drives the procedure, and those within it, until it has ended or nothing goes on without a person.
		Proceed(ctx context.Context, task string) (Progress, error)
		// Recall cancels a procedure: what completed is undone. It returns once that is durable.
		Recall(ctx context.Context, task, by string) error
	}
	// Stopper closes the engine in a hurry: calls under way are told to stop. The store stays.
	Stopper interface{ Stop() error }
)

// Operator is who may waive the need for approvals in any task.
const Operator = "operator"

// Effect is the side-effect class of an action.
type Effect string

// The classes. The zero value is an effect that must never happen twice.
const (
	Irreversible Effect = ""
	Idempotent   Effect = "idempotent"
	NoEffect     Effect = "none"
)

// Action is a declared action.
type Action struct {
	Name    string
	Version string // "" is "1"
	Schema  string // JSON Schema of the input; "" is any object
	Gated   bool   // every call needs an approval
	Quorum  int    // different people who must consent to it; 0 is one
	Risk    int    // 1 to 5; 0 is 2, below every threshold used here
	Effect  Effect
	Cost    Cost                             // estimate
	Price   func(input json.RawMessage) Cost // what a call costs in money, by its input; nil: that does not say it
	Needs   []Need
	Retries int
	Keyed   bool          // calls carry an idempotency key made of their input
	Timeout time.Duration // 0 is the engine's
	Undo    string        // the action that undoes it, by the same input; declared before it
	// Before runs between the durable begin and the function. An error keeps the function from running.
	Before func(context.Context) error
	Do     Func
}

// Procedure is a workflow of calls, and of procedures.
type Procedure struct {
	Name  string
	Steps []Step
}

// Step makes one call or, with Procedure, runs one; a step that fails is not tried again.
type Step struct {
	Name      string
	Action    string
	Input     string // of the call, JSON
	Procedure string
	After     []string // the steps that must have succeeded before; none: it starts at once
}

// Progress is how far a procedure has come.
type Progress struct {
	Status Standing
	Asks   bool     // a person must look after it: not at an approval, but at what went wrong
	Parts  []string // the tasks of the procedures within it, and within those
}

// Standing says how a procedure stands.
type Standing string

// The standings; the last three are final.
const (
	Proceeding Standing = "proceeding" // or undoing itself
	Completed  Standing = "completed"
	Broken     Standing = "failed"
	Recalled   Standing = "cancelled"
)

// Need is a prerequisite.
type Need struct {
	Action   string
	Field    string // bound: an Ok with the same value in this field; "" is any Ok
	Consumed bool   // used up by the call
	Within   time.Duration
}

// Func is the body of an action.
type Func func(context.Context, Execution) (json.RawMessage, error)

// Execution is what a body is told, and what it can report.
type Execution struct {
	Input json.RawMessage
	Key   string // idempotency key, where the action has one
	Spend func(Cost) error
}

// ErrUnknown is returned by a body that cannot tell whether its effect happened.
var ErrUnknown = errors.New("no reply: it may or may not have happened")

// Cost is an amount on each axis. It is in floats because callers' numbers often are: an engine must survive those that
// are no amounts.
type Cost struct {
	Tokens float64 // whole ones
	Money  float64 // units of one currency
}

// Limit bounds spending. Nil is unlimited, zero is none.
type Limit struct{ Tokens, Money, Calls *float64 }

// UpTo returns a bound.
func UpTo(x float64) *float64 { return &x }

// Account is how a budget stands.
type Account struct{ Spent, Reserved Cost }

// Agent is a role with actions.
type Agent struct {
	Name    string
	Actions []Action
	// Grants are the names of the actions the agent is permitted to call: those and no others. Nil and empty are none.
	Grants []string
}

// Goal opens a task.
type Goal struct {
	Agent     string
	ID        string // "" makes one up
	Limit     Limit
	Approvers []string // who may decide; empty is nobody
	Requester string   // on whose behalf the task runs
	TTL       time.Duration
	Threshold float64 // 0 is the engine's, above 2
}

// Call is a proposed call.
type Call struct{ ID, Action, Input string }

// Outcome is what became of a call. Codes are those of this module, which separate what must not be confused; an adapter
// maps its engine's words to them.
type Outcome struct {
	Code     action.Code
	Approval string // the request that the call waits for, or that was decided
	Intent   string
	Output   json.RawMessage
	Told     string // every word the planner gets to read
	Err      error  // the call could not even be decided
}

// OK reports whether the call succeeded.
func (o Outcome) OK() bool { return o.Err == nil && o.Code == action.OK }

// Waits reports whether the call waits for a person.
func (o Outcome) Waits() bool { return o.Code == action.ApprovalRequired }

// Verb is what a person decides.
type Verb string

// The verbs.
const (
	Approve Verb = "approve"
	Reject  Verb = "reject"
	Revoke  Verb = "revoke"
)

// Decision is one decision of a person.
type Decision struct {
	Approval string
	Verb     Verb
	By       string
	Reason   string
}

// Request is an approval as a person is shown it.
type Request struct {
	ID     string
	Action string
	Input  json.RawMessage
}

// Kind says what a record tells.
type Kind string

// The kinds of records that cases look at; an adapter may use others besides.
const (
	Begun    Kind = "begun"
	Settled  Kind = "settled"
	Refused  Kind = "refused"
	Asked    Kind = "approval_requested"
	Approved Kind = "approval_approved"
	Rejected Kind = "approval_rejected"
	Revoked  Kind = "approval_revoked"
	Expired  Kind = "approval_expired"
	// Overridden marks a call that an override let through.
	Overridden Kind = "glass_used"
	Stopped    Kind = "task_cancelled"
)

// Record is one record of a ledger.
type Record struct {
	Kind   Kind
	Code   action.Code
	Action string
	Intent string
	By     string
	Input  json.RawMessage
	Output json.RawMessage
	Text   string // reasons, for people
}

// Fault says which accesses to the store are lost.
type Fault struct {
	From, To int  // the numbers of the accesses, 1 is the next; To 0: all from From on. From 0: none
	Writes   bool // only writes count and are lost
	Reply    bool // the access is served and its reply lost; else the store never sees it
}
