package engine

import (
	"encoding/json"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Veil is what is written down of a call in place of what must not be read. The gates look at the call itself.
type Veil struct {
	Input  action.Document // what may be read of the input
	Sealed string          // the input
	Hash   statespace.Hash // of the values of facts
}

// shown is the input as it is written down.
func (c *Call) shown() action.Document {
	if c.Veil != nil {
		return c.Veil.Input
	}
	return c.Intent.Input
}

// graph is the agent's graph, for facts as the veil has them written down.
func (v *Veil) graph(a *Agent) *statespace.Graph {
	if v == nil {
		return a.Graph
	}
	return a.Graph.Under(v.Hash)
}

// cellKey, of a task or of a data subject, holds its data key. What it holds does not follow from the ledger, which everybody
// may have a copy of: the ledger says that the key was made, and that it was destroyed.
const cellKey = "key"

// SubjectSpace names the place of a data subject among the tasks of an agent: no task has such a name.
func SubjectSpace(subject string) string { return "~" + subject }

// KeyCell is a data key as it is kept.
type KeyCell struct {
	ID      string `json:"id"`                // its name
	Wrapped string `json:"wrapped,omitempty"` // the key, wrapped by a key ring
	Bare    []byte `json:"bare,omitempty"`    // the key itself, where there is no ring
	Erased  int64  `json:"erased,omitempty"`  // when it was destroyed, worker time, µs
}

// ReadKey returns the data key that a snapshot holds; ver is 0 where none was ever made.
func ReadKey(snap *txn.Snapshot) (c KeyCell, ver int64, err error) {
	cell := snap.Task.Cells[cellKey]
	if cell.Ver == 0 {
		return c, 0, nil
	}
	err = json.Unmarshal([]byte(cell.Val), &c)
	return c, cell.Ver, err
}

// MakeKey keeps a data key in place of what is there in version ver. Space is a task, or the place of a data subject: then it
// is written into the agent's own ledger.
func MakeKey(agent, space string, ver int64, c KeyCell, at int64) *txn.Txn {
	return keyTxn(agent, space, ver, c, ledger.Event{Type: ledger.KeyMade, At: at, Text: c.ID})
}

// RewrapKey keeps a data key that is wrapped under another key of the ring. It is the same key: the ledger says nothing of it.
func RewrapKey(agent, space string, ver int64, c KeyCell) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: space, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellKey, N: ver}, txn.Clause{Op: txn.Put, Scope: txn.Task, Key: cellKey, Val: jsonString(c)})
	return t
}

// EraseKey destroys a data key, whose name stays.
func EraseKey(agent, space string, ver int64, c KeyCell, who Who) *txn.Txn {
	return keyTxn(agent, space, ver, KeyCell{ID: c.ID, Erased: who.At},
		ledger.Event{Type: ledger.SubjectErased, At: who.At, Text: c.ID, Identity: who.Identity, Reason: who.Reason})
}

func keyTxn(agent, space string, ver int64, c KeyCell, e ledger.Event) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: space, Phase: txn.Plain}
	addKey(t, ver, c, e)
	return t
}

// AddKey has the transaction that starts a task make its data key too.
func AddKey(t *txn.Txn, c KeyCell, at int64) {
	addKey(t, 0, c, ledger.Event{Type: ledger.KeyMade, At: at, Text: c.ID})
}

func addKey(t *txn.Txn, ver int64, c KeyCell, e ledger.Event) {
	agent, space := t.Agent, t.Task
	e.V, e.Agent = ledger.Version, agent
	scope := txn.Task
	if subject, named := subjectOf(space); named {
		scope, e.Child = txn.Agent, subject
	} else {
		e.Task = space
	}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellKey, N: ver}, txn.Clause{Op: txn.Event, Scope: scope, Val: eventText(&e)},
		txn.Clause{Op: txn.Put, Scope: txn.Task, Key: cellKey, Val: jsonString(c)})
}

func subjectOf(space string) (subject string, named bool) {
	if len(space) > 0 && space[0] == '~' {
		return space[1:], true
	}
	return "", false
}

func jsonString(v any) string {
	text, _ := json.Marshal(v) // plain fields: cannot fail
	return string(text)
}

// MayErase reports why somebody may not destroy data keys: they must be an operator, and not the agent.
func MayErase(agent string, operators []string, who Who) error {
	if err := approval.MayDecide(approval.Request{Agent: agent}, operators, who.person()); err != nil {
		return fmt.Errorf("only the engine's operators may erase: %w", err)
	}
	return nil
}
