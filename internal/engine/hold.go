package engine

import (
	"maps"
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

// QueueHolds holds tasks that were paused or resumed and whose children may not know, and [EveryTask] where the agent was
// halted, or that was lifted. A child that was told is held with its parent, and its own children are told in turn.
const QueueHolds = "holds"

// EveryTask stands in QueueHolds for all tasks of the agent. No task has such a name.
const EveryTask = "*"

// Hold is what a child was told last of its parent.
type Hold struct {
	Paused  bool         `json:"paused,omitempty"`  // nothing begins
	Halted  bool         `json:"halted,omitempty"`  // and that is because an agent for which it works was halted
	Stop    bool         `json:"stop,omitempty"`    // so that calls under way are told to stop
	Actions []HeldAction `json:"actions,omitempty"` // that were halted for who it works for
	// As and HaltAs are the versions of the parent, and of the halts of its agent, that this is as of: what is older does
	// not count. Both are read at one moment.
	As     int64 `json:"as"`
	HaltAs int64 `json:"haltAs,omitempty"`
}

// HeldAction is an action that was halted for somebody for whom the task works.
type HeldAction struct {
	Name  string `json:"name"`
	After bool   `json:"after,omitempty"` // calls under way finish
}

// same reports whether both say the same, whenever that was.
func (h *Hold) same(o *Hold) bool {
	var a, b Hold
	if h != nil {
		a = *h
	}
	if o != nil {
		b = *o
	}
	return a.Paused == b.Paused && a.Halted == b.Halted && a.Stop == b.Stop && slices.Equal(a.Actions, b.Actions)
}

// stops reports whether a call of an action must stop, or must not start.
func (h *Hold) stops(name string, starting bool) bool {
	return slices.ContainsFunc(h.Actions, func(a HeldAction) bool { return a.Name == name && (starting || !a.After) })
}

// textOnHold and textOffHold are what the event says that tells a child; textRoom that a child was not given the place of
// another.
const (
	textOnHold  = "its parent is paused"
	textHalted  = "an agent for which it works was halted"
	textOffHold = "its parent goes on"
	textRoom    = "there is room"
)

// HoldOf is what the children of a task are to be told of it. The halt of everything is not among it: it stands for each
// agent by itself.
func HoldOf(v *View) Hold {
	own, up := HaltsOf(&v.Snap.Agent), v.Task.Held
	h := Hold{As: v.taskVer, HaltAs: v.Snap.Agent.Cells[cellHalt].Ver}
	stopped := map[string]bool{} // whether calls under way finish
	if up != nil {
		h.Halted, h.Stop = up.Halted, up.Stop
		for _, a := range up.Actions {
			stopped[a.Name] = a.After
		}
	}
	if own.Own != nil {
		h.Halted, h.Stop = true, h.Stop || !own.Own.After
	}
	h.Paused = h.Halted || v.Task.Status == Paused
	for name, a := range own.Actions {
		after, is := stopped[name]
		stopped[name] = a.After && (after || !is)
	}
	for _, name := range slices.Sorted(maps.Keys(stopped)) {
		h.Actions = append(h.Actions, HeldAction{name, stopped[name]})
	}
	return h
}

// Heir is with what a child starts, as its parent stands now: since it was granted an action may have been halted for those it
// works for, the parent paused, or its threshold lowered. What changes later the child is told.
func Heir(s TaskState, parent *View) TaskState {
	if !parent.Exists() {
		return s
	}
	if h := HoldOf(parent); h.Paused || len(h.Actions) > 0 {
		s.Held = &h
	}
	if most := parent.Task.Threshold; most < s.Threshold {
		s.Threshold = most
	}
	if s.Parent != nil && parent.Task.Threshold < s.Parent.Threshold {
		up := *s.Parent
		up.Threshold = parent.Task.Threshold
		s.Parent = &up
	}
	return s
}

// TellChild pauses a child with its parent, or lets it go on with it; whatever escalation of its own it waits for stays.
// Nil where it was told, or has ended. That the parent goes on is told also who never heard that it did not: another worker
// may be about to say so still.
func TellChild(v *View, h Hold, who Who) (*txn.Txn, error) {
	if was := v.Task.Held; !v.Exists() || v.Task.Status.Ended() || was != nil && was.As >= h.As && was.HaltAs >= h.HaltAs {
		return nil, nil
	}
	next := v.Task
	next.Held = &h
	who.By, who.Text = ByParent, textOffHold
	switch {
	case h.Paused:
		who.Text, next.Status = textOnHold, Paused
		if h.Halted {
			who.Text = textHalted
		}
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
	if !v.begins() || n[countWaiting] <= 0 || n[countChildren] >= most {
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
		v.pinHalts(x)
		x.Add(count(countChildren, 0, txn.NoMin, most-1))
		v.promote(x, &all[i], at, textRoom)
		return x, all[i].Name, nil
	}
	return nil, "", nil
}

// begins reports whether children of the task may begin: it runs, and its agent is not halted.
func (v *View) begins() bool {
	return v.Task.Status == Running && HaltsOf(&v.Snap.Agent).Standing() == nil
}

// pinHalts makes a transaction of a view that [LookAtTask] made rest on how the agent is halted.
func (v *View) pinHalts(x *txn.Txn) {
	x.Add(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: cellHalt, N: v.Snap.Agent.Cells[cellHalt].Ver})
}

// ToldAll takes the mark of an agent out of its queue all of whose tasks were looked at since; refused where its halts
// changed.
func ToldAll(snap *txn.Snapshot, agent string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: cellHalt, N: snap.Agent.Cells[cellHalt].Ver},
		txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueHolds, Val: EveryTask})
	return t
}

// Told takes a task out of its queue whose children know how it stands.
func Told(v *View) *txn.Txn {
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	v.PinTask(t)
	v.pinHalts(t)
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
