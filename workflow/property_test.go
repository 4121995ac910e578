package workflow_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Any workflow, any events in any order: what was asked and answered twice, too late, by nobody, or wrongly is among them.
// The reference keeps, in the plainest way, what was commanded, what was answered, and which effects stand.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { anyOrder(t, t, map[string]bool{}) })
}

// anyOrder plays one instance that is drawn, judges it for a test, and notes what it came by.
func anyOrder(t *rapid.T, judge require.TestingT, seen map[string]bool) {
	def := drawDefinition(t)
	r := start(t, judge, def, seen)
	for range rapid.IntRange(0, 60).Draw(t, "events") {
		r.feed(r.draw(t))
	}
	r.replays(rapid.IntRange(0, len(r.events)).Draw(t, "prefix"))
	r.finish(t)
}

func drawDefinition(t *rapid.T) *workflow.Definition {
	return drawOf(t, "w", "HUMAN", "REASONING", "EXECUTION", "EXECUTION", "SUB_SOP")
}

// drawOf draws a workflow with steps of some types.
func drawOf(t *rapid.T, name string, types ...string) *workflow.Definition {
	s := workflow.Spec{Name: name, Version: "1", Owners: []string{"ana"}}
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	maybe := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, label) == 0 }
	if maybe("limit") {
		s.Limits.Cost = action.Limit{Tokens: action.Max(int64(rapid.IntRange(1, 40).Draw(t, "tokens")))}
	}
	n := 0
	for k := range rapid.IntRange(1, 3).Draw(t, "phases") {
		p := workflow.Phase{Name: fmt.Sprintf("p%d", k), Ordered: maybe("ordered")}
		p.Supervision = workflow.Supervision{
			Strategy: workflow.Strategy(pick("strategy", "", "retry", "restart", "resume", "escalate", "abort-subtree", "abort-tree")),
			Then:     workflow.Strategy(pick("then", "", "resume", "escalate", "abort-tree")),
			Max:      rapid.IntRange(0, 2).Draw(t, "max"),
		}
		if maybe("phase guard") {
			p.Guard = &workflow.Guard{Name: "g"}
		}
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			st := workflow.Step{Name: fmt.Sprintf("s%d", n), Type: workflow.Type(pick("type", types...))}
			for i := range n {
				if maybe("need") {
					st.Needs = append(st.Needs, workflow.Need{Step: fmt.Sprintf("s%d", i), When: workflow.When(pick("when", "ok", "ok", "err", "end"))})
				}
			}
			drawStep(t, &st, pick, maybe)
			p.Steps = append(p.Steps, st)
			n++
		}
		s.Phases = append(s.Phases, p)
	}
	def, err := workflow.Compile(s)
	if err != nil { // a step that needs what excludes itself
		t.Skip(err)
	}
	return def
}

func drawStep(t *rapid.T, st *workflow.Step, pick func(string, ...string) string, maybe func(string) bool) {
	schema := json.RawMessage("{}")
	if maybe("guard") {
		st.Guard = &workflow.Guard{Name: "g"}
	}
	if maybe("time") {
		st.Limits.Time = time.Hour
	}
	st.Limits.Iterations, st.Limits.Attempts = rapid.IntRange(0, 3).Draw(t, "iterations"), rapid.IntRange(0, 3).Draw(t, "attempts")
	if st.Type == workflow.Human || maybe("hitl") {
		st.Hitl = &workflow.Hitl{Intake: schema, Reprompts: rapid.IntRange(-1, 2).Draw(t, "reprompts"), First: maybe("first")}
		if maybe("within") {
			st.Hitl.Within = time.Minute
		}
	}
	if maybe("ladder") {
		for range rapid.IntRange(1, 3).Draw(t, "rungs") {
			g := workflow.Rung{Kind: workflow.RungKind(pick("rung", "retry", "planner", "people", "parent")), Attempts: rapid.IntRange(0, 2).Draw(t, "tries")}
			if g.Kind == workflow.RungPlanner {
				g.Planner = "other"
			}
			st.Ladder = append(st.Ladder, g)
		}
		if maybe("park") {
			st.Ladder = append(st.Ladder, workflow.Rung{Kind: workflow.RungPark})
		}
	}
	switch st.Type {
	case workflow.Reasoning:
		st.Planner, st.Output = "p", schema
	case workflow.Execution:
		st.Action = "act"
		if maybe("undo") {
			st.Undo = &workflow.Undo{Action: "undo"}
		}
	case workflow.SubSOP:
		st.Workflow = "child"
		if maybe("breaker") {
			st.Breaker = &workflow.Breaker{Failures: 2, Window: time.Hour, Cooldown: time.Minute}
		}
	}
	if st.Type == workflow.Execution || st.Type == workflow.SubSOP {
		if maybe("input") {
			st.Input = schema
		}
		if maybe("output") {
			st.Output = schema
		}
		if maybe("planner") {
			st.Planner = "p"
		}
	}
}

// standing effect of the reference.
type effect struct {
	step, id   string
	repeatable bool
	maybe      string // of one that may have happened: its input
}

type reference struct {
	t        require.TestingT
	def      *workflow.Definition
	begin    workflow.Begin
	state    workflow.State
	writer   workflow.Writer
	events   []workflow.Event
	now      int64
	issued   map[string]workflow.Command
	answered map[string]bool
	effects  []effect
	done     map[string]int  // effects that may not be repeated, by step and run
	passed   map[string]bool // documents that a verdict let pass, by step and subject
	used     map[string]bool // intakes that an artifact was made of
	inputs   map[string]string
	stuck    map[string]bool // steps of which something stands that may not be repeated, and that was given up
	unknown  map[string]bool // steps whose call has an unknown outcome
	serial   int
	seen     map[string]bool // what was come by
}

func start(t *rapid.T, judge require.TestingT, def *workflow.Definition, seen map[string]bool) *reference {
	r := &reference{t: judge, def: def, now: epoch, seen: seen, issued: map[string]workflow.Command{}, answered: map[string]bool{}, done: map[string]int{},
		passed: map[string]bool{}, used: map[string]bool{}, unknown: map[string]bool{}, inputs: map[string]string{}, stuck: map[string]bool{}}
	r.begin = workflow.Begin{Instance: "w", At: epoch}
	if rapid.Bool().Draw(t, "child") {
		r.begin.Parent = "p"
	}
	turn, err := def.Start(r.begin)
	require.NoError(r.t, err)
	r.take(workflow.State{}, workflow.Event{}, turn)
	return r
}

// draw makes an event that may be anything.
func (r *reference) draw(t *rapid.T) workflow.Event {
	r.now += int64(rapid.IntRange(0, 3).Draw(t, "seconds")) * 1_000_000
	switch rapid.IntRange(0, 9).Draw(t, "how") {
	case 0:
		if len(r.events) > 0 { // again
			return rapid.SampledFrom(r.events).Draw(t, "again")
		}
	case 1: // out of the blue
		ids := []string{"", "w/s0/call.1"}
		for id := range r.issued {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		e := r.filled(t, workflow.EventKind(rapid.SampledFrom([]string{
			"planned", "verified", "guarded", "called", "child_ended", "child_unwound", "fired", "performed", "intake", "advised", "approval",
			"policy_changed", "amended", "resolved", "resumed", "child_asked", "unwound", "nothing",
		}).Draw(t, "kind")))
		e.Of = rapid.SampledFrom(ids).Draw(t, "of")
		return e
	case 2:
		e := workflow.Event{Kind: workflow.EventKind(rapid.SampledFrom([]string{"paused", "resumed", "resumed", "cancelled"}).Draw(t, "control")), At: r.now}
		if e.Kind == workflow.Cancelled && rapid.IntRange(0, 3).Draw(t, "rather not") > 0 {
			e.Kind = workflow.Resumed
		}
		e.After, e.Keep, e.Tree = rapid.Bool().Draw(t, "after"), rapid.Bool().Draw(t, "keep"), rapid.Bool().Draw(t, "above")
		return e
	}
	return r.answer(t)
}

var kinds = map[workflow.CommandKind]workflow.EventKind{
	workflow.Plan: workflow.Planned, workflow.Verify: workflow.Verified, workflow.Evaluate: workflow.Guarded, workflow.Call: workflow.Called,
	workflow.Spawn: workflow.ChildEnded, workflow.Ask: workflow.Intake, workflow.Escalate: workflow.Advised, workflow.Timer: workflow.Fired,
	workflow.Compensate: workflow.Called, workflow.Unwind: workflow.ChildUnwound, workflow.Interrupt: workflow.Called,
	workflow.CancelChild: workflow.ChildEnded, workflow.Advise: workflow.Performed, workflow.Withdraw: workflow.Performed, workflow.Hold: workflow.Performed,
}

// answer makes an event for something that is waited for.
func (r *reference) answer(t *rapid.T) workflow.Event {
	waits := slices.DeleteFunc(r.state.Waits(), func(w workflow.Wait) bool { return w.For == workflow.WaitIntake })
	n := len(r.state.Outstanding) + len(waits)
	if n == 0 {
		return workflow.Event{Kind: workflow.Unwound, At: r.now}
	}
	k := rapid.IntRange(0, n-1).Draw(t, "which")
	if k < len(r.state.Outstanding) {
		c := r.state.Outstanding[k]
		e := r.filled(t, kinds[c.Kind])
		e.Of = c.ID
		if c.Kind == workflow.Timer {
			e.At = max(e.At, c.At)
			r.now = e.At
		}
		if c.Kind == workflow.Spawn && rapid.IntRange(0, 5).Draw(t, "asks") == 0 {
			e = workflow.Event{Kind: workflow.ChildAsked, Of: c.ID, At: r.now, Ask: rapid.SampledFrom([]string{"q1", "q2"}).Draw(t, "ask"), Text: "?"}
		}
		return e
	}
	w := waits[k-len(r.state.Outstanding)]
	ends := map[workflow.WaitKind][]string{
		workflow.WaitApproval: {"approval"}, workflow.WaitPolicy: {"policy_changed", "amended"}, workflow.WaitResolution: {"resolved"},
		workflow.WaitOperator: {"resumed", "amended"},
	}
	e := r.filled(t, workflow.EventKind(rapid.SampledFrom(ends[w.For]).Draw(t, "end")))
	e.Of = w.ID
	return e
}

// codes are how calls end; those that are no end yet, or of which nobody knows what they left, as often as all others together.
var codes = func() (out []action.Code) {
	often := []action.Code{action.ApprovalRequired, action.Denied, action.StartedUnknown, action.Timeout, action.InFlight, action.Interrupted}
	for i, x := range action.Infos() {
		out = append(out, x.Code, often[i%len(often)])
	}
	return out
}()

// filled makes an event of a kind with everything that it may have.
func (r *reference) filled(t *rapid.T, kind workflow.EventKind) workflow.Event {
	r.serial++
	e := workflow.Event{Kind: kind, At: r.now, OK: rapid.IntRange(0, 2).Draw(t, "ok") > 0, By: "ana"}
	e.Output = json.RawMessage(fmt.Sprintf(`{"n":%d}`, r.serial))
	e.Text = rapid.SampledFrom([]string{"no", "rejected", "expired", fmt.Sprint(r.serial)}).Draw(t, "text")
	e.Cost = action.Cost{Tokens: int64(rapid.IntRange(0, 5).Draw(t, "tokens"))}
	e.Effect = action.Effect(rapid.IntRange(0, 3).Draw(t, "effect"))
	e.Tree = rapid.IntRange(0, 9).Draw(t, "tree") == 0
	if (kind == workflow.ChildEnded || kind == workflow.ChildUnwound) && rapid.IntRange(0, 3).Draw(t, "leaves") == 0 {
		e.Left = []workflow.Deed{{Step: "x", Effect: action.Effect(rapid.IntRange(0, 3).Draw(t, "left"))}}
	}
	code := action.OK
	if rapid.Bool().Draw(t, "fails") {
		code = rapid.SampledFrom(codes).Draw(t, "code")
	}
	e.Outcome = &action.Outcome{Code: code, Intent: fmt.Sprintf("i%d", r.serial), Output: e.Output, Cost: e.Cost}
	if kind != workflow.Verified && code != action.OK && rapid.Bool().Draw(t, "failure") {
		e.Failure = action.Fail(code, "no")
	}
	if rapid.IntRange(0, 30).Draw(t, "malformed") == 0 {
		e.Outcome, e.Output = nil, json.RawMessage("{")
		if _, err := json.Marshal(e); err != nil { // such an event is never written
			e.Output = nil
		}
	}
	return e
}

// feed hands in an event and holds the turn against the reference.
func (r *reference) feed(e workflow.Event) {
	before, look := "", len(r.events)%5 == 0 // at some of them: it is what this test spends most of its time on
	if look {
		before = encode(r.t, r.state)
	}
	turn, err := r.def.Step(r.state, e)
	require.NoError(r.t, err)
	if look {
		require.Equal(r.t, before, encode(r.t, r.state), "a turn changed the state it was given")
	}
	r.events = append(r.events, e)
	if turn.Absorbed != "" {
		r.seen["absorbed: "+string(turn.Absorbed)] = true
		if look {
			require.Equal(r.t, before, encode(r.t, turn.State))
		}
		require.Empty(r.t, turn.Commands)
		return
	}
	r.take(r.state, e, turn)
	if look {
		text, err := r.writer.Write(&r.state)
		require.NoError(r.t, err)
		require.Equal(r.t, encode(r.t, r.state), text)
	}
	again, err := r.def.Step(r.state, e)
	require.NoError(r.t, err)
	require.NotEmpty(r.t, again.Absorbed, "%s of %s twice", e.Kind, e.Of)
}

func (r *reference) take(was workflow.State, e workflow.Event, turn workflow.Turn) {
	run := func(s workflow.State, step string) string {
		i := slices.IndexFunc(s.Steps, func(st workflow.StepState) bool { return st.Name == step })
		return fmt.Sprintf("%s/%d", step, s.Steps[i].Run)
	}
	c, isCommand := r.issued[e.Of]
	if isCommand && e.Kind == kinds[c.Kind] {
		require.False(r.t, r.answered[e.Of], "%s was answered twice", e.Of)
		r.answered[e.Of] = true
		for _, o := range was.Outstanding {
			if o.Ask == e.Of && (o.Kind == workflow.Interrupt || o.Kind == workflow.CancelChild) {
				r.answered[o.ID] = true
			}
		}
		if (c.Kind == workflow.Interrupt || c.Kind == workflow.CancelChild) && c.Ask != "" {
			r.answered[c.Ask] = true
		}
	}
	wasUnwind := was.Unwind != nil && was.Unwind.Wait != nil && was.Unwind.Wait.ID == e.Of
	switch {
	case e.Kind == workflow.Called && c.Kind != workflow.Compensate:
		r.called(e.Outcome, e.Effect, run(was, c.Step), effect{c.Step, c.Call, e.Effect.Repeatable(), r.inputs[c.Call]})
		r.unknown[c.Step] = e.Outcome.Code == action.StartedUnknown
	case e.Kind == workflow.ChildEnded && e.OK && e.Failure == nil:
		r.complete(run(was, c.Step), effect{c.Step, c.Child, false, ""})
	case e.Kind == workflow.ChildEnded:
		r.gaveUp(c.Step, e.Left)
	case e.Kind == workflow.Resolved && !wasUnwind:
		w := waitOf(was, e.Of)
		if st := step(was, w.Step); e.OK {
			r.called(&action.Outcome{Code: action.OK}, st.Effect, run(was, w.Step), effect{w.Step, st.Call, st.Effect.Repeatable(), string(st.Proposal)})
		}
		r.unknown[w.Step] = false
	case e.Kind == workflow.Called && e.Outcome.OK(), e.Kind == workflow.ChildUnwound && e.OK && e.Failure == nil, e.Kind == workflow.Resolved && e.OK:
		r.gaveUp(r.effects[len(r.effects)-1].step, e.Left)
		r.undone(was)
	case e.Kind == workflow.Verified && e.OK && e.Failure == nil:
		r.passed[c.Step+string(c.Subject)+string(c.Document)] = true
	}
	r.state = turn.State
	r.saw(was, &turn)
	for _, l := range turn.Trail {
		if l.Kind == workflow.UndoLeft {
			if last := r.effects[len(r.effects)-1]; !last.repeatable {
				r.stuck[last.step] = true
			}
			r.undone(was)
		}
	}
	for _, o := range turn.Commands {
		r.commanded(o, run)
	}
	for _, o := range turn.State.Outstanding {
		r.issued[o.ID] = o
		if o.Kind == workflow.Call { // also one that is held back
			r.inputs[o.Call] = string(o.Input)
		}
	}
	r.hold(was)
}

func waitOf(s workflow.State, id string) workflow.Wait {
	for _, w := range s.Waits() {
		if w.ID == id {
			return w
		}
	}
	return workflow.Wait{}
}

func step(s workflow.State, name string) workflow.StepState {
	i := slices.IndexFunc(s.Steps, func(st workflow.StepState) bool { return st.Name == name })
	return s.Steps[i]
}

// called notes what a call comes to. One that was broken off may have happened, and is forgotten when the same is called again.
func (r *reference) called(o *action.Outcome, of action.Effect, run string, e effect) {
	broken := o.Code == action.Timeout || o.Code == action.Interrupted || o.Code == action.Panicked
	if !o.OK() && !broken {
		return
	}
	r.effects = slices.DeleteFunc(r.effects, func(was effect) bool {
		return was.maybe != "" && was.repeatable && was.step == e.step && was.maybe == e.maybe
	})
	switch {
	case of == action.None:
	case broken:
		r.effects = append(r.effects, e)
	default:
		e.maybe = ""
		r.complete(run, e)
	}
}

// gaveUp notes what a child left.
func (r *reference) gaveUp(step string, left []workflow.Deed) {
	for _, d := range left {
		r.stuck[step] = r.stuck[step] || !d.Effect.Repeatable()
	}
}

func (r *reference) complete(run string, e effect) {
	for _, o := range r.effects {
		require.False(r.t, o.step == e.step && !o.repeatable && o.maybe == "", "step %s was executed again while its effect stands", run)
	}
	r.effects = append(r.effects, e)
	if !e.repeatable {
		r.done[run]++
		require.LessOrEqual(r.t, r.done[run], 1, "step %s was executed twice", run)
	}
}

// undone takes back the effect that completed last.
func (r *reference) undone(was workflow.State) {
	require.NotEmpty(r.t, r.effects, "something was undone that never happened")
	r.effects = r.effects[:len(r.effects)-1]
}

// commanded holds a command against what may be commanded.
func (r *reference) commanded(c workflow.Command, run func(workflow.State, string) string) {
	if old, twice := r.issued[c.ID]; twice && !old.Held {
		require.Fail(r.t, "one id for two commands", c.ID)
	}
	c.Held = false
	r.issued[c.ID] = c
	if c.Kind != workflow.Call && c.Kind != workflow.Spawn && c.Kind != workflow.Plan {
		return
	}
	require.False(r.t, r.stuck[c.Step], "%s repeats what nothing undid", c.ID)
	require.False(r.t, r.unknown[c.Step], "%s while a call of unknown outcome stands", c.ID)
	require.False(r.t, r.state.Status.Terminal(), "%s after the end", c.ID)
	if c.Kind != workflow.Plan {
		require.Zero(r.t, r.done[run(r.state, c.Step)], "%s repeats an effect", c.ID)
	}
	spec := r.spec(c.Step)
	for _, need := range spec.Needs { // nothing passes a person, or anything else that it needs
		if need.When == workflow.OnOk {
			require.Equal(r.t, workflow.StageDone, step(r.state, need.Step).Stage, "%s before %s", c.ID, need.Step)
		}
	}
	if spec.Hitl != nil && spec.Hitl.First {
		require.NotEmpty(r.t, step(r.state, c.Step).Intakes, "%s before its person", c.ID)
	}
}

func (r *reference) spec(name string) workflow.Step {
	for _, p := range r.def.Spec().Phases {
		for _, s := range p.Steps {
			if s.Name == name {
				return s
			}
		}
	}
	panic(name)
}

// hold holds the state against the reference.
func (r *reference) hold(was workflow.State) {
	s := r.state
	var deeds []effect
	for _, d := range s.Deeds {
		id := d.Call
		if d.Child != "" {
			id = d.Child
		}
		deeds = append(deeds, effect{step: d.Step, id: id, repeatable: d.Effect.Repeatable()})
		if d.Maybe {
			deeds[len(deeds)-1].maybe = string(d.Input)
		}
	}
	for i := range r.effects { // a child is compensatable, which says nothing of repeating it
		if i < len(deeds) && s.Deeds[i].Child != "" {
			deeds[i].repeatable = r.effects[i].repeatable
		}
	}
	require.Equal(r.t, len(r.effects), len(deeds), "effects that stand: %v, known: %v", r.effects, deeds)
	for i := range deeds {
		require.Equal(r.t, r.effects[i], deeds[i], "in order of completion")
	}
	for i, st := range s.Steps {
		if st.Stage != workflow.StageDone || len(was.Steps) > 0 && was.Steps[i].Stage == workflow.StageDone && was.Steps[i].Run == st.Run {
			continue
		}
		switch spec := r.spec(st.Name); spec.Type {
		case workflow.Human:
			require.True(r.t, r.passed[st.Name+"intake"+string(st.Output)], "%s passed without a verified intake", st.Name)
			require.False(r.t, r.used[string(st.Output)], "an intake of %s was consumed twice", st.Name)
			r.used[string(st.Output)] = true
		case workflow.Reasoning:
			require.True(r.t, r.passed[st.Name+"proposal"+string(st.Output)], "%s was committed unverified", st.Name)
		default:
			if len(spec.Output) > 0 {
				require.True(r.t, r.passed[st.Name+"output"+string(st.Output)], "%s was committed unverified", st.Name)
			}
		}
	}
	if s.Status.Terminal() && s.Status != workflow.Completed && !s.Stop.Keep {
		require.Empty(r.t, r.effects, "what completed was not undone")
	}
	if s.Status.Terminal() {
		for _, o := range s.Outstanding {
			require.Contains(r.t, []workflow.CommandKind{workflow.Withdraw, workflow.Advise}, o.Kind)
		}
	}
}

// replays holds a prefix against what it came to, through JSON.
func (r *reference) replays(n int) {
	a := replay(r.t, r.def, r.begin, r.events[:n])
	b := replay(r.t, r.def, r.begin, r.events[:n])
	require.Equal(r.t, encode(r.t, a), encode(r.t, b))
	if n == len(r.events) {
		require.Equal(r.t, encode(r.t, r.state), encode(r.t, a))
	}
}

// finish answers whatever is commanded, not what people decide: the instance ends or parks within its bounds.
func (r *reference) finish(t *rapid.T) {
	r.feed(workflow.Event{Kind: workflow.Resumed, At: r.now})
	r.feed(workflow.Event{Kind: workflow.Resumed, At: r.now, Tree: true})
	require.False(r.t, r.state.Held, "nobody pauses it")
	for range 3000 {
		k := slices.IndexFunc(r.state.Outstanding, func(c workflow.Command) bool {
			return c.Kind != workflow.Ask && (c.Kind != workflow.Timer || c.Subject == workflow.SubjectBackoff)
		})
		if k < 0 {
			require.True(r.t, r.state.Status.Terminal() || r.state.Parked(), "it neither ended nor parked: %s", standing(r.state))
			require.True(r.t, r.state.Status.Terminal() || len(r.state.Waits()) > 0, "it parks, and nobody knows on what: %s", standing(r.state))
			r.replays(len(r.events))
			return
		}
		c := r.state.Outstanding[k]
		e := r.filled(t, kinds[c.Kind])
		e.Of, e.At = c.ID, max(r.now, c.At)
		r.now = e.At
		if e.Kind == workflow.Called && e.Outcome == nil {
			e.Outcome = &action.Outcome{Code: action.Failed}
		}
		e.OK = e.OK || e.Kind == workflow.Advised
		if e.Kind == workflow.Advised && !json.Valid(e.Output) {
			e.Output = json.RawMessage("1")
		}
		r.feed(e)
	}
	assert.Fail(r.t, "it goes on for ever", standing(r.state))
}
