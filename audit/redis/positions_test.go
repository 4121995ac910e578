package redis_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/audit"
	"github.com/seed-ab2cfece/delta-agents/audit/redis"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// forgetful are the positions of a process that dies before it saves any.
type forgetful struct{ audit.Positions }

func (forgetful) Save(map[string]audit.Position) error { return errors.New("killed") }

// Process after process writes a part of the same ledgers, some without a trail at all; in the end the stream has every
// record once, in the order of its ledger.
func TestAProcessGoesOnBehindTheLastEntry(t *testing.T) {
	client := redistest.Start(t).Client(t)
	config := redis.Config{Client: client, Stream: "trail"}
	store := memory.New(memory.Config{})
	act := delta.DefineRaw("act", json.RawMessage(`{"type":"object"}`), func(*delta.Context, action.Input) mo.Result[action.Output] {
		return mo.Ok(action.Output(`{}`))
	}).Describe("Act").Risk(1).MustBuild()
	clerk := delta.NewAgent("clerk").Grant(act).MustBuild()
	life := func(n int, trailed, dies bool) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cfg := delta.Config{Store: store}
		var trail *audit.Trail
		if trailed {
			sink, err := redis.New(config)
			require.NoError(t, err)
			positions, err := redis.NewPositions(config)
			require.NoError(t, err)
			if dies {
				positions = forgetful{positions}
			}
			trail, err = audit.New(audit.Config{Sink: sink, Positions: positions})
			require.NoError(t, err)
			cfg.Observers = []delta.Watch{trail.Watch()}
		}
		e, err := delta.New(cfg)
		require.NoError(t, err)
		require.NoError(t, e.Register(clerk))
		if trailed {
			require.NoError(t, trail.Attach(e))
		}
		task, err := e.Open(ctx, "clerk~long")
		if err != nil {
			task, err = e.Start(ctx, delta.Goal{ID: "long", Agent: clerk, Text: "go on"})
		}
		require.NoError(t, err)
		short, err := e.Start(ctx, delta.Goal{ID: fmt.Sprint("short", n), Agent: clerk, Text: "be brief"})
		require.NoError(t, err)
		for range 3 {
			require.True(t, task.Do(ctx, delta.Call{Action: "act", Input: []byte(`{}`)}).MustGet().OK())
		}
		require.NoError(t, short.Done(ctx, "done"))
		require.NoError(t, e.Sync(ctx))
		if trailed {
			require.NoError(t, trail.Sync(ctx))
		}
		require.NoError(t, e.Close(ctx))
		if trailed {
			assert.Equal(t, dies, trail.Close(ctx) != nil)
		}
	}
	life(1, true, true)
	life(2, true, false)
	life(3, false, false)
	life(4, true, true)
	life(5, true, false)

	got, err := client.XRange(t.Context(), "{trail}", "-", "+").Result()
	require.NoError(t, err)
	have := map[string][]string{}
	for _, m := range got {
		name := m.Values["ledger"].(string)
		have[name] = append(have[name], m.Values["seq"].(string))
	}
	for _, book := range []string{"long", "short1", "short2", "short4", "short5"} {
		records, err := store.Records(t.Context(), "clerk", book, 1, 1000)
		require.NoError(t, err)
		var want []string
		for _, r := range records {
			want = append(want, fmt.Sprint(r.Seq))
		}
		assert.Equal(t, want, have["clerk~"+book], book)
	}
	ended, err := client.HKeys(t.Context(), "{trail}:ended").Result()
	require.NoError(t, err)
	slices.Sort(ended)
	assert.Subset(t, ended, []string{"clerk~short2", "clerk~short5"})
	assert.NotContains(t, ended, "clerk~long")
}

func TestPositionsSayWhatIsWrong(t *testing.T) {
	_, err := redis.NewPositions(redis.Config{})
	require.ErrorContains(t, err, "no Client")
	client := redistest.Start(t).Client(t)
	p, err := redis.NewPositions(redis.Config{Client: client})
	require.NoError(t, err)
	all, err := p.Load()
	require.NoError(t, err)
	assert.Empty(t, all)
	require.NoError(t, client.HSet(t.Context(), "{audit}:seq", "a~t", "many").Err())
	_, err = p.Load()
	require.ErrorContains(t, err, "of a~t")
}
