package workflow

import (
	"cmp"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// call makes an attempt. Where the call id of the one before still stands, because nothing of it was recorded or it may
// still be under way, it is made under that again: the engine answers with what was recorded.
func (m *machine) call(i int) {
	st := &m.s.Steps[i]
	if f := m.overspent(i); f != nil {
		m.failed(i, f)
		return
	}
	st.Attempt++
	st.Calls++
	m.callAgain(i)
}

// callAgain makes the call of the attempt under way.
func (m *machine) callAgain(i int) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	st.Stage = StageExecute
	id := m.issue(i, Command{Kind: Call, Iteration: st.Iteration, Attempt: st.Attempt, Call: st.Call, Action: n.Action, Input: st.Proposal, Description: n.Description, Hints: m.hints(n), Limit: m.left(i)})
	st.Call = cmp.Or(st.Call, id)
}

// called is how a call ended.
func (m *machine) called(i int, o action.Outcome, effect action.Effect) {
	st := &m.s.Steps[i]
	st.Effect = effect
	info := o.Code.Info()
	switch {
	case o.Code == action.Denied:
		m.note(i, Entry{Kind: PolicyEval, Code: o.Code, Failure: o.Failure})
	case o.OK() || info.Gate > action.Denied.Info().Gate:
		m.note(i, Entry{Kind: PolicyEval, Code: action.OK})
	}
	m.note(i, Entry{Kind: ToolCall, Call: st.Call, Code: o.Code, Cost: o.Cost, Failure: o.Failure})
	f := failureOf(o)
	m.perhaps(i, o)
	switch {
	case o.OK():
		m.effected(i, o)
	case o.Code == action.StartedUnknown:
		m.park(i, Wait{For: WaitResolution, Code: o.Code, Reason: f.Message, Intent: o.Intent})
	case o.Code == action.InFlight:
		m.inFlight(i, o, f)
	case st.Closing != nil:
		m.fail(i, st.Closing)
	case o.Code == action.ApprovalRequired:
		m.park(i, Wait{For: WaitApproval, Code: o.Code, Reason: f.Message, Approval: f.Approval()})
	case o.Code == action.Denied:
		m.park(i, Wait{For: WaitPolicy, Code: o.Code, Reason: forbidden(f), Policy: st.Policy})
	case info.Executed == action.No && info.Retryable:
		m.notStarted(i, f)
	default:
		m.failed(i, f)
	}
}

func failureOf(o action.Outcome) *action.Failure {
	if o.Failure != nil {
		return o.Failure
	}
	return action.Fail(o.Code, "%s", o.Code.Info().Tells)
}

// forbidden says, to those who look after the instance, what was denied and which rule of the policy denied it.
func forbidden(f *action.Failure) string {
	if rule := f.Details[action.DetailRule]; rule != "" {
		return action.Cut(f.Message + "; rule: " + rule)
	}
	return f.Message
}

// effected is a call that completed: from now on it may have to be undone.
func (m *machine) effected(i int, o action.Outcome) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	m.again(i)
	m.did(Deed{Step: n.Name, Call: st.Call, Intent: o.Intent, Action: n.Action, Effect: st.Effect, Input: st.Proposal, Output: o.Output})
	st.Effected = !st.Effect.Repeatable()
	if st.Closing != nil {
		m.fail(i, st.Closing) // no result of a step that was cancelled
		return
	}
	m.validate(i, o.Output)
}

// inFlight is a call that another worker makes: its end is asked for again, under the same id. Where that does not come,
// nobody knows whether it takes effect.
func (m *machine) inFlight(i int, o action.Outcome, f *action.Failure) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	if st.Calls >= n.attempts() {
		m.park(i, Wait{For: WaitResolution, Code: o.Code, Reason: f.Message, Intent: cmp.Or(o.Intent, f.Details[action.DetailIntent])})
		return
	}
	m.pause(i, stagePoll, f)
}

// poll asks again how a call ends that is under way. It starts none where the step is to end.
func (m *machine) poll(i int) {
	st := &m.s.Steps[i]
	st.Calls++
	if st.Closing != nil {
		m.interrupt(i, "")
		return
	}
	m.callAgain(i)
}

// interrupt has a call stopped, in the place of a command.
func (m *machine) interrupt(i int, of string) {
	st := &m.s.Steps[i]
	st.Stage, st.Wait = StageExecute, nil
	m.issue(i, Command{Kind: Interrupt, Attempt: st.Attempt, Call: st.Call, Action: m.d.nodes[i].Action, Ask: of})
}

func (n *node) attempts() int { return cmp.Or(n.Limits.Attempts, 3) }

// whoeverCan are the refusals that do not go away by themselves, but by what somebody does outside.
var whoeverCan = map[action.Code]bool{action.BudgetExhausted: true, action.TaskPaused: true, action.ApprovalExpired: true}

// notStarted is a call that did not run and may later.
func (m *machine) notStarted(i int, f *action.Failure) {
	n, st := &m.d.nodes[i], &m.s.Steps[i]
	if f.Code.Info().Gate > 9 || f.Code == action.ApprovalExpired {
		st.Call = "" // its end is recorded under that id
	}
	switch {
	case st.Calls < n.attempts():
		m.pause(i, StageExecute, f)
	case whoeverCan[f.Code]:
		st.Failure = f
		m.park(i, Wait{For: WaitOperator, Code: f.Code, Reason: f.Message})
	default:
		m.failed(i, f)
	}
}

// approval is the end of an approval. Waiting too long is not a rejection.
func (m *machine) approval(i int, e Event) {
	st := &m.s.Steps[i]
	switch {
	case e.OK:
		m.callAgain(i)
	case e.Text == Expired:
		m.notStarted(i, action.Fail(action.ApprovalExpired, "nobody approved the call in time"))
	default:
		f := action.Fail(action.ApprovalRejected, "a person rejected the call")
		if e.Failure != nil {
			f = e.Failure
		}
		st.Call = ""
		m.failed(i, f)
	}
}

// amended tries with a person's input, which passes the contract and all gates like any other.
func (m *machine) amended(i int, e Event) {
	st := &m.s.Steps[i]
	st.Input, st.Amended, st.Call, st.Calls = e.Output, true, "", 0
	m.note(i, Entry{Kind: Control, Text: "amend", By: e.By, Digest: digestOf(e.Output)})
	m.admit(i)
}

// resolved is a person's word on a call of unknown outcome.
func (m *machine) resolved(i int, w Wait, e Event) {
	m.note(i, Entry{Kind: Control, Text: "resolve", By: e.By, Call: m.s.Steps[i].Call})
	if e.OK {
		m.effected(i, action.Outcome{Intent: w.Intent, Code: action.OK, Output: e.Output})
		return
	}
	f := e.Failure
	if f == nil {
		f = action.Fail(action.Failed, "a person says that the call did not succeed")
	}
	st := &m.s.Steps[i]
	st.Touched = st.Touched || st.Effect == action.Irreversible
	m.failed(i, f)
}
