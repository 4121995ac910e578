package delta

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Escalate says when a task is brought before a person by itself. Where the task has approvers, or the engine has
// operators, and an Authenticator says who they are, the task is paused: what runs finishes, nothing more begins, and calls
// are refused as TASK_PAUSED until a person resumes or ends it, see [Engine.Escalations]. Where nobody can be asked, and in
// observe mode, the event is recorded and the task goes on.
//
// "In a row" is without an Ok of the task in between; calls that end at the same instant may count as one. Of each number 0 is the default and less than 0 is never.
type Escalate struct {
	Failures int     // calls in a row that ran and failed: failure. Default 10
	Denials  int     // calls in a row that the policy did not permit, its errors included: policy. Default 10
	Risky    int     // calls in a row above the ceiling, or that nobody can approve: risk. Default 10
	Asked    int     // calls in a row that had to ask a person: risk. Default never
	Loop     int     // the same call without a new fact; guidance comes at the third: loop. Default 12
	Friction float64 // share of the budget spent over share of progress made, above which: budget. Default 2.5
	// Surprise brings a change for the worse in how often calls fail before a person: surprise. Default not; the planner is
	// told in any case.
	Surprise bool
	// CloseAfter closes a task whose escalation nobody resolved for so long; 0 is never: it stays paused until its deadline.
	CloseAfter time.Duration
}

func (c Escalate) withDefaults() Escalate {
	set(&c.Failures, 10)
	set(&c.Denials, 10)
	set(&c.Risky, 10)
	set(&c.Loop, 12)
	set(&c.Friction, budget.EscalateAbove)
	return c
}

func (c Escalate) check() (faults []error) {
	if c.CloseAfter < 0 {
		faults = append(faults, fmt.Errorf("config Escalate.CloseAfter is %v, want none or more", c.CloseAfter))
	}
	return faults
}

func (c Escalate) rules() engine.Escalate {
	return engine.Escalate{
		Failed: c.Failures, Denied: c.Denials, Risky: c.Risky, Asked: c.Asked, Loop: c.Loop, Friction: c.Friction, Surprise: c.Surprise,
		Close: c.CloseAfter.Microseconds(),
	}
}

// Escalation is a task that is before a person.
type Escalation struct {
	ID        string // "agent~task~id"
	Task      string // full id
	Concern   action.Concern
	Reason    string
	Goal      string    // of the task
	Requester string    // who has no say
	Raised    time.Time // by the store's clock
	Closes    time.Time // when the task is closed if nobody resolves it; zero is never
	Paused    bool      // false where nobody could be asked: then it is recorded and over
}

// Escalations returns the paused tasks of the registered agents, at most limit of each agent.
func (e *Engine) Escalations(ctx context.Context, limit int) ([]Escalation, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var out []Escalation
	for _, s := range e.known() {
		tasks, err := e.store.Queued(ctx, s.agent.name, engine.QueueEscalations, txn.Queued{}, false, limit)
		if err != nil {
			return nil, fmt.Errorf("list escalations: %w", err)
		}
		for _, q := range tasks {
			t := &Task{engine: e, agent: s.agent, state: s, local: q.Member, space: txn.NewSpace()}
			v, err := t.peek(ctx)
			if err == nil && !v.Exists() {
				err = ErrNoTask
			}
			if astray(err) {
				e.stray(ctx, s.agent.name, engine.QueueEscalations, q.Member, err)
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("list escalations: %w", err)
			}
			if v.Task.Status == engine.Paused && v.Task.Paused != nil {
				out = append(out, t.escalation(v))
			}
		}
	}
	slices.SortFunc(out, func(a, b Escalation) int { return cmp.Or(a.Raised.Compare(b.Raised), strings.Compare(a.ID, b.ID)) })
	return out, nil
}

func (t *Task) escalation(v *engine.View) Escalation {
	p := v.Task.Paused
	out := Escalation{
		ID: p.ID, Task: t.ID(), Concern: p.Concern, Reason: p.Reason, Goal: v.Task.Goal, Requester: v.Task.Requester,
		Raised: time.UnixMicro(p.At), Paused: true,
	}
	if p.Until > 0 {
		out.Closes = time.UnixMicro(p.Until)
	}
	return out
}

// Escalate brings the task before a person by hand: it pauses where somebody can be asked, see [Escalate]. Where it is
// paused already the escalation that stands is returned.
func (t *Task) Escalate(ctx context.Context, c action.Concern, reason string) (Escalation, error) {
	if err := errors.Join(t.opened(), alive(ctx)); err != nil {
		return Escalation{}, err
	}
	if err := t.engine.enter(); err != nil {
		return Escalation{}, err
	}
	defer t.engine.inside.Done()
	return t.raise(ctx, c, t.engine.who("", reason))
}

// EscalateBy is Escalate by somebody whom the engine knows, who is recorded. Anybody may bring a task before those who decide
// about it.
func (t *Task) EscalateBy(ctx context.Context, by Identity, c action.Concern, reason string) (Escalation, error) {
	if err := errors.Join(t.opened(), alive(ctx)); err != nil {
		return Escalation{}, err
	}
	if err := t.engine.mine(by); err != nil {
		return Escalation{}, fmt.Errorf("escalate %s: %w", t, err)
	}
	if err := t.engine.enter(); err != nil {
		return Escalation{}, err
	}
	defer t.engine.inside.Done()
	return t.raise(ctx, c, t.engine.whoIs(by, reason))
}

// Escalate brings the task of the call before a person, see [Task.Escalate]. The call itself goes on.
func (c *Context) Escalate(concern action.Concern, reason string) error {
	if err := c.mayAct(); err != nil {
		return fmt.Errorf("escalate: %w", err)
	}
	who := c.flight.t.engine.who("", reason)
	who.Intent = c.begun.Intent
	_, err := c.flight.t.raise(c, concern, who)
	return err
}

func (t *Task) raise(ctx context.Context, c action.Concern, who engine.Who) (out Escalation, err error) {
	if !c.Valid() {
		return out, fmt.Errorf("escalate %s: there is no concern %q; want one of %v", t, c, action.Concerns())
	}
	id := t.askID()
	err = t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		if v.Task.Status == engine.Paused && v.Task.Paused != nil {
			out = t.escalation(v)
			return nil, nil
		}
		if v.Task.Status.Ended() {
			return nil, v.Task.Because(action.Fail(action.TaskClosed, "the task is %s and stays so", v.Task.Status))
		}
		rules := &t.engine.rules
		out = Escalation{
			ID: id, Task: t.ID(), Concern: c, Reason: who.Reason, Goal: v.Task.Goal, Requester: v.Task.Requester,
			Raised: time.UnixMicro(v.Snap.Now), Paused: rules.Asks(&v.Task),
		}
		if n := rules.Escalate.Close; n > 0 && out.Paused {
			out.Closes = time.UnixMicro(v.Snap.Now + n)
		}
		return engine.Raise(rules, v, c, who.Reason, id, who), nil
	})
	if err != nil {
		return Escalation{}, fmt.Errorf("escalate %s: %w", t, err)
	}
	t.passOn(ctx)
	return out, nil
}

// ErrNotPaused says that an escalation does not stand any more: it was resolved, or another has taken its place.
var ErrNotPaused = engine.ErrNotPaused

// ResumeTask lets a paused task go on: what led to its escalation is counted anew. It is for the task's approvers and the
// engine's operators, never for whoever requested the task. The identity and the reason are recorded.
func (e *Engine) ResumeTask(ctx context.Context, escalation string, by Identity, reason string) error {
	_, err := e.unpause(ctx, escalation, true, by, reason)
	return err
}

// EndTask ends a paused task, as [Task.Cancel] does. It is for whom [Engine.ResumeTask] is for.
func (e *Engine) EndTask(ctx context.Context, escalation string, by Identity, reason string) error {
	t, err := e.unpause(ctx, escalation, false, by, reason)
	if err != nil {
		return err
	}
	why := fmt.Errorf("%w: %s", errCancelled, action.Cut(reason))
	t.aloft.halt(why)
	t.aloft.interrupt(why)
	e.forget(t)
	return nil
}

func (e *Engine) unpause(ctx context.Context, id string, goOn bool, by Identity, reason string) (*Task, error) {
	if err := errors.Join(e.mine(by), alive(ctx)); err != nil {
		return nil, fmt.Errorf("escalation %s: %w", id, err)
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.inside.Done()
	parts := strings.Split(id, idSeparator)
	if len(parts) != 3 {
		return nil, fmt.Errorf("escalation %q: not an id of an escalation (agent%stask%sid)", id, idSeparator, idSeparator)
	}
	t, err := e.Open(ctx, parts[0]+idSeparator+parts[1])
	if err != nil {
		return nil, fmt.Errorf("escalation %s: %w", id, err)
	}
	err = t.change(ctx, func(v *engine.View) (*txn.Txn, error) {
		return engine.Unpause(v, id, goOn, e.cfg.Operators, e.whoIs(by, reason))
	})
	if err != nil {
		return nil, fmt.Errorf("escalation %s: %w", id, err)
	}
	if goOn {
		t.passOn(ctx)
	} else {
		t.ended(ctx)
	}
	e.decided(id)
	return t, nil
}

// awaitGoing waits until the task is not paused; false where ctx ended or the engine closes first.
func (t *Task) awaitGoing(ctx context.Context) bool {
	return t.awaitThat(ctx, func(v *engine.View) bool { return v.Task.Status != engine.Paused })
}

// awaitLift waits until nothing withholds an action any more, or its task has ended; false where ctx ended or the engine
// closes first.
func (t *Task) awaitLift(ctx context.Context, name string) bool {
	return t.awaitThat(ctx, func(v *engine.View) bool { return v.Task.Status.Ended() || !v.Withheld(name) })
}

func (t *Task) awaitThat(ctx context.Context, goes func(*engine.View) bool) bool {
	e := t.engine
	for id := ""; ; {
		decided, leave := e.await(id) // before looking, so that no answer slips through between
		v, err := t.peek(ctx)
		switch {
		case e.winding(ctx):
			leave()
			return false
		case err == nil && goes(v):
			leave()
			return true
		case err == nil && v.Task.Paused != nil && v.Task.Paused.ID != id:
			id = v.Task.Paused.ID
			leave()
			continue
		}
		ok := e.pause(ctx, decided)
		leave()
		if !ok {
			return false
		}
	}
}

// concern is what the task itself noticed and nobody was told yet; the agent's lock guards it.
type concern struct {
	due  action.Concern
	why  string
	told map[action.Concern]bool // where nobody can be asked, once is enough
}

// noteConcern notes that a person should look at the task; the caller holds the agent's lock. [Task.tellConcern] does it.
func (t *Task) noteConcern(c action.Concern, why string) {
	if t.view == nil || t.view.Task.Status != engine.Running || t.concern.told[c] {
		return
	}
	if !t.engine.rules.Asks(&t.view.Task) {
		if t.concern.told == nil {
			t.concern.told = map[action.Concern]bool{}
		}
		t.concern.told[c] = true
	}
	t.concern.due, t.concern.why = c, why
	t.uneasy.Store(true)
}

// noteRepeats is noteConcern for calls made again and again.
func (t *Task) noteRepeats() {
	if n := t.engine.rules.Escalate.Loop; n > 0 && t.repeats >= n && t.repeats%n == 0 {
		t.noteConcern(action.ConcernLoop, fmt.Sprintf("the same call was made %d times and nothing new came of it", t.repeats))
	}
}

// proposed reports whether a call that ended so, made again, is the planner's doing: not where it was to be made again.
func proposed(code action.Code) bool {
	switch code {
	case action.StoreUnavailable, action.Stale, action.InFlight, action.TaskPaused, action.ApprovalRequired:
		return false
	}
	return true
}

// noteFriction is noteConcern for what is spent.
func (t *Task) noteFriction(v *engine.View) {
	if f := engine.Friction(&t.engine.rules, v); f > 0 {
		t.noteConcern(action.ConcernBudget, fmt.Sprintf("much was spent for little: friction is %.1f after %d calls", f, v.Runs()))
	}
}

// tellConcern raises what was noted.
func (t *Task) tellConcern(ctx context.Context) {
	if !t.uneasy.Load() {
		return
	}
	t.state.mu.Lock()
	due, why := t.concern.due, t.concern.why
	t.concern.due = ""
	t.uneasy.Store(false)
	t.state.mu.Unlock()
	if due == "" {
		return
	}
	if _, err := t.raise(context.WithoutCancel(ctx), due, t.engine.who("", why)); err != nil && action.FailureOf(err) == nil {
		t.engine.cfg.Log.Warn("escalation failed", "task", t.ID(), "concern", due, "error", err)
	}
}

// settle ends a run, counts what went wrong in a row and, at the first try, raises what it gives rise to. The caller holds
// the agent's lock.
func (t *Task) settle(x *engine.Run, end engine.End, may bool) *txn.Txn {
	if end.Code == action.OK && engine.Calm(&t.space) {
		return x.Settle(end)
	}
	v, err := t.look(t.snapshot(nil))
	if err != nil {
		return x.Settle(end)
	}
	return x.SettleIn(&t.engine.rules, v, end, t.askID(), may)
}
