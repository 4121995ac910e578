package engine

import (
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Mover is on whose word a task moves from one status to another.
type Mover byte

// Who moves tasks. A person is whoever the engine knows by name, see [Who].
const (
	ByProgram Mover = iota // the program around the engine, a planner, a function
	ByPerson
	ByClock  // a deadline, or the time within which an escalation is to be resolved
	ByParent // the task for which it works
)

func (w Who) mover() Mover {
	if w.By == ByProgram && w.Identity != "" {
		return ByPerson
	}
	return w.By
}

// held is a status of its own here: a task that is paused for no more than that its parent is.
const onHold Status = "held"

func (p *TaskState) standing() Status {
	if p.Status == Paused && p.Paused == nil {
		return onHold
	}
	return p.Status
}

// passages are the movers that may take a task from one status to another; what is not here nobody may. A task that waits
// for a person is resumed, judged and closed by nobody else: that would resolve its escalation. To cancel is to stop, which
// is never worse than to wait.
var passages = map[Status]map[Status][]Mover{
	Running: {
		Paused: {ByProgram, ByPerson}, onHold: {ByParent},
		Closed: {ByProgram, ByPerson, ByClock}, Cancelled: {ByProgram, ByPerson, ByParent},
	},
	onHold: {
		Running: {ByParent}, Paused: {ByProgram, ByPerson},
		Closed: {ByProgram, ByPerson, ByClock}, Cancelled: {ByProgram, ByPerson, ByParent},
	},
	Paused: {
		Running: {ByPerson}, onHold: {ByPerson},
		Closed: {ByPerson, ByClock}, Cancelled: {ByProgram, ByPerson, ByParent},
	},
}

// passage is why a task may not become next on somebody's word.
func (v *View) passage(next *TaskState, who Who) *action.Failure {
	from, to := v.Task.standing(), next.standing()
	switch {
	case from == to || slices.Contains(passages[from][to], who.mover()):
		return nil
	case v.Task.Status.Ended():
		return v.Task.Because(action.Fail(action.TaskClosed, "the task is %s and stays so", v.Task.Status))
	}
	return v.paused()
}

// QueueHolds holds tasks that were paused or resumed and whose children may not know. A child that was told is paused with
// its parent, and its own children are told in turn.
const QueueHolds = "holds"

// Hold is what a child was told last of its parent.
type Hold struct {
	Paused bool  `json:"paused,omitempty"`
	As     int64 `json:"as"` // version of the parent that this is as of: what is older does not count
}

// textOnHold and textOffHold are what the event says that tells a child; textRoom that a child was not given the place of
// another.
const (
	textOnHold  = "its parent is paused"
	textOffHold = "its parent goes on"
	textRoom    = "there is room"
)

// HoldOf is what the children of a task are to be told of it.
func HoldOf(v *View) Hold { return Hold{Paused: v.Task.Status == Paused, As: v.taskVer} }

// TellChild pauses a child with its parent, or lets it go on with it; whatever escalation of its own it waits for stays.
// Nil where it was told, or has ended. That the parent goes on is told also who never heard that it did not: another worker
// may be about to say so still.
func TellChild(v *View, h Hold, who Who) (*txn.Txn, error) {
	if was := v.Task.Held; !v.Exists() || v.Task.Status.Ended() || was != nil && was.As >= h.As {
		return nil, nil
	}
	next := v.Task
	next.Held = &h
	who.By, who.Text = ByParent, textOffHold
	switch {
	case h.Paused:
		who.Text, next.Status = textOnHold, Paused
	case next.Paused == nil:
		next.Status = Running
	}
	return Change(v, ledger.TaskChanged, next, who)
}

// Promote lets the first of the children that wait start where a place is free: one that ended while its parent was paused
// had no heir. Nil where there is none.
func Promote(v *View, at int64) (x *txn.Txn, heir string, err error) {
	n := v.Snap.Task.Counters
	most := int64(v.Task.Family.Active)
	if v.Task.Status != Running || n[countWaiting] <= 0 || n[countChildren] >= most {
		return nil, "", nil
	}
	all, err := v.Children()
	if err != nil {
		return nil, "", err
	}
	for i := range all {
		if all[i].Status != ChildQueued {
			continue
		}
		x = &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
		v.PinTask(x)
		x.Add(count(countChildren, 0, txn.NoMin, most-1))
		v.promote(x, &all[i], at, textRoom)
		return x, all[i].Name, nil
	}
	return nil, "", nil
}

// Told takes a task out of its queue whose children know how it stands.
func Told(v *View) *txn.Txn {
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	v.PinTask(t)
	t.Add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueHolds, Val: v.Task.ID})
	return t
}

// tells queues what the pause and the resumption of a task lead to.
func (c *changes) tells(e *ledger.Event) {
	if e.Cascade {
		c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueHolds, Val: e.Task})
	}
}

// cascades notes in an event that pauses a task, or lets it go on, that it has children; without, none comes in between.
func (v *View) cascades(x *txn.Txn, e *ledger.Event) {
	if e.Cascade = v.HasChildren(); !e.Cascade {
		x.Add(count(countChildren, 0, 0, 0), count(countWaiting, 0, 0, 0))
	}
}
