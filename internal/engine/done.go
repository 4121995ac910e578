package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// A workflow that completed is a fact, for actions that need it: in the task whose child ran it and, for later tasks, of its
// own agent. It is written before whoever waits for the instance is told that it completed, and taken back before it is
// undone. Each is one transaction that is refused where it was written before, so that any worker may do it, again.

// cellDone, with the name of the child that ran the workflow, or nothing where the task did: what was established (Record).
const cellDone = "flow-done/"

// undone is the state of the token of a fact that was taken back.
const undone = "undone"

// Done is a workflow that completed.
type Done struct {
	Child    string // which child of the task ran it, "" where the task itself did
	Workflow string
	Version  string
	Input    any // tree, numbers in normal form
	Output   any // likewise
}

// ReadDone reads whether it was written that a child's workflow completed; it changes nothing.
func ReadDone(agent, task, child string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Read, Scope: txn.Record, Key: cellDone + child})
	return t
}

// FlowDone writes what a workflow established that completed; nil where no action of the agent needs any of it. hash is how
// the task's facts are written. It is refused where it was written before.
func FlowDone(agent *Agent, v *View, d Done, hash statespace.Hash, at int64) (*txn.Txn, error) {
	if !agent.Graph.Follows(d.Workflow) {
		return nil, nil
	}
	facts, err := agent.Graph.Under(hash).FlowFacts(d.Workflow, d.Version, d.Input, d.Output)
	if err != nil {
		return nil, fmt.Errorf("workflow %q: %w", d.Workflow, err)
	}
	if d.Child == "" { // within the task only the workflow makes calls, and none that needs its own end
		facts.Bulk = nil
		facts.Keys = slices.DeleteFunc(facts.Keys, func(k string) bool { _, ok := statespace.Lasting(k); return !ok })
	}
	if len(facts.Keys)+len(facts.Bulk) == 0 {
		return nil, nil
	}
	e := v.event(ledger.FlowDone, at)
	e.Child, e.Action, e.Version = d.Child, d.Workflow, d.Version
	e.Facts, e.Bulk = facts.Keys, facts.Bulk
	if agent.Graph.Across() {
		e.Tenant = v.Task.Tenant
	}
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Record, Key: cellDone + d.Child})
	write(t, &e, nil)
	return t, nil
}

// FlowUndone takes back what a child's workflow established, and keeps from being written what was not yet; nil where that was
// done before. record is what [ReadDone] brought.
func FlowUndone(v *View, record *txn.Space, child string, at int64) (*txn.Txn, error) {
	cell := record.Cells[cellDone+child]
	e := v.event(ledger.FlowUndone, at)
	e.Child = child
	switch {
	case cell.Ver > 0 && cell.Val == "":
		return nil, nil
	case cell.Ver > 0:
		done, err := ledger.Decode(cell.Val)
		if err != nil {
			return nil, fmt.Errorf("what the workflow of child %q established: %w", child, err)
		}
		e.Action, e.Version, e.Facts, e.Bulk, e.Tenant = done.Action, done.Version, done.Facts, done.Bulk, done.Tenant
	}
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Record, Key: cellDone + child, N: cell.Ver})
	write(t, &e, nil)
	return t, nil
}

// gone says why a fact does not stand that has the token, or none.
func gone(t txn.Token, has bool) string {
	switch {
	case has && t.State == undone:
		return "it was undone"
	case has:
		return "it was used by another call"
	}
	return "it has not happened"
}

func (c *changes) done(e *ledger.Event, text string) {
	c.put(txn.Record, cellDone+e.Child, orText(text, e))
	f := *e
	f.Intent = cellDone + e.Child // that names the listing
	c.facts(&f)
}

func (c *changes) undone(e *ledger.Event) {
	c.put(txn.Record, cellDone+e.Child, "")
	for _, k := range e.Facts {
		c.add(txn.Clause{Op: txn.Take, Scope: txn.Task, Key: c.cat(tokenFact, k), From: held, To: undone, N: -1, Soft: true})
		if _, ok := statespace.Lasting(k); ok {
			c.add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueLasting, Val: c.cat(e.Tenant, "\n", k)})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(e.Bulk)) {
		c.add(txn.Clause{Op: txn.Take, Scope: txn.Task, Key: tokenBulk + k, From: held + ":" + cellDone + e.Child, N: -1, Soft: true})
	}
}
