package engine

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Tally is a child as its own shard tells of it at one moment.
type Tally struct {
	Task       string // of the child, "" where that does not matter: the parent's id may have been used anew
	Status     Status
	Reason     string
	Conclusion *action.Conclusion
	Unstarted  bool        // it is about a child in the queue: one that left it meanwhile is another matter
	Granted    action.Cost // reserved and spent
	Spent      action.Cost
	Rev        int64 // of the reading: a later one counts

	Rejected, Unsure []string // see Child
}

// TallyOf reads the tally of a child.
func TallyOf(v *View) (t Tally, err error) {
	if t = spentBy(v); t.Status.Ended() {
		t.Rejected, t.Unsure, err = v.handUp()
	}
	return t, err
}

// spentBy is the tally but for the calls that must not be made again.
func spentBy(v *View) Tally {
	acc := v.Account()
	return Tally{Task: v.Task.ID, Status: v.Task.Status, Reason: v.Task.Reason, Conclusion: v.Task.Conclusion, Granted: acc.Granted, Spent: acc.Spent, Rev: v.Snap.Task.Rev}
}

// Open reports whether calls of the child are still under way, or of unknown outcome.
func (t Tally) Open() bool { return !positive(minus(t.Granted, t.Spent)).IsZero() }

// positive cuts differences at zero.
func positive(c action.Cost) action.Cost { return Beyond(c, action.Cost{}) }

// ChargeChild writes to the parent what became of a child that has ended, and what it spent; the rest of its budget is
// given back. The slot of an active child goes to the first of those that wait, which is named. Nil where there is nothing
// to write: the child runs, or a later reading was written.
func ChargeChild(v *View, name string, t Tally, at int64) (x *txn.Txn, heir string, err error) {
	c, ver, err := v.Child(name)
	switch {
	case err != nil:
		return nil, "", err
	case t.Task != "" && t.Task != c.Task:
		return nil, "", nil // another task has the parent's id
	case ver == 0:
		return nil, "", fmt.Errorf("task %s of agent %s has no child %q", v.Task.ID, v.Task.Agent, name)
	case !t.Status.Ended(), c.Status == ChildEnded && t.Rev <= c.Rev, t.Unstarted && c.Status != ChildQueued:
		return nil, "", nil
	}
	x = &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	x.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellChild + name, N: ver})
	e := v.event(ledger.ChildEnded, at)
	e.Child = name
	before, was := c.held(), c.Status
	if was == ChildEnded {
		e.Type = ledger.ChildCharged
	}
	c.Spent = plus(c.Spent, positive(minus(t.Spent, c.Spent))) // it never falls
	c.Held = positive(minus(t.Granted, t.Spent))
	c.Status, c.Rev, c.End, c.Reason, c.Conclusion = ChildEnded, t.Rev, t.Status, t.Reason, t.Conclusion
	c.Rejected, c.Unsure = t.Rejected, t.Unsure
	e.Charged, e.Reserved, e.Pools, e.Reason, e.State = c.Spent, c.Held, c.Pools, c.Reason, jsonText(c)
	var next *Child
	if was == ChildActive {
		if next, err = v.heir(x, &e); err != nil {
			return nil, "", err
		}
	}
	write(x, &e, before)
	if next != nil {
		v.promote(x, next, at, "")
		heir = next.Name
	}
	return x, heir, nil
}

// heir finds who takes the slot of a child that ended, and names it in the event.
func (v *View) heir(x *txn.Txn, e *ledger.Event) (*Child, error) {
	v.PinTask(x)
	v.pinHalts(x)
	if !v.begins() { // nothing begins; once it goes on, those that wait are looked after
		return nil, nil
	}
	if v.Snap.Task.Counters[countWaiting] <= 0 {
		x.Add(count(countWaiting, 0, txn.NoMin, 0))
		return nil, nil
	}
	all, err := v.Children()
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Status == ChildQueued {
			e.Call = all[i].Name
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("task %s: children are said to wait, and none does", v.Task.ID)
}

// promote lets a child start that waited; why is textRoom where it does not take the place of another.
func (v *View) promote(x *txn.Txn, c *Child, at int64, why string) {
	x.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellChild + c.Name, N: v.Snap.Task.Cells[cellChild+c.Name].Ver})
	before := c.held()
	c.Status = ChildActive
	e := v.event(ledger.ChildGranted, at)
	e.Child, e.Reserved, e.Pools, e.State, e.Text = c.Name, c.Held, c.Pools, jsonText(*c), why
	write(x, &e, before)
}

// ReadChild reads with what configuration a child starts; it changes nothing.
func ReadChild(agent, task, name string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Read, Scope: txn.Record, Key: cellChild + name})
	return t
}

// ChildState returns the configuration, from what ReadChild brought.
func ChildState(record *txn.Space, name string) (TaskState, error) {
	c, ok := record.Cells[cellChild+name]
	if !ok {
		return TaskState{}, fmt.Errorf("nothing is recorded of child %q", name)
	}
	return taskState(c.Val)
}

// Stillborn takes a child's place before anybody starts it: the parent has ended.
func Stillborn(s TaskState, why string, at int64) *txn.Txn {
	s.Status, s.Reason = Cancelled, why
	t := &txn.Txn{Agent: s.Agent, Task: s.ID, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellTask, N: 0})
	e := ledger.Event{V: ledger.Version, Type: ledger.TaskCancelled, At: at, Agent: s.Agent, Task: s.ID, Reason: why, State: stateText(s)}
	if s.Parent != nil {
		e.Child = s.Parent.Child
	}
	write(t, &e, nil)
	return t
}

// ChildOf reports whether the task is that child of that parent.
func (v *View) ChildOf(agent, task, name string) bool {
	p := v.Task.Parent
	return p != nil && p.Agent == agent && p.Task == task && p.Child == name
}

// Started takes a child that was started out of its queue.
func Started(agent, task, name string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueStarts, Val: member(task, name)})
	return t
}

// Reported takes a child out of its queue whose parent knows what the view tells; while calls are under way it looks
// again after the pause. It is refused where more was spent meanwhile.
func Reported(v *View, agent, task string, pause int64) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	v.PinTask(t)
	n := v.Snap.Task.Counters
	for a := range action.AxisCount {
		for _, key := range []string{budget.GrantedKey(a), budget.SpentKey(a)} {
			t.Add(count(key, 0, n[key], n[key]))
		}
	}
	c := txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueReports, Val: task}
	if v.Task.Status.Ended() && spentBy(v).Open() {
		c.Op, c.N = txn.Queue, pause
	}
	t.Add(c)
	if v.Task.Status.Ended() {
		t.Add(txn.Clause{Op: txn.Expire, Scope: txn.Task})
	}
	return t
}

// FamilyEnded takes a task out of its queue whose children have all ended.
func FamilyEnded(v *View) *txn.Txn {
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	v.PinTask(t)
	t.Add(count(countChildren, 0, 0, 0), count(countWaiting, 0, 0, 0))
	t.Add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueEnds, Val: v.Task.ID}, txn.Clause{Op: txn.Expire, Scope: txn.Task})
	return t
}

// child is what the events of children change in their parent. held is the event before, nil for the first.
func (c *changes) child(e, held *ledger.Event) {
	if held == nil {
		held = &ledger.Event{}
		c.put(txn.Record, cellChild+e.Child, string(e.Input))
		c.count(countAsked, 1)
	}
	c.put(txn.Task, cellChild+e.Child, string(e.State))
	c.unsureBelow(held.State, e.State)
	spent := minus(e.Charged, held.Charged)
	c.charge(e.Pools, plus(minus(e.Reserved, held.Reserved), spent), spent)
	waited := held.Type == ledger.ChildQueued
	switch e.Type {
	case ledger.ChildQueued:
		c.count(countWaiting, 1)
	case ledger.ChildGranted:
		if waited {
			c.count(countWaiting, -1)
		}
		if !waited || e.Text == textRoom { // else it takes the slot of one that ended
			c.count(countChildren, 1)
		}
		c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueStarts, Val: member(e.Task, e.Child)})
	case ledger.ChildEnded:
		switch {
		case waited:
			c.count(countWaiting, -1)
		case e.Call == "": // nobody takes the slot
			c.count(countChildren, -1)
		}
		c.add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueStarts, Val: member(e.Task, e.Child)})
	}
}

// endOfFamily queues what the end of a task leads to.
func (c *changes) endOfFamily(e *ledger.Event) {
	if e.Child != "" {
		c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueReports, Val: e.Task})
	}
	if e.Cascade {
		c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueEnds, Val: e.Task})
	}
}
