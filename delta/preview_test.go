package delta_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

func ExampleTask_Preview() {
	refund := delta.Define("refund", func(_ *delta.Context, in struct {
		Amount int `json:"amount"`
	}) mo.Result[string] {
		return mo.Ok("done")
	}).Describe("Refund an order").Risk(2).RiskWhen("large", func(in struct {
		Amount int `json:"amount"`
	}) bool {
		return in.Amount > 100
	}, 5).MustBuild()
	ctx := context.Background()
	engine, _ := delta.New(delta.Config{Authenticator: anybody})
	defer func() { _ = engine.Close(ctx) }()
	task, _ := engine.Start(ctx, delta.Goal{Agent: delta.NewAgent("desk").Grant(refund).MustBuild(), Approvers: []string{"ana"}})

	for _, input := range []string{`{"amount":5}`, `{"amount":500}`, `{"amount":"much"}`} {
		v, err := task.Preview(ctx, delta.Call{Action: "refund", Input: []byte(input)}, nil)
		fmt.Println(v.Code, err)
	}
	// Output:
	// OK <nil>
	// APPROVAL_REQUIRED <nil>
	// INPUT_INVALID <nil>
}

// previewed is an engine with actions of every kind, and a task.
func previewed(t *testing.T, goal delta.Goal) *delta.Task {
	schema := []byte(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`)
	ok := func(*delta.Context, action.Input) mo.Result[action.Output] { return mo.Ok(action.Output(`{"id":"a"}`)) }
	plain := delta.DefineRaw("plain", schema, ok).Describe("Run").Risk(1).MustBuild()
	bound := delta.DefineRaw("bound", schema, ok).Describe("Run after").Risk(1).Needs(plain.On("id")).MustBuild()
	free := delta.DefineRaw("free", schema, ok).Describe("Run after any").Risk(1).Needs(plain).MustBuild()
	risky := delta.DefineRaw("risky", schema, ok).Describe("Risk it").Risk(5).MustBuild()
	e, err := delta.New(delta.Config{Authenticator: anybody})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	goal.Agent = delta.NewAgent("agent").Grant(plain, bound, free, risky).MustBuild()
	task, err := e.Start(t.Context(), goal)
	require.NoError(t, err)
	return task
}

// What a preview says is what a call made then meets, and nothing comes of having asked.
func TestPreviewSaysWhatACallMeets(t *testing.T) {
	synctest.Test(t, previewSaysWhatACallMeets)
}

func previewSaysWhatACallMeets(t *testing.T) {
	task := previewed(t, delta.Goal{Limit: action.Limit{Calls: action.Max(4)}})
	for i, c := range []struct {
		action, input string
		want          action.Code
		event         ledger.Type
	}{
		{"bound", `{"id":"a"}`, action.NotLegal, ledger.Refused},
		{"free", `{"id":"a"}`, action.NotLegal, ledger.Refused},
		{"nothing", `{}`, action.ActionUnknown, ledger.Refused},
		{"plain", `{"id":1}`, action.InputInvalid, ledger.Refused},
		{"plain", `{"id":1`, action.InputMalformed, ledger.Refused},
		{"risky", `{"id":"a"}`, action.NoApprover, ledger.Refused},
		{"plain", `{ "id" : "a" }`, action.OK, ledger.Begun},
		{"bound", `{"id":"a"}`, action.OK, ledger.Begun},
		{"bound", `{"id":"b"}`, action.NotLegal, ledger.Refused},
		{"free", `{"id":"b"}`, action.OK, ledger.Begun},
		{"plain", `{"id":"c"}`, action.OK, ledger.Begun},
		{"plain", `{"id":"c"}`, action.BudgetExhausted, ledger.Refused},
	} {
		synctest.Wait() // what was learned is folded in: a fold between preview and call would show in the second's risk
		before, _, err := task.Ledger(t.Context())
		require.NoError(t, err)
		call := delta.Call{Action: c.action, Input: []byte(c.input)}
		v, err := task.Preview(t.Context(), call, []byte("before"))
		require.NoError(t, err)
		require.Equal(t, c.want, v.Code, "%d: %v", i, v.Failure)
		require.Equal(t, c.want == action.OK, v.OK())
		require.Equal(t, "before", string(v.Event[:6]))
		e, err := ledger.Decode(string(v.Event[6:]))
		require.NoError(t, err, string(v.Event))
		assert.Equal(t, c.event, e.Type)
		after, _, err := task.Ledger(t.Context())
		require.NoError(t, err)
		require.Len(t, after, len(before), "nothing is written")

		out, err := task.Do(t.Context(), call).Get()
		require.NoError(t, err)
		require.Equal(t, c.want, out.Code, "%d: %v", i, out.Failure)
		all, _, err := task.Ledger(t.Context())
		require.NoError(t, err)
		recorded, err := ledger.Decode(all[len(before)].Val)
		require.NoError(t, err)
		recorded.At, recorded.Intent, recorded.Owner, recorded.Row = e.At, "", "", nil
		assert.Equal(t, recorded, e, "%d: the event is the one that is recorded", i)
	}
}

func TestPreviewAllocatesNothing(t *testing.T) {
	if raced {
		t.Skip("under the race detector pools drop what they are given, now and then")
	}
	task := previewed(t, delta.Goal{Limit: action.Limit{Calls: action.Max(9)}})
	call := delta.Call{Action: "plain", Input: []byte(`{"id":"a"}`)}
	dst := make([]byte, 0, 4096)
	n := testing.AllocsPerRun(100, func() {
		v, err := task.Preview(t.Context(), call, dst)
		if err != nil || !v.OK() {
			t.Fatal(v, err)
		}
	})
	assert.Less(t, n, 0.5)
}
