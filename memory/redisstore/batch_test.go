package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

// Many at once share trips: each gets its own answer, also where the server has forgotten the scripts.
func TestCallsThatShareTrips(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"server": redistest.Start(t).URL(), "cluster": redistest.StartCluster(t, 3, 0).URL()} {
		s := open(t, redisstore.Config{URL: url})
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				agent := fmt.Sprint("a", i%20)
				r, err := s.Apply(context.Background(), put(agent, fmt.Sprint(i)))
				assert.NoError(t, err, name)
				assert.True(t, r.OK, name)
				snap, err := s.Load(context.Background(), agent, "t", nil)
				if assert.NoError(t, err, name) {
					assert.GreaterOrEqual(t, snap.Task.Rev, r.TaskRev, name)
				}
			})
		}
		wg.Wait()
		for i := range 20 {
			rs, err := s.Records(context.Background(), fmt.Sprint("a", i), "t", 1, 99)
			require.NoError(t, err)
			assert.Len(t, rs, 10, name)
		}
	}
}

// Who shares a trip waits no longer than their own context lasts.
func TestAWaitOnASharedTripEndsWithItsContext(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	own := 2 * time.Minute // the client's own timeouts
	s := open(t, redisstore.Config{URL: srv.URL(), Read: own, Write: own})
	_, err := s.Apply(context.Background(), put("a", "x"))
	require.NoError(t, err)
	srv.Pause()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	from := time.Now()
	for range 20 {
		wg.Go(func() {
			_, err := s.Load(ctx, "a", "t", nil)
			assert.Error(t, err)
		})
	}
	wg.Wait()
	srv.Resume()
	assert.Less(t, time.Since(from), own/2, "less than the client's own timeouts")
}

// What a transaction is put together in is used again, but not while it may be on its way: what nobody waits for any more is
// written as it was meant, or not at all.
func TestWhatNobodyWaitsForIsSentAsItWas(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := open(t, redisstore.Config{URL: srv.URL(), Read: time.Minute, Write: time.Minute})
	const agents = 40
	each := func(ctx context.Context, round string, check func(error)) {
		var wg sync.WaitGroup
		for i := range agents {
			wg.Go(func() {
				_, err := s.Apply(ctx, put(fmt.Sprint("a", i), fmt.Sprintf("%s of %d", round, i)))
				check(err)
			})
		}
		wg.Wait()
	}
	each(context.Background(), "first", func(err error) { assert.NoError(t, err) })
	srv.Pause()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, func() { // by when all are sent, or wait for those that are; it does not matter which
		cancel()
		srv.Resume()
	})
	each(ctx, "given up", func(error) {})
	for _, round := range []string{"second", "third"} {
		each(context.Background(), round, func(err error) { assert.NoError(t, err) })
	}
	for i := range agents {
		rs, err := s.Records(context.Background(), fmt.Sprint("a", i), "t", 1, 99)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(rs), 3)
		for _, r := range rs {
			assert.Contains(t, r.Val, fmt.Sprintf(" of %d", i))
		}
	}
}
