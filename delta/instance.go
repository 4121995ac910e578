package delta

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/schema"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// ID returns the id of the instance's task.
func (i *Instance) ID() string { return i.t.ID() }

// Task returns the instance's task: its budget, ledger, approvals.
func (i *Instance) Task() *Task { return i.t }

// Workflow returns the name and the version of what the instance runs.
func (i *Instance) Workflow() (name, version string) { return i.of.Workflow, i.of.Version }

// String names the instance.
func (i *Instance) String() string { return "workflow " + i.of.Workflow + " as " + i.t.ID() }

// Definition returns what the instance runs by: as this engine has it, or else as the instance's ledger does. With that it can
// be drawn, and nothing be run.
func (i *Instance) Definition(ctx context.Context) (*workflow.Definition, error) {
	of, err := i.runs(ctx)
	if err != nil {
		return nil, fmt.Errorf("definition of %s: %w", i, err)
	}
	d, err := i.t.engine.definitionIn(ctx, i.t.agent.name, i.t.local, &of)
	if err != nil {
		return nil, fmt.Errorf("definition of %s: %w", i, err)
	}
	return d, nil
}

// State returns how far the instance has come. In place of secrets stand digests, see [Instance.Reveal]. Of one that has not begun it is the zero value but for its names.
func (i *Instance) State(ctx context.Context) (workflow.State, error) {
	k, err := i.t.readFlow(ctx)
	if err != nil {
		return workflow.State{}, fmt.Errorf("state of %s: %w", i, err)
	}
	if k.Ver == 0 {
		s, err := i.t.unbegun(ctx)
		if err != nil {
			return workflow.State{}, fmt.Errorf("state of %s: %w", i, err)
		}
		return s, nil
	}
	return k.State, nil
}

// Reveal returns a document of the instance's state, the output of one that completed say, with what the digests in it stand
// for. It is for the program that started the instance: whoever it hands the document to reads secrets. A failure of code
// KEY_UNAVAILABLE says that they cannot be opened here, or not any more.
func (i *Instance) Reveal(ctx context.Context, doc json.RawMessage) (json.RawMessage, error) {
	k, err := i.t.readFlow(ctx)
	if err == nil {
		f := &flowVeil{t: i.t, at: &flowPlaces{}}
		f.meet(k.Sealed)
		doc, err = f.openAll(ctx, doc)
	}
	if err != nil {
		return nil, fmt.Errorf("reveal what %s holds: %w", i, err)
	}
	return doc, nil
}

// Wait waits until the instance has ended, or nothing goes on any more without a person or other rules, in those nested in it
// either: [Instance.Tree] says what is waited for. Somebody must run it: [Engine.Work], here or elsewhere.
func (i *Instance) Wait(ctx context.Context) (workflow.State, error) {
	for {
		t, err := i.Tree(ctx)
		if err != nil || t.Rests() {
			return t.State, err
		}
		if !i.t.engine.pause(ctx, nil) {
			return t.State, cmp.Or(context.Cause(ctx), ErrClosed)
		}
	}
}

// Run drives the instance, and those nested in it, until it has ended or nothing goes on without a person or other rules. It
// is for programs that do not let [Engine.Work] do it; both at a time do no harm.
func (i *Instance) Run(ctx context.Context) (workflow.State, error) {
	e := i.t.engine
	if err := alive(ctx); err != nil {
		return workflow.State{}, err
	}
	if err := e.enter(); err != nil {
		return workflow.State{}, err
	}
	defer e.inside.Done()
	if of, err := i.runs(ctx); err != nil {
		return workflow.State{}, fmt.Errorf("run %s: %w", i, err)
	} else if e.flows.definition(&of) == nil {
		return workflow.State{}, fmt.Errorf("run %s: version %q: %w", i, i.of.Version, ErrNoWorkflow)
	}
	for {
		rests, s, err := e.driveAll(ctx, i.t)
		if err != nil || rests {
			return s, err
		}
		if !e.pause(ctx, e.wake) {
			return s, cmp.Or(context.Cause(ctx), ErrClosed)
		}
	}
}

// Signal answers what a HUMAN step, or another that asks a person, waits for: the answer passes the strict edge and, when the
// instance goes on, the schema of the intake. It is consumed once. It is for those whom the step names, or else the owners of
// the workflow; where there are none, for the task's approvers and the engine's operators.
func (i *Instance) Signal(ctx context.Context, step string, by Identity, answer json.RawMessage) error {
	doc, no := schema.Canonical(answer, 0)
	if no != nil {
		return fmt.Errorf("signal %s: %w", i, no)
	}
	return i.tell(ctx, "signal", by, func(s *workflow.State) (workflow.Event, []string, error) {
		w, err := waitOf(s, step, workflow.WaitIntake)
		return workflow.Event{Kind: workflow.Intake, Of: w.ID, By: by.name, Output: json.RawMessage(doc.Text())}, w.Who, err
	})
}

// Amend gives a step that waits after a denial, or for an operator, another input to be tried with; so it does the call that
// undoes a step and waits. It passes all gates.
func (i *Instance) Amend(ctx context.Context, step string, by Identity, input json.RawMessage) error {
	doc, no := schema.Canonical(input, 0)
	if no != nil {
		return fmt.Errorf("amend %s: %w", i, no)
	}
	return i.tell(ctx, "amend", by, func(s *workflow.State) (workflow.Event, []string, error) {
		w, err := waitOf(s, step, workflow.WaitPolicy, workflow.WaitOperator)
		return workflow.Event{Kind: workflow.Amended, Of: w.ID, By: by.name, Output: json.RawMessage(doc.Text())}, nil, err
	})
}

// Resume ends the wait of a step for an operator: retry tries again with fresh budgets, otherwise the step fails. With step ""
// it ends a pause of the instance.
func (i *Instance) Resume(ctx context.Context, step string, by Identity, retry bool, reason string) error {
	return i.tell(ctx, "resume", by, func(s *workflow.State) (workflow.Event, []string, error) {
		ev := workflow.Event{Kind: workflow.Resumed, By: by.name, OK: retry, Text: action.Cut(reason)}
		if step == "" && s.Held {
			return ev, nil, nil
		}
		w, err := waitOf(s, step, workflow.WaitOperator)
		ev.Of = w.ID
		return ev, nil, err
	})
}

// Pause holds the instance back until it is resumed.
func (i *Instance) Pause(ctx context.Context, by Identity, reason string) error {
	return i.tell(ctx, "pause", by, func(*workflow.State) (workflow.Event, []string, error) {
		return workflow.Event{Kind: workflow.Paused, By: by.name, Text: action.Cut(reason)}, nil, nil
	})
}

// CancelMode says how an instance is cancelled.
type CancelMode struct {
	After bool // what is under way ends first
	Keep  bool // what completed is not undone
}

// Cancel ends the instance: what completed is undone unless it is to be kept. It returns once that is recorded; the undoing is
// work like any other. [Task.Cancel] of its task stops it at once and undoes nothing. Anybody whom the engine knows may
// cancel: to stop is never worse than to go on.
// One that no worker has begun, and whose workflow is not here, is ended with its task.
func (i *Instance) Cancel(ctx context.Context, by Identity, mode CancelMode, reason string) error {
	err := i.tell(ctx, "cancel", by, func(*workflow.State) (workflow.Event, []string, error) {
		return workflow.Event{Kind: workflow.Cancelled, By: by.name, Text: action.Cut(reason), After: mode.After, Keep: mode.Keep}, []string{approval.Anybody}, nil
	})
	if errors.Is(err, notBegun{}) {
		return i.t.CancelBy(ctx, by, reason)
	}
	return err
}

// notBegun is [ErrNoWorkflow] of an instance whose ledger does not hold its workflow yet either.
type notBegun struct{}

func (notBegun) Error() string {
	return "no worker has begun it yet, and its workflow is not here: try again once one has, or where the workflow is"
}

func (notBegun) Unwrap() error { return ErrNoWorkflow }

// ErrNotWaiting is returned where a person's word comes to nothing: the instance, or the step, does not wait for it, or no more.
var ErrNotWaiting = errors.New("nothing waits for that now")

// waitOf finds what a step waits for; with step "" the only such wait.
func waitOf(s *workflow.State, step string, kinds ...workflow.WaitKind) (workflow.Wait, error) {
	var found []workflow.Wait
	for _, w := range s.Waits() {
		if slices.Contains(kinds, w.For) && (step == "" || w.Step == step) {
			found = append(found, w)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return workflow.Wait{}, fmt.Errorf("%d steps wait for that; say which", len(found))
	}
	return workflow.Wait{}, notWaiting{step: step, kinds: kinds}
}

// notWaiting is that an instance, or its step, waits for none of these, though perhaps some nested in it do.
type notWaiting struct {
	step  string
	kinds []workflow.WaitKind
	below []string // instances that do
}

func (n notWaiting) Error() string {
	out := fmt.Sprintf("%v (%s)", ErrNotWaiting, n.kinds[0])
	if n.step != "" {
		out = fmt.Sprintf("step %q: %s", n.step, out)
	}
	if len(n.below) > 0 {
		out += "; nested in it waits " + strings.Join(n.below, ", ") + ": address that"
	}
	return out
}

func (n notWaiting) Unwrap() error { return ErrNotWaiting }

// below looks for who waits instead among the instances nested in this one.
func (i *Instance) below(ctx context.Context, n notWaiting) error {
	tree, err := i.Tree(ctx)
	if err != nil {
		return n
	}
	for _, w := range tree.Waits() {
		if w.ID != tree.ID && slices.Contains(n.kinds, w.For) {
			n.below = append(n.below, fmt.Sprintf("step %q of %s", w.Step, w.ID))
		}
	}
	return n
}

// tell gives the instance a person's word, where they may give it.
func (i *Instance) tell(ctx context.Context, what string, by Identity, event func(*workflow.State) (workflow.Event, []string, error)) error {
	e := i.t.engine
	if err := errors.Join(alive(ctx), e.mine(by)); err != nil {
		return fmt.Errorf("%s %s: %w", what, i, err)
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.inside.Done()
	err := workflow.ErrOther
	for n := 0; n < flowTries && errors.Is(err, workflow.ErrOther); n++ { // it was given another definition meanwhile
		err = i.tellOnce(ctx, by, event)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, i, err)
	}
	e.nudge()
	return nil
}

func (i *Instance) tellOnce(ctx context.Context, by Identity, event func(*workflow.State) (workflow.Event, []string, error)) error {
	t, e := i.t, i.t.engine
	of, err := i.runs(ctx)
	if err != nil {
		return err
	}
	def, err := e.definitionIn(ctx, t.agent.name, t.local, &of)
	if errors.Is(err, ErrNoWorkflow) {
		err = notBegun{}
	}
	if err != nil {
		return err
	}
	veil, err := e.veilOf(ctx, t, def)
	if err != nil {
		return err
	}
	r := &flowRun{e: e, t: t, def: def, veil: veil}
	err = r.tell(ctx, func(v *engine.View, s *workflow.State) (workflow.Event, error) {
		ev, who, err := event(s)
		if err != nil {
			return ev, err
		}
		return ev, i.mayTell(v, who, by)
	})
	var idle notWaiting
	if errors.As(err, &idle) {
		err = i.below(ctx, idle)
	}
	return err
}

// mayTell reports why somebody's word does not count: who names those whose does, nobody is those who operate the task.
func (i *Instance) mayTell(v *engine.View, who []string, by Identity) error {
	if len(who) == 0 {
		return engine.MayOperate(v, i.t.engine.cfg.Operators, i.t.engine.whoIs(by, ""))
	}
	err := approval.MayDecide(approval.Request{Agent: v.Task.Agent}, who, approval.Person{Name: by.name, Roles: by.roles})
	if err != nil && !slices.Contains(who, approval.Anybody) {
		return fmt.Errorf("%w; this is for %s", err, strings.Join(who, ", "))
	}
	return err
}
