package conformance

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// spy is the body of an action that does nothing but remember that it was asked to.
type spy struct {
	mu     sync.Mutex
	inputs []string
	keys   []string
	then   Func // what it returns; nil: Ok with {}
}

func (s *spy) do(ctx context.Context, x Execution) (json.RawMessage, error) {
	s.mu.Lock()
	s.inputs = append(s.inputs, string(x.Input))
	s.keys = append(s.keys, x.Key)
	s.mu.Unlock()
	if s.then != nil {
		return s.then(ctx, x)
	}
	return json.RawMessage(`{}`), nil
}

// saw returns the inputs of all runs, in their order.
func (s *spy) saw() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.inputs)
}

func (s *spy) runs() int { return len(s.saw()) }

// payment is the input schema of most actions here.
const payment = `{"type":"object","properties":{"amount":{"type":"number"},"to":{"type":"string"},"note":{"type":"string"}},` +
	`"required":["amount"],"additionalProperties":false}`

// clerk is the agent of most variants.
const clerk = "clerk"

// boss decides.
const boss = "boss"

// open declares the clerk with the actions, all granted, and starts its task.
func (t *T) open(g Goal, actions ...Action) string {
	t.declare(clerk, actions...)
	return t.start(g)
}

func (t *T) declare(agent string, actions ...Action) {
	a := Agent{Name: agent, Actions: actions}
	for _, x := range actions {
		a.Grants = append(a.Grants, x.Name)
	}
	if err := t.Declare(a); err != nil {
		t.Fatalf("declare %s: %v", agent, err)
	}
}

// start fills in who nobody said.
func (t *T) start(g Goal) string {
	if g.Agent == "" {
		g.Agent = clerk
	}
	if g.Approvers == nil {
		g.Approvers = []string{boss}
	}
	task, err := t.Start(t.Context, g)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return task
}

// propose makes a call; id is optional.
func (t *T) propose(task, name, input string, id ...string) Outcome {
	c := Call{Action: name, Input: input}
	if len(id) > 0 {
		c.ID = id[0]
	}
	return t.Propose(t.Context, task, c)
}

// want checks an outcome's code and returns it.
func (t *T) want(what string, o Outcome, codes ...action.Code) Outcome {
	if !slices.Contains(codes, o.Code) || o.Err != nil {
		t.Errorf("%s: %s, want %v (%v%s)", what, o.Code, codes, orEmpty(o.Err), o.Told)
	}
	return o
}

func orEmpty(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() + " "
}

// asks makes a call that must wait for a person, and returns the request's id.
func (t *T) asks(task, name, input string, id ...string) string {
	o := t.propose(task, name, input, id...)
	if !o.Waits() || o.Approval == "" {
		t.Fatalf("%s(%s): %s with approval %q, want to wait for a person (%v%s)", name, input, o.Code, o.Approval, orEmpty(o.Err), o.Told)
	}
	return o.Approval
}

func (t *T) decide(id string, v Verb, by string) error {
	return t.Decide(t.Context, Decision{Approval: id, Verb: v, By: by, Reason: "because the case says so"})
}

// approve must succeed.
func (t *T) approve(id string) {
	if err := t.decide(id, Approve, boss); err != nil {
		t.Fatalf("approve: %v", err)
	}
}

// ran checks how often a body ran.
func (t *T) ran(what string, s *spy, times int) {
	if saw := s.saw(); len(saw) != times {
		t.Errorf("%s ran %d times, want %d: %v", what, len(saw), times, saw)
	}
}

func (t *T) pending(task string) []Request {
	all, err := t.Pending(t.Context, task)
	if err != nil {
		t.Fatalf("list pending: %v", err)
	}
	return all
}

func (t *T) ledger(task string) []Record {
	all, err := t.Ledger(t.Context, task)
	if err != nil {
		t.Fatalf("read ledger: %v", err)
	}
	return all
}

// recorded returns the records of a kind.
func (t *T) recorded(task string, k Kind) (out []Record) {
	for _, r := range t.ledger(task) {
		if r.Kind == k {
			out = append(out, r)
		}
	}
	return out
}

func (t *T) restart() {
	if err := need[Restarter](t).Restart(); err != nil {
		t.Fatalf("restart: %v", err)
	}
}

// account returns the budget.
func (t *T) account(task string) Account {
	a, err := need[Accountant](t).Budget(t.Context, task)
	if err != nil {
		t.Fatalf("budget: %v", err)
	}
	return a
}

// turn makes parallel calls.
func (t *T) turn(task string, calls ...Call) []Outcome {
	out, err := need[Turner](t).Turn(t.Context, task, calls)
	if err != nil || len(out) != len(calls) {
		t.Fatalf("turn: %d outcomes of %d calls: %v", len(out), len(calls), err)
	}
	return out
}

// together runs f n times at once and waits for all.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

// gate holds who comes until it is opened, and tells when somebody has come.
type gate struct {
	came, opened chan struct{}
	once, shut   sync.Once
}

func newGate() *gate { return &gate{came: make(chan struct{}), opened: make(chan struct{})} }

// wait is passed when the gate opens or ctx ends.
func (g *gate) wait(ctx context.Context) {
	g.once.Do(func() { close(g.came) })
	select {
	case <-g.opened:
	case <-ctx.Done():
	}
}

func (g *gate) open() { g.shut.Do(func() { close(g.opened) }) }

// arrived waits until somebody stands at the gate.
func (g *gate) arrived(t *T) {
	select {
	case <-g.came:
	case <-t.Context.Done():
		t.Fatalf("the call never came that far")
	}
}
