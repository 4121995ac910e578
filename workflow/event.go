package workflow

import (
	"encoding/json"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// EventKind says what happened.
type EventKind string

// The kinds of events. Those of the first group answer a command and bear its id in Of.
const (
	// Planned answers [Plan]: Output is the proposal, or Failure says why there is none. Cost.
	Planned EventKind = "planned"
	// Verified answers [Verify]: OK, or Text is the critique. Cost where a verifier is a model.
	Verified EventKind = "verified"
	// Guarded answers [Evaluate]: OK says whether the condition holds. Failure: it could not be evaluated, which is a
	// failure of the step.
	Guarded EventKind = "guarded"
	// Called answers [Call] and [Compensate]: Outcome, and Effect as the engine recorded it with the call. Of a call that was
	// denied Text is the version of the rules.
	Called EventKind = "called"
	// ChildEnded answers [Spawn]: OK and Output, the child's terminal artifacts; or Failure. Cost is all that the child
	// used. Tree where the child ended by [AbortTree]. A child that could not be started ends with the Failure. Of one that
	// did not complete Left is what stands of it, see [State.Standing].
	ChildEnded EventKind = "child_ended"
	// ChildUnwound answers [Unwind]: OK, or Failure: the child could not be undone. Left is what stands of it all the same.
	ChildUnwound EventKind = "child_unwound"
	// Fired answers [Timer]: its time has come.
	Fired EventKind = "fired"
	// Performed answers [Advise], [Withdraw] and [Hold].
	Performed EventKind = "performed"

	// Intake answers [Ask]: Output is the person's data, By the person.
	Intake EventKind = "intake"
	// Advised answers [Escalate]: OK and Output, what the parent's people said; not OK: nobody there has an answer.
	Advised EventKind = "advised"

	// Approval ends a wait for an approval: OK approved; else Text is rejected or expired, see [Rejected].
	Approval EventKind = "approval"
	// PolicyChanged ends waits after DENIED: Text is the version of the rules. A person's wish is none.
	PolicyChanged EventKind = "policy_changed"
	// Amended ends a wait after DENIED, or one for an operator, of a step that is to be executed, or of the call that undoes
	// one: Output is the input it is to be tried with, By who says so. It passes the input contract and all gates.
	Amended EventKind = "amended"
	// Resolved ends a wait after STARTED_UNKNOWN: OK and Output, or not OK. By, Cost.
	Resolved EventKind = "resolved"
	// Resumed ends a wait for an operator ([WaitOperator]): OK tries again with fresh budgets, not OK lets the step fail;
	// of a compensation that failed, OK tries it again and not OK leaves it undone. Without Of it ends a pause: with Tree that
	// of the parent, else that of a person. By, Text.
	Resumed EventKind = "resumed"

	// Paused holds back all commands but timers until Resumed. Tree: because its parent is paused. By, Text.
	Paused EventKind = "paused"
	// Cancelled ends the instance: at once, or with After once what runs has ended. What completed is undone unless Keep.
	Cancelled EventKind = "cancelled"
	// ChildAsked is a child's [Escalate]: Of is the command [Spawn] of that child, Ask the id of its escalation, Text why.
	ChildAsked EventKind = "child_asked"
	// Migrated is for [Definition.TakeOver]; By, Text. A step absorbs it.
	Migrated EventKind = "migrated"
	// Unwound is the parent's [Unwind] of an instance that has ended: it undoes what it completed.
	Unwound EventKind = "unwound"
)

// How an [Approval] ended that was not given. Waiting too long is no rejection.
const (
	Rejected = "rejected"
	Expired  = "expired"
)

// Event is one thing that happened. There is one struct for all kinds; which fields are set is said at the [EventKind]. What
// is written is read again: an event survives JSON.
type Event struct {
	Kind EventKind `json:"kind"`
	// Of is the id of the command or the wait that is answered. An event of another id is absorbed.
	Of string `json:"of,omitempty"`
	// At is when, by the clock of whoever wrote it, µs since 1970. The machine's time never goes back: an earlier one counts
	// as the latest.
	At      int64           `json:"at"`
	By      string          `json:"by,omitempty"` // the person
	OK      bool            `json:"ok,omitempty"`
	Text    string          `json:"text,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"`
	Outcome *action.Outcome `json:"outcome,omitempty"`
	Effect  action.Effect   `json:"effect,omitempty"`
	Cost    action.Cost     `json:"cost,omitzero"`
	Failure *action.Failure `json:"failure,omitempty"`
	Ask     string          `json:"ask,omitempty"`
	Left    []Deed          `json:"left,omitempty"`
	Tree    bool            `json:"tree,omitempty"`
	After   bool            `json:"after,omitempty"`
	Keep    bool            `json:"keep,omitempty"`
}

// Begin is what an instance starts with.
type Begin struct {
	Instance string          `json:"instance"`         // its id, by [action.CheckName]; at most [MaxInstance] bytes
	Parent   string          `json:"parent,omitempty"` // the instance whose SUB_SOP it is, "" for none
	Input    json.RawMessage `json:"input,omitempty"`  // as the strict edge passed it
	At       int64           `json:"at"`               // µs since 1970
	Held     bool            `json:"held,omitempty"`   // its parent is paused: it begins paused, until that goes on
}
