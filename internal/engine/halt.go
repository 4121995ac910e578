package engine

import (
	"encoding/json"
	"fmt"

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

// Halts are those that stand for one agent: its own, and that of everything.
type Halts struct {
	Own *Halt `json:"own,omitempty"`
	All *Halt `json:"all,omitempty"`
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

func (h *Halt) same(o *Halt) bool {
	return h == nil && o == nil || h != nil && o != nil && *h == *o
}

// MayHalt reports why somebody may not halt an agent or everything, or lift that: they must be an operator and not the
// agent.
func MayHalt(agent string, operators []string, who Who) error {
	if err := MayReset(agent, operators, who); err != nil {
		return fmt.Errorf("only the engine's operators may: %w", unwrapped(err))
	}
	return nil
}

func unwrapped(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok && u.Unwrap() != nil {
		return u.Unwrap()
	}
	return err
}

// SetHalt writes a halt of an agent, or takes it back where h is nil; all says that it is the halt of everything. Nil where
// that is how it stands. A halt that stops calls under way is not weakened by one that does not.
func SetHalt(snap *txn.Snapshot, agent string, h *Halt, all bool, who Who) *txn.Txn {
	have := HaltsOf(&snap.Agent)
	next, slot := have, &have.Own
	if all {
		slot = &have.All
	}
	if h.same(*slot) || h != nil && *slot != nil && (h.After || !(*slot).After) {
		return nil
	}
	if all {
		next.All = h
	} else {
		next.Own = h
	}
	e := ledger.Event{V: ledger.Version, Type: ledger.AgentHalted, At: who.At, Agent: agent, Identity: who.Identity, Reason: who.Reason}
	if h == nil {
		e.Type = ledger.AgentResumed
	}
	if all {
		e.Text = "everything"
	}
	if next != (Halts{}) {
		e.State = jsonText(next)
	}
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: cellHalt, N: snap.Agent.Cells[cellHalt].Ver})
	t.Add(txn.Clause{Op: txn.Event, Scope: txn.Agent, Val: eventText(&e)})
	t.Add(Changes(&e, nil)...)
	return t
}

// Halted returns the halt that holds for the view's agent, nil for none.
func (v *View) Halted() *Halt { return v.halt }

// notHalted is a part of gate 1.
func (r *round) notHalted() *action.Failure {
	r.pin(r.view.haltPin())
	h := r.view.Halted()
	if h == nil {
		return nil
	}
	return action.Fail(action.Cancelled, "everything that this agent does was stopped").With(action.DetailReason, h.Reason).
		With(action.DetailRule, "halted by "+h.By)
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
	if e.Type == ledger.CallCancelled {
		c.add(txn.Clause{Op: txn.Set, Scope: txn.Task, Key: tokenCancel + e.Intent, To: cancelled, N: e.Expires})
		return
	}
	c.put(txn.Agent, cellHalt, string(e.State))
}

// Stopped says why a call under way must stop, on what a new view shows: its task was cancelled, the call itself, or its
// agent. "" where it may go on; starting says that it has not started yet.
func (v *View) Stopped(intent string, starting bool) string {
	switch h := v.Halted(); {
	case v.Task.Status == Cancelled:
		return "the task was cancelled"
	case v.CallCancelled(intent):
		return "the call was cancelled"
	case h != nil && (starting || !h.After):
		return "everything that the agent does was stopped"
	}
	return ""
}

// pinStop makes a transaction depend on nobody having stopped the call since the view.
func (x *Run) pinStop(t *txn.Txn, v *View) {
	t.Add(v.haltPin(), txn.Clause{Op: txn.Have, Scope: txn.Task, Key: tokenCancel + x.Begun.Intent})
}
