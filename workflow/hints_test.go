package workflow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Whoever plans, asks or executes is told the stories of the phases up to its own, and the hints of its phase and its step: of others
// nothing, and what people gave to the steps before.
func TestPhasesTellTheirStoryAndTheirHints(t *testing.T) {
	def := workflow.New("w", "1").Owners("ana").
		Phase(workflow.InPhase("hear").Storyline("the customer is heard").Hints(workflow.Hints{Tools: []string{"mail"}}).
			Step(ask("ask").Hints(workflow.Hints{Skills: []string{"patience"}}))).
		Phase(workflow.InPhase("act").Storyline("the customer is helped").Hints(workflow.Hints{Tools: []string{"books"}, Hooks: []string{"audit"}}).
			Step(workflow.Reason("think", "p").Output("{}").Hints(workflow.Hints{Tools: []string{"sums"}, Skills: []string{"law"}})).
			Step(exec("pay").Needs("think"))).
		Phase(workflow.InPhase("close").Storyline("the file is closed").Step(exec("end"))).
		MustBuild()
	turn, err := def.Start(workflow.Begin{Instance: "i"})
	require.NoError(t, err)
	told := func() workflow.Command {
		require.Len(t, turn.Commands, 1)
		return turn.Commands[0]
	}
	give := func(e workflow.Event) {
		e.Of = told().ID
		turn, err = def.Step(turn.State, e)
		require.NoError(t, err)
		require.Empty(t, turn.Absorbed)
	}
	c := told()
	require.Equal(t, workflow.Ask, c.Kind)
	assert.Equal(t, []string{"the customer is heard"}, c.Storylines)
	assert.Equal(t, workflow.Hints{Tools: []string{"mail"}, Skills: []string{"patience"}}, c.Hints)
	give(workflow.Event{Kind: workflow.Intake, By: "ana", Output: json.RawMessage(`{"n":1}`)})
	give(workflow.Event{Kind: workflow.Verified, OK: true})
	c = told()
	require.Equal(t, workflow.Plan, c.Kind)
	assert.Equal(t, []string{"the customer is heard", "the customer is helped"}, c.Storylines)
	assert.Equal(t, workflow.Hints{Tools: []string{"books", "sums"}, Skills: []string{"law"}, Hooks: []string{"audit"}}, c.Hints)
	assert.Equal(t, []workflow.Given{{Step: "ask", By: "ana", Data: json.RawMessage(`{"n":1}`)}}, c.Intakes)
	give(workflow.Event{Kind: workflow.Planned, Output: json.RawMessage(`{}`)})
	give(workflow.Event{Kind: workflow.Verified, OK: true})
	c = told()
	require.Equal(t, workflow.Call, c.Kind)
	assert.Equal(t, workflow.Hints{Tools: []string{"books"}, Hooks: []string{"audit"}}, c.Hints)
	give(workflow.Event{Kind: workflow.Called, Outcome: &action.Outcome{Code: action.OK}})
	assert.Equal(t, workflow.Hints{}, told().Hints, "of the phases before nothing")
}
