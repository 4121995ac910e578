package workflow_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

const number = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}},"additionalProperties":false}`

func exec(name string) workflow.StepBuilder {
	return workflow.Execute(name, "act").Effect(action.None)
}

func ask(name string) workflow.StepBuilder {
	return workflow.AskPerson(name).Hitl(workflow.Hitl{Who: []string{"ana"}, Intake: json.RawMessage(number)})
}

// Every fault is named, and all of them at once.
func TestFaults(t *testing.T) {
	w := func(steps ...workflow.StepBuilder) workflow.Builder {
		b := workflow.New("w", "1")
		for _, s := range steps {
			b = b.Step(s)
		}
		return b
	}
	for name, c := range map[string]struct {
		w    workflow.Builder
		want string
	}{
		"no steps":                {workflow.New("w", "1"), `workflow "w" has no steps`},
		"no name":                 {workflow.New("", "").Step(exec("a")), "workflow: name is empty\nversion of workflow : name is empty\nphase \"\": name is empty"},
		"twice":                   {w(exec("a"), exec("a")), `step "a": there are two of that name, in phases "w" and "w"`},
		"name with a dot":         {w(exec("a.b")), `step "a.b": name "a.b": want at most 48 letters, digits, '-' and '_'`},
		"unknown step":            {w(exec("first"), exec("b").Needs("frist")), `step "b" needs step "frist", which there is not; did you mean first?`},
		"itself":                  {w(exec("a").Needs("a")), `step "a" needs itself`},
		"cycle":                   {w(exec("a").Needs("c"), exec("b").Needs("a"), exec("c").Needs("b")), `steps need each other: a → c → b → a`},
		"unreachable":             {w(exec("a"), exec("b").Needs("a"), exec("c").Needs("b").NeedsErr("a")), `step "c" is never run: it needs that a succeeded, and that a failed`},
		"negative limits":         {w(exec("a").Limits(workflow.Limits{Attempts: -1})), `step "a": limits are positive: 0 iterations, -1 attempts, 0s`},
		"human without intake":    {w(workflow.AskPerson("a")), "step \"a\" is HUMAN and declares no intake: say with a schema what the person is to give\nstep \"a\" is HUMAN and nobody is asked: name people in its hitl, or owners of the workflow"},
		"human with a contract":   {w(ask("a").Output(number)), `step "a" is HUMAN and cannot have an output contract`},
		"reasoning that executes": {w(workflow.Reason("a", "p").Output(number).Undo("b", nil)), `step "a" is REASONING and cannot have an undo`},
		"unverified reasoning":    {w(workflow.Reason("a", "p")), `step "a" is REASONING and nothing verifies its proposal: declare an output contract or a verifier`},
		"no action":               {w(workflow.Execute("a", "")), `step "a": action: name is empty`},
		"itself as a child":       {w(workflow.Run("a", "w")), `step "a" runs the workflow it is a step of`},
		"breaker":                 {w(workflow.Run("a", "c").Breaker(workflow.Breaker{Failures: 1, Window: time.Hour})), `step "a": a breaker has a positive number of failures, window and cooldown`},
		"two breakers": {w(workflow.Run("a", "c").Breaker(workflow.Breaker{Failures: 1, Window: 1, Cooldown: 1}), workflow.Run("b", "c").Breaker(workflow.Breaker{Failures: 2, Window: 1, Cooldown: 1})),
			"step \"a\" and step \"b\" declare different breakers of workflow \"c\"\nstep \"b\" and step \"a\" declare different breakers of workflow \"c\""},
		"guard":             {w(exec("a").Guard("")), `step "a": a guard is either the name of a predicate or a schema`},
		"ladder":            {w(exec("a").Ladder(workflow.Rung{Kind: workflow.RungPark}, workflow.Rung{Kind: "up", Planner: "x"}, workflow.Rung{Kind: workflow.RungPeople})), "step \"a\": rung 1 of its ladder: nothing comes after park\nstep \"a\": rung 2 of its ladder: there is no \"up\"; want one of [\"retry\" \"planner\" \"people\" \"parent\" \"park\"]\nstep \"a\": rung 2 of its ladder: a rung planner names one, and no other does\nstep \"a\": rung 3 of its ladder: there is nobody to ask"},
		"mapped twice":      {w(exec("a").Map("x", "input.x").Map("x", "input.y")), `step "a" maps "x" twice`},
		"value and members": {w(exec("a").Map("x", "input.x").Map("x.y", "input.y")), `step "a" maps "x.y": it is given a value and members`},
		"whole and parts":   {w(exec("a").Map(".", "input.x").Map("x", "input.y")), `step "a" maps the whole document and parts of it`},
		"unknown source":    {w(exec("a").Map("x", "inputs.x")), `step "a" maps "x" from "inputs.x": sources are input, intake, instance, steps.NAME.output and steps.NAME.failure`},
		"not before":        {w(exec("a"), exec("b").Map("x", "steps.a.output")), `step "b" maps "x" from "steps.a.output", which need not have ended before: let it need "a"`},
		"intake too early":  {w(exec("a").Map("x", "intake.n")), `step "a" maps "x" from "intake.n", which is not there before somebody was asked: give a default, or ask first`},
		"no such property":  {w(ask("a"), exec("b").Needs("a").Map("x", "steps.a.output.m")), `step "b" maps "x" from "steps.a.output.m", which the output contract of step "a" does not have`},
		"unmapped":          {w(exec("a").Input(number)), `step "a" maps nothing to "n", which its input contract requires`},
		"not in contract":   {w(exec("a").Input(number).Const("n", "1").Const("m", "1")), `step "a" maps "m", which its input contract does not have`},
		"constant":          {w(exec("a").Input(number).Const("n", `"1"`)), `step "a" maps "n" to "1", but its input contract wants integer`},
		"types": {w(ask("a"), exec("b").Needs("a").Input(`{"properties":{"x":{"type":"string"}}}`).Map("x", "steps.a.output.n")),
			`step "b" maps "x" from "steps.a.output.n": is integer, where string is wanted`},
		"enumerations": {w(workflow.Reason("a", "p").Output(`{"required":["v"],"properties":{"v":{"enum":["x","y"]}}}`), exec("b").Needs("a").Input(`{"properties":{"x":{"enum":["z"]}}}`).Map("x", "steps.a.output.v")),
			`step "b" maps "x" from "steps.a.output.v": may be "x", "y", where one of "z" is wanted`},
		"nested required": {w(ask("a"), exec("b").Needs("a").Input(`{"properties":{"x":{"type":"object","required":["m"],"properties":{"m":{}}}}}`).Map("x", "steps.a.output")),
			`step "b" maps "x" from "steps.a.output": "m" is required and not there`},
		"later phase": {workflow.New("w", "1").Phase(workflow.InPhase("one").Step(exec("a").Needs("b"))).Phase(workflow.InPhase("two").Step(exec("b"))), `step "a" needs step "b" of phase "two", which comes after its own`},
		"supervision": {workflow.New("w", "1").Phase(workflow.InPhase("one").OnFailure("pray", -1, workflow.SuperviseRetry).Step(exec("a"))),
			"phase \"one\": there is no supervision \"pray\"; want one of [\"retry\" \"restart\" \"resume\" \"escalate\" \"abort-subtree\" \"abort-tree\"]\nphase \"one\": supervision cannot go on with \"retry\"; want one of [\"resume\" \"escalate\" \"abort-subtree\" \"abort-tree\"]\nphase \"one\": supervision -1 times, want a positive number"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.w.Build()
			require.Error(t, err)
			assert.Equal(t, c.want, err.Error())
		})
	}
}

// Faults of all kinds are named at once: one does not hide another, and what only follows from one is not named.
func TestFaultsOfAllKindsAtOnce(t *testing.T) {
	_, err := workflow.New("w", "1").Input("{").
		Step(ask("a")).
		Step(exec("b").Needs("c").Map("x", "steps.a.output.n")).
		Step(exec("c").Needs("b")).
		Step(exec("d").Needs("c", "z").Input(number).Const("n", "[").Map("m", "input.x")).
		Step(exec("e").Needs("a").Input(number).Map("n", "steps.d.output")).
		Step(workflow.Reason("f", "").Output("?")).Build()
	require.Error(t, err)
	assert.Equal(t, strings.Join([]string{
		`the input schema of the workflow is no JSON`,
		`step "d" maps "n": its constant is no JSON`,
		`step "f": its output contract is no JSON`,
		`step "f" is REASONING and names no planner`,
		`step "d" needs step "z", which there is not; did you mean a?`,
		`steps need each other: b → c → b`,
		`step "d" maps "m", which its input contract does not have`,
		`step "d" maps "n" to true, but its input contract wants integer`,
		`step "e" maps "n" from "steps.d.output", which need not have ended before: let it need "d"`,
	}, "\n"), err.Error())
}

// What nobody could look at is refused before it is looked at: by the number of steps, and of what they need.
func TestTooMuchIsRefused(t *testing.T) {
	spec := func(steps, needs int) workflow.Spec {
		p := workflow.Phase{Name: "p"}
		for i := range steps {
			p.Steps = append(p.Steps, workflow.Step{Name: "s" + strconv.Itoa(i), Type: workflow.Execution, Action: "act", Effect: action.None})
		}
		for k, i := 0, 1; k < needs; i++ {
			for j := 0; j < i && k < needs; j, k = j+1, k+1 {
				p.Steps[i].Needs = append(p.Steps[i].Needs, workflow.Need{Step: p.Steps[j].Name})
			}
		}
		return workflow.Spec{Name: "w", Version: "1", Phases: []workflow.Phase{p}}
	}
	_, err := workflow.Compile(spec(workflow.MaxSteps, 0))
	require.NoError(t, err)
	_, err = workflow.Compile(spec(300, workflow.MaxNeeds))
	require.NoError(t, err)
	_, err = workflow.Compile(spec(workflow.MaxSteps+1, workflow.MaxNeeds+1))
	require.EqualError(t, err, `workflow "w" has 2001 steps, want at most 2000: run parts of it as workflows of their own, by steps of type SUB_SOP`+"\n"+
		`the steps of workflow "w" have 20001 needs, want at most 20000: leave out those that follow from others, or let phases follow each other`)
}

// A chain against the order of its steps, with a step that stands before all: what follows from a step is asked once.
func TestOrderOfALongChain(t *testing.T) {
	const n = 1000
	p := workflow.Phase{Name: "p"}
	for i := range n {
		st := workflow.Step{Name: "s" + strconv.Itoa(i), Type: workflow.Execution, Action: "act", Effect: action.None}
		if i+1 < n {
			st.Needs = []workflow.Need{{Step: "s" + strconv.Itoa(i+1)}}
		}
		p.Steps = append(p.Steps, st)
	}
	p.Steps[0].Map = workflow.Mapping{"x": {From: "steps.s999.output.x"}}
	d, err := workflow.Compile(workflow.Spec{Name: "w", Version: "1", Phases: []workflow.Phase{p}})
	require.NoError(t, err)
	assert.Empty(t, d.Warnings(), "the last one has surely run")
	p.Steps[n-1].Needs = []workflow.Need{{Step: "s998"}}
	_, err = workflow.Compile(workflow.Spec{Name: "w", Version: "1", Phases: []workflow.Phase{p}})
	require.EqualError(t, err, "steps need each other: s998 → s999 → s998")
}

// Owners who are no people are named at the first step that asks them.
func TestOwnersAreLookedAtOnce(t *testing.T) {
	_, err := workflow.New("w", "1").Owners("").
		Step(workflow.AskPerson("a").Hitl(workflow.Hitl{Intake: json.RawMessage(number)})).
		Step(workflow.AskPerson("b").Hitl(workflow.Hitl{Intake: json.RawMessage(number)})).
		Step(workflow.AskPerson("c").Hitl(workflow.Hitl{Who: []string{""}, Intake: json.RawMessage(number)})).Build()
	require.Error(t, err)
	assert.Equal(t, 1, strings.Count(err.Error(), `step "a": who is asked`))
	assert.NotContains(t, err.Error(), `step "b"`)
	assert.Contains(t, err.Error(), `step "c": who is asked`)
}

// What is sound and still should be looked at.
func TestWarnings(t *testing.T) {
	def := workflow.New("w", "1").
		Step(workflow.Execute("a", "act").Guard("g")).
		Step(exec("b").NeedsEnd("a").Map("x", "steps.a.output.x")).
		Step(workflow.Reason("c", "p").Output(`{"type":"object","properties":{"v":{"type":["string","null"]}}}`)).
		Step(exec("d").Needs("c").Input(`{"properties":{"v":{"type":"string"}}}`).Map("v", "steps.c.output.v")).
		MustBuild()
	assert.Equal(t, strings.Join([]string{
		`step "a" is irreversible and nothing undoes it, should the workflow fail after it: declare its effect, an undo, or have it approved`,
		`step "b" maps "x" from "steps.a.output.x", which is not there where step "a" was skipped or failed: give a default`,
		`step "d" maps "v" from "steps.c.output.v", which the output contract of step "c" does not require: give a default`,
		`step "d" maps "v" from "steps.c.output.v": is string or null, where string is wanted`,
	}, "\n"), strings.Join(def.Warnings(), "\n"))
}

// A builder is a value: what is made of it later does not change what was made of it before.
func TestBuildersDoNotShare(t *testing.T) {
	base := workflow.New("w", "1").Step(exec("a"))
	one, two := base.Step(exec("b")), base.Step(exec("c"))
	assert.Contains(t, one.MustBuild().String(), " b ")
	assert.NotContains(t, one.MustBuild().String(), " c ")
	assert.Contains(t, two.MustBuild().String(), " c ")
	step := exec("x").Needs("a").Map("k", "input.k")
	left, right := step.Needs("b").Map("l", "input.l"), step.Needs("c").Map("r", "input.r")
	d := base.Step(exec("b")).Step(exec("c")).Step(left)
	assert.Contains(t, d.MustBuild().String(), "x calls act after a, b\n")
	d = base.Step(exec("b")).Step(exec("c")).Step(right)
	assert.Contains(t, d.MustBuild().String(), "x calls act after a, c\n")
	m := d.MustBuild().Spec().Phases[0].Steps[3].Map
	assert.Len(t, m, 2)
	m["k"] = workflow.Source{From: "input.other"}
	assert.Equal(t, "input.k", d.MustBuild().Spec().Phases[0].Steps[3].Map["k"].From)
	p := workflow.InPhase("p").Step(exec("a"))
	assert.NotEqual(t, workflow.New("w", "1").Phase(p.Step(exec("b"))).MustBuild().Digest(), workflow.New("w", "1").Phase(p.Step(exec("c"))).MustBuild().Digest())
}

// Definitions that run each other are checked together.
func TestFamily(t *testing.T) {
	sub := func(name, child string) workflow.Builder {
		return workflow.New(name, "1").Step(workflow.Run("sub", child).Const("m", `"x"`))
	}
	leaf := workflow.New("leaf", "1").Input(number).Step(exec("a")).MustBuild()
	err := workflow.Family(sub("a", "b").MustBuild(), sub("b", "a").MustBuild(), sub("c", "leaf").MustBuild(), sub("d", "none").MustBuild(), leaf, leaf)
	require.Error(t, err)
	assert.Equal(t, strings.Join([]string{
		`workflow "leaf" is there twice`,
		`workflows run each other: a → b → a`,
		`workflow "c": step "sub" maps "m", which its input contract does not have`,
		`workflow "c": step "sub" maps nothing to "n", which its input contract requires`,
		`workflow "d": step "sub" runs workflow "none", which there is not`,
	}, "\n"), err.Error())
	ok := workflow.New("c", "1").Step(workflow.Run("sub", "leaf").Const("n", "1")).MustBuild()
	require.NoError(t, workflow.Family(ok, leaf))
}

// A state of another definition is an error, whatever the event.
func TestStateOfAnotherDefinition(t *testing.T) {
	one, two := workflow.New("w", "1").Step(exec("a")).MustBuild(), workflow.New("w", "2").Step(exec("a").Guard("g")).MustBuild()
	turn, err := one.Start(workflow.Begin{Instance: "i"})
	require.NoError(t, err)
	_, err = two.Step(turn.State, workflow.Event{Kind: workflow.Paused})
	require.ErrorIs(t, err, workflow.ErrOther)
	moved, err := workflow.Migrate(one, two, turn.State)
	require.Error(t, err, "its only step has begun: it was commanded %v", turn.Commands)
	require.Equal(t, turn.State, moved)
}

func TestStartRefuses(t *testing.T) {
	def := workflow.New("w", "1").Step(exec("a")).MustBuild()
	for name, b := range map[string]workflow.Begin{
		"no name": {}, "a name that is none": {Instance: "a b"}, "a name too long": {Instance: strings.Repeat("x", 97)}, "no JSON": {Instance: "a", Input: json.RawMessage("{")},
	} {
		_, err := def.Start(b)
		assert.Error(t, err, name)
	}
}

// An instance keeps what it has begun under a newer definition, and goes on by the new one.
func TestMigrate(t *testing.T) {
	one := workflow.New("w", "1").Phase(workflow.InPhase("p").Step(exec("a")).Step(exec("b").Needs("a"))).MustBuild()
	two := workflow.New("w", "2").Phase(workflow.InPhase("p").Step(exec("z").Needs("a")).Step(exec("a")).Step(workflow.Execute("b", "other").Effect(action.None).Needs("z"))).
		Phase(workflow.InPhase("q").Step(exec("c"))).MustBuild()
	turn, err := one.Start(workflow.Begin{Instance: "i"})
	require.NoError(t, err)
	s, err := workflow.Migrate(one, two, turn.State)
	require.NoError(t, err)
	turn, err = two.Step(s, workflow.Event{Kind: workflow.Called, Of: "i/a/call.1", Outcome: &action.Outcome{Code: action.OK}})
	require.NoError(t, err)
	require.Len(t, turn.Commands, 1)
	assert.Equal(t, "i/z/call.1", turn.Commands[0].ID)

	gone := workflow.New("w", "3").Phase(workflow.InPhase("q").Step(exec("b"))).MustBuild()
	_, err = workflow.Migrate(two, gone, turn.State)
	require.Error(t, err)
	assert.Equal(t, "phase \"p\" has begun: it must stay the 1. one\nstep \"z\" has begun, and is not in version 3\nstep \"a\" has begun, and is not in version 3", err.Error())
}

// A nested workflow holds what it is granted, so that who is beside it has to wait: that is warned of, and nothing else.
func TestWarnsOfSharesWithoutALimit(t *testing.T) {
	tokens := workflow.Limits{Cost: action.Limit{Tokens: action.Max(10)}}
	child := func(name string) workflow.StepBuilder { return workflow.Run(name, "child") }
	call := func(name string) workflow.StepBuilder { return workflow.Execute(name, "noop") }
	ask := workflow.AskPerson("ask").Hitl(workflow.Hitl{Who: []string{"ana"}, Intake: json.RawMessage(`{"type":"object"}`)})
	for name, c := range map[string]struct {
		steps []workflow.StepBuilder
		want  int
	}{
		"beside a call":             {[]workflow.StepBuilder{child("a"), call("b")}, 1},
		"two beside each other":     {[]workflow.StepBuilder{child("a"), child("b")}, 2},
		"with a limit":              {[]workflow.StepBuilder{child("a").Limits(tokens), call("b")}, 0},
		"alone":                     {[]workflow.StepBuilder{child("a")}, 0},
		"one after the other":       {[]workflow.StepBuilder{child("a"), call("b").Needs("a")}, 0},
		"before it, two steps away": {[]workflow.StepBuilder{call("a"), call("b").Needs("a"), child("c").Needs("b")}, 0},
		"instead of a call":         {[]workflow.StepBuilder{call("a"), child("b").Needs("a"), call("c").NeedsErr("a")}, 0},
		"beside a question":         {[]workflow.StepBuilder{child("a"), ask}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := workflow.New("parent", "1")
			for _, s := range c.steps {
				b = b.Step(s)
			}
			d, err := b.Build()
			require.NoError(t, err)
			n := 0
			for _, w := range d.Warnings() {
				if strings.Contains(w, "has no limit of cost") {
					n++
				}
			}
			assert.Equal(t, c.want, n, "%v", d.Warnings())
		})
	}
}
