package redisstore_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

// saved is what a server holds, to be put back as after a restore, or a fail-over to a replica that lagged.
type saved map[string]string

func save(t *testing.T, c *redis.Client) saved {
	ctx, all := context.Background(), saved{}
	for _, k := range c.Keys(ctx, "*").Val() {
		all[k] = c.Dump(ctx, k).Val()
	}
	return all
}

func (s saved) restore(t *testing.T, c *redis.Client) {
	ctx := context.Background()
	require.NoError(t, c.FlushDB(ctx).Err())
	for k, v := range s {
		require.NoError(t, c.Restore(ctx, k, 0, v).Err())
	}
}

// An engine that was told of more than the server knows stops the task, with the reason; nothing runs on lost grounds.
func TestI15_AnEngineStopsWhatTheServerLost(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	ctx := context.Background()
	s := open(t, redisstore.Config{URL: srv.URL()})
	e, err := delta.New(delta.Config{Store: s})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(ctx)) }()
	ran := 0
	act := delta.DefineRaw("act", json.RawMessage(`{"type":"object"}`), func(*delta.Context, action.Input) mo.Result[action.Output] {
		ran++
		return mo.Ok(action.Output(`{}`))
	}).Describe("Act").Risk(1).MustBuild()
	task, err := e.Start(ctx, delta.Goal{ID: "t", Agent: delta.NewAgent("clerk").Grant(act).MustBuild(), Text: "get it done"})
	require.NoError(t, err)
	do := func() action.Outcome { return task.Do(ctx, delta.Call{Action: "act", Input: []byte(`{}`)}).MustGet() }
	require.NoError(t, e.Sync(ctx))
	before := save(t, c)
	require.True(t, do().OK())
	require.NoError(t, e.Sync(ctx))
	before.restore(t, c)

	out := do()
	assert.Equal(t, action.StoreUnavailable, out.Code)
	require.ErrorContains(t, out.Err(), "lost acknowledged writes")
	require.NoError(t, e.Sync(ctx))
	status, why, err := task.Status(ctx)
	require.NoError(t, err)
	assert.Equal(t, "cancelled", status)
	assert.Contains(t, why, "lost acknowledged writes")
	assert.Equal(t, action.Cancelled, do().Code)
	assert.Equal(t, 1, ran)
}
