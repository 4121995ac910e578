package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// HaltShard is where the halt of everything stands, for every engine on a store to find. No agent has such a name.
const HaltShard = "halt:all"

const (
	cellHalt    = "halt" // Agent: Halts; every decision pins it
	tokenCancel = "x/"   // Task: + intent; the call was cancelled
	cancelled   = "cancelled"
)

// cancelKept is how long the mark of a cancelled call stands, µs: no call takes longer.
const cancelKept = int64(24 * 3600 * 1_000_000)

// Halt keeps an agent, or every agent, from beginning anything until an operator lifts it.
type Halt struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	Since  int64  `json:"since"`           // store time, µs
	After  bool   `json:"after,omitempty"` // calls under way finish; else they are told to stop
}

// Halts are those that stand for one agent: its own, that of everything, and those of single actions.
type Halts struct {
	Own     *Halt           `json:"own,omitempty"`
	All     *Halt           `json:"all,omitempty"`
	Actions map[string]Halt `json:"actions,omitempty"`
}

// HaltOf says what is halted, or lifted: the agent where it is empty.
type HaltOf struct {
	All    bool   // everything, as it stands for this agent
	Action string // one action of the agent
}

// HaltsOf reads the halts that stand in the space of an agent.
func HaltsOf(agent *txn.Space) (h Halts) {
	c := agent.Cells[cellHalt]
	if c.Val != "" && json.Unmarshal([]byte(c.Val), &h) != nil {
		h.Own = &Halt{Reason: "what stands in the store cannot be read"} // no reason to go on
	}
	return h
}

// Standing returns the halt that holds, nil for none: one that stops calls under way before one that does not.
func (h Halts) Standing() *Halt {
	if h.Own == nil || h.All != nil && h.Own.After && !h.All.After {
		return h.All
	}
	return h.Own
}

// of returns the halt of one thing, nil for none.
func (h Halts) of(what HaltOf) *Halt {
	switch {
	case what.All:
		return h.All
	case what.Action == "":
		return h.Own
	}
	if a, ok := h.Actions[what.Action]; ok {
		return &a
	}
	return nil
}

// with returns the halts with that of one thing set, or taken back where it is nil.
func (h Halts) with(what HaltOf, halt *Halt) Halts {
	switch {
	case what.All:
		h.All = halt
	case what.Action == "":
		h.Own = halt
	default:
		h.Actions = maps.Clone(h.Actions)
		if h.Actions == nil {
			h.Actions = map[string]Halt{}
		}
		delete(h.Actions, what.Action)
		if halt != nil {
			h.Actions[what.Action] = *halt
		}
	}
	return h
}

func (h Halts) none() bool { return h.Own == nil && h.All == nil && len(h.Actions) == 0 }

func (h *Halt) same(o *Halt) bool {
	return h == nil && o == nil || h != nil && o != nil && *h == *o
}

// MayHalt reports why somebody may not halt an agent or everything, or lift that: they must be an operator and not the
// agent.
func MayHalt(agent string, operators []string, who Who) error {
	return mayAsOperator(agent, operators, who)
}

// MaxHalted is how many actions of one agent can be halted one by one.
const MaxHalted = 256

// SetHalt writes a halt of an agent or of what is named of it, or takes it back where h is nil. Nil where that is how it
// stands. A halt that stops calls under way is not weakened by one that does not.
func SetHalt(snap *txn.Snapshot, agent string, what HaltOf, h *Halt, who Who) (*txn.Txn, error) {
	have := HaltsOf(&snap.Agent)
	was := have.of(what)
	if h.same(was) || h != nil && was != nil && (h.After || !was.After) {
		return nil, nil
	}
	next := have.with(what, h)
	if len(next.Actions) > MaxHalted {
		return nil, fmt.Errorf("%d actions of agent %q are halted already: halt the agent", MaxHalted, agent)
	}
	e := ledger.Event{V: ledger.Version, Type: ledger.AgentHalted, At: who.At, Agent: agent, Action: what.Action, Identity: who.Identity, Reason: who.Reason}
	if h == nil {
		e.Type = ledger.AgentResumed
	}
	if what.All {
		e.Text = "everything"
	}
	if !next.none() {
		e.State = jsonText(next)
	}
	e.Cascade = agent != HaltShard && (!what.All || h == nil) // everything reaches every agent by itself; those that wait start then
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: cellHalt, N: snap.Agent.Cells[cellHalt].Ver})
	t.Add(txn.Clause{Op: txn.Event, Scope: txn.Agent, Val: eventText(&e)})
	t.Add(Changes(&e, nil)...)
	return t, nil
}

// Halted returns the halt that holds for the view's agent, nil for none.
func (v *View) Halted() *Halt { return v.halt }

// Withheld reports whether nothing of that action begins for the task now, and may later: because the task is paused, or it, its
// agent or the action is halted. Name "" is any action.
func (v *View) Withheld(name string) bool {
	all := v.halts
	if c := v.Snap.Agent.Cells[cellHalt]; c.Ver != v.haltVer { // a view that [LookAtTask] made
		all = HaltsOf(&v.Snap.Agent)
	}
	if _, is := all.Actions[name]; is || all.Standing() != nil || v.Task.Status == Paused {
		return true
	}
	up := v.Task.Held
	return up != nil && (up.Paused || slices.ContainsFunc(up.Actions, func(a HeldAction) bool { return a.Name == name }))
}

// notHalted is a part of gate 1.
func (r *round) notHalted() *action.Failure {
	r.pin(r.view.haltPin())
	f := r.whyHalted()
	r.halted = f != nil
	return f
}

func (r *round) whyHalted() *action.Failure {
	if h := r.view.Halted(); h != nil {
		return h.refusal("everything that this agent does was stopped")
	}
	name := r.call.Intent.Action
	if r.act != nil {
		name = r.act.Name
	}
	if h, is := r.view.halts.Actions[name]; is {
		return h.refusal("this action was stopped for the agent")
	}
	if up := r.view.Task.Held; up != nil && slices.ContainsFunc(up.Actions, func(a HeldAction) bool { return a.Name == name }) {
		return action.Fail(action.Cancelled, "this action was stopped for those for whom the task works")
	}
	return nil
}

func (h *Halt) refusal(why string) *action.Failure {
	return action.Fail(action.Cancelled, "%s", why).With(action.DetailReason, h.Reason).With(action.DetailRule, "halted by "+h.By)
}

func (v *View) haltPin() txn.Clause {
	return txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: cellHalt, N: v.haltVer}
}

// CancelCall marks one call of a task as cancelled: where it runs it is told to stop, and where it waits it never starts.
// Nil where it is marked already.
func CancelCall(v *View, intent string, who Who) *txn.Txn {
	if v.CallCancelled(intent) {
		return nil
	}
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Have, Scope: txn.Task, Key: tokenCancel + intent})
	e := v.event(ledger.CallCancelled, who.At)
	e.Intent, e.Identity, e.Reason, e.Expires = intent, who.Identity, who.Reason, cancelKept
	write(t, &e, nil)
	return t
}

// CallCancelled reports whether a call was marked as cancelled.
func (v *View) CallCancelled(intent string) bool {
	t, has := v.Snap.Task.Tokens[tokenCancel+intent]
	return has && t.Live(v.Snap.Now)
}

// callStands refuses a call that waited and was cancelled meanwhile.
func (r *round) callStands() *action.Failure {
	if r.parked == "" {
		return nil
	}
	pin := txn.Clause{Op: txn.Have, Scope: txn.Task, Key: tokenCancel + r.parked}
	if !r.view.CallCancelled(r.parked) {
		r.pin(pin)
		return nil
	}
	pin.From = cancelled
	r.pin(pin)
	return action.Fail(action.Cancelled, "this call was cancelled while it waited")
}

// halts writes what halts and cancellations of calls change.
func (c *changes) halts(e *ledger.Event) {
	if e.Type == ledger.CallCancelled && e.Intent == "" {
		c.put(txn.Record, cellCall+e.Call, "-\nbarred") // of no intent and no input
		return
	}
	if e.Type == ledger.CallCancelled {
		c.add(txn.Clause{Op: txn.Set, Scope: txn.Task, Key: tokenCancel + e.Intent, To: cancelled, N: e.Expires})
		return
	}
	c.put(txn.Agent, cellHalt, string(e.State))
	if e.Cascade {
		c.add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueHolds, Val: EveryTask})
	}
}

// Stopped says why a call of an action under way must stop, on what a new view shows: its task was cancelled, the call
// itself, its action, its agent, or one for which the task works. "" where it may go on; starting says that it has not
// started yet.
func (v *View) Stopped(intent, name string, starting bool) string {
	up := v.Task.Held
	one, is := v.halts.Actions[name]
	switch h := v.Halted(); {
	case v.Task.Status == Cancelled:
		return "the task was cancelled"
	case v.CallCancelled(intent):
		return "the call was cancelled"
	case h != nil && (starting || !h.After):
		return "everything that the agent does was stopped"
	case is && (starting || !one.After):
		return "the action was stopped for the agent"
	case up != nil && up.Halted && (starting || up.Stop):
		return "everything that the agent does for which the task works was stopped"
	case up != nil && up.stops(name, starting):
		return "the action was stopped for those for whom the task works"
	}
	return ""
}

// pinStop makes a transaction depend on nobody having stopped the call since the view.
func (x *Run) pinStop(t *txn.Txn, v *View) {
	t.Add(v.haltPin(), txn.Clause{Op: txn.Have, Scope: txn.Task, Key: tokenCancel + x.Begun.Intent})
}
