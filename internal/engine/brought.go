package engine

import (
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Brought is what a task brings along beside the text of its goal. It is part of the task's cell.
type Brought struct {
	Phase       string                  `json:"phase,omitempty"`
	Storylines  []string                `json:"storylines,omitempty"`
	Attachments []action.AttachmentInfo `json:"attachments,omitempty"`
	Skills      []string                `json:"skills,omitempty"`
	Channels    []string                `json:"channels,omitempty"`
}

// IsZero reports whether nothing was brought.
func (b *Brought) IsZero() bool {
	return b == nil || b.Phase == "" && len(b.Storylines)+len(b.Attachments)+len(b.Skills)+len(b.Channels) == 0
}

// Attachment finds an attachment by its id.
func (b *Brought) Attachment(id string) (action.AttachmentInfo, bool) {
	if b != nil {
		for _, a := range b.Attachments {
			if a.ID == id {
				return a, true
			}
		}
	}
	return action.AttachmentInfo{}, false
}

// Sends refuses a message over a channel that the task was not given. Nothing brought is no channels.
func (b *Brought) Sends(channel string) *action.Failure {
	switch {
	case b == nil || len(b.Channels) == 0:
		return action.Fail(action.ChannelUnknown, "this task has no channels to send messages over")
	case !slices.Contains(b.Channels, channel):
		return action.Fail(action.ChannelUnknown, "this task has no channel %q; it has %q", channel, b.Channels)
	}
	return nil
}

// channelGiven decides by the view, whose task gate 1 has pinned: what the shell could find out beforehand, it could fail to.
func (r *round) channelGiven() *action.Failure {
	if r.call.Wants == nil {
		return nil
	}
	return r.view.Task.Brought.Sends(*r.call.Wants)
}

// SetPhase moves a running task into another phase. Nil where it is in it already.
func SetPhase(v *View, phase string, who Who) (*txn.Txn, error) {
	next := v.Task
	brought := Brought{}
	if v.Task.Brought != nil {
		brought = *v.Task.Brought
	}
	if brought.Phase == phase {
		return nil, nil
	}
	brought.Phase = phase
	next.Brought = &brought
	who.Text = phase
	return Change(v, ledger.PhaseChanged, next, who)
}

// Conclude writes a verdict on the goal. A task that still runs ends with it, by the same event; of one that has ended only
// a person may judge, and may judge again: the latest word counts, the ledger keeps all. Nil where the same was said already.
func Conclude(v *View, c action.Conclusion, who Who) (*txn.Txn, error) {
	if v.taskVer == 0 {
		return nil, action.Fail(action.TaskClosed, "there is no such task")
	}
	ended := v.Task.Status == Cancelled || v.Task.Status == Closed
	if was := v.Task.Conclusion; ended && was != nil && was.Verdict == c.Verdict && was.By == c.By && was.Identity == c.Identity && was.Reason == c.Reason {
		return nil, nil
	}
	if ended && c.By != action.ByPerson {
		return nil, v.Task.Because(action.Fail(action.TaskClosed, "the task is %s and stays so; a person may still judge it", v.Task.Status))
	}
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	v.PinTask(t)
	next := v.Task
	next.Conclusion = &c
	if !ended {
		next.end(Closed, who)
		if f := v.passage(&next, who); f != nil {
			return nil, f
		}
	}
	what := ledger.TaskConcluded
	if !ended {
		what = ledger.TaskClosed
	}
	e := v.event(what, who.At)
	v.endOfFamily(t, &e)
	e.Verdict, e.Identity, e.Reason, e.Intent, e.Text = c.Verdict, who.Identity, who.Reason, c.Intent, string(c.By)
	e.State = stateText(next)
	write(t, &e, nil)
	return t, nil
}
