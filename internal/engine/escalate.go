package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Escalate says when a task is brought before a person. A number of 0 or less is never.
type Escalate struct {
	Failed   int     // calls in a row that ran and failed
	Denied   int     // calls in a row that the policy did not permit
	Risky    int     // calls in a row refused for their risk, or for want of an approver
	Asked    int     // calls in a row that had to ask a person
	Loop     int     // the same call to no effect
	Friction float64 // above which friction escalates
	Surprise bool    // a change for the worse in how often calls fail
	Close    int64   // µs after which a task whose escalation nobody resolved is closed, 0 for never
}

// Pause is why a task is paused.
type Pause struct {
	ID      string         `json:"id"`
	Concern action.Concern `json:"concern"`
	Reason  string         `json:"reason"`
	At      int64          `json:"at"`              // store time, estimated, µs
	Until   int64          `json:"until,omitempty"` // store time at which the task is closed, 0 for never
}

// Strain is what one end adds to what went wrong in a row, and the concern it gives rise to.
type Strain struct {
	Row     *ledger.Row // as of this end; nil where nothing changed
	Concern action.Concern
	Why     string
}

// Row returns what went wrong in a row so far.
func (v *View) Row() (r ledger.Row) { return rowOf(v.Snap.Task.Cells) }

func rowOf(cells map[string]txn.Cell) (r ledger.Row) {
	if c, ok := cells[cellRow]; ok && c.Val != calm {
		_ = json.Unmarshal([]byte(c.Val), &r) // written by this package
	}
	return r
}

// calm is the cell of a row of nothing.
const calm = "{}"

// Calm reports whether nothing is counted that an Ok would have to clear.
func Calm(task *txn.Space) bool {
	c, ok := task.Cells[cellRow]
	return !ok || c.Val == calm
}

// Asks reports whether somebody could be asked about a task.
func (r *Rules) Asks(t *TaskState) bool {
	return !r.Observe && !r.Nobody && (r.Operated || t.somebody(t.Approvers))
}

// Relief is the strain of an Ok: none, whatever went wrong before.
func Relief(task *txn.Space) Strain {
	if Calm(task) {
		return Strain{}
	}
	return Strain{Row: &ledger.Row{}}
}

// Toll is the strain of an end that is no Ok.
func Toll(rules *Rules, agent *Agent, v *View, code action.Code, name string, learned *ledger.Observed) Strain {
	row := v.Row()
	was := row
	limits := &rules.Escalate
	s := Strain{Row: &row}
	tally := func(n *int, limit int, c action.Concern, why string) {
		if *n++; limit > 0 && *n >= limit && s.Concern == "" {
			s.Concern, s.Why = c, fmt.Sprintf("%d %s", *n, why)
		}
	}
	switch {
	case code == action.Denied:
		tally(&row.Denied, limits.Denied, action.ConcernPolicy, "calls without permission and no Ok in between")
	case code == action.RiskCeiling || code == action.NoApprover:
		tally(&row.Risky, limits.Risky, action.ConcernRisk, "calls too risky for this task and no Ok in between")
	case code == action.ApprovalRequired:
		tally(&row.Asked, limits.Asked, action.ConcernRisk, "calls that needed an approval and no Ok in between")
	case failedRun(code):
		tally(&row.Failed, limits.Failed, action.ConcernFailure, "calls failed and no Ok in between")
		if limits.Surprise && s.Concern == "" && worse(rules, agent, v, learned) {
			s.Concern, s.Why = action.ConcernSurprise, fmt.Sprintf("calls of %q fail more often than was known", name)
		}
	}
	if s.Concern != "" {
		row = ledger.Row{} // counted from here on anew
	}
	if row == was {
		s.Row = nil
	}
	return s
}

func failedRun(code action.Code) bool {
	return code.Info().Executed != action.No && code != action.OK && code != action.Interrupted && code != action.Late
}

// worse reports whether an outcome is the one at which a change for the worse is found.
func worse(rules *Rules, agent *Agent, v *View, o *ledger.Observed) bool {
	if o == nil || !o.Err {
		return false
	}
	_, in, err := learnOne(rules, agent, v.Beliefs, *o)
	return err == nil && (in.Change == risk.GotWorse || in.AgentChange == risk.GotWorse)
}

// Friction returns the friction of the task where it calls for a person, else 0. A person who let the task go on is not
// asked again before twice as much was tried.
func Friction(rules *Rules, v *View) float64 {
	limit := rules.Escalate.Friction
	if limit <= 0 || v.Task.Status != Running || v.Runs() < 2*v.Task.Eased {
		return 0
	}
	share, _ := v.Account().Share()
	if share*float64(v.Runs()) <= limit { // it cannot be more, whatever was achieved
		return 0
	}
	f, _ := budget.Friction(budget.Progress{Share: share, Attempts: int(v.Runs()), Facts: v.Facts()})
	if f <= limit {
		return 0
	}
	return f
}

// Raise brings a task before a person: it pauses where somebody can be asked. Nil where it is paused already or has ended.
func Raise(rules *Rules, v *View, c action.Concern, why, id string, who Who) *txn.Txn {
	if s := v.Task.standing(); !v.Exists() || s != Running && s != onHold {
		return nil
	}
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	v.PinTask(t)
	v.raise(rules, t, c, why, id, who)
	return t
}

// raise makes a transaction that pins the task raise an escalation too.
func (v *View) raise(rules *Rules, t *txn.Txn, c action.Concern, why, id string, who Who) {
	e := v.event(ledger.EscalationRaised, who.At)
	e.Escalation, e.Text, e.Reason, e.Identity, e.Intent = id, string(c), action.Cut(why), who.Identity, who.Intent
	if rules.Asks(&v.Task) {
		next := v.Task
		next.Status = Paused
		next.Paused = &Pause{ID: id, Concern: c, Reason: e.Reason, At: v.Snap.Now}
		if n := rules.Escalate.Close; n > 0 {
			next.Paused.Until = v.Snap.Now + n
		}
		e.State, e.Expires = stateText(next), next.due(v.Snap.Now)
		v.cascades(t, &e)
	}
	write(t, &e, nil)
}

// due is how long it is until the task ends by itself, 0 for never.
func (p *TaskState) due(now int64) int64 {
	end := p.Deadline
	if w := p.Paused; w != nil && p.Status == Paused && w.Until > 0 && (end == 0 || w.Until < end) {
		end = w.Until
	}
	if end == 0 {
		return 0
	}
	return max(1, end-now)
}

// Overdue says why a task is to be closed at store time now, "" where it is not.
func (v *View) Overdue(now int64) string {
	s := &v.Task
	switch {
	case s.Status.Ended():
		return ""
	case s.Deadline > 0 && now >= s.Deadline:
		return "the deadline has passed"
	case s.Status == Paused && s.Paused != nil && s.Paused.Until > 0 && now >= s.Paused.Until:
		return fmt.Sprintf("nobody resolved its escalation in time: %s: %s", s.Paused.Concern, s.Paused.Reason)
	}
	return ""
}

// ErrNotPaused says that an escalation does not stand any more.
var ErrNotPaused = errors.New("it was resolved already, or another has taken its place")

// Unpause is a person's word on an escalation: the task goes on, or ends. Whoever requested the task, and its agent, have
// no say.
func Unpause(v *View, id string, goOn bool, operators []string, who Who) (*txn.Txn, error) {
	p := v.Task.Paused
	if v.Task.Status.Ended() {
		return nil, v.Task.Because(action.Fail(action.TaskClosed, "the task is %s and stays so", v.Task.Status))
	}
	if v.Task.Status != Paused || p == nil || p.ID != id {
		return nil, ErrNotPaused
	}
	if err := MayOperate(v, operators, who); err != nil {
		return nil, err
	}
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	v.PinTask(t)
	e := v.event(ledger.EscalationResolved, who.At)
	e.Escalation, e.Text, e.Identity, e.Reason = id, string(p.Concern), who.Identity, who.Reason
	if goOn {
		next := v.Task
		next.Status, next.Paused = Running, nil
		if next.Held != nil && next.Held.Paused {
			next.Status = Paused // its parent still is
		}
		if f := v.passage(&next, who); f != nil {
			return nil, f
		}
		v.cascades(t, &e)
		if p.Concern == action.ConcernBudget {
			next.Eased = max(1, v.Runs())
		}
		e.State, e.Expires, e.Row = stateText(next), next.due(v.Snap.Now), &ledger.Row{}
		write(t, &e, nil)
		return t, nil
	}
	write(t, &e, nil)
	next := v.Task
	next.end(Cancelled, who)
	e = v.event(ledger.TaskCancelled, who.At)
	v.endOfFamily(t, &e)
	e.Identity, e.Reason, e.State = who.Identity, who.Reason, stateText(next)
	write(t, &e, nil)
	return t, nil
}

// paused is the refusal of what would begin while the task waits for a person.
func (v *View) paused() *action.Failure {
	if v.Task.standing() == onHold {
		if h := v.Task.Held; h != nil && h.Halted {
			return action.Fail(action.TaskPaused, "the task is paused because an agent for which it works was halted")
		}
		return action.Fail(action.TaskPaused, "the task is paused until a person has looked at the one for which it works")
	}
	f := action.Fail(action.TaskPaused, "the task is paused until a person has looked at it")
	if p := v.Task.Paused; p != nil {
		f = f.Quoting(string(p.Concern) + ": " + p.Reason) // a function may have said so
	}
	return f
}

// refusal writes the event of a refusal, counts it, and raises what it gives rise to: the pins of the round hold the task.
func (r *round) refusal(t *txn.Txn, e *ledger.Event, code action.Code) {
	if r.view.Task.Status != Running || !tolls(code) || !slices.ContainsFunc(r.pins, pinsTask) {
		write(t, e, nil)
		return
	}
	s := Toll(r.rules, r.agent, r.view, code, r.act.Name, nil)
	e.Row = s.Row
	write(t, e, nil)
	if s.Concern != "" {
		r.view.raise(r.rules, t, s.Concern, s.Why, r.call.ask()+"e", Who{At: r.call.At, Intent: e.Intent})
	}
}

// SettleIn is Settle that counts what goes wrong in a row, and raises what it gives rise to where may is set. Where it does
// it rests on the task too, and may be refused for it: then settle without. The view is as of now.
func (x *Run) SettleIn(rules *Rules, v *View, end End, id string, may bool) *txn.Txn {
	t, e := x.on(x.Room.transaction(), txn.Settle), blank()
	defer e.done()
	x.settles(&e.Event, &end)
	may = may && v.Task.Status == Running
	var s Strain
	switch {
	case e.Code == action.OK:
		s = Relief(&v.Snap.Task)
	case failedRun(e.Code):
		if !may {
			quiet := *rules
			quiet.Escalate = Escalate{}
			rules = &quiet
		}
		s = Toll(rules, x.Agent, v, e.Code, e.Action, e.Learned)
	}
	e.Row = s.Row
	write(t, &e.Event, x.Begun)
	if s.Concern != "" {
		v.PinTask(t)
		v.raise(rules, t, s.Concern, s.Why, id, Who{At: end.At, Intent: e.Intent})
	}
	return t
}

func tolls(code action.Code) bool {
	return code == action.Denied || code == action.RiskCeiling || code == action.NoApprover || code == action.ApprovalRequired
}

func pinsTask(c txn.Clause) bool {
	return c.Op == txn.Expect && c.Scope == txn.Task && c.Key == cellTask
}

// escalated puts a task into the list of those that wait for a person, or takes it out.
func (c *changes) escalated(e *ledger.Event) {
	if e.State != nil {
		c.task(e)
	}
	op := txn.Unqueue
	if e.Type == ledger.EscalationRaised {
		op = txn.Queue
	}
	if e.Type == ledger.EscalationResolved || e.State != nil {
		c.add(txn.Clause{Op: op, Scope: txn.Agent, Key: QueueEscalations, Val: e.Task})
	}
}

func (c *changes) row(e *ledger.Event) {
	if e.Row == nil {
		return
	}
	text := calm
	if *e.Row != (ledger.Row{}) {
		text = string(jsonText(e.Row))
	}
	c.put(txn.Task, cellRow, text)
}
