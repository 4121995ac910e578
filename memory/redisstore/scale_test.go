//go:build heavy

package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// inPipelines applies n transactions from many goroutines.
func inPipelines(t *testing.T, s *redisstore.Store, n int, x func(i int) *txn.Txn) {
	t.Helper()
	const hands = 64
	var wg sync.WaitGroup
	for h := range hands {
		wg.Go(func() {
			for i := h; i < n; i += hands {
				r, err := s.Apply(context.Background(), x(i))
				if !assert.NoError(t, err) || !assert.True(t, r.OK, "%d", i) {
					return
				}
			}
		})
	}
	wg.Wait()
}

// used is how many keys there are, and how many bytes but for what the server keeps of its own: buffers, tables of keys.
func used(t *testing.T, c *redis.Client) (keys, bytes int64) {
	ctx := context.Background()
	keys, err := c.DBSize(ctx).Result()
	require.NoError(t, err)
	info, err := c.Info(ctx, "memory").Result()
	require.NoError(t, err)
	_, after, _ := strings.Cut(info, "used_memory_dataset:")
	_, err = fmt.Sscan(after, &bytes)
	require.NoError(t, err)
	return keys, bytes
}

// 100,000 tasks come and go: what they leave is their ledgers, which are for prune to drop. Without those, keys and memory
// are where they were.
func TestHeavyTasksComeAndGo(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, redisstore.Config{URL: srv.URL(), Keep: time.Millisecond})
	c, ctx := srv.Client(t), context.Background()
	life := func(i int) []*txn.Txn {
		task, intent := fmt.Sprint("t", i), fmt.Sprint("i", i)
		of := func(x txn.Txn) *txn.Txn { x.Agent, x.Task = "a", task; return &x }
		return []*txn.Txn{
			of(txn.Txn{Phase: txn.Begin, Intent: intent, Fence: 1, Owner: "w", TTL: 1e9, Clauses: []txn.Clause{
				{Op: txn.Put, Scope: txn.Task, Key: "task", Val: "running"}, {Op: txn.Put, Scope: txn.Record, Key: intent, Val: "begun"},
				{Op: txn.Queue, Key: "tasks", Val: task, N: 1e9}, {Op: txn.Count, Scope: txn.Task, Key: "granted", N: 5, Min: txn.NoMin, Max: txn.NoMax},
				{Op: txn.Event, Scope: txn.Task, Val: "begun"}}}),
			of(txn.Txn{Phase: txn.Settle, Intent: intent, Fence: 1, Owner: "w", Clauses: []txn.Clause{
				{Op: txn.Put, Scope: txn.Record, Key: "out", Val: "done"}, {Op: txn.Unqueue, Key: "tasks", Val: task},
				{Op: txn.Expire, Scope: txn.Task}, {Op: txn.Event, Scope: txn.Task, Val: "settled"}}}),
		}
	}
	run := func(from, n int) {
		inPipelines(t, s, n, func(i int) *txn.Txn {
			l := life(from + i)
			r, err := s.Apply(ctx, l[0])
			assert.NoError(t, err)
			assert.True(t, r.OK)
			return l[1]
		})
	}
	clean := func() (int64, int64) {
		inPipelines(t, s, 200, func(i int) *txn.Txn { return put("a", "x") }) // what may go goes as others come
		require.Eventually(t, func() bool { return len(c.Keys(ctx, "delta:{a}:records:*").Val()) <= 1 }, 20*time.Second, 20*time.Millisecond)
		for at := uint64(0); ; {
			keys, next, err := c.Scan(ctx, at, "delta:{a}:ledger:*", 10_000).Result()
			require.NoError(t, err)
			if len(keys) > 0 {
				require.NoError(t, c.Del(ctx, keys...).Err())
			}
			if at = next; at == 0 {
				s = open(t, redisstore.Config{URL: srv.URL(), Keep: time.Millisecond}) // the other one would call that a loss
				return used(t, c)
			}
		}
	}
	run(0, 2_000)
	keys, bytes := clean()
	run(2_000, 100_000)
	keysAfter, bytesAfter := clean()
	t.Logf("%d keys and %d bytes before, %d and %d after", keys, bytes, keysAfter, bytesAfter)
	assert.LessOrEqual(t, keysAfter, keys)
	assert.Less(t, bytesAfter, bytes+1<<20, "ten bytes a task")
}

// 100,000 calls wait for a person: a page of them costs what it costs at 100, and to resume one touches its own keys alone.
func TestHeavyParkedCalls(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, redisstore.Config{URL: srv.URL()})
	c, ctx := srv.Client(t), context.Background()
	park := func(from, n int) {
		inPipelines(t, s, n, func(i int) *txn.Txn {
			i += from
			task, intent := fmt.Sprint("t", i/100), fmt.Sprint("i", i)
			return &txn.Txn{Agent: "a", Task: task, Phase: txn.Park, Intent: intent, Fence: 1, Owner: "w", Clauses: []txn.Clause{
				{Op: txn.Put, Scope: txn.Record, Key: intent, Val: strings.Repeat("x", 200)}, {Op: txn.Queue, Key: "asks", Val: task + "~" + intent, N: int64(1e9 + i)},
				{Op: txn.Event, Scope: txn.Task, Val: "parked"}}}
		})
	}
	page := func() (µs float64) {
		least := 1e9
		for range 50 {
			require.NoError(t, c.ConfigResetStat(ctx).Err())
			q, err := s.Queued(ctx, "a", "asks", txn.Queued{Member: "t0~i7", Due: 7}, false, 50)
			require.NoError(t, err)
			require.Len(t, q, 50)
			_, after, _ := strings.Cut(c.Info(ctx, "commandstats").Val(), "cmdstat_evalsha:calls=1,usec=")
			_, err = fmt.Sscan(strings.SplitN(after, ",", 2)[0], &µs)
			require.NoError(t, err)
			least = min(least, µs)
		}
		return least
	}
	park(0, 100)
	hundred := page()
	park(100, 900) // more than 128 the server keeps in another form, which takes longer to walk
	few := page()
	park(1_000, 99_000)
	many := page()
	t.Logf("a page of 50 takes the server %.0f µs of 100, %.0f of 1,000, %.0f of 100,000", hundred, few, many)
	assert.LessOrEqual(t, many, 3*few+20)

	var seen keysSeen
	hooked := redis.NewClient(&redis.Options{Addr: srv.Addr})
	hooked.AddHook(&seen)
	defer func() { _ = hooked.Close() }()
	resumer, err := redisstore.New(ctx, hooked, redisstore.Config{})
	require.NoError(t, err)
	seen.keys = nil
	r, err := resumer.Apply(ctx, &txn.Txn{Agent: "a", Task: "t500", Phase: txn.Begin, Intent: "i50007", Fence: 1, Owner: "v", TTL: 1e9, Clauses: []txn.Clause{
		{Op: txn.Unqueue, Key: "asks", Val: "t500~i50007"}, {Op: txn.Event, Scope: txn.Task, Val: "begun"}}})
	require.NoError(t, err)
	require.True(t, r.OK)
	for _, k := range seen.keys {
		assert.Contains(t, []string{"delta:{a}:task:t500", "delta:{a}:records:t500", "delta:{a}:agent", "delta:{a}:queue:leases", "delta:{a}:ends:t500",
			"delta:{a}:ledger:t500", "delta:{a}:pending", "delta:{a}:queue:asks"}, k)
	}
	assert.Len(t, seen.keys, 8)
}

// keysSeen is a hook that keeps the keys of scripts.
type keysSeen struct{ keys []string }

func (k *keysSeen) DialHook(next redis.DialHook) redis.DialHook { return next }

func (k *keysSeen) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (k *keysSeen) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		if name, _ := args[0].(string); strings.EqualFold(name, "evalsha") {
			n, _ := args[2].(int)
			k.keys = nil
			for _, key := range args[3 : 3+n] {
				text, _ := key.(*string)
				k.keys = append(k.keys, *text)
			}
		}
		return next(ctx, cmd)
	}
}
