package subject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/conformance"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Stores returns a fresh store that tells the time by the clock. Closing it is the subject's business.
type Stores func(clock func() time.Time) (memory.Store, error)

// InProcess opens the in-process store.
func InProcess(clock func() time.Time) (memory.Store, error) {
	return memory.New(memory.Config{Clock: clock}), nil
}

// Open enrols the engine over stores of a kind.
func Open(stores Stores) conformance.Open {
	return func() (conformance.Subject, error) {
		c := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		store, err := stores(c.Now)
		if err != nil {
			return nil, err
		}
		w := &world{clock: c, real: store, store: &faulty{Store: store}, agents: map[string]conformance.Agent{}}
		return w.subject()
	}
}

// clock is moved by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now returns the time.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is what outlives an engine: the store, the clock, and the program's own declarations.
type world struct {
	clock *clock
	real  memory.Store
	store *faulty

	mu      sync.Mutex
	order   []string // names of agents, in order of declaration
	agents  map[string]conformance.Agent
	policy  func(agent, action string, input json.RawMessage) (bool, error)
	engines []*delta.Engine

	workflows []*workflow.Definition
}

// Subject is a delta.Engine as the cases know one.
type Subject struct {
	world *world
	main  bool

	mu     sync.Mutex
	engine *delta.Engine
	agents map[string]*delta.Agent
}

var (
	_ conformance.Subject     = (*Subject)(nil)
	_ conformance.Restarter   = (*Subject)(nil)
	_ conformance.Peered      = (*Subject)(nil)
	_ conformance.Pricer      = (*Subject)(nil)
	_ conformance.Clocked     = (*Subject)(nil)
	_ conformance.Faulty      = (*Subject)(nil)
	_ conformance.Worker      = (*Subject)(nil)
	_ conformance.Turner      = (*Subject)(nil)
	_ conformance.Accountant  = (*Subject)(nil)
	_ conformance.Policed     = (*Subject)(nil)
	_ conformance.Thresholder = (*Subject)(nil)
	_ conformance.Resolver    = (*Subject)(nil)
	_ conformance.Voter       = (*Subject)(nil)
	_ conformance.Overrider   = (*Subject)(nil)
	_ conformance.Stopper     = (*Subject)(nil)
	_ conformance.Delegator   = (*Subject)(nil)
)

func (w *world) subject() (*Subject, error) {
	s := &Subject{world: w, main: true}
	return s, s.Restart()
}

// Restart implements [conformance.Restarter]: the old engine is left as it is.
func (s *Subject) Restart() error {
	s.world.mu.Lock()
	workflows := s.world.workflows
	s.world.mu.Unlock()
	e, err := delta.New(delta.Config{
		Workflows: delta.Workflows{Definitions: workflows},
		Store:     s.world.store, Policy: policy.Func(s.world.decide), Authenticator: delta.AuthenticatorFunc(vouch), Operators: []string{conformance.Operator},
		Now: s.world.clock.Now, Poll: time.Millisecond, Grace: 20 * time.Millisecond, StoreTimeout: 30 * time.Second,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.engine, s.agents = e, map[string]*delta.Agent{}
	s.mu.Unlock()
	s.world.mu.Lock()
	s.world.engines = append(s.world.engines, e)
	order := append([]string(nil), s.world.order...)
	s.world.mu.Unlock()
	for _, name := range order {
		s.world.mu.Lock()
		a := s.world.agents[name]
		s.world.mu.Unlock()
		if err := s.declare(a); err != nil {
			return err
		}
	}
	return nil
}

// vouch is a transport that vouches for the name it is given.
func vouch(_ context.Context, credential any) (string, error) {
	name, _ := credential.(string)
	return name, nil
}

// PricesCalls implements [conformance.Pricer].
func (s *Subject) PricesCalls() {}

// Peer implements [conformance.Peered].
func (s *Subject) Peer() (conformance.Subject, error) {
	p := &Subject{world: s.world}
	return p, p.Restart()
}

// Advance implements [conformance.Clocked].
func (s *Subject) Advance(d time.Duration) { s.world.clock.advance(d) }

// FailStore implements [conformance.Faulty]. Housekeeping of before is waited for, so that it is the accesses of the next
// call that are counted first.
func (s *Subject) FailStore(f conformance.Fault) {
	if f.From > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		s.world.mu.Lock()
		engines := s.world.engines
		s.world.mu.Unlock()
		for _, e := range engines {
			_ = e.Sync(ctx) // where it takes too long the numbers differ, that is all
		}
	}
	s.world.store.plan(f)
}

// SetPolicy implements [conformance.Policed].
func (s *Subject) SetPolicy(f func(agent, action string, input json.RawMessage) (bool, error)) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	s.world.policy = f
}

// decide is the policy besides the grants: it forbids what it does not permit.
func (w *world) decide(r policy.Request) (policy.Decision, error) {
	w.mu.Lock()
	f := w.policy
	w.mu.Unlock()
	if f == nil {
		return policy.Decision{}, nil
	}
	input, _ := json.Marshal(r.Input) // a checked tree: cannot fail
	permit, err := f(r.Agent, r.Action, input)
	if err != nil {
		return policy.Decision{}, err
	}
	if !permit {
		return policy.Decision{Forbid: true, Reason: "the policy forbids it"}, nil
	}
	return policy.Decision{}, nil
}

// Stop implements [conformance.Stopper].
func (s *Subject) Stop() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := s.current().Close(ctx)
	if errors.Is(err, context.Canceled) {
		return nil // as asked
	}
	return err
}

// Close implements [conformance.Subject]. It closes every engine that was opened over the store; a peer leaves that to
// the subject it is a peer of.
func (s *Subject) Close() error {
	if !s.main {
		return nil
	}
	s.world.store.plan(conformance.Fault{})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var errs []error
	s.world.mu.Lock()
	engines := s.world.engines
	s.world.mu.Unlock()
	for _, e := range engines {
		errs = append(errs, e.Close(ctx))
	}
	return errors.Join(append(errs, s.world.real.Close())...)
}

func (s *Subject) current() *delta.Engine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine
}

// task opens the task anew each time: whatever the engine remembers, it remembers itself.
func (s *Subject) task(ctx context.Context, id string) (*delta.Task, error) {
	return s.current().Open(ctx, id)
}

// Start implements [conformance.Subject].
func (s *Subject) Start(ctx context.Context, g conformance.Goal) (string, error) {
	goal, err := s.goal(g)
	if err != nil {
		return "", err
	}
	t, err := s.current().Start(ctx, goal)
	if err != nil {
		return "", err
	}
	return t.ID(), nil
}

func (s *Subject) goal(g conformance.Goal) (out delta.Goal, err error) {
	s.mu.Lock()
	a := s.agents[g.Agent]
	s.mu.Unlock()
	if a == nil {
		return out, fmt.Errorf("agent %q was not declared", g.Agent)
	}
	limit, err := limits(g.Limit)
	if err != nil {
		return out, err
	}
	return delta.Goal{
		ID: g.ID, Agent: a, Limit: limit, Approvers: g.Approvers, Requester: g.Requester, ApprovalTTL: g.TTL, Threshold: g.Threshold,
	}, nil
}

// Delegate implements [conformance.Delegator].
func (s *Subject) Delegate(ctx context.Context, task, name string, g conformance.Goal) (string, error) {
	s.mu.Lock()
	a := s.agents[g.Agent]
	s.mu.Unlock()
	t, err := s.task(ctx, task)
	if err != nil {
		return "", err
	}
	limit, err := limits(g.Limit)
	if err != nil {
		return "", err
	}
	c, err := t.Delegate(ctx, delta.Goal{ID: name, Agent: a, Text: name, Limit: limit})
	if err != nil {
		return "", err
	}
	return c.ID(), nil
}

// Propose implements [conformance.Subject].
func (s *Subject) Propose(ctx context.Context, task string, c conformance.Call) conformance.Outcome {
	t, err := s.task(ctx, task)
	if err != nil {
		return undecided(err)
	}
	o, err := t.Do(ctx, delta.Call{ID: c.ID, Action: c.Action, Input: json.RawMessage(c.Input)}).Get()
	if err != nil {
		return undecided(err)
	}
	return outcome(o)
}

// undecided is a call that met no gate; where that was for the store, its code says so.
func undecided(err error) conformance.Outcome {
	o := conformance.Outcome{Err: err}
	if f := action.FailureOf(err); f != nil {
		o.Code, o.Told = f.Code, f.ForPlanner().Explain()
	}
	return o
}

func outcome(o action.Outcome) conformance.Outcome {
	out := conformance.Outcome{Code: o.Code, Intent: o.Intent, Output: o.Output}
	if o.Failure != nil {
		out.Approval, out.Told = o.Failure.Approval(), o.Failure.ForPlanner().Explain()
	}
	return out
}

// Turn implements [conformance.Turner].
func (s *Subject) Turn(ctx context.Context, task string, calls []conformance.Call) ([]conformance.Outcome, error) {
	t, err := s.task(ctx, task)
	if err != nil {
		return nil, err
	}
	proposal := delta.Proposal{Done: true}
	for _, c := range calls {
		proposal.Calls = append(proposal.Calls, delta.Call{ID: c.ID, Action: c.Action, Input: json.RawMessage(c.Input)})
	}
	once := delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) { return proposal, nil })
	report, err := s.current().Run(ctx, t, once).Get()
	if err != nil {
		return nil, err
	}
	out := make([]conformance.Outcome, len(report.Results))
	for i, r := range report.Results {
		out[i] = outcome(r.Outcome)
	}
	if len(out) != len(calls) {
		return out, fmt.Errorf("the turn ended as %s (%s) with %d results of %d calls", report.Ended, report.Why, len(out), len(calls))
	}
	return out, nil
}

// Work implements [conformance.Worker].
func (s *Subject) Work(ctx context.Context, until func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.current().Work(ctx) }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !until() {
		select {
		case <-tick.C:
		case err := <-done:
			return fmt.Errorf("work ended: %w", err)
		}
	}
	cancel()
	<-done
	return nil
}
