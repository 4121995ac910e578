package delta_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

type fallible struct {
	Bad bool `json:"bad"`
}

func fallibly(_ *delta.Context, in fallible) mo.Result[string] {
	if in.Bad {
		return mo.Err[string](errors.New("no"))
	}
	return mo.Ok("ok")
}

// TestI05_HarmlessCallsDoNotFreeAnActionThatFails: what a planner may call unasked does not lift the gate from an action
// that failed, neither by succeeding nor by failing first.
func TestI05_HarmlessCallsDoNotFreeAnActionThatFails(t *testing.T) {
	for _, errs := range []int{2, 20} {
		e, err := delta.New(delta.Config{})
		require.NoError(t, err)
		defer e.Close(t.Context())
		wipe := delta.Define("wipe", fallibly).Describe("Wipe").Risk(3).MustBuild()
		read := delta.Define("read", fallibly).Describe("Read").Risk(1).MustBuild()
		list := delta.Define("list", fallibly).Describe("List").Risk(3).MustBuild()
		agent := delta.NewAgent(fmt.Sprintf("desk-%d", errs)).Grant(wipe).Grant(read).Grant(list).MustBuild()
		open := delta.Goal{Agent: agent, Limit: action.Limit{Calls: action.Max(2000)}, Threshold: 5}
		past, err := e.Start(t.Context(), open)
		require.NoError(t, err)
		for range errs { // a person is asked from the third on; nobody is there
			wipe.Do(t.Context(), past, fallible{Bad: true})
		}
		open.Threshold = 0
		task, err := e.Start(t.Context(), open)
		require.NoError(t, err)
		risks, err := e.Risks(t.Context(), agent.Name())
		require.NoError(t, err)
		own := risks[0]
		require.GreaterOrEqual(t, own.Floor, 4.0, "%d Err: %+v", own.Errs, own)
		for i := range 300 {
			bad := fallible{Bad: i < 20}
			read.Do(t.Context(), task, bad)
			list.Do(t.Context(), task, bad)
			if i%20 == 19 {
				require.True(t, wipe.Do(t.Context(), task, fallible{}).IsError(), "after %d harmless calls of each", i+1)
			}
		}
		risks, err = e.Risks(t.Context(), agent.Name())
		require.NoError(t, err)
		require.Equal(t, own.N, risks[0].N, "it never ran")
		require.Equal(t, own.Floor, risks[0].Floor)
	}
}

// TestI07_OneAbsurdCostDoesNotShutAnActionOut: what was used is charged as it was, but the next call need not reserve it.
func TestI07_OneAbsurdCostDoesNotShutAnActionOut(t *testing.T) {
	e, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer e.Close(t.Context())
	search := delta.Define("search", func(c *delta.Context, in fallible) mo.Result[string] {
		n := int64(100)
		if in.Bad {
			n = 1 << 52
		}
		if err := c.Spend(action.Cost{Tokens: n}); err != nil {
			return mo.Err[string](err)
		}
		return mo.Ok("ok")
	}).Describe("Search").Risk(1).MustBuild()
	agent := delta.NewAgent("desk").Grant(search).MustBuild()
	start := func() *delta.Task {
		task, err := e.Start(t.Context(), delta.Goal{Agent: agent, Limit: action.Limit{Tokens: action.Max(1_000_000)}})
		require.NoError(t, err)
		return task
	}
	task := start()
	for i := range 30 {
		require.NoError(t, search.Do(t.Context(), task, fallible{}).Error(), "call %d", i)
	}
	search.Do(t.Context(), task, fallible{Bad: true})
	require.NoError(t, search.Do(t.Context(), start(), fallible{}).Error())
}
