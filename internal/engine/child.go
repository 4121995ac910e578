package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Children live on the shard of their own agent, so nothing about them and their parent is one transaction. Each step is
// one transaction of one agent, and each leaves a member in a queue until the step behind it is written:
//
//	parent  granted, budget reserved       ─ QueueStarts  → child  started
//	child   ended                          ─ QueueReports → parent charged, the rest of the budget given back
//	parent  ended                          ─ QueueEnds    → child  cancelled
//	parent  paused or halted, or goes on   ─ QueueHolds   → child  likewise
//
// Every step is idempotent, so any worker may do it, again and beside others.
const (
	cellChild     = "child/"           // Task: + name; Child. Record: + name; TaskState with which it starts
	countChildren = "children"         // Task: children that are active
	countWaiting  = "children-waiting" // Task: children that wait for others to end
	countAsked    = "children-asked"   // Task: all children there ever were

	// QueueStarts holds children that were granted and may not have been started, "task\nname". QueueReports holds
	// children that ended and whose parent may not know all that they spent. QueueEnds holds tasks that ended and whose
	// children may not have.
	QueueStarts  = "starts"
	QueueReports = "reports"
	QueueEnds    = "ends"
)

// Family bounds the children of a task. The zero value allows none.
type Family struct {
	Active int `json:"active,omitempty"` // at a time
	Queued int `json:"queued,omitempty"` // behind them
	Depth  int `json:"depth,omitempty"`  // generations below the task
}

// Parent says whose child a task is.
type Parent struct {
	Agent     string  `json:"agent"`
	Task      string  `json:"task"`
	Child     string  `json:"child"`             // the child's name there
	Threshold float64 `json:"threshold"`         // the highest that the child may have
	Ceiling   float64 `json:"ceiling,omitempty"` // likewise; 0 is none
}

// Bound is what an ancestor lets through: what it was granted, and what it holds and a policy must permit it.
type Bound struct {
	Agent   string   `json:"agent"`
	Granted []string `json:"granted,omitempty"`
	Held    []string `json:"held,omitempty"`

	Autonomy policy.Autonomy `json:"autonomy,omitempty"` // whoever works for it has no more

	Rejected []string `json:"rejected,omitempty"` // calls of its task that a person rejected, by unknownKeys
	Unsure   []string `json:"unsure,omitempty"`   // likewise, those of unknown outcome
}

// ChildStatus is where a child is in its life, as its parent knows it.
type ChildStatus string

// The statuses of a child.
const (
	ChildQueued ChildStatus = "queued" // waits until fewer are active
	ChildActive ChildStatus = "active"
	ChildEnded  ChildStatus = "ended"
)

// Child is what a parent knows of one of its children.
type Child struct {
	Name   string       `json:"name"`
	Agent  string       `json:"agent"`
	Task   string       `json:"task"`
	N      int64        `json:"n"`     // its place in the order in which they were asked for
	Asked  string       `json:"asked"` // names what was asked for
	Grant  action.Limit `json:"grant,omitzero"`
	Status ChildStatus  `json:"status"`
	Held   action.Cost  `json:"held,omitzero"`   // reserved for it in the parent
	Pools  []string     `json:"pools,omitempty"` // of the parent's agent, in which it counts too
	Spent  action.Cost  `json:"spent,omitzero"`  // charged to the parent, once it has ended
	Rev    int64        `json:"rev,omitempty"`   // revision of the child that this is as of
	End    Status       `json:"end,omitempty"`   // how it ended
	Reason string       `json:"reason,omitempty"`
	// Conclusion is the verdict on its goal with which it ended, nil where nobody gave one.
	Conclusion *action.Conclusion `json:"conclusion,omitempty"`

	Rejected []string `json:"rejected,omitempty"` // once it has ended: its calls that a person rejected, by unknownKeys
	Unsure   []string `json:"unsure,omitempty"`   // likewise, those whose outcome is not known yet
}

// held is the event that the parent wrote last of the child, as far as changes rest on it.
func (c *Child) held() *ledger.Event {
	e := &ledger.Event{Type: ledger.ChildGranted, Reserved: c.Held, Charged: c.Spent, Pools: c.Pools, State: jsonText(*c)}
	if c.Status == ChildQueued {
		e.Type = ledger.ChildQueued
	}
	return e
}

// Child returns what the task knows of a child, and whether there is one of that name.
func (v *View) Child(name string) (c Child, ver int64, err error) {
	cell := v.Snap.Task.Cells[cellChild+name]
	if cell.Ver == 0 {
		return c, 0, nil
	}
	if err := json.Unmarshal([]byte(cell.Val), &c); err != nil {
		return c, cell.Ver, fmt.Errorf("child %q of task %s: %w", name, v.Task.ID, err)
	}
	return c, cell.Ver, nil
}

// Children returns all children of the task in the order in which they were asked for.
func (v *View) Children() ([]Child, error) {
	if v.Snap.Task.Counters[countAsked] == 0 {
		return nil, nil
	}
	var out []Child
	for k := range v.Snap.Task.Cells {
		name, ok := strings.CutPrefix(k, cellChild)
		if !ok {
			continue
		}
		c, _, err := v.Child(name)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Child) int { return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.Name, b.Name)) })
	return out, nil
}

// HasChildren reports whether children of the task are active or queued.
func (v *View) HasChildren() bool {
	n := v.Snap.Task.Counters
	return n[countChildren]+n[countWaiting] > 0
}

// HasFamily is HasChildren of a task that nobody decoded.
func HasFamily(task *txn.Space) bool {
	return task.Counters[countChildren]+task.Counters[countWaiting] > 0
}

// LookAtTask decodes the task of a snapshot and nothing else: for tasks of agents that this worker may not have. prev, which
// may be nil, is a view of the same task: what it decoded is not decoded again.
func LookAtTask(snap *txn.Snapshot, prev *View) (*View, error) {
	v := &View{Snap: snap}
	c := snap.Task.Cells[cellTask]
	if c.Ver == 0 {
		return v, nil
	}
	v.taskVer = c.Ver
	if prev != nil && prev.taskVer == c.Ver {
		v.Task = prev.Task
		return v, nil
	}
	var err error
	v.Task, err = taskState(c.Val)
	return v, err
}

func taskState(text string) (s TaskState, err error) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("configuration of a task: %w", err)
	}
	return s, nil
}

// Delegation is a child that is asked for.
type Delegation struct {
	Name  string
	State TaskState // as asked for; what it leaves open is the parent's
	Bound Bound     // what the parent's agent passes on
	Now   int64     // store time, estimated, µs
	At    int64     // worker time, µs

	Leased bool // a lease of a shared pool was tried: what the agent has is what there is
}

// asked names what was asked for. The deadline does not count: who asks again means the same child a moment later.
func (d *Delegation) asked() string {
	s := d.State
	s.ID, s.Deadline, s.Status = "", 0, ""
	h := sha256.Sum256(stateText(s))
	return hex.EncodeToString(h[:16])
}

// Delegated is the answer to a Delegation. Txn, where there is one, must be accepted before the rest is true.
type Delegated struct {
	Lease   *PoolNeed // is to be leased before it can be decided; where that fails, ask again with Leased
	Txn     *txn.Txn
	Refusal *action.Failure
	Muted   bool // it is to be counted: enough refusals of the task were recorded one by one
	Child   Child
}

// Delegate decides whether the task may have a child, and reserves its budget. The same name and the same wish find the
// child that there is.
func Delegate(rules *Rules, v *View, d Delegation) (Delegated, error) {
	r := &round{rules: rules, agent: &Agent{Name: v.Task.Agent}, view: v, call: &Call{Now: d.Now, At: d.At, Leased: d.Leased}}
	have, ver, err := v.Child(d.Name)
	switch {
	case err != nil:
		return Delegated{}, err
	case ver > 0 && have.Asked == d.asked():
		return Delegated{Child: have}, nil
	case ver > 0:
		return Delegated{Refusal: action.Fail(action.InputInvalid, "the task has a child %q already, which was given another goal; give every child a name of its own", d.Name)}, nil
	}
	c := Child{Name: d.Name, Agent: d.State.Agent, Task: d.State.ID, N: v.Snap.Task.Counters[countAsked], Asked: d.asked(), Status: ChildActive}
	r.pin(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellChild + d.Name, N: 0})
	f := r.taskRuns()
	if f == nil {
		f = r.notHalted()
	}
	if f == nil {
		f = v.handOn(&d.Bound)
	}
	if f == nil {
		f = v.Task.fit(&d)
	}
	if f == nil {
		f = r.carve(&d.State.Limit, &c)
	}
	if f == nil {
		f = r.handOn(&d.State.Limit, &c)
	}
	if r.lease != nil {
		return Delegated{Lease: r.lease}, nil
	}
	if f == nil {
		f = r.room(&c)
	}
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain, Clauses: r.pins}
	e := v.event(ledger.ChildGranted, d.At)
	e.Child, e.Reserved, e.Pools = d.Name, c.Held, c.Pools
	if f != nil {
		e.Type, e.Code, e.Failure, e.Reserved, e.Pools = ledger.ChildRefused, f.Code, f, action.Cost{}, nil
		if r.tally(&e) { // it is true by the pins alone
			return Delegated{Txn: t, Refusal: f, Muted: true}, nil
		}
		write(t, &e, nil)
		return Delegated{Txn: t, Refusal: f}, nil
	}
	if c.Status == ChildQueued {
		e.Type = ledger.ChildQueued
	}
	c.Grant = d.State.Limit
	d.State.Parent = &Parent{Agent: v.Task.Agent, Task: v.Task.ID, Child: d.Name, Threshold: v.Task.Threshold, Ceiling: v.Task.Ceiling}
	d.State.Status = Running
	e.State, e.Input = jsonText(c), stateText(d.State)
	write(t, &e, nil)
	return Delegated{Txn: t, Child: c}, nil
}

// carve reserves the child's limit in the parent's budget.
func (r *round) carve(limit *action.Limit, c *Child) *action.Failure {
	acc := r.view.Account()
	cost, no := budget.Carve(acc, *limit)
	if no != nil {
		if n, ok := acc.Limit.On(no.Axis).Get(); ok && no.Left < no.Least {
			r.pin(count(budget.GrantedKey(no.Axis), 0, n-no.Least+1, txn.NoMax))
		}
		f := action.Fail(action.BudgetExhausted, "the budget does not allow a child like this: %s", no.Message)
		return f.With(action.DetailAxis, no.Axis.String())
	}
	for a := range action.AxisCount {
		if n, ok := acc.Limit.On(a).Get(); ok {
			r.pin(count(budget.GrantedKey(a), 0, txn.NoMin, n-cost.Amount(a)))
		}
	}
	c.Held = cost
	return nil
}

// axisChildren stands where a failure names the axis of a budget: how many children there may be is one, too.
const axisChildren = "children"

// room finds the child a place among the active ones, or behind them.
func (r *round) room(c *Child) *action.Failure {
	n := r.view.Snap.Task.Counters
	most := int64(r.view.Task.Family.Active)
	if n[countChildren] < most {
		r.pin(count(countChildren, 0, txn.NoMin, most-1))
		return nil
	}
	r.pin(count(countChildren, 0, most, txn.NoMax))
	c.Status = ChildQueued
	if queued := int64(r.view.Task.Family.Queued); n[countWaiting] >= queued {
		r.pin(count(countWaiting, 0, queued, txn.NoMax))
		f := action.Fail(action.BudgetExhausted, "%d children are active and %d wait, which is as many as this task may have; wait for one to end", most, queued)
		return f.With(action.DetailAxis, axisChildren)
	}
	r.pin(count(countWaiting, 0, txn.NoMin, int64(r.view.Task.Family.Queued)-1))
	return nil
}
