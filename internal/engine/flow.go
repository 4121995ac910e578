package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// A task may run a workflow. The state of the instance is one cold cell of the task; it is what the events of the machine,
// which are in the task's ledger, come to. Everything that happens to the instance is one transaction: it expects the cell
// as it was read, appends what happened, and puts the cell. What else happens to the task and may matter to the instance
// (an approval that is decided, a child that ends, a pause that is over) is marked in its event and makes the instance due.
const (
	cellFlow   = "flow"        // Record: the state, a workflow.State
	cellFlowIn = "flow-input"  // Record: what the instance begins with
	cellSealed = "flow-sealed" // Record: what the digests in the state stand for, sealed
	tokenFlow  = "flow-hold"   // Record: held by the worker that it names, until it expires
	countWakes = "flow-wakes"  // Task: how often something happened to the task that the instance may wait for

	// QueueFlows holds tasks whose instance has something to do, due when it has. QueueForbidden those whose instance waits
	// for other rules.
	QueueFlows     = "flows"
	QueueForbidden = "forbidden"
)

// FlowOf says which workflow a task runs.
type FlowOf struct {
	Workflow string          `json:"workflow"`
	Version  string          `json:"version"`
	Digest   string          `json:"digest,omitempty"` // of the definition; older tasks say none
	Input    json.RawMessage `json:"input,omitempty"`  // only on its way: a task that exists has it in a cell of its own
	Parent   string          `json:"parent,omitempty"`
	// Sealed is what the digests in the input stand for; only on its way too.
	Sealed map[string]string `json:"sealed,omitempty"`
}

// FlowKnown is what was read of an instance.
type FlowKnown struct {
	State workflow.State
	Ver   int64 // 0: it has not begun
	Input json.RawMessage
	// Sealed is, by the digests that stand in the state, or before it has begun in the input, what they stand for.
	Sealed map[string]string
	// InputVer counts how often Input was written: once, and again where the instance was given another definition before it began.
	InputVer int64
	Held     string // the worker that holds it, "" for nobody
	Wakes    int64
	Now      int64 // store time, µs
}

// ReadFlow reads an instance; it changes nothing.
func ReadFlow(agent, task string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Read, Scope: txn.Record, Key: cellFlow}, txn.Clause{Op: txn.Read, Scope: txn.Record, Key: cellFlowIn},
		txn.Clause{Op: txn.Read, Scope: txn.Record, Key: cellSealed}, txn.Clause{Op: txn.Read, Scope: txn.Record, Key: tokenFlow}, txn.Clause{Op: txn.Read, Scope: txn.Task, Key: countWakes})
	return t
}

// WokenSince reports whether something happened to the task that its instance may wait for, since the view was read.
func WokenSince(v *View, k *FlowKnown) bool { return v.Snap.Task.Counters[countWakes] != k.Wakes }

// FlowRead decodes what ReadFlow, or a refused transaction that reads as much, brought. was, which may be nil, is what was read
// of the same instance before: a state that is unchanged is not decoded again.
func FlowRead(r *txn.Reply, was *FlowKnown) (k FlowKnown, err error) {
	rec := &r.Fresh.Record
	c := rec.Cells[cellFlow]
	k = FlowKnown{Ver: c.Ver, Wakes: r.Fresh.Task.Counters[countWakes], Now: r.Now}
	if in := rec.Cells[cellFlowIn]; in.Ver > 0 {
		k.Input, k.InputVer = json.RawMessage(in.Val), in.Ver
	}
	if t, has := rec.Tokens[tokenFlow]; has && t.Live(r.Now) {
		k.Held = t.State
	}
	if c := rec.Cells[cellSealed]; c.Ver > 0 {
		if err := json.Unmarshal([]byte(c.Val), &k.Sealed); err != nil {
			return k, fmt.Errorf("the secrets of the workflow cannot be read: %w", err)
		}
	}
	switch {
	case c.Ver == 0:
	case was != nil && was.Ver == c.Ver:
		k.State = was.State
	default:
		if err := json.Unmarshal([]byte(c.Val), &k.State); err != nil {
			return k, fmt.Errorf("the instance of the workflow cannot be read: %w", err)
		}
	}
	return k, nil
}

// HoldFlow takes an instance in hand for a time, where nobody has it. It stays due, when the time is over: whoever dies with
// it has not taken it along.
func HoldFlow(agent, task, holder string, ttl int64) *txn.Txn {
	t := ReadFlow(agent, task)
	t.Add(txn.Clause{Op: txn.Have, Scope: txn.Record, Key: tokenFlow}, txn.Clause{Op: txn.Set, Scope: txn.Record, Key: tokenFlow, To: holder, N: ttl},
		txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueFlows, Val: task, N: ttl})
	return t
}

// KeepFlow prolongs the hold.
func KeepFlow(agent, task, holder string, ttl int64) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Have, Scope: txn.Record, Key: tokenFlow, From: holder, N: -1}, txn.Clause{Op: txn.Set, Scope: txn.Record, Key: tokenFlow, To: holder, N: ttl},
		txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueFlows, Val: task, N: ttl})
	return t
}

// Rest is how an instance is put down.
type Rest struct {
	Due       int64 // µs from now until it has something to do; negative: not by itself
	Forbidden bool  // it waits for other rules
	Over      bool  // it has ended, and who has to know does: what happens to its task is nothing to it
}

// RestHeld is the clause of RestFlow that fails where another worker has the instance. What that one has in hand must stay
// due.
const RestHeld = 0

// RestFlow puts an instance down, where nothing happened to it since it was read.
func RestFlow(agent, task, holder string, k *FlowKnown, r Rest) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Take, Scope: txn.Record, Key: tokenFlow, From: holder, N: -1},
		txn.Clause{Op: txn.Expect, Scope: txn.Record, Key: cellFlow, N: k.Ver})
	if !r.Over {
		t.Add(txn.Clause{Op: txn.Count, Scope: txn.Task, Key: countWakes, Min: k.Wakes, Max: k.Wakes})
	}
	if r.Due >= 0 {
		t.Add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueFlows, Val: task, N: r.Due})
	} else {
		t.Add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueFlows, Val: task})
	}
	op := txn.Unqueue
	if r.Forbidden {
		op = txn.Queue
	}
	t.Add(txn.Clause{Op: op, Scope: txn.Agent, Key: QueueForbidden, Val: task})
	return t
}

// DropFlow takes a task out of the queues that runs nothing any more.
func DropFlow(agent, task string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueFlows, Val: task}, txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: QueueForbidden, Val: task})
	return t
}

// FlowStep is one event of the machine and what it came to.
type FlowStep struct {
	Event json.RawMessage // a workflow.Event, of the first one a workflow.Begin
	Spec  json.RawMessage // of the first one
	Trail []workflow.Entry
	// Sealed is what the digests in the event stand for. Every event has it for itself, so that it can be read alone.
	Sealed map[string]string
}

// FlowTurn writes events of the machine and the state they come to, as JSON, from what was read of the instance. due is when
// the instance has something to do, µs from now; negative leaves that as it is, for whoever holds the instance. Sealed is
// then what the digests in the state stand for.
func FlowTurn(agent, task string, k *FlowKnown, steps []FlowStep, state string, due, at int64) (t *txn.Txn, sealed map[string]string) {
	t = &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Record, Key: cellFlow, N: k.Ver})
	if k.Ver == 0 { // it begins by the definition that it has now
		t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Record, Key: cellFlowIn, N: k.InputVer})
	}
	w := new(flowWriter)
	sealed = k.Sealed
	for i := range steps {
		w.write(t, agent, task, &steps[i], at)
		sealed = joined(sealed, steps[i].Sealed)
	}
	t.Add(txn.Clause{Op: txn.Put, Scope: txn.Record, Key: cellFlow, Val: state})
	if sealed = mentioned(sealed, state); !maps.Equal(sealed, k.Sealed) {
		t.Add(txn.Clause{Op: txn.Put, Scope: txn.Record, Key: cellSealed, Val: jsonString(sealed)})
	}
	if due >= 0 {
		t.Add(txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueFlows, Val: task, N: due})
	}
	return t, sealed
}

// MigrateFlow has a task run another definition. Of an instance that has begun steps are what the machine made of that, and state
// what they come to; of another there are none. Whoever is about to write by the definition before comes too late.
func MigrateFlow(v *View, k *FlowKnown, to FlowOf, steps []FlowStep, state string, who Who) (*txn.Txn, error) {
	next := v.Task
	to.Parent = next.Flow.Parent
	next.Flow = &to
	x, err := Change(v, ledger.TaskChanged, next, who)
	if err != nil {
		return nil, err
	}
	if k.Ver > 0 {
		t, _ := FlowTurn(v.Task.Agent, v.Task.ID, k, steps, state, 0, who.At)
		x.Add(t.Clauses...)
		return x, nil
	}
	x.Add(txn.Clause{Op: txn.Expect, Scope: txn.Record, Key: cellFlow}, txn.Clause{Op: txn.Put, Scope: txn.Record, Key: cellFlowIn, Val: string(k.Input)})
	return x, nil
}

// joined is both; what is sealed may have become another kind of secret meanwhile, and the later counts.
func joined(was, more map[string]string) map[string]string {
	if len(more) == 0 {
		return was
	}
	out := make(map[string]string, len(was)+len(more))
	maps.Copy(out, was)
	maps.Copy(out, more)
	return out
}

// mentioned is what a text has digests of.
func mentioned(sealed map[string]string, text string) map[string]string {
	if len(sealed) == 0 {
		return nil
	}
	out := make(map[string]string, len(sealed))
	for digest, what := range sealed {
		if strings.Contains(text, digest) {
			out[digest] = what
		}
	}
	return out
}

// flowWriter is one event after the other, each of which is large, and written before the next.
type flowWriter struct {
	event ledger.Event
	flow  ledger.Flow
}

// write writes the records of one step: those of its trail, the first of which carries the machine's event.
func (w *flowWriter) write(t *txn.Txn, agent, task string, s *FlowStep, at int64) {
	for i := range max(len(s.Trail), 1) {
		w.flow = ledger.Flow{}
		w.event = ledger.Event{V: ledger.Version, Type: ledger.WorkflowEvent, At: at, Agent: agent, Task: task, Flow: &w.flow}
		if i < len(s.Trail) {
			w.entry(&s.Trail[i])
		}
		if i == 0 {
			w.flow.Event, w.flow.Spec, w.flow.Sealed = s.Event, s.Spec, s.Sealed
		}
		write(t, &w.event, nil)
	}
}

func (w *flowWriter) entry(n *workflow.Entry) {
	e := &w.event
	e.Type, e.Attempt, e.Call, e.Child = ledger.Type(n.Kind), n.Attempt, n.Call, n.Child
	e.Code, e.Charged, e.Identity, e.Digest, e.Text, e.Failure = n.Code, n.Cost, n.By, n.Digest, n.Text, n.Failure
	e.Expires = n.Lasts
	w.flow = ledger.Flow{Phase: n.Phase, Step: n.Step, Kind: string(n.Type), Iteration: n.Iteration}
}

// wakes are the events after which an instance looks again at what it waits for.
func wakesFlow(t ledger.Type) bool {
	switch t {
	case ledger.ApprovalApproved, ledger.ApprovalRejected, ledger.ApprovalRevoked, ledger.ApprovalExpired, ledger.Resolved,
		ledger.TaskChanged, ledger.TaskCancelled, ledger.TaskClosed, ledger.EscalationResolved, ledger.ChildEnded:
		return true
	}
	return false
}

func (c *changes) wake(e *ledger.Event) {
	if slices.ContainsFunc(c.list, func(k txn.Clause) bool { return k.Op == txn.Count && k.Key == countWakes }) {
		return // the same transaction does already
	}
	c.add(txn.Clause{Op: txn.Count, Scope: txn.Task, Key: countWakes, N: 1, Min: txn.NoMin, Max: txn.NoMax, Soft: true},
		txn.Clause{Op: txn.Queue, Scope: txn.Agent, Key: QueueFlows, Val: e.Task})
}

// FoldFlow derives the state of an instance from the ledger of its task alone; false where that runs no workflow, or it has
// not begun.
func FoldFlow(records []txn.Stored) (s workflow.State, is bool, err error) {
	s, _, is, err = foldFlow(records)
	return s, is, err
}

// foldFlow derives the sealed secrets of the instance too.
func foldFlow(records []txn.Stored) (s workflow.State, sealed map[string]string, is bool, err error) {
	var def *workflow.Definition
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		if err != nil {
			return s, sealed, is, fmt.Errorf("record %d: %w", r.Seq, err)
		}
		if e.Flow == nil || e.Flow.Event == nil {
			continue
		}
		var turn workflow.Turn
		if e.Type == ledger.WorkflowMigrated {
			var ev workflow.Event
			var spec workflow.Spec
			if err := errors.Join(json.Unmarshal(e.Flow.Spec, &spec), json.Unmarshal(e.Flow.Event, &ev)); err != nil {
				return s, sealed, is, fmt.Errorf("record %d: %w", r.Seq, err)
			}
			was := def
			if def, err = workflow.Compile(spec); err != nil {
				return s, sealed, is, fmt.Errorf("record %d: definition: %w", r.Seq, err)
			}
			if was == nil {
				return s, sealed, is, fmt.Errorf("record %d: the instance goes on before it began", r.Seq)
			}
			turn, err = def.TakeOver(was, s, ev)
		} else if e.Type == ledger.WorkflowStart {
			var begin workflow.Begin
			var spec workflow.Spec
			if err := json.Unmarshal(e.Flow.Spec, &spec); err != nil {
				return s, sealed, is, fmt.Errorf("record %d: definition: %w", r.Seq, err)
			}
			if err := json.Unmarshal(e.Flow.Event, &begin); err != nil {
				return s, sealed, is, fmt.Errorf("record %d: begin: %w", r.Seq, err)
			}
			if def, err = workflow.Compile(spec); err != nil {
				return s, sealed, is, fmt.Errorf("record %d: definition: %w", r.Seq, err)
			}
			turn, err = def.Start(begin)
			is = true
		} else if def != nil {
			var ev workflow.Event
			if err := json.Unmarshal(e.Flow.Event, &ev); err != nil {
				return s, sealed, is, fmt.Errorf("record %d: event: %w", r.Seq, err)
			}
			turn, err = def.Step(s, ev)
		}
		if err != nil {
			return s, sealed, is, fmt.Errorf("record %d: %w", r.Seq, err)
		}
		s, sealed = turn.State, joined(sealed, e.Flow.Sealed)
	}
	return s, mentioned(sealed, string(jsonText(s))), is, nil
}

// outsideFlow refuses what the workflow of the task did not command: its steps are at their position, and nothing else is.
func (r *round) outsideFlow() *action.Failure {
	if r.view.Task.Flow == nil || r.call.Flow || r.call.Intent.Within != "" || r.call.Resume {
		return nil
	}
	return action.Fail(action.NotLegal, "the task runs workflow %q, which makes its calls; this is none of them", r.view.Task.Flow.Workflow)
}

// ReadCall reads which intent bears a call id; it changes nothing.
func ReadCall(agent, task, id string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Read, Scope: txn.Record, Key: cellCall + id})
	return t
}

// CallIntent returns the intent, from what ReadCall brought; "" for none.
func CallIntent(record *txn.Space, id string) string {
	intent, _, _ := strings.Cut(record.Cells[cellCall+id].Val, "\n")
	return intent
}

// BarCall keeps a call id that no call bears from ever being used: a worker that was told to make the call, and no longer is
// to, may be about to.
func BarCall(v *View, id string, who Who) *txn.Txn {
	t := &txn.Txn{Agent: v.Task.Agent, Task: v.Task.ID, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Record, Key: cellCall + id})
	e := v.event(ledger.CallCancelled, who.At)
	e.Call, e.Reason = id, who.Reason
	write(t, &e, nil)
	return t
}
