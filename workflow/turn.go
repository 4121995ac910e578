package workflow

import (
	"github.com/seed-ab2cfece/delta-agents/action"
)

// Turn is what one event comes to. The order of duty is that of the fields: the event and Trail are written first, in one
// transaction where the store has them; then, and not before, the commands are performed. State may be lost: it is what the
// events come to.
type Turn struct {
	// State is the next state. Of an absorbed event it is the state before.
	State State
	// Trail says what happened in the words of the contract, for the ledger.
	Trail []Entry
	// Commands are what is to be performed now, in this order. They may be performed side by side.
	Commands []Command
	// Checkpoint says that a step was committed: a driver that saves State now begins the next replay here.
	Checkpoint bool
	// Absorbed says why the event had no effect, "" where it had one.
	Absorbed Absorbed
}

// Absorbed is a reason why an event has no effect.
type Absorbed string

// The reasons.
const (
	AbsorbedNobody    Absorbed = "nobody waits for it" // a duplicate, or late
	AbsorbedEnded     Absorbed = "the instance has ended"
	AbsorbedAlready   Absorbed = "that is so already"
	AbsorbedKind      Absorbed = "it does not answer what it names"
	AbsorbedMalformed Absorbed = "it lacks what its kind needs"
)

// EntryKind says what an entry of the trail records.
type EntryKind string

// The kinds of entries.
const (
	WorkflowStart  EntryKind = "workflow_start"
	WorkflowEnd    EntryKind = "workflow_end"      // Text is the status, Failure why
	FlowMigrated   EntryKind = "workflow_migrated" // it goes on by another definition: Digest
	PhaseStart     EntryKind = "phase_start"
	PhaseEnd       EntryKind = "phase_end"
	StepStart      EntryKind = "step_start"
	StepComplete   EntryKind = "step_complete" // Digest is that of the artifact
	StepFailed     EntryKind = "step_failed"
	StepSkipped    EntryKind = "step_skipped"
	HitlEscalation EntryKind = "hitl_escalation" // a person is asked: Text
	HitlPark       EntryKind = "hitl_park"       // nothing goes on without what Text says
	HitlIntake     EntryKind = "hitl_intake"     // By gave it, and it was consumed
	Verdict        EntryKind = "verdict"         // of a verifier: Text is passed, or the critique
	PolicyEval     EntryKind = "policy_eval"     // what policy said of a call: Code
	ToolCall       EntryKind = "tool_call"       // how a call ended: Code, Cost, Call
	Climb          EntryKind = "escalation"      // a rung of the ladder is entered: Text
	Supervised     EntryKind = "supervision"     // what the phase does about a failure: Text
	ChildTrail     EntryKind = "child"           // Child was started, or ended: Text
	BreakerCount   EntryKind = "breaker_count"   // Child failed, which its definition Text answers for: for all instances, while it Lasts
	BreakerTrip    EntryKind = "breaker_trip"    // Text is the child's definition
	UndoStart      EntryKind = "compensation"    // of Call, or of Child
	UndoEnd        EntryKind = "compensated"     // how that ended: Code
	UndoLeft       EntryKind = "not_compensated" // nothing undoes Call: Text
	CheckpointMade EntryKind = "checkpoint"      // after a step
	Control        EntryKind = "control"         // pause, resume, cancel: Text, By
)

// Entry is a line of the trail.
type Entry struct {
	Kind      EntryKind       `json:"kind"`
	At        int64           `json:"at"` // µs since 1970
	Phase     string          `json:"phase,omitempty"`
	Step      string          `json:"step,omitempty"`
	Type      Type            `json:"type,omitempty"`
	Iteration int             `json:"iteration,omitempty"`
	Attempt   int             `json:"attempt,omitempty"`
	Call      string          `json:"call,omitempty"`
	Child     string          `json:"child,omitempty"`
	Code      action.Code     `json:"code,omitempty"`
	Cost      action.Cost     `json:"cost,omitzero"`
	By        string          `json:"by,omitempty"`
	Digest    string          `json:"digest,omitempty"` // SHA-256, hex
	Text      string          `json:"text,omitempty"`
	Failure   *action.Failure `json:"failure,omitempty"`
	Lasts     int64           `json:"lasts,omitempty"` // µs
}
