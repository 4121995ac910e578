package delta_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// TestSlipsAreNamed: what a user gets wrong first is answered with the thing and the way out, not with a crash.
func TestSlipsAreNamed(t *testing.T) {
	act := named("alpha").MustBuild()
	agent := delta.NewAgent("x").Grant(act).MustBuild()
	engine, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	start := func(g delta.Goal) error {
		_, err := engine.Start(t.Context(), g)
		return err
	}
	task, err := engine.Start(t.Context(), delta.Goal{Agent: agent})
	require.NoError(t, err)
	idle := delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) { return delta.Proposal{}, nil })
	run := func(t *delta.Task, b delta.Bounds) error {
		return engine.RunWithin(context.Background(), t, idle, b).Error()
	}
	var none *delta.Action[place, place]
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"no agent", start(delta.Goal{}), "goal has no agent"},
		{"a deadline that has passed", start(delta.Goal{Agent: agent, Deadline: time.Now().Add(-time.Hour)}), "has passed"},
		{"only the requester approves", start(delta.Goal{Agent: agent, Approvers: []string{"bo"}, Requester: "bo"}), "nobody but the requester"},
		{"threshold", start(delta.Goal{Agent: agent, Threshold: 6}), "threshold is 6"},
		{"typed call without a task", act.Do(t.Context(), nil, place{}).Error(), "there is no task"},
		{"typed call in a task that is none", act.Do(t.Context(), &delta.Task{}, place{}).Error(), "there is no task"},
		{"run without a task", run(nil, delta.Bounds{}), "want a task"},
		{"negative bound", run(task, delta.Bounds{Steps: -1}), "a bound is negative"},
		{"need of a nil action", func() error { _, err := named("b").Needs(none.On("city")).Build(); return err }(), "action is nil"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { require.ErrorContains(t, tt.err, tt.want) })
	}
	report := engine.Run(t.Context(), task, idle).MustGet()
	require.Equal(t, delta.RunIdle, report.Ended)
	require.ErrorIs(t, engine.Close(t.Context()), nil)
	require.ErrorIs(t, act.Do(t.Context(), task, place{}).Error(), delta.ErrClosed)
}

// TestCallIDsOfTypedCalls: the same id and input is one call, and its outcome can be read by its intent.
func TestCallIDsOfTypedCalls(t *testing.T) {
	act := named("alpha").MustBuild()
	engine, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	task, err := engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("x").Grant(act).MustBuild()})
	require.NoError(t, err)
	for range 3 {
		out, err := act.Do(t.Context(), task, place{"Rome"}, delta.CallID("one")).Get()
		require.NoError(t, err)
		require.Equal(t, "Rome", out.City)
	}
	require.Error(t, act.Do(t.Context(), task, place{"Oslo"}, delta.CallID("one")).Error(), "another input")
	b, err := task.Budget(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, b.Spent.Calls)

	events, err := task.Events(t.Context())
	require.NoError(t, err)
	intent := events[1].Intent
	o, ended, err := task.Outcome(t.Context(), intent)
	require.NoError(t, err)
	require.True(t, ended)
	require.Equal(t, action.OK, o.Code)
	_, ended, err = task.Outcome(t.Context(), "nobody")
	require.NoError(t, err)
	require.False(t, ended)
}

// A handle of a task that ended works as any other: whatever is asked of it, it answers.
func TestHandlesOfEndedTasksAnswer(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.task.Cancel(t.Context(), "enough"))
	ended, err := w.engine.Open(t.Context(), w.task.ID())
	require.NoError(t, err)
	require.NoError(t, ended.Cancel(t.Context(), "again"))
	require.Error(t, ended.Done(t.Context(), "done"))
	require.Equal(t, action.Cancelled, ended.Do(t.Context(), call("act", "a")).MustGet().Code)
	require.Equal(t, action.Cancelled, ended.DoWait(t.Context(), call("act", "a")).MustGet().Code)
	status, _, err := ended.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, "cancelled", status)
}
