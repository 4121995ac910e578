package workflow_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Any workflow whose nested ones are instances of any other: the machines are real, what happens between them is passed on as a driver
// does, in any order. No effect that may not be repeated happens twice, also not by a child in the place of another; what does
// not complete is undone, in the children too, or listed; and the family ends or waits for somebody.
func TestAnyFamily(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { anyFamily(t, t) })
}

// The same families everywhere, beside those that are others each time.
func TestFixedFamilies(t *testing.T) {
	came := map[workflow.Status]int{}
	nested, undone := 0, 0
	for seed := range 60 {
		rapid.Custom(func(drawn *rapid.T) bool {
			f := anyFamily(drawn, t)
			came[f.root.state.Status]++
			nested += len(f.root.kids)
			undone += f.undone
			return true
		}).Example(seed)
	}
	for _, s := range []workflow.Status{workflow.Completed, workflow.Failed, workflow.Stopped, workflow.Running} {
		require.Positive(t, came[s], "%s: %v", s, came)
	}
	require.Greater(t, nested, 40)
	require.Positive(t, undone, "of children that had completed")
}

// kin is one instance of a family.
type kin struct {
	def   *workflow.Definition
	state workflow.State
	above *kin
	kids  []*kin // in the order in which they were started
	step  string // of the instance above
}

// deed is an effect that stands.
type deed struct {
	of         *kin
	step, call string
	repeatable bool
}

type family struct {
	t      *rapid.T
	judge  require.TestingT
	root   *kin
	child  *workflow.Definition
	stands []deed
	kept   bool // somebody cancelled and kept what was done
	undone int  // effects of children that were undone
	now    int64
	serial int
}

func anyFamily(t *rapid.T, judge require.TestingT) *family {
	f := &family{t: t, judge: judge, now: epoch, child: drawOf(t, "child", "HUMAN", "REASONING", "EXECUTION", "EXECUTION", "EXECUTION")}
	f.root = f.begin(nil, "", drawOf(t, "w", "SUB_SOP", "SUB_SOP", "EXECUTION", "HUMAN"), workflow.Begin{Instance: "w"})
	for range rapid.IntRange(0, 120).Draw(t, "events") {
		f.happen(true)
	}
	f.feed(f.root, workflow.Event{Kind: workflow.Resumed})
	for range 4000 {
		if !f.happen(false) {
			f.ended()
			return f
		}
	}
	require.Fail(judge, "it goes on for ever", standing(f.root.state))
	return f
}

func (f *family) begin(above *kin, step string, def *workflow.Definition, b workflow.Begin) *kin {
	b.At = f.now
	turn, err := def.Start(b)
	require.NoError(f.judge, err)
	return &kin{def: def, state: turn.State, above: above, step: step}
}

// all are the instances, each after the one above it.
func (f *family) all() []*kin { return append([]*kin{f.root}, f.root.kids...) }

// happen has something happen that somebody waits for; false where nothing does. Freely, that may be anything; else people do nothing
// and nobody cancels.
func (f *family) happen(freely bool) bool {
	type choice struct {
		k    *kin
		c    *workflow.Command
		wait *workflow.Wait
	}
	var open []choice
	for _, k := range f.all() {
		for i := range k.state.Outstanding {
			c := &k.state.Outstanding[i]
			person := c.Kind == workflow.Ask || c.Kind == workflow.Timer && c.Subject != workflow.SubjectBackoff
			if c.Held || person && !freely || !f.moves(k, c) {
				continue
			}
			open = append(open, choice{k, c, nil})
		}
		for _, w := range k.state.Waits() {
			if freely && w.For != workflow.WaitIntake {
				open = append(open, choice{k, nil, &w})
			}
		}
	}
	if freely && rapid.IntRange(0, 24).Draw(f.t, "control") == 0 {
		e := workflow.Event{Kind: rapid.SampledFrom([]workflow.EventKind{workflow.Paused, workflow.Resumed, workflow.Cancelled}).Draw(f.t, "what"), By: "ana"}
		e.After, e.Keep = rapid.Bool().Draw(f.t, "after"), rapid.IntRange(0, 3).Draw(f.t, "keep") == 0
		f.kept = f.kept || e.Kind == workflow.Cancelled && e.Keep
		f.feed(f.root, e)
		return true
	}
	if len(open) == 0 {
		return false
	}
	x := open[rapid.IntRange(0, len(open)-1).Draw(f.t, "which")]
	if x.wait != nil {
		f.release(x.k, *x.wait)
	} else {
		f.perform(x.k, *x.c)
	}
	return true
}

// moves reports whether performing a command leads anywhere: a child that goes on, or a question that was passed on, does not by itself.
func (f *family) moves(k *kin, c *workflow.Command) bool {
	kid := k.kid(c.Child)
	switch c.Kind {
	case workflow.Spawn:
		return kid == nil || kid.state.Status.Terminal()
	case workflow.CancelChild:
		return kid == nil || kid.state.Status.Terminal() || kid.state.Status == workflow.Running && (kid.state.Stop == nil || kid.state.Stop.Gentle)
	case workflow.Unwind:
		return kid == nil || kid.state.Status.Terminal()
	case workflow.Escalate:
		spawn := slices.IndexFunc(k.above.state.Outstanding, func(o workflow.Command) bool { return o.Kind == workflow.Spawn && o.Child == k.state.Instance })
		return spawn >= 0 && !k.above.asked(c.ID)
	}
	return true
}

// asked reports whether a question of a child was taken up.
func (k *kin) asked(id string) bool {
	return slices.ContainsFunc(k.state.Steps, func(st workflow.StepState) bool { return slices.Contains(st.Asked, id) })
}

func (k *kin) kid(name string) *kin {
	i := slices.IndexFunc(k.kids, func(o *kin) bool { return o.state.Instance == name })
	if name == "" || i < 0 {
		return nil
	}
	return k.kids[i]
}

// feed hands in an event.
func (f *family) feed(k *kin, e workflow.Event) {
	e.At = f.now
	turn, err := k.def.Step(k.state, e)
	require.NoError(f.judge, err)
	k.state = turn.State
}

// yes says whether something goes well, mostly.
func (f *family) yes(label string) bool { return rapid.IntRange(0, 3).Draw(f.t, label) > 0 }

func (f *family) document() json.RawMessage {
	f.serial++
	return json.RawMessage(fmt.Sprintf(`{"n":%d}`, f.serial))
}

// perform does what a driver does.
func (f *family) perform(k *kin, c workflow.Command) {
	kid := k.kid(c.Child)
	e := workflow.Event{Kind: kinds[c.Kind], Of: c.ID, OK: true, By: "ana"}
	switch c.Kind {
	case workflow.Plan, workflow.Ask:
		e.Output = f.document()
	case workflow.Verify, workflow.Evaluate:
		if e.OK = f.yes("holds"); !e.OK {
			e.Text = "no"
		}
	case workflow.Timer:
		f.now = max(f.now, c.At)
	case workflow.Call:
		e.Outcome, e.Effect = f.call(k, c)
	case workflow.Compensate:
		e.Outcome = f.undo(k, c)
	case workflow.Interrupt:
		e.Outcome = &action.Outcome{Code: action.Cancelled}
	case workflow.Spawn:
		if kid == nil {
			f.spawn(k, c)
			return
		}
		e = told(c, &kid.state)
	case workflow.CancelChild:
		if kid == nil {
			e.OK, e.Failure = false, action.Fail(action.Cancelled, "it never began")
		} else if !kid.state.Status.Terminal() {
			f.kept = f.kept || c.Keep
			f.feed(kid, workflow.Event{Kind: workflow.Cancelled, Keep: c.Keep})
			return
		} else {
			e = told(c, &kid.state)
		}
	case workflow.Unwind:
		if kid.state.Status == workflow.Completed && len(kid.state.Deeds) > 0 {
			f.feed(kid, workflow.Event{Kind: workflow.Unwound})
			return
		}
		e = told(c, &kid.state)
	case workflow.Escalate:
		of := slices.IndexFunc(k.above.state.Outstanding, func(o workflow.Command) bool { return o.Kind == workflow.Spawn && o.Child == k.state.Instance })
		f.feed(k.above, workflow.Event{Kind: workflow.ChildAsked, Of: k.above.state.Outstanding[of].ID, Ask: c.ID, Text: c.Prompt})
		return
	case workflow.Advise:
		if kid != nil {
			f.feed(kid, workflow.Event{Kind: workflow.Advised, Of: c.Ask, OK: c.OK, Output: c.Input})
		}
	case workflow.Hold:
		if kid != nil {
			kind := map[bool]workflow.EventKind{true: workflow.Paused, false: workflow.Resumed}[k.state.Held]
			f.feed(kid, workflow.Event{Kind: kind, Tree: true})
		}
	}
	f.feed(k, e)
}

// told is what a parent is told of a child that has ended.
func told(c workflow.Command, s *workflow.State) workflow.Event {
	e := workflow.Event{Kind: workflow.ChildEnded, Of: c.ID, OK: s.Status == workflow.Completed, Output: s.Output, Failure: s.Failure, Tree: s.Tree}
	if c.Kind == workflow.Unwind {
		return workflow.Event{Kind: workflow.ChildUnwound, Of: c.ID, OK: true, Left: s.Standing()}
	}
	if !e.OK {
		e.Left = s.Standing()
		if e.Failure == nil {
			e.Failure = action.Fail(action.Cancelled, "it was cancelled")
		}
	}
	return e
}

// spawn starts a child, where nothing stands of one before it that may not be repeated.
func (f *family) spawn(k *kin, c workflow.Command) {
	for _, d := range f.stands {
		require.False(f.judge, d.of.above == k && d.of.step == c.Step && !d.repeatable, "%s repeats what %s of %s left", c.ID, d.call, d.of.state.Instance)
	}
	k.kids = append(k.kids, f.begin(k, c.Step, f.child, workflow.Begin{Instance: c.Child, Parent: k.state.Instance, Held: k.state.Held}))
}

// call makes a call: it has an effect, fails, or waits for somebody.
func (f *family) call(k *kin, c workflow.Command) (*action.Outcome, action.Effect) {
	f.serial++
	effect := action.Effect(rapid.IntRange(0, 3).Draw(f.t, "effect"))
	code := rapid.SampledFrom([]action.Code{action.OK, action.OK, action.OK, action.Failed, action.NotStarted, action.ApprovalRequired, action.Denied, action.StartedUnknown}).Draw(f.t, "code")
	if code == action.OK {
		f.happened(k, c.Step, c.Call, effect)
	}
	return &action.Outcome{Code: code, Intent: fmt.Sprint("i", f.serial), Output: f.document()}, effect
}

func (f *family) happened(k *kin, step, call string, effect action.Effect) {
	for _, d := range f.stands {
		require.False(f.judge, d.of == k && d.step == step && !d.repeatable, "%s happens while %s stands", call, d.call)
	}
	if effect != action.None {
		f.stands = append(f.stands, deed{k, step, call, effect.Repeatable()})
	}
}

// undo undoes a call of this very instance, the last that stands.
func (f *family) undo(k *kin, c workflow.Command) *action.Outcome {
	at := slices.IndexFunc(f.stands, func(d deed) bool { return d.of == k && d.call == c.Undoes })
	require.GreaterOrEqual(f.judge, at, 0, "%s undoes what does not stand", c.ID)
	if !f.yes("is undone") {
		return &action.Outcome{Code: action.Failed}
	}
	if k.above != nil {
		f.undone++
	}
	f.stands = slices.Delete(f.stands, at, at+1)
	return &action.Outcome{Code: action.OK}
}

// release ends a wait, as somebody does.
func (f *family) release(k *kin, w workflow.Wait) {
	e := workflow.Event{Of: w.ID, OK: f.yes("agrees"), By: "ana"}
	switch w.For {
	case workflow.WaitApproval:
		if e.Kind = workflow.Approval; !e.OK {
			e.Text = workflow.Rejected
		}
	case workflow.WaitPolicy:
		f.serial++
		e.Kind, e.Text = workflow.PolicyChanged, fmt.Sprint(f.serial)
	case workflow.WaitResolution:
		e.Kind = workflow.Resolved
		if i := slices.IndexFunc(k.state.Steps, func(st workflow.StepState) bool { return st.Wait != nil && st.Wait.ID == w.ID }); i >= 0 && e.OK {
			e.Output = f.document()
			f.happened(k, k.state.Steps[i].Name, k.state.Steps[i].Call, k.state.Steps[i].Effect)
		} else if i < 0 {
			e.OK = false
		}
	case workflow.WaitOperator:
		e.Kind = workflow.Resumed
	}
	f.feed(k, e)
}

// ended holds a family in which nothing goes on against what was done.
func (f *family) ended() {
	root := &f.root.state
	if !root.Status.Terminal() {
		for _, k := range f.all() {
			if len(k.state.Waits()) > 0 || k.state.Held {
				return
			}
		}
		require.Fail(f.judge, "nothing goes on, and nobody is waited for", standing(*root))
	}
	for _, k := range f.root.kids {
		require.True(f.judge, k.state.Status.Terminal(), "%s goes on after its parent", k.state.Instance)
	}
	if root.Status == workflow.Completed || f.kept {
		return
	}
	for _, d := range f.stands {
		named := slices.ContainsFunc(root.Left, func(x workflow.Deed) bool { return x.Call == d.call || x.Step == d.of.step || x.Step == d.step })
		require.True(f.judge, named, "%s of %s stands, and is not listed: %v", d.call, d.of.state.Instance, root.Left)
	}
}
