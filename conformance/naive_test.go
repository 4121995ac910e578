package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/conformance"
)

// naive is an engine of plain maps and good intentions: it checks everything, at the wrong moment or against the wrong
// key, and remembers in memory. Every case should see through it.
type naive struct {
	mu      sync.Mutex
	now     time.Time
	n       int
	actions map[string]conformance.Action // by name alone: the last one declared
	tasks   map[string]*errand
	asks    map[string]*question
	policy  func(agent, action string, input json.RawMessage) (bool, error)
}

type errand struct {
	goal      conformance.Goal
	cancelled bool
	spent     conformance.Cost
	calls     float64
	done      map[string]bool // actions that succeeded
	book      []conformance.Record
}

type question struct {
	conformance.Request
	task, state string
	expires     time.Time
}

func openNaive() (conformance.Subject, error) {
	return &naive{
		now: time.Unix(0, 0), actions: map[string]conformance.Action{}, tasks: map[string]*errand{}, asks: map[string]*question{},
	}, nil
}

func (n *naive) Declare(a conformance.Agent) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, x := range a.Actions {
		n.actions[x.Name] = x
	}
	return nil
}

func (n *naive) Start(_ context.Context, g conformance.Goal) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if g.ID == "" {
		n.n++
		g.ID = fmt.Sprint("task-", n.n)
	}
	n.tasks[g.ID] = &errand{goal: g, done: map[string]bool{}}
	return g.ID, nil
}

// Delegate starts a child every time it is asked for one.
func (n *naive) Delegate(ctx context.Context, _, _ string, g conformance.Goal) (string, error) {
	g.Approvers = []string{"boss"}
	return n.Start(ctx, g)
}

func (n *naive) Propose(ctx context.Context, task string, c conformance.Call) conformance.Outcome {
	a, input, o := n.check(task, c)
	if o != nil {
		return *o
	}
	if a.Before != nil {
		if err := a.Before(ctx); err != nil {
			return conformance.Outcome{Code: action.HookFailed, Told: err.Error()}
		}
	}
	out, err := n.execute(ctx, task, a, input)
	code := action.OK
	if err != nil {
		code = action.Failed
	}
	n.note(task, conformance.Record{Kind: conformance.Begun, Action: a.Name, Input: input})
	n.note(task, conformance.Record{Kind: conformance.Settled, Code: code, Action: a.Name, Output: out})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tasks[task].done[a.Name] = code == action.OK
	o = &conformance.Outcome{Code: code, Output: out, Intent: c.ID}
	if err != nil {
		o.Told = err.Error()
	}
	return *o
}

// check is every gate, on what is true now.
func (n *naive) check(task string, c conformance.Call) (conformance.Action, json.RawMessage, *conformance.Outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	no := func(code action.Code, told string) (conformance.Action, json.RawMessage, *conformance.Outcome) {
		return conformance.Action{}, nil, &conformance.Outcome{Code: code, Told: told}
	}
	e, a := n.tasks[task], n.actions[c.Action]
	if a.Name == "" {
		names := make([]string, 0, len(n.actions))
		for name := range n.actions {
			names = append(names, name)
		}
		return no(action.ActionUnknown, "did you mean one of "+strings.Join(names, ", ")+"?")
	}
	if e.cancelled {
		return no(action.Cancelled, "")
	}
	var in map[string]any
	if err := json.Unmarshal([]byte(c.Input), &in); err != nil {
		return no(action.InputMalformed, err.Error())
	}
	input, _ := json.Marshal(in)
	for _, need := range a.Needs {
		if !e.done[need.Action] {
			return no(action.NotLegal, "call "+need.Action+" first")
		}
	}
	if n.policy != nil {
		if permit, err := n.ask(e.goal.Agent, a.Name, input); err == nil && !permit {
			return no(action.Denied, "")
		}
	}
	l := e.goal.Limit
	if over(l.Tokens, e.spent.Tokens+a.Cost.Tokens) || over(l.Money, e.spent.Money+a.Cost.Money) || over(l.Calls, e.calls+1) {
		return no(action.BudgetExhausted, "")
	}
	if a.Gated {
		if o := n.gate(task, c, a, input); o != nil {
			return a, nil, o
		}
	}
	return a, input, nil
}

func (n *naive) ask(agent, name string, input json.RawMessage) (permit bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("policy panicked")
		}
	}()
	return n.policy(agent, name, input)
}

func over(limit *float64, x float64) bool { return limit != nil && x > *limit }

// gate keeps one question for each action and call id of a task.
func (n *naive) gate(task string, c conformance.Call, a conformance.Action, input json.RawMessage) *conformance.Outcome {
	id := task + "/" + a.Name + "/" + c.ID
	q := n.asks[id]
	if q == nil {
		ttl := n.tasks[task].goal.TTL
		if ttl == 0 {
			ttl = time.Hour
		}
		q = &question{Request: conformance.Request{ID: id, Action: a.Name, Input: input}, task: task, expires: n.now.Add(ttl)}
		n.asks[id] = q
	}
	if q.state == "" && n.now.After(q.expires) {
		q.state = "rejected"
		n.tasks[task].book = append(n.tasks[task].book, conformance.Record{Kind: conformance.Rejected, By: "timeout"})
	}
	switch q.state {
	case "approve":
		return nil
	case "":
		return &conformance.Outcome{Code: action.ApprovalRequired, Approval: id}
	}
	return &conformance.Outcome{Code: action.ApprovalRejected, Approval: id}
}

func (n *naive) execute(ctx context.Context, task string, a conformance.Action, input json.RawMessage) (out json.RawMessage, err error) {
	if a.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Timeout)
		defer cancel()
	}
	for range a.Retries + 1 {
		out, err = a.Do(ctx, conformance.Execution{Input: input, Spend: func(c conformance.Cost) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			s := &n.tasks[task].spent
			s.Tokens, s.Money = s.Tokens+c.Tokens, s.Money+c.Money
			return nil
		}})
		n.mu.Lock()
		n.tasks[task].calls++
		n.mu.Unlock()
		if err == nil {
			break
		}
	}
	return out, err
}

func (n *naive) note(task string, r conformance.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tasks[task].book = append(n.tasks[task].book, r)
}

func (n *naive) Pending(_ context.Context, task string) (out []conformance.Request, _ error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, q := range n.asks {
		if q.task == task && q.state == "" {
			out = append(out, q.Request)
		}
	}
	return out, nil
}

func (n *naive) Decide(_ context.Context, d conformance.Decision) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if q := n.asks[d.Approval]; q != nil {
		q.state = string(d.Verb)
	}
	return nil
}

func (n *naive) Cancel(_ context.Context, task, reason string) error {
	n.note(task, conformance.Record{Kind: conformance.Stopped, Text: reason})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tasks[task].cancelled = true
	return nil
}

func (n *naive) Ledger(_ context.Context, task string) ([]conformance.Record, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]conformance.Record(nil), n.tasks[task].book...), nil
}

func (n *naive) Close() error { return nil }

// Restart forgets what was only in memory.
func (n *naive) Restart() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asks = map[string]*question{}
	for _, e := range n.tasks {
		e.cancelled, e.spent = false, conformance.Cost{}
	}
	return nil
}

func (n *naive) Peer() (conformance.Subject, error) { return n, nil }

func (n *naive) Advance(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now = n.now.Add(d)
}

// FailStore does nothing: what is written to the store is not needed to go on.
func (n *naive) FailStore(conformance.Fault) {}

func (n *naive) Work(_ context.Context, until func() bool) error {
	if !until() {
		return errors.New("there is no worker")
	}
	return nil
}

func (n *naive) Turn(ctx context.Context, task string, calls []conformance.Call) ([]conformance.Outcome, error) {
	out := make([]conformance.Outcome, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() { out[i] = n.Propose(ctx, task, c) })
	}
	all.Wait()
	return out, nil
}

func (n *naive) Budget(_ context.Context, task string) (conformance.Account, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return conformance.Account{Spent: n.tasks[task].spent}, nil
}

func (n *naive) SetPolicy(f func(agent, action string, input json.RawMessage) (bool, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.policy = f
}

func (n *naive) Stop() error { return nil }
