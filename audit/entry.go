package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// Entry is one event as auditors read it. Empty fields are left out of JSON.
type Entry struct {
	Ledger string      `json:"ledger"` // "agent~task", or the agent's name
	Seq    int64       `json:"seq"`    // its number there
	Event  ledger.Type `json:"event"`
	Status string      `json:"status"` // see Status
	Code   action.Code `json:"code,omitempty"`
	Layer  string      `json:"layer,omitempty"` // where a failure came from

	Agent   string `json:"agent"`
	Task    string `json:"task,omitempty"` // its full id
	Action  string `json:"action,omitempty"`
	Tool    string `json:"tool,omitempty"` // what executed the action, where that is a tool
	Version string `json:"version,omitempty"`
	Intent  string `json:"intent,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Within  string `json:"within,omitempty"` // the intent whose function made the call
	Child   string `json:"child,omitempty"`

	At       time.Time     `json:"at"`               // by the clock of the worker that wrote it
	Stored   time.Time     `json:"stored"`           // by the store's clock
	Started  time.Time     `json:"started,omitzero"` // of a call that ends: when it began, where this process knows
	Duration time.Duration `json:"duration,omitempty"`

	Approval   string  `json:"approval,omitempty"`
	Escalation string  `json:"escalation,omitempty"`
	Identity   string  `json:"identity,omitempty"` // the person
	Reason     string  `json:"reason,omitempty"`   // in the person's words
	Policy     string  `json:"policy,omitempty"`   // its version
	Risk       float64 `json:"risk,omitempty"`     // effective, 1 to 5
	Waived     int     `json:"waived,omitempty"`   // refusals that observe mode let pass

	Digest string `json:"digest,omitempty"` // of the exact call, as approvals name it
	Input  string `json:"input,omitempty"`  // keyed digest
	Output string `json:"output,omitempty"` // keyed digest
}

// The statuses of entries.
const (
	Started   = "started"   // a call or a task began
	Completed = "completed" // it ended well, or as it should
	Failed    = "failed"    // it ran, or was to run, and failed
	Refused   = "refused"   // a gate turned it away: nothing ran
	Waiting   = "waiting"   // a person is asked
	Decided   = "decided"   // a person, or time, has answered
	Cancelled = "cancelled" // it was ended from outside
	Recorded  = "recorded"  // anything else
)

// statuses of events that have one whatever their code says.
var statuses = map[ledger.Type]string{
	ledger.TaskStarted: Started, ledger.TaskClosed: Completed, ledger.TaskCancelled: Cancelled, ledger.Begun: Started, ledger.Attempt: Started,
	ledger.Refused: Refused, ledger.ChildRefused: Refused, ledger.ApprovalRequested: Waiting, ledger.EscalationRaised: Waiting,
	ledger.ApprovalApproved: Decided, ledger.ApprovalRejected: Decided, ledger.ApprovalRevoked: Decided, ledger.ApprovalExpired: Decided,
	ledger.ApprovalWaived: Decided, ledger.EscalationResolved: Decided, ledger.ChildGranted: Started, ledger.HookFailed: Failed,
}

func statusOf(e *ledger.Event) string {
	if s, there := statuses[e.Type]; there {
		return s
	}
	switch {
	case e.Type == ledger.Settled && e.Code == action.OK:
		return Completed
	case e.Type == ledger.Settled && (e.Code == action.Interrupted || e.Code == action.NotStarted):
		return Cancelled
	case e.Type == ledger.Settled:
		return Failed
	}
	return Recorded
}

// entryOf reads a record. key is that of the digests; without one there are none.
func entryOf(r *delta.Record, key []byte, begun int64) Entry {
	e := &r.Event
	x := Entry{
		Ledger: ledger.NameOf(r.Agent, r.Task), Seq: r.Seq, Event: e.Type, Status: statusOf(e), Code: e.Code,
		Agent: e.Agent, Task: r.TaskID(), Action: e.Action, Tool: e.Tool, Version: e.Version, Intent: e.Intent, Attempt: e.Attempt, Within: e.Within, Child: e.Child,
		At: time.UnixMicro(e.At).UTC(), Stored: time.UnixMicro(r.Stored).UTC(), Duration: e.Charged.Duration,
		Approval: e.Approval, Escalation: e.Escalation, Identity: e.Identity, Waived: len(e.Waived), Digest: e.Digest,
		Input: digest(key, "input", e.Input), Output: digest(key, "output", e.Output),
	}
	if e.Identity != "" {
		x.Reason = e.Reason
	}
	if begun > 0 {
		x.Started = time.UnixMicro(begun).UTC()
	}
	if e.Failure != nil {
		x.Layer = string(e.Failure.Layer)
	}
	if e.Policy != nil {
		x.Policy = e.Policy.Version
	}
	if e.Risk != nil {
		x.Risk = e.Risk.Effective
	}
	return x
}

// digest is the HMAC-SHA256 of what goes in or out: the same value has the same digest, and who lacks the key cannot try
// values.
func digest(key []byte, what string, text []byte) string {
	if len(key) == 0 || len(text) == 0 {
		return ""
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte("delta-agents audit " + what + "\n"))
	h.Write(text)
	return "hmac-sha256:" + hex.EncodeToString(h.Sum(nil))
}
