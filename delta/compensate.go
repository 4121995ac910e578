package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// Undo says how the action is undone: by a call of another one, whose input is made of the input and the output of the call
// to undo. It needs the effect Compensatable, and agents that hold the action must hold that one too. Nothing is undone by
// itself: see [Task.Compensate]. A person who is asked whether the action may run is told.
func (b Builder[In, Out]) Undo(by Definition, input func(In, Out) any) Builder[In, Out] {
	if isNil(by) || input == nil {
		b.d.fault("undo: say which action, and how its input is made")
		return b
	}
	b = b.UndoneBy(by.Name())
	b.d.undo = func(in action.Input, out json.RawMessage) (json.RawMessage, error) {
		var i In
		var o Out
		if err := decodeInput(in, &i); err != nil {
			return nil, err
		}
		if err := decodeOutput(out, &o); err != nil {
			return nil, err
		}
		return json.Marshal(input(i, o))
	}
	return b
}

// Undone is one call that undid another, or was to.
type Undone struct {
	Intent string // of the call that was to be undone
	Action string
	By     string         // the action that undoes it
	Call   action.Outcome // how that ended
}

// Left is a completed call that nothing undoes.
type Left struct {
	Intent, Action, Why string
}

// Compensation is how far a task was undone.
type Compensation struct {
	Undone  []Undone // in the order in which it was done: the last that completed first
	Left    []Left   // what completed and declares no way to undo it
	Stopped *Undone  // the call at which it stopped, nil where it did not
}

// Compensate undoes what completed in the task, in strict reverse of completion, one by one: by calls of the actions that
// Undo names, through all gates, each recorded with the intent that it undoes in its provenance. What reads only is passed
// over, and so is what declares no way to undo it: that is listed. It stops at the first call that is not OK. Where that
// failed, was refused, or its outcome is not known, the task is brought before a person ([action.ConcernFailure]); where it
// waits for an approval, that is all it does. Called again it goes on where it stopped: what was undone stays so, and what
// failed is tried again. A call of unknown outcome stands in the way until it is resolved.
//
// The task must still run: compensate before it is ended. The error says that nothing could be decided, or that the ledger
// cannot be trusted.
func (t *Task) Compensate(ctx context.Context, reason string) (Compensation, error) {
	var c Compensation
	seen := map[string]bool{}
	for {
		next, err := t.lastToUndo(ctx, seen, &c)
		if err != nil || next == nil {
			return c, err
		}
		u := Undone{Intent: next.begun.Intent, Action: next.begun.Action}
		if next.code != action.OK {
			u.Call = stuck(next)
		} else if u, err = t.undo(ctx, next, reason); err != nil {
			return c, err
		}
		if u.Call.OK() {
			c.Undone = append(c.Undone, u)
			continue
		}
		c.Stopped = &u
		return c, t.notUndone(ctx, &u)
	}
}

// stuck is what stands in the way of undoing a call of unknown outcome.
func stuck(d *deed) action.Outcome {
	f := action.Fail(action.NotLegal, "it is not known whether this call took effect; a person must resolve it before it can be undone")
	return action.Outcome{Action: d.begun.Action, Code: f.Code, Failure: f.With(action.DetailIntent, d.begun.Intent)}
}

// notUndone brings a failing compensation before a person.
func (t *Task) notUndone(ctx context.Context, u *Undone) error {
	switch u.Call.Code {
	case action.ApprovalRequired, action.TaskPaused, action.InFlight, action.Stale, action.StoreUnavailable, action.RateLimited:
		return nil // later, perhaps
	case action.Cancelled, action.TaskClosed:
		return nil // there is no task any more to bring before anybody
	}
	_, err := t.Escalate(ctx, action.ConcernFailure, fmt.Sprintf("call %s of %q could not be undone: %s", u.Intent, u.Action, u.Call.Code))
	if f := action.FailureOf(err); f != nil && f.Code == action.TaskPaused {
		return nil // it is before a person already
	}
	return err
}

// deed is a call that completed, or may have.
type deed struct {
	begun  ledger.Event
	code   action.Code  // OK, or STARTED_UNKNOWN
	output ledger.Event // its end
	said   bool         // by a person, not by the function
	undone bool
	tries  int // to undo it, which ran and failed
}

const undoID = "delta.undo/"

// notReserved refuses a call id that would pass for the undoing of another call.
func notReserved(id string) *action.Failure {
	if strings.HasPrefix(id, undoID) {
		return action.Fail(action.InputMalformed, "call ids that begin with %q are reserved", undoID)
	}
	return nil
}

// lastToUndo returns the call that completed last of those that are not undone, nil where none is left. What nothing undoes
// it lists once.
func (t *Task) lastToUndo(ctx context.Context, seen map[string]bool, c *Compensation) (*deed, error) {
	order, err := t.deeds(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range slices.Backward(order) {
		def := t.agent.defs[d.begun.Action]
		why := ""
		switch {
		case d.undone || def != nil && def.effect == action.None:
			continue
		case d.code != action.OK:
			return d, nil
		case def == nil || def.version != d.begun.Version:
			why = "the agent does not hold this version of the action any more"
		case def.undo == nil:
			why = "the action does not declare how to undo it"
		case d.said && !t.fits(ctx, def, d):
			why = "its output is not known: a person said that it succeeded, and not with an output that the action may have"
		default:
			return d, nil
		}
		if !seen[d.begun.Intent] {
			seen[d.begun.Intent] = true
			c.Left = append(c.Left, Left{d.begun.Intent, d.begun.Action, why})
		}
	}
	return nil, nil
}

// fits reports whether the output that a person vouched for can be that of the action. Nobody checked it where the action was
// not at hand, and null is what is written where none was given.
func (t *Task) fits(ctx context.Context, def *declaration, d *deed) bool {
	output, err := t.outputOf(ctx, &d.output)
	if err != nil {
		return true // making the input says that it cannot be opened
	}
	if def.out == nil {
		return string(output) != "null"
	}
	_, f := def.out.CheckOutput(output)
	return f == nil
}

// deeds reads what completed from the ledger, in the order of completion.
func (t *Task) deeds(ctx context.Context) (order []*deed, err error) {
	records, _, err := t.Ledger(ctx)
	if err != nil {
		return nil, fmt.Errorf("compensate %s: %w", t, err)
	}
	all, undoes := map[string]*deed{}, map[string]*deed{}
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		if err != nil {
			return nil, fmt.Errorf("compensate %s: record %d: %w", t, r.Seq, err)
		}
		switch e.Type {
		case ledger.Begun:
			if e.Action == engine.PlanAction {
				continue
			}
			if target, ok := strings.CutPrefix(e.Call, undoID); ok {
				target, _, _ = strings.Cut(target, "/")
				undoes[e.Intent] = all[target]
				continue
			}
			all[e.Intent] = &deed{begun: e}
		case ledger.Settled, ledger.Resolved:
			if d := undoes[e.Intent]; d != nil {
				d.undone = e.Code == action.OK
				if e.Code != action.OK && e.Code.Info().Executed != action.No {
					d.tries++
				}
				continue
			}
			d := all[e.Intent]
			if d == nil {
				continue
			}
			order = slices.DeleteFunc(order, func(o *deed) bool { return o == d })
			if d.code = e.Code; d.code == action.OK || d.code == action.StartedUnknown {
				d.output, d.said = e, e.Type == ledger.Resolved
				order = append(order, d)
			}
		}
	}
	return order, nil
}

// undo makes the call that undoes another.
func (t *Task) undo(ctx context.Context, d *deed, reason string) (Undone, error) {
	u := Undone{Intent: d.begun.Intent, Action: d.begun.Action, By: t.agent.defs[d.begun.Action].undoneBy}
	raw, f, err := t.undoInput(ctx, d)
	if err != nil {
		return u, err
	}
	if f != nil {
		u.Call = action.Outcome{Action: u.By, Code: f.Code, Failure: f}
		return u, nil
	}
	id := undoID + d.begun.Intent
	if d.tries > 0 {
		id += "/" + strconv.Itoa(d.tries+1)
	}
	out, err := t.Do(ctx, Call{ID: id, own: true, Action: u.By, Input: raw, Provenance: action.Provenance{
		Goal: d.begun.Provenance.Goal, Decision: "compensate", PlanStep: "undo " + d.begun.Intent, Reason: reason,
	}}).Get()
	u.Call = out
	return u, err
}

// undoInput makes the input of the call that undoes another, as its action declares.
func (t *Task) undoInput(ctx context.Context, d *deed) (json.RawMessage, *action.Failure, error) {
	def := t.agent.defs[d.begun.Action]
	input, err := t.inputOf(ctx, &d.begun)
	output := d.output.Output
	if err == nil {
		output, err = t.outputOf(ctx, &d.output)
	}
	if err != nil {
		return nil, keyUnavailable(err), nil
	}
	in, f := def.in.Check(input)
	if f != nil {
		return nil, nil, fmt.Errorf("undo call %s of %q: its recorded input is none any more: %w", d.begun.Intent, d.begun.Action, f)
	}
	raw, err := contain(ctx, &t.engine.inputs, asideLimit, 0, func(context.Context) (json.RawMessage, error) {
		return def.undo(action.Input{Document: in.Detached()}, slices.Clone(output))
	})
	switch {
	case alive(ctx) != nil:
		return nil, nil, context.Cause(ctx)
	case err != nil:
		return nil, because(action.Fail(action.InputMalformed, "the input of the call that undoes it cannot be made"), err), nil
	}
	return raw, nil, nil
}

// checkUndo checks that what undoes an action is there.
func (a *Agent) checkUndo(order []string) (faults []error) {
	for _, name := range order {
		d := a.defs[name]
		if d.undo != nil && a.defs[d.undoneBy] == nil {
			faults = append(faults, fmt.Errorf("action %q is undone by %q, which the agent does not hold: grant it", name, d.undoneBy))
		}
	}
	return faults
}

// Warnings are what is sound and still should be looked at: an irreversible action that asks nobody.
func (a *Action[In, Out]) Warnings() []string {
	if a.definition() == nil {
		return nil
	}
	return a.d.warnings()
}

// Warnings are those of the agent's actions, in the order of their declaration. An engine logs them when it first meets the
// agent.
func (a *Agent) Warnings() (out []string) {
	for _, name := range a.Actions() {
		out = append(out, a.defs[name].warnings()...)
	}
	return out
}

func (d *declaration) warnings() (out []string) {
	if d.effect == action.Irreversible && !d.approve {
		out = append(out, fmt.Sprintf("action %q is irreversible and asks nobody before it runs: declare its Effect, or RequireApproval", d.name))
	}
	return out
}

// errNotUndone is the error of a compensation that did not come to its end.
var errNotUndone = errors.New("not everything was undone")

// Err is nil where everything that can be undone was; else it says at which call it stopped.
func (c Compensation) Err() error {
	if c.Stopped == nil {
		return nil
	}
	return fmt.Errorf("%w: call %s of %q: %w", errNotUndone, c.Stopped.Intent, c.Stopped.Action, c.Stopped.Call.Err())
}
