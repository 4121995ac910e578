package delta

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// flowTries is how often what happens to an instance is worked out anew because something else was quicker.
const flowTries = 32

// flowRun is one instance in the hands of this engine: its driver. The machine says what is to be done; the driver does it,
// hands in what came of it, and has nothing in its head that is not in the store: every command has an id under which it is
// performed once, whoever performs it, and again where nobody knows.
type flowRun struct {
	e    *Engine
	t    *Task
	def  *workflow.Definition
	veil *flowVeil

	holder string // the name under which the instance is held, "" where it is not
	k      engine.FlowKnown
	text   workflow.Writer // of its states
	hand   map[string]bool // commands under way
	later  time.Duration   // to look again although nothing happens, 0 for not
	idle   map[string]bool // commands that wait for what is not here: they are looked at again when something happens
	view   *engine.View    // of its task, as it was looked at last
	over   bool            // its task has ended
	told   int64           // the version of the instance of whose end who has to know does: one that completed may yet be undone
	under  sync.Map        // those of hand that start a nested instance and have not come back
	back   chan flowAnswer
	done   chan flowEnd
	keep   *time.Ticker // the instance is held on to
	poll   *time.Ticker // it is looked at elsewhere
}

// flowAnswer is what came of a command: an event, or nothing yet.
type flowAnswer struct {
	id    string
	event *workflow.Event
	err   error
}

func (e *Engine) readFlow(ctx context.Context, agent, task string) (k engine.FlowKnown, err error) {
	return e.readFlowOn(ctx, agent, task, nil)
}

// readFlowOn is readFlow for who knows the instance as it was: what is unchanged is not decoded again.
func (e *Engine) readFlowOn(ctx context.Context, agent, task string, was *engine.FlowKnown) (k engine.FlowKnown, err error) {
	reply, err := e.apply(ctx, engine.ReadFlow(agent, task))
	if err != nil {
		return k, failedStore(err)
	}
	return engine.FlowRead(&reply, was)
}

func (t *Task) readFlow(ctx context.Context) (engine.FlowKnown, error) {
	return t.engine.readFlow(ctx, t.agent.name, t.local)
}

// again reads the instance once more.
func (r *flowRun) again(ctx context.Context) (engine.FlowKnown, error) {
	k, err := r.e.readFlowOn(ctx, r.t.agent.name, r.t.local, &r.k)
	if err == nil && r.moved(&k) {
		err = errMoved
	}
	return k, err
}

// errMoved says that an instance goes on by another definition than it was taken up with: it is taken up anew.
var errMoved = errors.New("the instance was given another definition meanwhile")

func (r *flowRun) moved(k *engine.FlowKnown) bool {
	return k.Ver > 0 && k.State.Digest != r.def.Digest()
}

// stands looks at the task alone, and at nothing that its agent believes.
func (t *Task) stands(ctx context.Context) (*engine.View, error) {
	snap, err := t.engine.store.Load(ctx, t.agent.name, t.local, nil)
	if err != nil {
		return nil, failedStore(err)
	}
	t.state.mu.Lock()
	known := t.view
	t.state.mu.Unlock()
	v, err := engine.LookAtTask(snap, known)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", t, errUnreadable, err)
	}
	return v, nil
}

// latest is stands where what this engine knows will do: for who pins what it rests on, or is told of what it may have missed.
// It costs no trip where nothing is known to be missing, and what a trip brings is kept.
func (t *Task) latest(ctx context.Context) (*engine.View, error) {
	if t.refresh(ctx, false) != nil {
		return t.stands(ctx)
	}
	t.state.mu.Lock()
	s := t.snapshot(nil)
	v, err := t.glance(s)
	if err != nil || t.lags() || t.state.lags() {
		t.state.mu.Unlock()
		return t.stands(ctx)
	}
	s.State = s.State.Clone() // it is used without the lock
	t.state.mu.Unlock()
	return engine.LookAtTask(s, v)
}

// unbegun is the state of an instance that has not begun: it runs, or is cancelled, and never will begin then.
func (t *Task) unbegun(ctx context.Context) (s workflow.State, err error) {
	if err := t.opened(); err != nil {
		return s, err
	}
	v, err := t.stands(ctx)
	switch {
	case err != nil:
		return s, err
	case !v.Exists():
		return s, ErrNoTask
	}
	s = workflow.State{Instance: t.local, Status: workflow.Running}
	if of := v.Task.Flow; of != nil {
		s.Workflow, s.Version = of.Workflow, of.Version
	}
	if v.Task.Status.Ended() {
		s.Status, s.Failure = workflow.Stopped, v.Task.Because(action.Fail(action.Cancelled, "its task ended before it began"))
	}
	return s, nil
}

// turn works out what an event comes to; without steps it came to nothing, and it is said why. What can be judged on the spot
// is, so that one transaction takes it all.
func (r *flowRun) turn(ctx context.Context, s workflow.State, ev workflow.Event) (workflow.State, []engine.FlowStep, workflow.Absorbed, error) {
	r.veil.meet(r.k.Sealed)
	ev, sealed, err := r.veil.event(ctx, &s, ev)
	if err != nil {
		return s, nil, "", err
	}
	turn, err := r.def.Step(s, ev)
	if err != nil || turn.Absorbed != "" {
		return s, nil, turn.Absorbed, err
	}
	next, steps, err := r.settle(ctx, turn, engine.FlowStep{Sealed: sealed}, ev)
	return next, steps, "", err
}

// settle goes on from a turn with the commands that change nothing. Step is what is written with the event of the turn.
func (r *flowRun) settle(ctx context.Context, turn workflow.Turn, step engine.FlowStep, of any) (workflow.State, []engine.FlowStep, error) {
	var steps []engine.FlowStep
	for {
		s := turn.State
		var err error
		if step.Event, err = json.Marshal(of); err != nil {
			return s, nil, fmt.Errorf("write an event of the workflow: %w", err)
		}
		step.Trail = turn.Trail
		steps, step = append(steps, step), engine.FlowStep{}
		i := slices.IndexFunc(s.Outstanding, r.judges)
		if i < 0 {
			return s, steps, nil
		}
		ev, err := r.judge(ctx, s.Outstanding[i])
		if keyless(err) { // it is left to who has the key
			return s, steps, nil
		}
		if err != nil {
			return s, steps, err
		}
		if turn, err = r.def.Step(s, ev); err != nil {
			return s, nil, err
		}
		if turn.Absorbed != "" {
			return s, nil, fmt.Errorf("workflow %q takes no answer to %s: %s", r.def.Name(), ev.Of, turn.Absorbed)
		}
		of = ev
	}
}

// judges reports whether a command is judged on the spot: it changes nothing, and whoever only hands in a word may not have
// the condition that it names. Then it is left to who runs the instance.
func (r *flowRun) judges(c workflow.Command) bool {
	named := c.Guard != nil && c.Guard.Name != ""
	return c.Pure() && !c.Held && (!named || r.e.flows.Guards[c.Guard.Name] != nil)
}

// begin starts the machine of an instance that has not begun.
func (r *flowRun) begin(ctx context.Context, of *engine.FlowOf) error {
	held, err := r.parentHeld(ctx)
	if err != nil {
		return err
	}
	b := workflow.Begin{Instance: r.t.local, Parent: of.Parent, Input: r.k.Input, At: r.e.clock(), Held: held}
	turn, err := r.def.Start(b)
	if err != nil {
		return err
	}
	r.veil.meet(r.k.Sealed)
	state, steps, err := r.settle(ctx, turn, engine.FlowStep{Spec: r.def.Text(), Sealed: r.k.Sealed}, b)
	if err != nil {
		return err
	}
	if ok, err := r.commit(ctx, state, steps, -1); ok || err != nil {
		return err
	}
	r.k, err = r.again(ctx)
	if err == nil && r.k.Ver == 0 {
		err = errMoved
	}
	return err
}

// commit writes what happened; false where something else was quicker.
func (r *flowRun) commit(ctx context.Context, s workflow.State, steps []engine.FlowStep, due int64) (bool, error) {
	text, err := r.text.Write(&s)
	if err != nil {
		return false, fmt.Errorf("write the instance of the workflow: %w", err)
	}
	x, sealed := engine.FlowTurn(r.t.agent.name, r.t.local, &r.k, steps, text, due, r.e.clock())
	reply, err := r.e.apply(ctx, x)
	if err != nil {
		return false, failedStore(err)
	}
	if !reply.OK {
		return false, nil
	}
	r.k.State, r.k.Ver, r.k.Sealed = s, r.k.Ver+1, sealed
	r.t.advance(x, reply, nil)
	return true, nil
}

// feed hands in an event, whatever else happens to the instance meanwhile. An event that answers nothing is none.
func (r *flowRun) feed(ctx context.Context, ev workflow.Event) error {
	for range flowTries {
		state, steps, _, err := r.turn(ctx, r.k.State, ev)
		if err != nil || len(steps) == 0 {
			return err
		}
		if ok, err := r.commit(ctx, state, steps, -1); ok || err != nil {
			return err
		}
		if r.k, err = r.again(ctx); err != nil {
			return err
		}
	}
	return action.Fail(action.Stale, "the instance changed %d times while an event was written", flowTries)
}

// errLater says of a command that nothing makes the instance due when it can be performed: it is tried again after a while.
var errLater = errors.New("it is tried again later")

// errAbsorbed says that an event came to nothing.
var errAbsorbed = fmt.Errorf("%w: it has no effect", ErrNotWaiting)

// driveDue takes an instance in hand that has something to do, for [Engine.Work].
func (e *Engine) driveDue(ctx context.Context, s *agentState, task string) error {
	_, err := e.drive(ctx, e.adopt(s, task))
	if errors.Is(err, errMoved) { // it is due
		e.nudge()
		return nil
	}
	if keyless(err) {
		if _, met := e.flows.missing.LoadOrStore([2]string{s.agent.name, task}, true); !met {
			e.cfg.Log.Warn("an instance is left to who has its key", "agent", s.agent.name, "task", task, "error", err)
		}
		return nil
	}
	return err
}

// drive does what there is to do for an instance, until it waits for somebody else or has ended. It returns the instance as
// this engine knew it last, of version 0 where it does not know it.
func (e *Engine) drive(ctx context.Context, t *Task) (k engine.FlowKnown, err error) {
	v, err := t.latest(ctx) // what this engine has not heard of since is a wake
	if err != nil {
		return k, err
	}
	if !v.Exists() || v.Task.Flow == nil {
		_, err := e.apply(ctx, engine.DropFlow(t.agent.name, t.local))
		return k, err
	}
	if v.Task.Status.Ended() { // before it is looked for who could begin it: nobody is to
		if k, err = t.readFlow(ctx); err != nil || k.Ver == 0 {
			return k, cmp.Or(err, e.neverBegins(ctx, t, v))
		}
	}
	of := v.Task.Flow
	def := e.flows.definition(of)
	if def == nil {
		if _, met := e.flows.missing.LoadOrStore([2]string{of.Workflow, of.Version}, true); !met {
			e.cfg.Log.Warn("instances of a workflow are left to others", "workflow", of.Workflow, "version", of.Version, "error", ErrNoWorkflow)
		}
		return k, nil
	}
	veil, err := e.veilOf(ctx, t, def)
	if err != nil {
		return k, err
	}
	if !v.Task.Status.Ended() { // else all it is told is that
		if err := veil.usable(ctx); err != nil {
			return k, err
		}
	}
	r := &flowRun{e: e, t: t, def: def, veil: veil, view: v, hand: map[string]bool{}, idle: map[string]bool{}, back: make(chan flowAnswer, e.flows.Parallel)}
	if held, err := r.hold(ctx); err != nil || !held {
		return k, err
	}
	if r.moved(&r.k) || r.k.Ver == 0 && r.k.InputVer > 1 { // the task may have been looked at before that was so
		if r.view, err = t.stands(ctx); err == nil && (r.view.Task.Flow == nil || r.view.Task.Flow.Digest != def.Digest()) {
			err = errMoved
		}
		if err != nil {
			return k, errors.Join(err, r.letGo(ctx))
		}
	}
	if r.k.Ver == 0 && engine.WokenSince(v, &r.k) { // it may have ended since
		now, err := t.stands(ctx)
		if err != nil || now.Task.Status.Ended() {
			return r.k, errors.Join(cmp.Or(err, e.neverBegins(ctx, t, now)), r.letGo(ctx))
		}
	}
	if r.k.Ver == 0 {
		if err := r.begin(ctx, of); err != nil {
			return k, errors.Join(err, r.letGo(ctx))
		}
	}
	if engine.WokenSince(v, &r.k) {
		err = r.look(ctx, false)
	} else if r.over = v.Task.Status.Ended(); r.over {
		err = r.feed(ctx, r.gone())
	}
	if err != nil {
		return k, errors.Join(err, r.letGo(ctx))
	}
	err = r.work(ctx)
	return r.k, err
}

// look finds out what happened elsewhere: anew reads the instance first, and then, never before, its task. What happens to
// that afterwards counts as a wake, and the instance is not put down.
func (r *flowRun) look(ctx context.Context, anew bool) error {
	if anew {
		k, err := r.again(ctx)
		if err != nil {
			return err
		}
		if k.Ver == r.k.Ver && k.Wakes == r.k.Wakes && r.later == 0 {
			return nil
		}
		r.k = k
	}
	clear(r.idle)
	r.later = 0
	var err error
	if r.view, err = r.t.stands(ctx); err != nil {
		return err
	}
	if r.over = r.view.Task.Status.Ended(); !r.over {
		return nil
	}
	return r.feed(ctx, r.gone())
}

func (r *flowRun) ttl() int64 { return r.e.cfg.Lease.Microseconds() }

// hold takes the instance in hand; false where somebody else has it.
func (r *flowRun) hold(ctx context.Context) (bool, error) {
	holder := r.e.newOwner()
	x := engine.HoldFlow(r.t.agent.name, r.t.local, holder, r.ttl())
	reply, err := r.e.apply(ctx, x)
	if err != nil {
		return false, failedStore(err)
	}
	if !reply.OK {
		return false, nil
	}
	r.t.advance(x, reply, nil)
	r.holder = holder
	if r.k, err = engine.FlowRead(&reply, nil); err != nil {
		return true, errors.Join(err, r.letGo(ctx))
	}
	return true, nil
}

// letGo puts the instance down for others to take up at once.
func (r *flowRun) letGo(ctx context.Context) error {
	k, err := r.e.readFlowOn(ctx, r.t.agent.name, r.t.local, &r.k)
	if err == nil {
		_, err = r.e.apply(ctx, engine.RestFlow(r.t.agent.name, r.t.local, r.holder, &k, engine.Rest{}))
	}
	return err
}

// gated reports whether a command begins something that the engine's gates may keep from beginning.
func gated(k workflow.CommandKind) bool {
	return k == workflow.Call || k == workflow.Compensate || k == workflow.Plan || k == workflow.Spawn
}
