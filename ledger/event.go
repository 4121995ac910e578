package ledger

import (
	"encoding/json"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Version is the schema version that [Encode] writes and [Decode] reads.
const Version = 1

// Event is one thing that happened. There is one struct for all types; which fields are set is said at the [Type]. The
// order of the fields is the order of the encoding: append new ones at the end of their group and raise [Version].
//
// The sequence number and the store's time are not part of it: the store assigns them, and the chain covers them.
type Event struct {
	V    int   `json:"v"`    // schema version
	Type Type  `json:"type"` // what happened
	At   int64 `json:"at"`   // when, by the clock of the worker that wrote it, µs since 1970

	// Which call.
	Agent   string `json:"agent,omitempty"`
	Task    string `json:"task,omitempty"`
	Intent  string `json:"intent,omitempty"`
	Call    string `json:"call,omitempty"` // the call id its caller gave
	Action  string `json:"action,omitempty"`
	Version string `json:"version,omitempty"` // of the action
	Tool    string `json:"tool,omitempty"`    // what executes the action, where that is a tool
	Repeats string `json:"repeats,omitempty"` // what lets a begun effect be repeated: its class, or "key" and a digest of its idempotency key
	Digest  string `json:"digest,omitempty"`  // of the exact call; see package approval
	Within  string `json:"within,omitempty"`  // the intent whose function made the call, "" where the planner or the program did
	Child   string `json:"child,omitempty"`   // the name of a child task in its parent, in the ledgers of both
	Tenant  string `json:"tenant,omitempty"`  // for whom the task works, where facts are written that later tasks may rest on

	// Under which lease.
	Fence   int64  `json:"fence,omitempty"`
	Owner   string `json:"owner,omitempty"`   // the worker
	Attempt int    `json:"attempt,omitempty"` // 1 is the first

	// With which end.
	Code     action.Code     `json:"code,omitempty"`
	Failure  *action.Failure `json:"failure,omitempty"`
	Reserved action.Cost     `json:"reserved,omitzero"`
	Charged  action.Cost     `json:"charged,omitzero"`
	Overrun  bool            `json:"overrun,omitempty"` // more was charged than reserved
	Priced   action.Limit    `json:"priced,omitzero"`   // what of Reserved the input said that the call costs

	// What it gave and took.
	Facts    []string            `json:"facts,omitempty"`    // tokens written
	Bulk     map[string][]string `json:"bulk,omitempty"`     // facts too many for tokens: cell → values
	Claimed  []Claim             `json:"claimed,omitempty"`  // consumable tokens taken
	Returned bool                `json:"returned,omitempty"` // what had been taken was given back
	Pools    []string            `json:"pools,omitempty"`    // what was reserved counts in these budget pools too, see package budget
	Limits   []string            `json:"limits,omitempty"`   // places and slots taken under rate limits
	Cascade  bool                `json:"cascade,omitempty"`  // of a task that ends, is paused or goes on: its children must hear of it
	Row      *Row                `json:"row,omitempty"`      // what went wrong in a row, this event included; nil where that did not change

	// Who decided, on what grounds.
	Approval      string            `json:"approval,omitempty"`       // its id
	ApprovalFrom  string            `json:"approval_from,omitempty"`  // its mark before the event
	ApprovalState string            `json:"approval_state,omitempty"` // its mark after the event; "" where the event does not move it
	Escalation    string            `json:"escalation,omitempty"`     // its id
	Identity      string            `json:"identity,omitempty"`       // the person
	Reason        string            `json:"reason,omitempty"`         // in the words of whoever decided
	Expires       int64             `json:"expires,omitempty"`        // µs from the record's store time: of a request, of a task until its deadline
	Risk          *RiskShown        `json:"risk,omitempty"`
	Policy        *PolicyShown      `json:"policy,omitempty"`
	Waived        []*action.Failure `json:"waived,omitempty"` // observe mode: what would have been refused

	// What went in and out.
	Input      json.RawMessage   `json:"input,omitempty"`
	Output     json.RawMessage   `json:"output,omitempty"`
	Provenance action.Provenance `json:"provenance,omitzero"`
	State      json.RawMessage   `json:"state,omitempty"` // configuration of the task
	Value      string            `json:"value,omitempty"` // names the input as the function sees it, however it was spelt

	// What was learned.
	Learned  *Observed  `json:"learned,omitempty"`  // what this attempt teaches; the store gives it its Seq
	FromSeq  int64      `json:"from_seq,omitempty"` // first pending outcome folded
	ToSeq    int64      `json:"to_seq,omitempty"`   // last pending outcome folded
	Outcomes []Observed `json:"outcomes,omitempty"`
	Changes  []Change   `json:"changes,omitempty"`

	// Sealed is the input or the output itself, encrypted, where what stands in Input or Output is what may be read of it:
	// values that are secret are replaced by keyed digests. See package keys.
	Sealed string `json:"sealed,omitempty"`

	Text    string         `json:"text,omitempty"`
	Verdict action.Verdict `json:"verdict,omitempty"` // on the goal of the task

	// Of a workflow that the task runs.
	Flow  *Flow `json:"flow,omitempty"`
	Wakes bool  `json:"wakes,omitempty"` // its instance may wait for this
}

// Flow is where in a workflow something happened, and what the machine of package workflow was told with it.
type Flow struct {
	Phase     string          `json:"phase,omitempty"`
	Step      string          `json:"step,omitempty"`
	Kind      string          `json:"kind,omitempty"`      // the type of the step
	Iteration int             `json:"iteration,omitempty"` // of planning, 1 is the first
	Event     json.RawMessage `json:"event,omitempty"`     // the machine's event, with the first record of what it came to
	Spec      json.RawMessage `json:"spec,omitempty"`      // of a workflow_start: the definition
	// Sealed holds, by the digests that stand in the machine's event in place of secrets, what they stand for, encrypted.
	Sealed map[string]string `json:"sealed,omitempty"`
}

// Row counts calls of a task that went wrong without an Ok in between.
type Row struct {
	Failed int `json:"failed,omitempty"` // ran and failed
	Denied int `json:"denied,omitempty"` // the policy said no, or nothing
	Risky  int `json:"risky,omitempty"`  // were too risky, or needed an approval that nobody can give
	Asked  int `json:"asked,omitempty"`  // had to ask a person
}

// Claim is a consumable token that an intent took: the state it was in, and the one that names its holder.
type Claim struct {
	Key  string `json:"key"`
	From string `json:"from,omitempty"`
	To   string `json:"to"`
}

// RiskShown is the risk of a call as the gate saw it and as a person was shown it.
type RiskShown struct {
	Declared  int     `json:"declared"`           // 1 to 5
	Score     float64 `json:"score"`              // estimated from outcomes, 1 to 5
	Floor     float64 `json:"floor,omitempty"`    // what the action's own record alone says at least, 1 to 5
	Effective float64 `json:"effective"`          // what gated, 1 to 5; never below Declared
	P         float64 `json:"p"`                  // mean probability of Err, 0 to 1
	Lo        float64 `json:"lo,omitempty"`       // credible interval of P
	Hi        float64 `json:"hi,omitempty"`       //
	N         int64   `json:"n"`                  // outcomes the estimate rests on
	Rule      string  `json:"rule,omitempty"`     // the per-argument rule that raised it
	Estimate  string  `json:"estimate,omitempty"` // version of the estimator
}

// PolicyShown is the policy's answer.
type PolicyShown struct {
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Observed is one outcome that beliefs learn from.
type Observed struct {
	Seq       int64       `json:"seq,omitempty"` // among the agent's outcomes; not set before the store assigned it
	Action    string      `json:"action"`
	Declared  int         `json:"declared,omitempty"` // declared risk when it was executed
	Tags      []string    `json:"tags,omitempty"`     // tags of the action when it was executed
	Err       bool        `json:"err,omitempty"`
	Violation bool        `json:"violation,omitempty"` // a refusal of something the planner could have known
	Cost      action.Cost `json:"cost,omitzero"`
	At        int64       `json:"at,omitempty"`      // worker time, µs
	Untimed   bool        `json:"untimed,omitempty"` // nobody knows how long it took: a duration of zero is none
}

// Change is how one belief moved. A number that people see comes with its interval and count.
type Change struct {
	Belief string  `json:"belief"`           // which: an action's name, a tag, the agent's trust
	Was    float64 `json:"was,omitempty"`    // before, in the unit of Now
	Now    float64 `json:"now,omitempty"`    // risk: score 1 to 5; trust: 0 to 1
	Level  int     `json:"level,omitempty"`  // risk: the level that gates, 1 to 5
	P      float64 `json:"p,omitempty"`      // risk: mean probability of Err
	Lo     float64 `json:"lo,omitempty"`     // credible interval: of P, or of trust
	Hi     float64 `json:"hi,omitempty"`     //
	N      int64   `json:"n,omitempty"`      // outcomes it rests on
	Reason string  `json:"reason,omitempty"` // "change detected", say
}
