package delta_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// clinic is an agent whose actions need that workflows completed.
type clinic struct {
	*testing.T
	store  memory.Store
	engine *delta.Engine
	agent  *delta.Agent
	broken bool // operate fails
	ran    []string
	admit  *workflow.Definition
}

// newClinic grants operate, which needs what the builder says, beside what workflows are made of.
func newClinic(t *testing.T, needs func(admit *workflow.Definition) delta.Pre, more ...*workflow.Definition) *clinic {
	c := &clinic{T: t, admit: one(execute("check", "check"))}
	do := func(name string) func(*delta.Context, item) mo.Result[item] {
		return func(_ *delta.Context, in item) mo.Result[item] {
			if c.broken && name == "operate" {
				return mo.Err[item](errors.New("broken"))
			}
			c.ran = append(c.ran, name+" "+in.ID)
			return mo.Ok(in)
		}
	}
	undo := delta.Define("undo", do("undo")).Describe("Undo").Risk(1).Effect(action.Idempotent).MustBuild()
	check := delta.Define("check", do("check")).Describe("Check").Risk(1).Effect(action.Compensatable).
		Undo(undo, func(in, _ item) any { return in }).MustBuild()
	operate := delta.Define("operate", do("operate")).Describe("Operate").Risk(2).Effect(action.Irreversible).Needs(needs(c.admit)).MustBuild()
	c.agent = delta.NewAgent("ward").Grant(undo, check, operate).MustBuild()
	c.store = memory.New(memory.Config{})
	t.Cleanup(func() { _ = c.store.Close() })
	c.open(more...)
	return c
}

func (c *clinic) open(more ...*workflow.Definition) {
	c.engine = engineFor(c.T, delta.Config{Authenticator: anybody, Store: c.store, Poll: 5 * time.Millisecond,
		Workflows: delta.Workflows{Definitions: append([]*workflow.Definition{c.admit}, more...)}})
}

func (c *clinic) task(id, tenant string) *delta.Task {
	t, err := c.engine.Start(c.Context(), delta.Goal{ID: id, Agent: c.agent, Text: "care", Tenant: tenant})
	require.NoError(c, err)
	return t
}

// completes runs a workflow as a child of the task.
func (c *clinic) completes(t *delta.Task, d *workflow.Definition, id string) {
	i, err := t.StartWorkflow(c.Context(), d, delta.Goal{Agent: c.agent, Text: "admit"}, json.RawMessage(`{"id":"`+id+`"}`))
	require.NoError(c, err)
	s, err := i.Run(c.Context())
	require.NoError(c, err)
	require.Equal(c, workflow.Completed, s.Status, "%+v", s.Failure)
}

func (c *clinic) operates(t *delta.Task, id string) action.Outcome {
	offer, err := t.Offer(c.Context())
	require.NoError(c, err)
	_, offered := offer.Find("operate")
	out, err := t.Do(c.Context(), delta.Call{Action: "operate", Input: json.RawMessage(`{"id":"` + id + `"}`)}).Get()
	require.NoError(c, err)
	if out.OK() {
		assert.True(c, offered, "what is legal is offered")
	}
	if !offered {
		assert.Equal(c, action.NotLegal, out.Code, "I3: what is not offered is refused")
	}
	return out
}

// folds compares all of a task with what its ledger comes to (I14).
func (c *clinic) folds(local string) {
	records, err := c.store.Records(c.Context(), "ward", local, 1, 10_000)
	require.NoError(c, err)
	state, err := engine.FoldLedger(records)
	require.NoError(c, err)
	snap, err := c.store.Load(c.Context(), "ward", local, nil)
	require.NoError(c, err)
	for k, have := range snap.Task.Cells {
		assert.Equal(c, have.Val, state.Task.Cells[k].Val, "I14: %s", k)
	}
	require.Len(c, state.Task.Tokens, len(snap.Task.Tokens), "I14")
	for k, have := range snap.Task.Tokens {
		assert.Equal(c, have.State, state.Task.Tokens[k].State, "I14: %s", k)
		assert.Equal(c, have.At, state.Task.Tokens[k].At, "I14: %s", k)
	}
}

func TestI03_AnActionWaitsForItsWorkflow(t *testing.T) {
	c := newClinic(t, func(d *workflow.Definition) delta.Pre { return delta.Completed(d).On("id") })
	task := c.task("t", "")
	other := c.task("u", "")

	out := c.operates(task, "p1")
	assert.Equal(t, action.NotLegal, out.Code)
	assert.NotContains(t, out.Failure.Error(), "sop", "a planner is told of no workflow")
	unmet := out.Failure.Details[action.DetailUnmet]
	assert.Equal(t, `workflow:sop@id="p1": it has not happened`, unmet, "operators are")
	standing, err := task.Explain(t.Context(), "operate")
	require.NoError(t, err)
	assert.Contains(t, strings.Join(standing.Reasons, "; "), "needs workflow sop on id")
	assert.Equal(t, "workflow sop → operate", standing.Path.String())

	c.completes(task, c.admit, "p1")
	out = c.operates(task, "p1")
	assert.True(t, out.OK(), "%v", out.Failure)
	assert.Equal(t, action.NotLegal, c.operates(task, "p2").Code, "the workflow was about another")
	assert.Equal(t, action.NotLegal, c.operates(other, "p1").Code, "a fact is of one task")
	c.folds("t")

	c.open() // another worker finds what the store says
	require.NoError(t, c.engine.Register(c.agent))
	task, err = c.engine.Open(t.Context(), "ward~t")
	require.NoError(t, err)
	assert.True(t, c.operates(task, "p1").OK())
	assert.Equal(t, []string{"check p1", "operate p1", "operate p1"}, c.ran)
}

func TestAWorkflowThatDidNotCompleteUnlocksNothing(t *testing.T) {
	c := newClinic(t, func(d *workflow.Definition) delta.Pre { return delta.Completed(d).On("id") })
	task := c.task("t", "")
	i, err := task.StartWorkflow(t.Context(), c.admit, delta.Goal{Agent: c.agent, Text: "admit"}, json.RawMessage(`{"id":"p1"}`))
	require.NoError(t, err)
	assert.Equal(t, action.NotLegal, c.operates(task, "p1").Code, "it has only been started")
	require.NoError(t, i.Task().Cancel(t.Context(), "not today"))
	_, err = i.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, action.NotLegal, c.operates(task, "p1").Code, "it was cancelled")
	out, err := task.Do(t.Context(), delta.Call{Action: "check", Input: json.RawMessage(`{"id":"p1"}`)}).Get()
	require.NoError(t, err)
	require.True(t, out.OK())
	assert.Equal(t, action.NotLegal, c.operates(task, "p1").Code, "what its steps do is not the workflow")
}

func TestVersionOfTheWorkflowThatIsNeeded(t *testing.T) {
	later := func(v string) *workflow.Definition {
		spec := one(execute("check", "check")).Spec()
		spec.Version = v
		d, err := workflow.Compile(spec)
		require.NoError(t, err)
		return d
	}
	two := later("2")
	for _, tt := range []struct {
		name string
		need func(*workflow.Definition) delta.Pre
		runs bool // version 1 will do
	}{
		{"any", func(d *workflow.Definition) delta.Pre { return delta.Completed(d).On("id") }, true},
		{"named", func(*workflow.Definition) delta.Pre { return delta.CompletedNamed("sop").On("id") }, true},
		{"this", func(d *workflow.Definition) delta.Pre { return delta.Completed(d).Version("1").On("id") }, true},
		{"newer", func(*workflow.Definition) delta.Pre { return delta.CompletedNamed("sop").Version("2").On("id") }, false},
		{"another workflow", func(*workflow.Definition) delta.Pre { return delta.CompletedNamed("so").On("id") }, false},
		{"an action of that name is none", func(*workflow.Definition) delta.Pre { return delta.CompletedNamed("check").On("id") }, false},
		{"by what it gave", func(d *workflow.Definition) delta.Pre { return delta.Completed(d).OnOutput("id", "check.id") }, true},
		{"as such", delta.Completed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClinic(t, tt.need, two)
			task := c.task("t", "")
			c.completes(task, c.admit, "p1")
			assert.Equal(t, tt.runs, c.operates(task, "p1").OK())
			if tt.name == "newer" {
				c.completes(task, two, "p1")
				assert.True(t, c.operates(task, "p1").OK())
			}
			c.folds("t")
		})
	}
}

func TestACompletedWorkflowIsUsedUpOrTooOld(t *testing.T) {
	c := newClinic(t, func(d *workflow.Definition) delta.Pre { return delta.Completed(d).On("id").Consumed() })
	task := c.task("t", "")
	c.completes(task, c.admit, "p1")
	require.True(t, c.operates(task, "p1").OK())
	assert.Equal(t, action.NotLegal, c.operates(task, "p1").Code, "once")
	c.completes(task, c.admit, "p1")
	assert.True(t, c.operates(task, "p1").OK(), "it completed again")
	c.folds("t")
}

// For an agent: what completed in one task counts in the next, for as long as is said, and for the same tenant.
func TestAcrossTasksAWorkflowCounts(t *testing.T) {
	c := newClinic(t, func(d *workflow.Definition) delta.Pre { return delta.Completed(d).On("id").Across(time.Hour) })
	i, err := c.engine.StartWorkflow(t.Context(), c.admit, delta.Goal{Agent: c.agent, Text: "admit", Tenant: "north"}, json.RawMessage(`{"id":"p1"}`))
	require.NoError(t, err)
	s, err := i.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, workflow.Completed, s.Status)
	assert.Equal(t, action.NotLegal, c.operates(c.task("south", "south"), "p1").Code)
	north := c.task("north", "north")
	assert.Equal(t, action.NotLegal, c.operates(north, "p2").Code)
	out := c.operates(north, "p1")
	assert.True(t, out.OK(), "%v", out.Failure)
	c.folds("north")
	c.folds(strings.TrimPrefix(i.ID(), "ward~"))
}

// A SUB_SOP unlocks what follows it; what is undone counts no more.
func TestAStepWaitsForTheNestedWorkflowAndLosesItWhenUndone(t *testing.T) {
	for _, broken := range []bool{false, true} {
		t.Run(map[bool]string{false: "completes", true: "is undone"}[broken], func(t *testing.T) {
			care := workflow.New("care", "1").Input(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`).Owners("ana").
				Step(workflow.Run("admit", "sop").Map("id", "input.id")).
				Step(execute("operate", "operate", "admit")).
				MustBuild()
			c := newClinic(t, func(d *workflow.Definition) delta.Pre { return delta.Completed(d).On("id") }, care)
			c.broken = broken
			i, err := c.engine.StartWorkflow(t.Context(), care, delta.Goal{ID: "t", Agent: c.agent, Text: "care"}, json.RawMessage(`{"id":"p1"}`))
			require.NoError(t, err)
			s, err := i.Run(t.Context())
			require.NoError(t, err)
			records, err := c.store.Records(t.Context(), "ward", "t", 1, 10_000)
			require.NoError(t, err)
			said := func(what string) bool {
				return slices.ContainsFunc(records, func(r txn.Stored) bool { return strings.Contains(r.Val, `"type":"`+what+`"`) })
			}
			assert.True(t, said("workflow_done"))
			assert.Equal(t, broken, said("workflow_undone"))
			c.folds("t")
			if !broken {
				assert.Equal(t, workflow.Completed, s.Status, "%+v", s.Failure)
				assert.Equal(t, []string{"check p1", "operate p1"}, c.ran)
				return
			}
			assert.Equal(t, workflow.Failed, s.Status)
			assert.Equal(t, []string{"check p1", "undo p1"}, c.ran)
			snap, err := c.store.Load(t.Context(), "ward", "t", nil)
			require.NoError(t, err)
			assert.Equal(t, "undone", snap.Task.Tokens[`f/workflow:sop@id="p1"`].State)
		})
	}
}

func TestPrerequisiteOnAWorkflowIsChecked(t *testing.T) {
	typed := one(execute("check", "check"))
	for _, tt := range []struct {
		name string
		need delta.Prereq
		want string
	}{
		{"no definition", delta.Completed(nil), "the workflow is nil"},
		{"no name", delta.CompletedNamed(""), "names no action"},
		{"bad name", delta.CompletedNamed("a b"), "not allowed"},
		{"bad version", delta.CompletedNamed("a").Version("x y"), "not allowed"},
		{"empty version", delta.CompletedNamed("a").Version(""), "version is empty"},
		{"version of an action", delta.Named("check").Version("1"), "only of a workflow"},
		{"no such field of mine", delta.Completed(typed).OnAs("no", "id"), "bound field"},
		{"no such field of its input", delta.Completed(typed).OnAs("id", "no"), "its input"},
		{"another type", delta.Completed(typed).OnAs("n", "id"), "bound field"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			type in struct {
				ID string `json:"id"`
				N  int    `json:"n"`
			}
			act, err := delta.Define("act", func(_ *delta.Context, x in) mo.Result[in] { return mo.Ok(x) }).Describe("Act").Needs(tt.need).Build()
			if err == nil {
				_, err = delta.NewAgent("a").Grant(act).Build()
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// A nested workflow that had no effect has nothing to undo, and keeps nobody from undoing the rest.
func TestANestedWorkflowWithoutEffectsIsUndoneByDoingNothing(t *testing.T) {
	look := delta.Define("look", func(_ *delta.Context, in item) mo.Result[item] { return mo.Ok(in) }).
		Describe("Look").Risk(1).Effect(action.None).MustBuild()
	fails := delta.Define("fails", func(_ *delta.Context, in item) mo.Result[item] { return mo.Err[item](errors.New("broken")) }).
		Describe("Fail").Risk(1).Effect(action.Idempotent).MustBuild()
	agent := delta.NewAgent("ward").Grant(look, fails).MustBuild()
	child := one(execute("look", "look"))
	d := workflow.New("outer", "1").Input(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`).Owners("ana").
		Step(workflow.Run("part", "sop").Map("id", "input.id")).Step(execute("fails", "fails", "part")).MustBuild()
	e := engineFor(t, delta.Config{Authenticator: anybody, Poll: 5 * time.Millisecond, Workflows: delta.Workflows{Definitions: []*workflow.Definition{child, d}}})
	i, err := e.StartWorkflow(t.Context(), d, delta.Goal{Agent: agent, Text: "look"}, json.RawMessage(`{"id":"p1"}`))
	require.NoError(t, err)
	s, err := i.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, workflow.Failed, s.Status, "%+v", s.Waits())
}
