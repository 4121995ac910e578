package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// Kind says what a notice is about.
type Kind string

// The kinds.
const (
	ApprovalRequested  Kind = "approval.requested"
	ApprovalResolved   Kind = "approval.resolved" // approved, rejected, revoked, expired
	EscalationRaised   Kind = "escalation.raised"
	EscalationResolved Kind = "escalation.resolved"
)

// Waits reports whether a person is waited for.
func (k Kind) Waits() bool { return k == ApprovalRequested || k == EscalationRaised }

// Notice is what a person is told. Its JSON form is what a webhook posts.
type Notice struct {
	ID   string    `json:"id"` // the same whenever the same is told
	Kind Kind      `json:"type"`
	At   time.Time `json:"timestamp"`

	Task       string         `json:"task"`                 // full id
	Agent      string         `json:"agent"`                //
	Approval   string         `json:"approval,omitempty"`   // what engine.Approve takes
	Escalation string         `json:"escalation,omitempty"` // what engine.ResumeTask takes
	Action     string         `json:"action,omitempty"`     // of the call that waits
	Concern    action.Concern `json:"concern,omitempty"`    // of the escalation
	Paused     bool           `json:"paused,omitempty"`     // the escalation paused the task
	Risk       float64        `json:"risk,omitempty"`       // effective, 1 to 5
	Reason     string         `json:"reason,omitempty"`     // why a person is asked, or what the person said
	End        string         `json:"end,omitempty"`        // of what is resolved: the type of the event
	Identity   string         `json:"identity,omitempty"`   // who resolved it
	Expires    *time.Time     `json:"expires,omitempty"`    // when the request expires
}

// String says it in one line.
func (n Notice) String() string {
	switch n.Kind {
	case ApprovalRequested:
		return fmt.Sprintf("%s asks to run %s in %s: %s", n.Agent, n.Action, n.Task, n.Reason)
	case EscalationRaised:
		return fmt.Sprintf("%s needs a look (%s): %s", n.Task, n.Concern, n.Reason)
	}
	return fmt.Sprintf("%s in %s: %s", n.End, n.Task, n.Reason)
}

// Notifier tells people. It is called from one goroutine at a time and must return when ctx ends; an error means that the
// notice may not have arrived.
type Notifier interface {
	Notify(ctx context.Context, n Notice) error
}

// types are the events that a desk listens to.
var types = []ledger.Type{
	ledger.ApprovalRequested, ledger.ApprovalApproved, ledger.ApprovalRejected, ledger.ApprovalRevoked, ledger.ApprovalExpired,
	ledger.EscalationRaised, ledger.EscalationResolved,
}

// noticeOf returns what people are told of a record.
func noticeOf(r *delta.Record) Notice {
	n := Notice{
		At: time.UnixMicro(r.Stored).UTC(), Task: r.TaskID(), Agent: r.Agent, Approval: r.Approval, Escalation: r.Escalation, Action: r.Action,
		Reason: r.Reason, Identity: r.Identity,
	}
	switch r.Type {
	case ledger.ApprovalRequested:
		n.Kind = ApprovalRequested
		if r.Expires > 0 {
			at := time.UnixMicro(r.Stored + r.Expires).UTC()
			n.Expires = &at
		}
	case ledger.EscalationRaised:
		n.Kind, n.Concern, n.Paused = EscalationRaised, action.Concern(r.Text), r.State != nil
	case ledger.EscalationResolved:
		n.Kind, n.Concern, n.End = EscalationResolved, action.Concern(r.Text), string(r.Type)
	default:
		n.Kind, n.End = ApprovalResolved, string(r.Type)
	}
	if r.Risk != nil {
		n.Risk = r.Risk.Effective
	}
	n.ID = idOf(n)
	return n
}

// idOf names a notice by what it is about, so that it is the same after a restart.
func idOf(n Notice) string {
	sum := sha256.Sum256([]byte(string(n.Kind) + "\n" + n.Approval + "\n" + n.Escalation + "\n" + n.End))
	return "msg_" + hex.EncodeToString(sum[:16])
}
