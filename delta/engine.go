package delta

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/internal/course"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Engine governs calls: it decides, records, runs and learns. It is safe for concurrent use; several engines may share a
// store.
type Engine struct {
	cfg       Config
	rules     engine.Rules
	mutes     mutes
	store     memory.Store
	instant   *memory.InProcess // the store, where it never waits: no access needs a deadline
	ownsStore bool
	owner     string // of leases: this engine
	hooks     *hooks.Runner
	keeper    *keeper
	watch     *watch // nil without observers
	flows     *flows

	mu       sync.Mutex
	agents   map[string]*agentState
	coming   map[string]*arriving          // agents of tasks that are being started, by name
	erasures atomic.Int64                  // that this engine made: what it holds of data keys from before is not used
	tasks    map[string]weak.Pointer[Task] // tasks opened here that somebody still holds, by qualified id
	plain    bool                          // nothing but the policy is worth a record, see noteConfig
	aloft    map[string]weak.Pointer[aloft]
	purge    int              // the number of them at which those that nobody holds are dropped
	waits    map[string]*wait // for the approval of that id
	wake     chan struct{}    // Work looks at its queues

	closed   bool
	draining chan struct{} // closed when Close was called
	gone     chan struct{} // closed when Close is through
	inside   insiders      // calls and loops under way
	stop     context.Context
	halt     context.CancelCauseFunc
	owners   ownerSource
	losses   losses
	pulse    *pulse
	clocks   course.Clock // of calls under way
	bells    course.Bells
	debts    debts
	gauges   gauges
	halts    halts

	functions, inputs, policies, planners, identities crowd // user code by kind
}

// agentState is what this engine knows of an agent: shared by its tasks, under one lock.
type agentState struct {
	mu      sync.Mutex
	config  atomic.Pointer[string] // version of the policy that was recorded last, nil for nothing
	agent   *Agent
	lane    uint8       // in which its calls wait for their time
	carded  atomic.Bool // its card is known to be in the store
	space   txn.Space
	pending []txn.Pending
	gap     bool           // somebody else wrote: it must be read anew
	flow    follow         // how far the store is known to be beyond it
	worse   int64          // the last revision that may have made anything riskier
	flying  []flown        // transactions of the agent under way
	sent    uint64         // how many there were
	moved   chan struct{}  // closes when more is known, nil where nobody waits
	folded  *engine.Folded // what this engine folded last
	folding chan struct{}  // held by who folds
	heir    atomic.Bool    // it was seen whether everything is halted
	cold    txn.Space      // of records that nobody keeps, used again
	now     int64          // store time, µs, as of
	at      time.Time      // this worker time
	next    txn.Snapshot   // room for what an accepted transaction makes of what is known
	edition int64          // of what is known of the agent and its tasks: whoever changes any of that raises it
}

// New returns an engine. Close it: it owns a goroutine, and calls under way end in an orderly manner.
func New(cfg Config) (*Engine, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	model, err := risk.New(cfg.Risk)
	if err != nil {
		return nil, fmt.Errorf("config Risk: %w", err)
	}
	flows, err := newFlows(cfg.Workflows)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		flows: flows, cfg: cfg, store: cfg.Store, rules: engine.Rules{Pools: clonedPools(cfg.Pools), Model: model, Policy: cfg.Policy, Observe: cfg.Observe, Show: memory.Shows(cfg.Store)},
		owner: cfg.ID(), hooks: &hooks.Runner{MaxAbandoned: int64(cfg.MaxAbandoned)},
		agents: map[string]*agentState{}, coming: map[string]*arriving{}, tasks: map[string]weak.Pointer[Task]{}, aloft: map[string]weak.Pointer[aloft]{}, waits: map[string]*wait{}, wake: make(chan struct{}, 1),
		draining: make(chan struct{}), gone: make(chan struct{}), inside: insiders{none: make(chan struct{})},
	}
	e.rules.Estimator = engine.Estimator(cfg.Risk)
	e.rules.Escalate = cfg.Escalate.rules()
	e.rules.Refusals = max(0, cfg.Refusals)
	e.rules.Operated, e.rules.Nobody = len(cfg.Operators) > 0, cfg.Authenticator == nil
	e.rules.Unheard = cfg.Authenticator == nil && cfg.Store == nil
	for _, c := range e.crowds() {
		c.most = int64(cfg.MaxAbandoned)
	}
	e.functions.what, e.inputs.what, e.policies.what = "functions", "checks of inputs", "decisions of the policy"
	e.planners.what, e.identities.what = "planners", "checks of identities"
	if e.store == nil {
		e.store, e.ownsStore = memory.New(memory.Config{Clock: cfg.Now}), true
	}
	e.instant, _ = e.store.(*memory.InProcess)
	limit := cfg.StoreTimeout
	if e.instant != nil {
		limit = 0
	}
	e.store = guarded{bounded{e.store, limit}, e}
	stop, halt := context.WithCancelCause(context.Background())
	e.stop, e.halt = stop, func(cause error) {
		halt(cause)
		e.clocks.Check()
	}
	if cfg.Policy != nil {
		e.rules.Policy = policed{cfg.Policy, e, e.stop}
	}
	e.plain = plainConfig(e.configuration(""))
	e.watch = startWatch(e)
	e.owners.engine, e.pulse = e.owner, newPulse(cfg.Lease/3)
	e.keeper = startKeeper(e)
	return e, nil
}

// ErrClosed is returned by an engine that is closed or closing.
var ErrClosed = errors.New("engine is closed")

// enter counts a call in; leave it with e.inside.Done. A closing engine takes no new ones.
func (e *Engine) enter() error {
	if !e.inside.enter() {
		return ErrClosed
	}
	return nil
}

// Register makes agents known, so that their tasks can be opened and worked on. Start and Delegate do it by themselves where
// nothing is known by that name yet. An agent of the same name that was built differently replaces the earlier one for tasks
// opened from then on; Start and Delegate refuse one.
func (e *Engine) Register(agents ...*Agent) error {
	for _, a := range agents {
		if a == nil || a.compiled == nil {
			return errors.New("register: there is no agent; make one with NewAgent and Build")
		}
		if err := e.declarable(a); err != nil {
			return fmt.Errorf("register: %w", err)
		}
		e.state(a)
	}
	return nil
}

// declarable reports an action that the risk model cannot take: what cannot be estimated would be gated as if it always
// failed.
func (e *Engine) declarable(a *Agent) error {
	for _, name := range a.Actions() {
		if err := e.rules.Model.Check(a.compiled.Actions[name].Declaration()); err != nil {
			return fmt.Errorf("agent %q: %w", a.name, err)
		}
	}
	return errors.Join(e.skillsOf(a)...)
}

func (e *Engine) state(a *Agent) *agentState {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.agents[a.name]
	if s == nil || s.agent != a {
		s = newAgentState(a)
		e.agents[a.name] = s
		for _, w := range a.Warnings() {
			e.cfg.Log.Warn("declaration", "agent", a.name, "warning", w)
		}
	}
	return s
}

func (e *Engine) known() []*agentState {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*agentState, 0, len(e.agents))
	for _, s := range e.agents {
		out = append(out, s)
	}
	return out
}

// Close stops taking calls and waits for those under way to end. When ctx ends first, it tells them to stop, waits for
// the grace period and for as long as the store may take to write their ends, and returns the context's error with what is
// left: nothing is lost, other workers take over what this one cannot settle. It returns then whatever hangs.
func (e *Engine) Close(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("close: %w", errNoContext)
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		select {
		case <-e.gone:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	e.closed = true
	close(e.draining)
	e.mu.Unlock()
	defer close(e.gone)
	done := e.inside.close()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = errors.Join(context.Cause(ctx), e.cutShort(done))
	}
	e.halt(ErrClosed)
	e.pulse.close()
	e.clocks.Close()
	last, cancel := outlive(ctx, e.cfg.Grace, e.cfg.StoreTimeout)
	defer cancel()
	e.countRest(last)
	err = errors.Join(err, e.keeper.close(last), e.hooks.Wait(last), e.watch.close(last))
	if e.ownsStore {
		err = errors.Join(err, e.store.Close())
	}
	return err
}

// cutShort tells what is under way to stop and waits for it. All of it ends in time: user code that ignores being told is
// left behind after the grace period. Only a store that ignores its context can keep a call longer.
func (e *Engine) cutShort(done <-chan struct{}) error {
	e.halt(errInterrupted)
	patience := time.NewTimer(e.cfg.Grace + e.cfg.StoreTimeout)
	defer patience.Stop()
	var err error
	select {
	case <-done:
	case <-patience.C:
		err = fmt.Errorf("%d calls or loops are still under way", e.inside.under())
	}
	for _, c := range e.crowds() {
		if n := c.stuck.Load(); n > 0 {
			err = errors.Join(err, fmt.Errorf("%d %s were given up and still run", n, c.what))
		}
	}
	return err
}

// outlive returns a context that lasts a grace period longer than ctx, but no longer than most.
func outlive(ctx context.Context, grace, most time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return out, func() {
		stop()
		cancel()
	}
}

func (e *Engine) crowds() []*crowd {
	return []*crowd{&e.functions, &e.inputs, &e.policies, &e.planners, &e.identities}
}

// Abandoned returns how much user code, of every kind, was given up and still runs.
func (e *Engine) Abandoned() int {
	n := e.hooks.Abandoned() + e.watch.stuck()
	for _, c := range e.crowds() {
		n += c.stuck.Load()
	}
	return int(n)
}

// Trust is how far an agent may be trusted, and what it did to earn it.
type Trust struct {
	risk.Trust
	Violations int64 // refusals of rules that the planner could have known
}

// Trust returns the trust of a registered agent, outcomes not yet folded included.
func (e *Engine) Trust(ctx context.Context, agent string) (Trust, error) {
	v, _, err := e.look(ctx, agent)
	if err != nil {
		return Trust{}, err
	}
	return Trust{e.rules.Model.Trust(v.Beliefs), v.Violations()}, nil
}

// ActionRisk is the risk of one action of an agent.
type ActionRisk struct {
	Action   string
	Declared int
	risk.Estimate
	Effective float64
}

// Risks returns the risk of each of a registered agent's actions, in the order of declaration.
func (e *Engine) Risks(ctx context.Context, agent string) ([]ActionRisk, error) {
	v, a, err := e.look(ctx, agent)
	if err != nil {
		return nil, err
	}
	var out []ActionRisk
	for _, name := range a.Actions() {
		d := a.compiled.Actions[name]
		est := e.rules.Model.Risk(v.Beliefs, d.Declaration())
		out = append(out, ActionRisk{name, d.Risk, est, est.Effective(d.Risk, 0)})
	}
	return out, nil
}

// Why says what the estimated risk of an action of a registered agent rests on, part by part.
func (e *Engine) Why(ctx context.Context, agent, name string) (risk.Why, error) {
	v, a, err := e.look(ctx, agent)
	if err != nil {
		return risk.Why{}, err
	}
	d := a.compiled.Actions[name]
	if d == nil {
		return risk.Why{}, fmt.Errorf("agent %q has no action %q", agent, name)
	}
	return e.rules.Model.Explain(v.Beliefs, d.Declaration())
}

// look loads what is known of an agent apart from any task.
func (e *Engine) look(ctx context.Context, agent string) (*engine.View, *Agent, error) {
	e.mu.Lock()
	s := e.agents[agent]
	e.mu.Unlock()
	if s == nil {
		return nil, nil, notKnown(agent)
	}
	snap, err := e.store.Load(ctx, agent, "", nil)
	if err != nil {
		return nil, nil, fmt.Errorf("load agent %q: %w", agent, err)
	}
	v, err := engine.Look(&e.rules, s.agent.compiled, snap, nil)
	return v, s.agent, err
}

// clock returns the worker's time in µs.
func (e *Engine) clock() int64 { return e.cfg.Now().UnixMicro() }

// failedStore is the outcome of a call that could not be recorded: nothing ran.
func failedStore(err error) *action.Failure {
	var pruned *memory.PrunedError
	switch {
	case errors.As(err, &pruned):
		return action.Fail(action.TaskClosed, "nothing was run: %s", pruned.Error()).Because(fmt.Errorf("%w: %w", ErrPruned, err))
	case errors.Is(err, ErrPruned):
		return action.Fail(action.TaskClosed, "nothing was run: the task had ended and was pruned").Because(err)
	}
	var lost *memory.LostError
	if errors.As(err, &lost) {
		return action.Fail(action.StoreUnavailable, "nothing was run: %s", lost.Error()).Because(err)
	}
	return action.Fail(action.StoreUnavailable, "the call could not be recorded; nothing was run").Because(err)
}
