package redisstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

// What an operator tells of a call, through an engine that holds none of the agent's functions, waits for a worker to learn
// from it: people who look into the store see that it waits, and soon that it was learned.
func TestWhatAnOperatorTellsIsLearned(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	engine := func() (*delta.Engine, delta.Identity) {
		e, err := delta.New(delta.Config{
			Store: open(t, redisstore.Config{URL: srv.URL()}), Operators: []string{"op"}, Poll: 20 * time.Millisecond,
			Authenticator: delta.AuthenticatorFunc(func(context.Context, any) (string, error) { return "op", nil }),
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
		op, err := e.Authenticate(ctx, nil)
		require.NoError(t, err)
		return e, op
	}
	pay := delta.DefineRaw("pay", json.RawMessage(`{"type":"object"}`), func(*delta.Context, action.Input) mo.Result[action.Output] {
		return mo.Err[action.Output](action.Unknown(errors.New("connection lost")))
	}).Describe("Pay").Risk(2).MustBuild()
	worker, _ := engine()
	task, err := worker.Start(ctx, delta.Goal{ID: "t", Agent: delta.NewAgent("till").Grant(pay).MustBuild(), Text: "pay"})
	require.NoError(t, err)
	out, err := task.Do(ctx, delta.Call{Action: "pay", Input: []byte(`{}`)}).Get()
	require.NoError(t, err)
	require.Equal(t, action.StartedUnknown, out.Code)
	require.NoError(t, worker.Sync(ctx))

	desk, op := engine()
	require.NoError(t, desk.Adopt(ctx, "till"))
	seen, err := desk.Open(ctx, "till~t")
	require.NoError(t, err)
	require.NoError(t, seen.Resolve(ctx, out.Intent, op, false, nil, action.Cost{}, "it did not arrive"))
	require.NoError(t, desk.Sync(ctx))
	c := srv.Client(t)
	require.Equal(t, "1", c.HGet(ctx, "delta:{till}:trust", "pending").Val(), "it waits")

	working, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- worker.Work(working) }()
	require.Eventually(t, func() bool {
		trust := c.HGetAll(ctx, "delta:{till}:trust").Val()
		return trust["pending"] == "0" && trust["err"] == "1" && c.ZCard(ctx, "delta:{till}:queue:folds").Val() == 0
	}, 20*time.Second, 10*time.Millisecond, "a worker learns from it")
	require.Contains(t, c.HGet(ctx, "delta:{till}:risk", "pay").Val(), "of 1")
	stop()
	require.ErrorIs(t, <-done, context.Canceled)
}
