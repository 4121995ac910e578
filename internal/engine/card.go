package engine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Card is an agent's declaration as far as it is needed where its functions are not: to show risks beside what was
// declared, to learn from what an operator found, to establish the facts of a call that did succeed, to hide secrets.
type Card struct {
	Role    string       `json:"role,omitempty"`
	Actions []CardAction `json:"actions"` // in the order of declaration
}

// CardAction is one action on a card.
type CardAction struct {
	Name        string            `json:"name"`
	Version     string            `json:"version,omitempty"`
	Description string            `json:"description,omitempty"`
	Risk        int               `json:"risk"`
	Tags        []string          `json:"tags,omitempty"`
	Estimate    action.Cost       `json:"estimate,omitzero"`
	Effect      action.Effect     `json:"effect,omitempty"`
	Keyed       bool              `json:"keyed,omitempty"`
	Fetches     bool              `json:"fetches,omitempty"`
	Needs       []statespace.Need `json:"needs,omitempty"`
	Secret      []string          `json:"secret,omitempty"`  // paths in its input
	Results     []string          `json:"results,omitempty"` // secret paths in its output
	Input       string            `json:"input,omitempty"`   // hash of its schema
	Members     []string          `json:"members,omitempty"` // paths that its schema names, see approval.Look
}

// DeclareAgent writes an agent's card where the store holds another or none; nil where it holds this one.
func DeclareAgent(snap *txn.Snapshot, agent string, c Card, at int64) (*txn.Txn, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("card of agent %q: %w", agent, err)
	}
	have := snap.Agent.Cells[cellCard]
	if have.Val == string(text) {
		return nil, nil
	}
	e := ledger.Event{V: ledger.Version, Type: ledger.AgentDeclared, At: at, Agent: agent, State: text}
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Agent, Key: cellCard, N: have.Ver}, txn.Clause{Op: txn.Event, Scope: txn.Agent, Val: eventText(&e)})
	t.Add(Changes(&e, nil)...)
	return t, nil
}

// ReadCard returns the card that a snapshot holds of its agent, an empty one where there is none.
func ReadCard(snap *txn.Snapshot) (c Card, err error) {
	text := snap.Agent.Cells[cellCard].Val
	if text == "" {
		return c, nil
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return c, fmt.Errorf("card in store: %w", err)
	}
	return c, nil
}

// AgentOf makes an agent of its card. It can be looked at and operated on; no call can be made with it, for want of the
// actions' schemas.
func AgentOf(name string, c Card) (*Agent, error) {
	a := &Agent{Name: name, Actions: map[string]*Action{}, Grants: policy.NewGrants(nil)}
	nodes := make([]statespace.Node, len(c.Actions))
	for i, x := range c.Actions {
		nodes[i] = statespace.Node{Name: x.Name, Cost: x.Estimate, Fetches: x.Fetches, Needs: x.Needs, Secret: append(x.Secret[:len(x.Secret):len(x.Secret)], x.Results...)}
		act := &Action{
			Name: x.Name, Version: x.Version, Description: x.Description, Risk: x.Risk, Tags: x.Tags, Estimate: x.Estimate, Effect: x.Effect, Keyed: x.Keyed,
		}
		a.Actions[x.Name] = act.Ready()
	}
	graph, err := statespace.Compile(nodes)
	if err != nil {
		return nil, fmt.Errorf("card of agent %q: %w", name, err)
	}
	a.Graph = graph
	return a, nil
}

// pruneHold is how long it is remembered who prunes an agent, µs; each ledger begins it anew.
const pruneHold = int64(24 * 3600 * 1e6)

// HoldPruning makes somebody the one who prunes the agent: whoever did before goes on no more, if it is still there.
func HoldPruning(agent, who string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Set, Scope: txn.Agent, Key: tokenPruning, To: who, N: pruneHold})
	return t
}

// LetPrune is the end of HoldPruning.
func LetPrune(agent, who string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Take, Scope: txn.Agent, Key: tokenPruning, From: who, N: -1, Soft: true})
	return t
}

// Prune writes into the agent's own ledger that a task's ledger, which was found whole, is about to be dropped: the link of
// its last record and how many it had. [QueuePruned] names it until it is, so that who goes on after a crash does not write
// it again. Refused where pruner does not hold the pruning any more.
func Prune(agent, pruner string, seen SeenLedger, who Who) *txn.Txn {
	e := ledger.Event{V: ledger.Version, Type: ledger.TaskPruned, At: who.At, Agent: agent, Child: seen.Task, Digest: seen.Head, ToSeq: seen.Records}
	e.Identity, e.Reason = who.Identity, who.Reason
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Have, Scope: txn.Agent, Key: tokenPruning, From: pruner}, txn.Clause{Op: txn.Set, Scope: txn.Agent, Key: tokenPruning, To: pruner, N: pruneHold},
		txn.Clause{Op: txn.Event, Scope: txn.Agent, Val: eventText(&e)},
		txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueEnded, Val: seen.Task}, txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueuePruned, Val: seen.member()})
	return t
}

// SeenLedger is the ledger of a task as a pruner verified it: an id may be used anew once it was dropped.
type SeenLedger struct {
	Task    string
	Records int64
	Head    string // link of the last record
}

func (s SeenLedger) member() string {
	return s.Task + "\n" + strconv.FormatInt(s.Records, 10) + "\n" + s.Head
}

// SeenLedgerOf reads a member of [QueuePruned].
func SeenLedgerOf(member string) (s SeenLedger, err error) {
	parts := strings.Split(member, "\n")
	if len(parts) != 3 {
		return s, fmt.Errorf("queue %s: member %q", QueuePruned, member)
	}
	s.Task, s.Head = parts[0], parts[2]
	s.Records, err = strconv.ParseInt(parts[1], 10, 64)
	return s, err
}

// Pruned takes a ledger that is gone out of its queue. Where its task was not begun anew it was all there was of it, and the
// history forgets it too.
func Pruned(agent string, seen SeenLedger, anew bool) *txn.Txn {
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueuePruned, Val: seen.member()})
	if !anew {
		t.Task = seen.Task
		t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellTask}, txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueHistory, Val: seen.Task})
	}
	return t
}
