package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// desk is the shell of these tests: one agent and one task on a real store, with a clock that only moves by hand. It
// holds what every accepted transaction must keep: the snapshot advanced by it equals one loaded anew.
type desk struct {
	require.TestingT
	rules *Rules
	agent *Agent
	task  string
	store *memory.InProcess
	clock time.Time
	snap  *txn.Snapshot
	view  *View
	ids   int
	sets  []*statespace.Set // kept up to date with every accepted transaction
}

const (
	second = int64(1_000_000) // µs
	lease  = 30 * second
	askTTL = 600 * second
	person = "dana"
)

// inputs are the schemas of the desk's actions; outputs are whatever a test says.
var inputs = func() map[string]*schema.Schema {
	out := map[string]*schema.Schema{}
	for name, text := range map[string]string{
		"order": `{"type":"object","properties":{"order":{"type":"string"}},"required":["order"],"additionalProperties":false}`,
		"money": `{"type":"object","properties":{"order":{"type":"string"},"amount":{"type":"integer","minimum":1}},"required":["order"],"additionalProperties":false}`,
		"none":  `{"type":"object","properties":{},"additionalProperties":false}`,
	} {
		s, err := schema.Declared([]byte(text))
		if err != nil {
			panic(err)
		}
		out[name] = s
	}
	return out
}()

// counter is the agent of these tests: one action of every kind that a gate treats in its own way.
func counter() *Agent {
	a := &Agent{Name: "counter", Actions: map[string]*Action{}}
	var nodes []statespace.Node
	var granted []string
	add := func(x Action, needs ...statespace.Need) {
		x.Version, x.Description = "1", "do "+x.Name
		a.Actions[x.Name] = &x
		nodes = append(nodes, statespace.Node{Name: x.Name, Needs: needs})
		if x.Name != "forbidden" {
			granted = append(granted, x.Name)
		}
	}
	confirmed := statespace.Need{Action: "confirm", Bind: []statespace.Bind{{Mine: "order", Theirs: "order"}}}
	add(Action{Name: "list", Input: inputs["none"], Risk: 1, Effect: action.None, Estimate: action.Cost{Tokens: 5}})
	add(Action{Name: "confirm", Input: inputs["order"], Risk: 2, Effect: action.Idempotent, Estimate: action.Cost{Tokens: 10}})
	used, fresh := confirmed, confirmed
	used.Consumed, fresh.Within = true, time.Minute
	add(Action{Name: "charge", Input: inputs["money"], Risk: 3, Effect: action.Compensatable, Estimate: action.Cost{Tokens: 20}}, used)
	add(Action{Name: "notify", Input: inputs["order"], Risk: 2, Effect: action.Irreversible, Keyed: true}, fresh)
	add(Action{Name: "ship", Input: inputs["order"], Risk: 2, Effect: action.Irreversible, Estimate: action.Cost{Tokens: 7}},
		statespace.Need{Action: "list", Bind: []statespace.Bind{{Mine: "order", Theirs: "open.*", Output: true}}, Consumed: true})
	add(Action{Name: "refund", Input: inputs["order"], Risk: 3, Effect: action.Compensatable}, confirmed,
		statespace.Need{Action: "list", Bind: []statespace.Bind{{Mine: "order", Theirs: "open.*", Output: true}}})
	add(Action{Name: "wipe", Input: inputs["order"], Risk: 5, Effect: action.Irreversible})
	add(Action{Name: "audit", Input: inputs["none"], Risk: 1, Effect: action.None, Approve: true, UntilTrust: 0.5})
	add(Action{Name: "onsite", Input: inputs["none"], Risk: 1, Effect: action.None, Context: []string{"badge"}})
	add(Action{Name: "forbidden", Input: inputs["none"], Risk: 1, Effect: action.None})
	g, err := statespace.Compile(nodes)
	if err != nil {
		panic(err)
	}
	a.Graph, a.Grants = g, policy.NewGrants(map[string][]string{a.Name: granted})
	return a
}

var model = func() *risk.Model {
	m, err := risk.New(risk.Config{})
	if err != nil {
		panic(err)
	}
	return m
}()

// plain is a running task that asks dana, with nothing limited.
func plain() TaskState {
	return TaskState{ID: "t1", Agent: "counter", Goal: "serve <& \xff", Threshold: 4, Approvers: []string{person}, AskTTL: askTTL}
}

func open(t require.TestingT, s TaskState) *desk {
	d := &desk{TestingT: t, rules: &Rules{Model: model}, agent: counter(), task: s.ID, clock: time.Unix(1_800_000_000, 0)}
	d.store = memory.New(memory.Config{Clock: func() time.Time { return d.clock }})
	d.snap = d.load()
	until := int64(0)
	if s.Deadline > 0 {
		until, s.Deadline = s.Deadline, d.now()+s.Deadline
	}
	d.must(Start(s, d.now(), until))
	return d
}

func (d *desk) now() int64 { return d.clock.UnixMicro() }

func (d *desk) pass(µs int64) {
	d.clock = d.clock.Add(time.Duration(µs) * time.Microsecond)
}

func (d *desk) id(kind string) string {
	d.ids++
	return fmt.Sprintf("%s%d", kind, d.ids)
}

func (d *desk) load() *txn.Snapshot {
	s, err := d.store.Load(context.Background(), d.agent.Name, d.task, nil)
	require.NoError(d, err)
	return s
}

// look decodes what the desk knows, as the shell does: reusing the view before.
func (d *desk) look() *View {
	d.snap.Now = d.now()
	v, err := Look(d.rules, d.agent, d.snap, d.view)
	require.NoError(d, err)
	d.view = v
	return v
}

// apply sends a transaction and checks that advancing the snapshot by an accepted one gives what a load gives.
func (d *desk) apply(t *txn.Txn) txn.Reply {
	r, err := d.store.Apply(context.Background(), t)
	require.NoError(d, err)
	if !r.OK {
		d.snap.Merge(r.Fresh, t.Clauses)
		return r
	}
	d.snap.Advance(t, r)
	for _, set := range d.sets {
		NoteFacts(set, d.snap, t.Clauses)
	}
	require.False(d, d.snap.Gap, "nobody else writes here")
	fresh := d.load()
	require.Equal(d, fresh.Task, d.snap.Task)
	require.Equal(d, fresh.Agent, d.snap.Agent)
	require.ElementsMatch(d, fresh.Pending, d.snap.Pending)
	return r
}

func (d *desk) must(t *txn.Txn) txn.Reply {
	r := d.apply(t)
	require.True(d, r.OK, "refused at clause %d: %+v", r.Failed, t)
	return r
}

// call observes a proposed call as the shell does.
func (d *desk) call(name, input string) *Call {
	c := &Call{
		Intent: action.Intent{ID: d.id("i"), Agent: d.agent.Name, Task: d.task, Action: name, Version: "1"},
		Now:    d.now(), At: d.now(), Owner: d.id("w"), TTL: lease, AskID: d.id("q"),
	}
	a := d.agent.Actions[name]
	if a == nil {
		return c
	}
	doc, f := a.Input.Check([]byte(input))
	if c.Edge = f; f == nil {
		c.Intent.Input = doc
		c.Intent.Digest = approval.Digest(d.agent.Name, d.task, name, "1", a.Input.Hash(), doc.Text())
	}
	return c
}

// decide decides once, and checks that deciding is a function: it changes nothing and says the same again.
func (d *desk) decide(c *Call) Decision {
	c.Now = d.now()
	v := d.look()
	before := cloned(v.Snap)
	dec := Decide(d.rules, d.agent, v, c)
	require.Equal(d, before, *v.Snap, "a decision changed the snapshot")
	again, err := Look(d.rules, d.agent, &before, nil)
	require.NoError(d, err)
	require.Equal(d, dec, Decide(d.rules, d.agent, again, c), "the same snapshot, decided again from nothing")
	if dec.Txn != nil {
		require.NoError(d, dec.Txn.Check())
	}
	if dec.Begun != nil {
		text, err := ledger.Encode(*dec.Begun)
		require.NoError(d, err)
		require.True(d, slices.ContainsFunc(dec.Txn.Clauses, func(c txn.Clause) bool { return c.Op == txn.Event && c.Val == text }), "the begin is not written as %s", text)
	}
	return dec
}

func cloned(s *txn.Snapshot) txn.Snapshot {
	c := *s
	c.Task, c.Record, c.Agent = s.Task.Clone(), s.Record.Clone(), s.Agent.Clone()
	c.Leases, c.Pending = maps.Clone(s.Leases), slices.Clone(s.Pending)
	return c
}

// propose passes a call through decision and store, like a shell alone with its task. The answer is as after Txn.
func (d *desk) propose(c *Call) Decision {
	for range 4 {
		dec := d.decide(c)
		if dec.Lookup != "" {
			d.must(ReadIntent(d.agent.Name, d.task, dec.Lookup))
			continue
		}
		if dec.Txn == nil {
			return dec
		}
		if r := d.apply(dec.Txn); r.OK || r.Failed < 0 {
			if !r.OK {
				dec.Refusal, dec.Begun = action.Fail(action.InFlight, "superseded"), nil
			}
			return dec
		}
	}
	require.Fail(d, "a call alone with its task was refused by the store again and again")
	return Decision{}
}

// begin proposes a call that must run.
func (d *desk) begin(c *Call) *Run {
	dec := d.propose(c)
	require.Nil(d, dec.Refusal)
	require.NotNil(d, dec.Begun)
	return d.run(c, dec)
}

func (d *desk) run(c *Call, dec Decision) *Run {
	return &Run{Agent: d.agent, Begun: dec.Begun, Fence: 1, Owner: c.Owner, Input: c.Intent.Input.Tree()}
}

// code is what a call meets: OK where it began.
func (d *desk) code(name, input string) action.Code {
	dec := d.propose(d.call(name, input))
	if dec.Refusal != nil {
		return dec.Refusal.Code
	}
	return action.OK
}

// ok runs a call to its success.
func (d *desk) ok(name, input, output string) {
	d.must(d.begin(d.call(name, input)).Settle(d.end(action.OK, output, action.Cost{Calls: 1})))
}

// fail runs a call to an end that is not Ok.
func (d *desk) fail(name, input string, code action.Code) *Run {
	r := d.begin(d.call(name, input))
	d.must(r.Settle(d.end(code, "", action.Cost{Calls: 1})))
	return r
}

func (d *desk) end(code action.Code, output string, cost action.Cost) End {
	e := End{Code: code, At: d.now(), Cost: cost}
	if code == action.OK {
		e.Output = document(d, output)
	} else {
		e.Failure = action.Fail(code, "it went <wrong> \xff\u2028 \uFFFD").With(action.DetailReason, "\xfe&")
	}
	return e
}

func document(t require.TestingT, text string) action.Document {
	doc, f := schema.Canonical([]byte(text), 0)
	if f != nil {
		require.NoError(t, f)
	}
	return doc
}

func (d *desk) who() Who {
	return Who{Identity: person, Reason: "because \xff", At: d.now(), Owner: "op" + strconv.FormatInt(d.now(), 10)}
}

// ask decides an approval of the digest.
func (d *desk) ask(digest string, verb approval.Event) error {
	var parked *ledger.Event
	if _, q, err := ReadAsk(d.look(), digest, d.now()); err == nil {
		parked = d.waits(q.Intent)
	}
	t, err := DecideAsk(d.look(), digest, verb, parked, d.who())
	if err == nil {
		d.must(t)
	}
	return err
}

// waits returns the event under which an intent is parked, nil where it is not.
func (d *desk) waits(intent string) *ledger.Event {
	held, err := Held(&txn.Space{Cells: d.cold(cellIntent + intent)}, intent)
	require.NoError(d, err)
	if _, ended := d.cold(cellOutcome + intent)[cellOutcome+intent]; ended || held.Type != ledger.ApprovalRequested {
		return nil
	}
	return &held
}

func (d *desk) fold() {
	t, err := Fold(d.rules, d.agent, d.snap, d.now())
	require.NoError(d, err)
	if t != nil {
		d.must(t)
	}
}

func (d *desk) change(f func(*TaskState)) {
	v := d.look()
	next := v.Task
	f(&next)
	t, err := Change(v, ledger.TaskChanged, next, d.who())
	require.NoError(d, err)
	d.must(t)
}

func (d *desk) records(task string) []txn.Stored {
	r, err := d.store.Records(context.Background(), d.agent.Name, task, 1, 1<<20)
	require.NoError(d, err)
	return r
}

// cold reads cells of the record by name.
func (d *desk) cold(keys ...string) map[string]txn.Cell {
	t := ReadIntent(d.agent.Name, d.task, "") // at least something is read
	for _, k := range keys {
		t.Add(txn.Clause{Op: txn.Read, Scope: txn.Record, Key: k})
	}
	r, err := d.store.Apply(context.Background(), t)
	require.NoError(d, err)
	return r.Fresh.Record.Cells
}

// callOf is the call that a run came from, as a later look at it sees it.
func (d *desk) callOf(x *Run) *Call {
	c := d.call(x.Begun.Action, string(x.Begun.Input))
	c.Now = d.now()
	return c
}

// attempt writes a further attempt, if the gates and the store let it.
func (d *desk) attempt(x *Run, end End) bool {
	t, e, no := x.Attempt(d.rules, d.look(), d.callOf(x), end, lease)
	if no != nil || !d.apply(t).OK {
		return false
	}
	x.Attempted(e, end.Cost)
	return true
}
