package redisstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

// A worker that knew a task which another one pruned is told just that, and goes on: nothing was lost. The id is free again.
func TestAPrunedTaskIsNoLoss(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	act := delta.DefineRaw("act", json.RawMessage(`{"type":"object"}`), func(*delta.Context, action.Input) mo.Result[action.Output] {
		return mo.Ok(action.Output(`{}`))
	}).Describe("Act").Risk(1).MustBuild()
	clerk := delta.NewAgent("clerk").Grant(act).MustBuild()
	engine := func() *delta.Engine {
		e, err := delta.New(delta.Config{
			Store:         open(t, redisstore.Config{URL: srv.URL(), Keep: 10 * time.Millisecond}),
			Authenticator: delta.AuthenticatorFunc(func(context.Context, any) (string, error) { return "op", nil }),
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
		require.NoError(t, e.Register(clerk))
		return e
	}
	knows, prunes := engine(), engine()
	task, err := knows.Start(ctx, delta.Goal{ID: "t", Agent: clerk, Text: "act"})
	require.NoError(t, err)
	other, err := knows.Start(ctx, delta.Goal{ID: "other", Agent: clerk, Text: "act on"})
	require.NoError(t, err)
	do := func(t *delta.Task) (action.Outcome, error) {
		return t.Do(ctx, delta.Call{Action: "act", Input: []byte(`{}`)}).Get()
	}
	out, err := do(task)
	require.NoError(t, err)
	require.True(t, out.OK())
	far, err := prunes.Open(ctx, "clerk~t")
	require.NoError(t, err)
	require.NoError(t, far.Done(ctx, "done")) // the first engine does not hear of it
	op, err := prunes.Authenticate(ctx, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		r, err := prunes.Prune(ctx, delta.Pruning{Agent: "clerk", Before: time.Now().Add(time.Hour), By: op, Reason: "retention"})
		return err == nil && len(r.Pruned)+len(r.Resumed) == 1
	}, 30*time.Second, 20*time.Millisecond)

	for range 3 {
		out, err := do(task)
		if err == nil {
			err = out.Err()
		}
		require.ErrorIs(t, err, delta.ErrPruned)
		assert.Equal(t, action.TaskClosed, action.FailureOf(err).Code)
	}
	require.NoError(t, knows.Sync(ctx))
	out, err = do(other)
	require.NoError(t, err)
	assert.True(t, out.OK(), "nothing of the agent was stopped: %v", out.Failure)
	again, err := knows.Start(ctx, delta.Goal{ID: "t", Agent: clerk, Text: "anew"})
	require.NoError(t, err)
	out, err = do(again)
	require.NoError(t, err)
	assert.True(t, out.OK(), "%v", out.Failure)
}

// A handle on a task that ended, and whose state has expired since, says so.
func TestATaskThatExpiredIsClosed(t *testing.T) {
	t.Parallel()
	w := newLossWorld(t)
	require.True(t, w.do(t, "t", "").OK())
	far, err := w.worker(t).Open(w.ctx, "clerk~t")
	require.NoError(t, err)
	require.NoError(t, far.Done(w.ctx, "done"))
	require.Eventually(t, func() bool { return w.redis.Exists(w.ctx, "delta:{clerk}:task:t").Val() == 0 }, 30*time.Second, 10*time.Millisecond)
	for range 3 {
		out := w.do(t, "t", "")
		require.Equal(t, action.TaskClosed, out.Code, "%v: %v", out.Failure, errors.Unwrap(out.Failure))
		require.ErrorContains(t, out.Failure, "expired")
	}
}
