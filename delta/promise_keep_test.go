package delta_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// Calls that ended are kept for Config.Keep of the in-process store: so long a repeat is answered. An unknown outcome is
// kept until it is resolved, and a task until it ended; the id of a task is taken until it is pruned.
func TestI09_KeptAsLongAsPromised(t *testing.T) {
	ctx, start, ran := t.Context(), time.Now(), 0
	var passed atomic.Int64 // the engine's goroutines read the clock too
	now := func() time.Time { return start.Add(time.Duration(passed.Load())) }
	store := memory.New(memory.Config{Keep: time.Hour, Clock: now})
	count := delta.Define("count", func(*delta.Context, In) mo.Result[Out] {
		ran++
		return mo.Ok(Out{Said: "counted"})
	}).Describe("Count").Risk(2).Effect(action.Idempotent).MustBuild()
	pay := delta.Define("pay", func(*delta.Context, In) mo.Result[Out] {
		return mo.Err[Out](action.Unknown(errors.New("connection lost")))
	}).Describe("Pay").Risk(2).MustBuild()
	engine, err := delta.New(delta.Config{Store: store, Operators: []string{"olga"}, Now: now,
		Authenticator: delta.AuthenticatorFunc(func(_ context.Context, name any) (string, error) { return name.(string), nil })})
	require.NoError(t, err)
	defer engine.Close(ctx)
	agent := delta.NewAgent("keeper").Grant(count, pay).MustBuild()
	task, err := engine.Start(ctx, delta.Goal{ID: "t", Agent: agent})
	require.NoError(t, err)

	do := func(id, name string) action.Outcome {
		t.Helper()
		out, err := task.Do(ctx, delta.Call{ID: id, Action: name, Input: []byte(`{"id":"a"}`)}).Get()
		require.NoError(t, err)
		return out
	}
	pass := func(d time.Duration) {
		t.Helper()
		passed.Add(int64(d))
		for _, id := range []string{"x", "y", "z"} { // the store tidies up with later calls
			do(id+now().String()[11:19], "count")
		}
	}
	first, unknown := do("call-1", "count"), do("call-2", "pay")
	require.Equal(t, action.StartedUnknown, unknown.Code)
	pass(50 * time.Minute)
	runs := ran
	require.Equal(t, first.Intent, do("call-1", "count").Intent, "a repeat within the hour is answered")
	require.Equal(t, runs, ran)
	pass(20 * time.Minute)
	require.NotEqual(t, first.Intent, do("call-1", "count").Intent, "a repeat after the hour is a new call")
	require.Equal(t, unknown.Intent, do("call-2", "pay").Intent, "what is unknown is kept")

	pass(48 * time.Hour)
	olga, err := engine.Authenticate(ctx, "olga")
	require.NoError(t, err)
	require.NoError(t, task.Resolve(ctx, unknown.Intent, olga, false, nil, action.Cost{}, "the bank says no"))
	require.Equal(t, action.Failed, do("call-2", "pay").Code, "what the operator said")
	require.NoError(t, task.Done(ctx, "done"))
	passed.Add(int64(50 * time.Minute))
	again, err := engine.Open(ctx, "keeper~t")
	require.NoError(t, err)
	status, _, err := again.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, "closed", status)

	passed.Add(int64(time.Hour))
	other, err := engine.Start(ctx, delta.Goal{ID: "u", Agent: agent})
	require.NoError(t, err)
	_, err = count.Do(ctx, other, In{ID: "a"}).Get()
	require.NoError(t, err)
	require.NoError(t, engine.Sync(ctx))
	_, err = engine.Open(ctx, "keeper~t")
	require.ErrorIs(t, err, delta.ErrNoTask)
	_, err = engine.Start(ctx, delta.Goal{ID: "t", Agent: agent})
	require.Error(t, err, "an id is taken also by a task that ended")
	records, _, err := task.Ledger(ctx)
	require.NoError(t, err, "the ledger is kept, and whole")
	require.NotEmpty(t, records)
}
