package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Glass is an override that an operator opened: until it expires, calls of the named actions need no approval in this task.
// It waives nothing else. It is the value of the token tokenGlass, which expires by the store's clock.
type Glass struct {
	ID      string   `json:"id"`
	By      string   `json:"by"`
	Reason  string   `json:"reason"`
	Actions []string `json:"actions,omitempty"` // empty: every action of the task's agent
	Until   int64    `json:"until"`             // store time, µs
}

// covers reports whether the override is for the action.
func (g *Glass) covers(name string) bool {
	return len(g.Actions) == 0 || slices.Contains(g.Actions, name)
}

const glassOpen = "open:"

// OpenGlass returns the override that stands at store time now.
func OpenGlass(v *View, now int64) (Glass, bool) {
	t, has := v.Snap.Task.Tokens[tokenGlass]
	if !has || !t.Live(now) {
		return Glass{}, false
	}
	g, ok := readGlass(t)
	return g, ok
}

// Overridden reports whether an override stands that is for the action.
func Overridden(v *View, name string, now int64) bool {
	g, open := OpenGlass(v, now)
	return open && g.covers(name)
}

func readGlass(t txn.Token) (g Glass, ok bool) {
	if !strings.HasPrefix(t.State, glassOpen) || json.Unmarshal([]byte(t.Val), &g) != nil {
		return Glass{}, false
	}
	g.Until = t.Exp
	return g, true
}

// BreakGlass opens an override for so many µs. One at a time: two would leave it open which of them let a call through.
func BreakGlass(v *View, g Glass, ttl int64, who Who) (*txn.Txn, error) {
	if !v.OpenAt(v.Snap.Now) {
		return nil, v.Task.Because(action.Fail(action.TaskClosed, "the task has ended"))
	}
	if old, open := OpenGlass(v, v.Snap.Now); open {
		return nil, fmt.Errorf("override %s, opened by %s, still stands: close it first", old.ID, old.By)
	}
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	v.PinTask(t)
	t.Add(txn.Clause{Op: txn.Have, Scope: txn.Task, Key: tokenGlass}) // absent or expired
	if old, has := v.Snap.Task.Tokens[tokenGlass]; has {              // nobody wrote down that it expired
		t.Add(txn.Clause{Op: txn.Have, Scope: txn.Task, Key: tokenGlass, From: old.State, N: -1})
		e := v.glassEnded(old, "it expired", Who{At: who.At})
		e.ApprovalFrom = "" // the new one takes its place
		write(t, &e, nil)
	}
	g.By, g.Reason, g.Until = who.Identity, who.Reason, v.Snap.Now+ttl
	e := v.event(ledger.GlassBroken, who.At)
	e.Identity, e.Reason, e.Text, e.Expires, e.State = who.Identity, who.Reason, g.ID, ttl, jsonText(g)
	write(t, &e, nil)
	return t, nil
}

// CloseGlass ends an override before its time, or writes down that it expired. Nil where there is none to end.
func CloseGlass(v *View, expired bool, who Who) *txn.Txn {
	old, has := v.Snap.Task.Tokens[tokenGlass]
	if !has || !strings.HasPrefix(old.State, glassOpen) || expired && old.Live(v.Snap.Now) {
		return nil
	}
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	if !old.Live(v.Snap.Now) {
		t.Add(txn.Clause{Op: txn.Time, Min: old.Exp, Max: txn.NoMax})
		who.Reason = "it expired"
		who.Identity = ""
	}
	e := v.glassEnded(old, who.Reason, who)
	write(t, &e, nil)
	return t
}

func (v *View) glassEnded(t txn.Token, reason string, who Who) ledger.Event {
	e := v.event(ledger.GlassClosed, who.At)
	g, _ := readGlass(t)
	e.Identity, e.Reason, e.Text, e.ApprovalFrom = who.Identity, reason, g.ID, t.State
	return e
}

// glass opens or closes the override that an event is about.
func (c *changes) glass(e *ledger.Event) {
	if e.Type == ledger.GlassClosed {
		if e.ApprovalFrom != "" {
			c.add(txn.Clause{Op: txn.Take, Scope: txn.Task, Key: tokenGlass, From: e.ApprovalFrom, N: -1})
		}
		c.add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueGlass, Val: e.Task + "\n" + e.Text})
		return
	}
	c.add(txn.Clause{Op: txn.Set, Scope: txn.Task, Key: tokenGlass, To: glassOpen + e.Text, Val: string(e.State), N: e.Expires},
		txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueGlass, Val: e.Task + "\n" + e.Text, N: e.Expires})
}

// throughGlass reports whether an override answers the demand for an approval, and pins that it does, or that none does.
func (r *round) throughGlass() bool {
	g, open := OpenGlass(r.view, r.call.Now)
	pin := txn.Clause{Op: txn.Have, Scope: txn.Task, Key: tokenGlass} // absent or expired
	if open {
		pin.From = glassOpen + g.ID
	}
	r.pin(pin)
	if !open || !g.covers(r.act.Name) {
		return false
	}
	r.glass = &g
	return true
}

// marked writes that an override let the call through, before its begin.
func (r *round) marked(t *txn.Txn) {
	if r.glass == nil {
		return
	}
	e := r.event(ledger.GlassUsed)
	e.Identity, e.Reason, e.Text, e.Risk = r.glass.By, r.glass.Reason, r.glass.ID, riskShown(r.shown)
	write(t, &e, nil)
}
