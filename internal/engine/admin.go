package engine

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Who is behind an operator's transaction, and when.
type Who struct {
	Identity string
	Roles    []string // vouched for
	Reason   string
	At       int64 // worker time, µs
	Owner    string
	Intent   string // of the call whose function it was, "" for none
	Text     string // what the event says besides
	By       Mover  // ByProgram with an Identity is ByPerson
}

// Start opens a task. It is refused where the task exists: a task that ended stays ended, whoever reuses its id.
func Start(s TaskState, at, untilDeadline int64) *txn.Txn {
	if s.Status = Running; s.Held != nil && s.Held.Paused {
		s.Status = Paused
	}
	t := &txn.Txn{Agent: s.Agent, Task: s.ID, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellTask, N: 0})
	e := ledger.Event{V: ledger.Version, Type: ledger.TaskStarted, At: at, Agent: s.Agent, Task: s.ID, Text: s.Goal, Expires: untilDeadline}
	if s.Flow != nil { // its input is no part of what every decision reads
		flow := *s.Flow
		e.Flow = &ledger.Flow{Event: flow.Input, Sealed: flow.Sealed}
		flow.Input, flow.Sealed, s.Flow = nil, nil, &flow
	}
	e.State = stateText(s)
	if s.Parent != nil {
		e.Child = s.Parent.Child
	}
	write(t, &e, nil)
	return t
}

func stateText(s TaskState) json.RawMessage {
	if s.Status != Paused {
		s.Paused = nil
	}
	text, _ := json.Marshal(s) // plain fields: cannot fail
	return text
}

// Change replaces the configuration or the status of a task that has not ended.
func Change(v *View, t ledger.Type, next TaskState, who Who) (*txn.Txn, error) {
	if v.taskVer == 0 {
		return nil, action.Fail(action.TaskClosed, "there is no such task")
	}
	if v.Task.Status.Ended() {
		return nil, v.Task.Because(action.Fail(action.TaskClosed, "the task is %s and stays so", v.Task.Status))
	}
	if f := cmp.Or(v.passage(&next, who), within(&v.Task, &next)); f != nil {
		return nil, f
	}
	x := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	x.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellTask, N: v.taskVer})
	e := v.event(t, who.At)
	v.endOfFamily(x, &e)
	if !next.Status.Ended() && (next.Status != v.Task.Status || !next.Held.same(v.Task.Held)) {
		v.cascades(x, &e)
	}
	e.Identity, e.Reason, e.State = who.Identity, who.Reason, stateText(next)
	e.Intent, e.Text = who.Intent, who.Text
	e.Expires = next.due(v.Snap.Now)
	write(x, &e, nil)
	return x, nil
}

// CancelTask ends a task; nothing begins afterwards.
func CancelTask(v *View, who Who) (*txn.Txn, error) {
	next := v.Task
	next.end(Cancelled, who)
	return Change(v, ledger.TaskCancelled, next, who)
}

// CloseTask ends a task that is done or whose deadline has passed.
func CloseTask(v *View, who Who) (*txn.Txn, error) {
	next := v.Task
	next.end(Closed, who)
	return Change(v, ledger.TaskClosed, next, who)
}

func (w Who) person() approval.Person { return approval.Person{Name: w.Identity, Roles: w.Roles} }

// ReadAsk returns the approval with that digest, and its state as of store time now: what waited too long is expired,
// written down or not.
func ReadAsk(v *View, digest string, now int64) (approval.State, approval.Request, error) {
	t, ok := v.Snap.Task.Tokens[tokenAsk+digest]
	if !ok {
		return "", approval.Request{}, fmt.Errorf("no approval is asked for this call")
	}
	state, a, err := readAsk(t)
	return state.At(t.Exp, now), a, err
}

// DecideAsk moves an approval. Approve consents; Reject and Revoke also end the call that waits, if it does.
// parked is the event under which the call waits, nil where it does not wait any more.
func DecideAsk(v *View, digest string, verb approval.Event, parked *ledger.Event, who Who) (*txn.Txn, error) {
	token := v.Snap.Task.Tokens[tokenAsk+digest]
	state, ask, err := ReadAsk(v, digest, v.Snap.Now)
	if err != nil {
		return nil, err
	}
	next, err := approval.Next(state, verb)
	if err != nil {
		return nil, fmt.Errorf("approval %s: %w", ask.ID, err)
	}
	if next == approval.Approved && !v.OpenAt(v.Snap.Now) {
		f := v.Task.Because(action.Fail(action.TaskClosed, "the task has ended: the call would never run"))
		return nil, fmt.Errorf("approval %s: %w", ask.ID, f)
	}
	if err := v.May(Approver, nil, &ask, who); err != nil {
		return nil, fmt.Errorf("approval %s: %w", ask.ID, err)
	}
	if verb == approval.Approve && ask.Quorum.Several() {
		return vote(v, ask, token, who)
	}
	q := ask
	t := &txn.Txn{Agent: q.Agent, Task: q.Task, Phase: txn.Plain}
	v.PinTask(t) // it names the approvers
	t.Add(txn.Clause{Op: txn.Have, Scope: txn.Task, Key: tokenAsk + digest, From: token.State})
	e := v.event(eventOf[next], who.At)
	e.Intent, e.Action, e.Version, e.Digest, e.Approval = q.Intent, q.Action, q.Version, digest, q.ID
	e.Identity, e.Reason, e.ApprovalFrom, e.ApprovalState = who.Identity, who.Reason, token.State, approval.Mark(next, q.ID, "")
	if next == approval.Approved {
		v.remember(&e)
	}
	if next == approval.Rejected {
		e.Value = q.Value
		decided := q.Decided(approval.Decision{Identity: who.Identity, Reason: who.Reason, At: who.At})
		e.State = jsonText(decided)
	}
	write(t, &e, nil)
	if next != approval.Approved && parked != nil {
		f := action.Fail(action.ApprovalRejected, "a person rejected this call; do not ask again")
		if next == approval.Revoked {
			f = action.Fail(action.ApprovalRejected, "a person took the approval of this call back")
		}
		v.endParked(t, parked, f.With(action.DetailReason, who.Reason).With(action.DetailApproval, q.ID), who)
	}
	return t, nil
}

// endParked makes a transaction end the intent that waits as well.
func (v *View) endParked(t *txn.Txn, parked *ledger.Event, f *action.Failure, who Who) {
	t.Phase, t.Intent, t.Fence, t.Owner = txn.Refuse, parked.Intent, 1, who.Owner
	e := v.event(ledger.Refused, who.At)
	e.Intent, e.Call, e.Action, e.Version, e.Digest = parked.Intent, parked.Call, parked.Action, parked.Version, parked.Digest
	e.Code, e.Failure, e.Approval, e.Returned = f.Code, f, f.Approval(), true
	write(t, &e, nil)
}

var eventOf = map[approval.State]ledger.Type{
	approval.Approved: ledger.ApprovalApproved,
	approval.Rejected: ledger.ApprovalRejected,
	approval.Revoked:  ledger.ApprovalRevoked,
}

// Resolve writes an operator's word on an intent of unknown outcome. Of what it found, End gives the output and Run what it
// takes to establish facts: the input where the event does not show it, and the veil.
func Resolve(agent *Agent, v *View, begun ledger.Event, ok bool, cost action.Cost, found End, run Run, who Who) (*txn.Txn, error) {
	if t := v.Snap.Task.Tokens[tokenUnknown+begun.Intent]; t.State != unresolved {
		return nil, fmt.Errorf("intent %s: its outcome is not unknown", begun.Intent)
	}
	cost.Calls = max(cost.Calls, 1) // it was made
	x := &Run{Agent: agent, Begun: &begun, Fence: begun.Fence, Owner: begun.Owner, Input: run.Input, Veil: run.Veil}
	t := x.txn(txn.Plain)
	e := x.event(ledger.Resolved, who.At)
	e.Identity, e.Reason, e.Charged, e.Wakes = who.Identity, who.Reason, cost, v.Task.Flow != nil
	e.Overrun = exceeds(cost, begun.Reserved)
	e.Learned = x.learned(!ok, cost, who.At)
	e.Learned.Untimed = cost.Duration == 0
	if ok {
		e.Code = action.OK
		e.Output = json.RawMessage(found.Output.Text())
		if found.Sealed != "" {
			e.Output, e.Sealed = json.RawMessage(found.Shown.Text()), found.Sealed
		}
		if x.Input == nil {
			tree, err := inputTree(begun)
			if err != nil {
				return nil, err
			}
			x.Input = tree
		}
		x.satisfy(&e, found.Output)
	} else {
		e.Code = action.Failed
		e.Failure = action.Fail(action.Failed, "an operator found that the call did not succeed").With(action.DetailReason, who.Reason)
	}
	write(t, &e, &begun)
	return t, nil
}

// ExpireAsk writes down that a request, or an approval that nobody used, waited too long, and ends the call that waited.
// Nil where it is no longer so; parked is as in DecideAsk.
func ExpireAsk(v *View, digest string, parked *ledger.Event, who Who) *txn.Txn {
	token := v.Snap.Task.Tokens[tokenAsk+digest]
	was, _, _, err := approval.ParseMark(token.State)
	state, q, readErr := ReadAsk(v, digest, v.Snap.Now)
	if err != nil || readErr != nil || state != approval.Expired || was == approval.Expired {
		return nil
	}
	t := &txn.Txn{Agent: q.Agent, Task: q.Task, Phase: txn.Plain}
	t.Add(haveMark(digest, token.State), txn.Clause{Op: txn.Time, Min: token.Exp, Max: txn.NoMax})
	e := v.event(ledger.ApprovalExpired, who.At)
	e.Intent, e.Action, e.Digest, e.Approval = q.Intent, q.Action, digest, q.ID
	e.ApprovalFrom, e.ApprovalState = token.State, approval.Mark(approval.Expired, q.ID, "")
	write(t, &e, nil)
	if parked != nil {
		f := action.Fail(action.ApprovalExpired, "the approval was not given, or not used, in time; propose the call again to ask again")
		v.endParked(t, parked, f.With(action.DetailApproval, q.ID), who)
	}
	return t
}
