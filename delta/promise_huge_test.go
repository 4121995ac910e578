package delta_test

import (
	"encoding/json"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// TestI07_WhatWasUsedIsNeverRefused: counters end at 2^53-1. A call that reports more than fits still settles as what it
// was; from there on nothing is granted on that axis.
func TestI07_WhatWasUsedIsNeverRefused(t *testing.T) {
	work := delta.Define("work", func(ctx *delta.Context, in In) mo.Result[Out] {
		if err := ctx.Spend(action.Cost{Bytes: action.MaxAmount/2 + 5}); err != nil {
			return mo.Err[Out](err)
		}
		return mo.Ok(Out{"done"})
	}).Describe("Work").Risk(1).Effect(action.None).MustBuild()
	engine, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	task, err := engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("worker").Grant(work).MustBuild()})
	require.NoError(t, err)
	for range 3 {
		out := task.Do(t.Context(), delta.Call{Action: "work", Input: json.RawMessage(`{"id":"x"}`)}).MustGet()
		require.True(t, out.OK(), "%+v", out.Failure)
	}
	b, err := task.Budget(t.Context())
	require.NoError(t, err)
	require.Equal(t, action.MaxAmount, b.Spent.Bytes)
	_, err = task.Events(t.Context())
	require.NoError(t, err)
}
