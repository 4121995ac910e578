package delta

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"weak"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Task is one goal given to one agent: the unit of budget, threshold, audit and cancellation. It is safe for concurrent
// use. Tasks are opened with [Engine.Start] and [Engine.Open].
type Task struct {
	engine *Engine
	agent  *Agent
	state  *agentState // its lock guards everything below
	local  string      // id within the agent
	id     string      // as ID returns it, "" of one that is not handed out
	aloft  *aloft      // shared with other handles of the task

	space   txn.Space
	gap     bool   // space lags behind the store: it must be read anew
	flow    follow // how far the store is known to be beyond it
	view    *engine.View
	set     *statespace.Set
	loop    budget.Loop
	repeats int
	facted  int           // distinct facts satisfied; -1 is not known
	asks    func() string // makes ids of approval requests
	shelf   engine.Shelf
	lasting map[string]*lasting // what previews found, by action

	digesters map[string]*approval.Digester // by action
	handed    handed                        // has a lock of its own
	offers    []action.Offer                // the latest, for what changed since
	concern   concern
	uneasy    atomic.Bool  // there is a concern to tell
	private   atomic.Int32 // whether it is about somebody
	kept      atomic.Pointer[vault]
	dropped   atomic.Bool // it ended and was pruned
}

// idSeparator joins agent and task, and task and approval, in ids. No name contains it.
const idSeparator = "~"

// ID returns the task's id, unique over all agents: "agent~task".
func (t *Task) ID() string {
	if t == nil || t.engine == nil {
		return ""
	}
	if t.id != "" {
		return t.id
	}
	return t.agent.name + idSeparator + t.local
}

// errNotOpened answers a Task that no engine made.
var errNotOpened = errors.New("there is no task; start one with Engine.Start, or open one with Engine.Open")

func (t *Task) opened() error {
	if t == nil || t.engine == nil {
		return errNotOpened
	}
	if t.dropped.Load() {
		return action.Fail(action.TaskClosed, "%s had ended and was pruned", t).Because(ErrPruned)
	}
	return nil
}

// Agent returns the agent that works on the task.
func (t *Task) Agent() *Agent { return t.agent }

// String names the task.
func (t *Task) String() string { return "task " + t.ID() }

// Start opens a task. Its agent is registered with that, unless another one of its name is: then Start is refused.
func (e *Engine) Start(ctx context.Context, g Goal) (started *Task, err error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.inside.Done()
	s, err := e.taskState(g)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if err := e.declarable(g.Agent); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	who, err := e.arrive(g.Agent)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	defer func() { who.leave(started != nil) }()
	a := who.state
	if err := e.inherit(ctx, a); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if err := e.leaveCard(ctx, a); err != nil {
		return nil, fmt.Errorf("start: %w", failedStore(err))
	}
	if err := e.noteConfig(ctx, a); err != nil {
		return nil, fmt.Errorf("start: %w", failedStore(err))
	}
	until := int64(0)
	if !g.Deadline.IsZero() {
		until = max(1, g.Deadline.Sub(e.cfg.Now()).Microseconds())
		snap, err := e.store.Load(ctx, g.Agent.name, s.ID, nil)
		if err != nil {
			return nil, fmt.Errorf("start: %w", err)
		}
		s.Deadline = snap.Now + until
	}
	if s.Subject != "" {
		if _, err := e.dataKey(ctx, s.Agent, engine.SubjectSpace(s.Subject), true, true); err != nil {
			return nil, fmt.Errorf("start: %w", keyUnavailable(err))
		}
	}
	if err := e.sealGoal(ctx, &s); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	made, err := e.sealFlow(ctx, &s, &g)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	undo, err := e.keepAttachments(ctx, s, g.Attachments)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	drop, err := e.recall(ctx, a, &s)
	if err != nil {
		undo()
		return nil, fmt.Errorf("start: %w", failedStore(err))
	}
	s.Born = e.cfg.ID()
	x := engine.Start(s, e.clock(), until)
	engine.Drop(x, drop)
	if made != nil {
		engine.AddKey(x, *made, e.clock())
	}
	reply, err := e.apply(ctx, x)
	if err != nil || !reply.OK {
		undo()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("start: %w", failedStore(err))
	case !reply.OK:
		return nil, e.exists(ctx, a, s.ID)
	}
	t := e.adopt(a, s.ID)
	t.private.Store(aboutWhom(&s))
	t.advance(x, reply, nil) // all that there is of it was written just now
	return t, nil
}

// adopt returns the one Task of this engine for an id, so that cancelling it reaches every call.
func (e *Engine) adopt(a *agentState, local string) *Task {
	id := a.agent.name + idSeparator + local
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.tasks[id].Value(); t != nil && t.state == a {
		return t
	}
	e.dropUnheld()
	t := &Task{engine: e, agent: a.agent, state: a, local: local, id: id, aloft: e.aloftOf(id), space: txn.NewSpace(), facted: -1}
	t.asks = func() string { return id + idSeparator + e.cfg.ID() } // it must not hold the task
	e.tasks[id] = weak.Make(t)
	return t
}

// dropUnheld drops the entries of tasks that nobody holds any more, now and then; the caller holds the engine's lock.
func (e *Engine) dropUnheld() {
	if len(e.tasks) < e.purge {
		return
	}
	for id, t := range e.tasks {
		if t.Value() == nil {
			delete(e.tasks, id)
		}
	}
	for id, a := range e.aloft {
		if a.Value() == nil {
			delete(e.aloft, id)
		}
	}
	e.purge = 2*len(e.tasks) + 64
}

// forget drops the engine's own reference to a task that ended; handles that callers hold stay usable.
func (e *Engine) forget(t *Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tasks[t.ID()].Value() == t {
		delete(e.tasks, t.ID())
	}
	e.releaseAttachments(t.agent.name, t.local)
}

// forgetEnded forgets a task that was seen to have ended, perhaps on another worker.
func (e *Engine) forgetEnded(t *Task) {
	t.state.mu.Lock()
	ended := t.view != nil && t.view.Task.Status.Ended()
	t.state.mu.Unlock()
	if ended {
		e.forget(t)
	}
}

// ErrPruned is in what a task answers that this engine knew, and that had ended and was pruned meanwhile: a TASK_CLOSED.
var ErrPruned = errors.New("the task was pruned")

// ErrNoTask is returned where a task does not exist.
var ErrNoTask = errors.New("no such task")

// Open re-opens a task by its id: the full "agent~task", or the task's own part where only one registered agent has it.
func (e *Engine) Open(ctx context.Context, id string) (*Task, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.inside.Done()
	agent, local, qualified := strings.Cut(id, idSeparator)
	if !qualified {
		agent, local = "", id
	}
	var found []*Task
	for _, s := range e.known() {
		if qualified && s.agent.name != agent {
			continue
		}
		t := &Task{engine: e, agent: s.agent, state: s, local: local, space: txn.NewSpace(), facted: -1}
		if v, err := t.peek(ctx); err != nil {
			return nil, fmt.Errorf("open task %q: %w", id, err)
		} else if v.Exists() && !v.Task.Status.Ended() {
			found = append(found, e.adopt(s, local))
		} else if v.Exists() {
			t.aloft = e.lastAloft(t.ID())
			found = append(found, t) // it ended: nothing has to find it again
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("open task %q: %w of the agents registered with this engine", id, ErrNoTask)
	}
	return nil, fmt.Errorf("open task %q: several agents have one; write agent%stask", id, idSeparator)
}

// peek loads and decodes the task without keeping anything.
func (t *Task) peek(ctx context.Context) (*engine.View, error) {
	if err := t.opened(); err != nil {
		return nil, err
	}
	snap, err := t.engine.store.Load(ctx, t.agent.name, t.local, nil)
	if err != nil {
		return nil, failedStore(err)
	}
	v, err := engine.Look(&t.engine.rules, t.agent.compiled, snap, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", t, errUnreadable, err)
	}
	return v, nil
}

// Status returns whether the task runs, is paused or has ended, and why.
func (t *Task) Status(ctx context.Context) (status, reason string, err error) {
	v, err := t.peek(ctx)
	if err != nil {
		return "", "", err
	}
	reason = v.Task.Reason
	if p := v.Task.Paused; p != nil {
		reason = string(p.Concern) + ": " + p.Reason
	}
	return string(v.Task.Status), reason, nil
}

// Budget returns what the task has spent, reserved and left, axis by axis.
func (t *Task) Budget(ctx context.Context) (budget.Snapshot, error) {
	v, err := t.peek(ctx)
	if err != nil {
		return budget.Snapshot{}, err
	}
	return v.Account().Snapshot(), nil
}

// Ledger returns the task's records, and what verifying their chain found: what is recorded, up to where it is sealed.
func (t *Task) Ledger(ctx context.Context) ([]txn.Stored, ledger.Report, error) {
	if err := t.opened(); err != nil {
		return nil, ledger.Report{}, err
	}
	return t.engine.records(ctx, t.agent.name, t.local)
}

// recordPage is how many records are read at a time.
const recordPage = 512

// holesMost is how often a ledger is read anew because its beginning was dropped meanwhile.
const holesMost = 10

func (e *Engine) records(ctx context.Context, agent, task string) (all []txn.Stored, report ledger.Report, err error) {
	for range holesMost {
		sealed := e.keeper.mark(book{agent, task}) // before reading: what is sealed meanwhile is no loss
		all, whole, err := e.pages(ctx, agent, task)
		if err != nil {
			return nil, report, fmt.Errorf("read ledger: %w", err)
		}
		if !whole {
			continue
		}
		report, err = ledger.VerifyFrom(agent, task, all)
		if err == nil {
			err = ledger.Compare(all, report, ledger.Report{Sealed: sealed.seq, Head: sealed.link})
		}
		return all, report, err
	}
	return nil, report, errors.New("read ledger: it is pruned all the time")
}

// pages reads a ledger from the first record left; whole is false where its beginning was dropped on the way.
func (e *Engine) pages(ctx context.Context, agent, task string) (all []txn.Stored, whole bool, err error) {
	for from := int64(1); ; {
		page, err := e.store.Records(ctx, agent, task, from, recordPage)
		if err != nil {
			return nil, false, err
		}
		if len(all) > 0 && len(page) > 0 && page[0].Seq > from {
			return nil, false, nil
		}
		all = append(all, page...)
		if len(page) < recordPage {
			return all, true, nil
		}
		from = page[len(page)-1].Seq + 1
	}
}

// Cancel ends the task: nothing starts any more, and calls under way are told to stop. It returns once that is recorded.
func (t *Task) Cancel(ctx context.Context, reason string) error {
	if err := t.opened(); err != nil {
		return err
	}
	return t.cancel(ctx, t.engine.who("", reason))
}

func (t *Task) cancel(ctx context.Context, who engine.Who) error {
	why := fmt.Errorf("%w: %s", errCancelled, who.Reason)
	first := t.aloft.halt(why)
	err := t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		if v.Task.Status == engine.Cancelled {
			return nil, nil
		}
		return engine.CancelTask(v, who)
	})
	if err != nil {
		if first {
			t.aloft.resume() // it goes on
		}
		return fmt.Errorf("cancel %s: %w", t, err)
	}
	t.aloft.interrupt(why)
	t.ended(ctx)
	t.engine.forget(t)
	return nil
}

// Done ends the task in the ordinary way: nothing starts any more. Calls under way finish. A task that waits for a person is
// not done: the refusal is TASK_PAUSED, see [Engine.EndTask].
func (t *Task) Done(ctx context.Context, reason string) error {
	err := t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		if v.Task.Status == engine.Closed {
			return nil, nil
		}
		return engine.CloseTask(v, t.engine.who("", reason))
	})
	if err != nil {
		return fmt.Errorf("close %s: %w", t, err)
	}
	t.ended(ctx)
	t.engine.forget(t)
	return nil
}

// SetThreshold changes the effective risk from which on calls need an approval. The change is recorded. It is for the
// task's approvers and the engine's operators, never for whoever requested the task.
func (t *Task) SetThreshold(ctx context.Context, by Identity, threshold float64, reason string) error {
	if err := t.engine.mine(by); err != nil {
		return err
	}
	if !(threshold >= 1 && threshold <= 5) {
		return fmt.Errorf("threshold is %v, want 1 to 5", threshold)
	}
	return t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		if err := engine.MayOperate(v, t.engine.cfg.Operators, t.engine.whoIs(by, reason)); err != nil {
			return nil, fmt.Errorf("threshold of %s: %w", t, err)
		}
		next := v.Task
		next.Threshold = threshold
		return engine.Change(v, ledger.TaskChanged, next, t.engine.whoIs(by, reason))
	})
}

func (e *Engine) who(identity, reason string) engine.Who {
	return engine.Who{Identity: identity, Reason: action.Cut(reason), At: e.clock(), Owner: e.newOwner()}
}

// change applies an operator's transaction, computed on a fresh view, and again when it lost a race.
func (t *Task) change(ctx context.Context, compute func(*engine.View) (*txn.Txn, error)) error {
	return t.changeAs(ctx, t.peek, compute)
}

// changeAs is change for who says how to look: [Task.stands] where only the task counts.
func (t *Task) changeAs(ctx context.Context, look func(context.Context) (*engine.View, error), compute func(*engine.View) (*txn.Txn, error)) error {
	for range rounds {
		v, err := look(ctx)
		if err != nil {
			return err
		}
		if !v.Exists() {
			return ErrNoTask
		}
		x, err := compute(v)
		if err != nil || x == nil {
			return err
		}
		reply, err := t.engine.apply(ctx, x)
		if err != nil {
			return failedStore(err)
		}
		if reply.OK {
			t.advance(x, reply, nil)
			return nil
		}
	}
	return action.Fail(action.Stale, "the task changed %d times while this was decided; try again", rounds)
}
