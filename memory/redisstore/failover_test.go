//go:build heavy

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// atOnce is how long a write is tried that is to be answered at once: as long as a busy machine may need for that.
const atOnce = 30 * time.Second

// write applies until it is known whether the transaction took effect; without patience it does not wait for replicas.
func write(t *testing.T, s *redisstore.Store, agent string, i int, patience time.Duration) error {
	t.Helper()
	until := time.Now().Add(max(patience, atOnce))
	x := &txn.Txn{Agent: agent, Task: "t", Phase: txn.Begin, Intent: fmt.Sprint("i", i), Fence: 1, Owner: "w", TTL: 1e9, Clauses: []txn.Clause{
		{Op: txn.Put, Scope: txn.Task, Key: "k", Val: fmt.Sprint(i)}, {Op: txn.Event, Scope: txn.Task, Val: fmt.Sprint(i)}}}
	for {
		r, err := s.Apply(context.Background(), x)
		if err == nil {
			require.True(t, r.OK)
			return nil
		}
		var lost *memory.LostError
		if errors.As(err, &lost) || time.Now().After(until) || patience == 0 && errors.Is(err, redisstore.ErrNotReplicated) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// failOver kills the master of the agent's slot after its replica was cut off for a moment, so that the replica lags.
func failOver(t *testing.T, replicas int) (acknowledged int, err error) {
	c := redistest.StartCluster(t, 3, 3, "--cluster-node-timeout", "2000")
	s := open(t, redisstore.Config{URL: c.URL(), WaitReplicas: replicas, WaitTime: 500 * time.Millisecond, Dial: 300 * time.Millisecond, Read: 700 * time.Millisecond})
	ctx := context.Background()
	master, replica := c.Of(t, "{a}")
	for ; acknowledged < 10; acknowledged++ {
		require.NoError(t, write(t, s, "a", acknowledged, atOnce))
	}
	conn := replica.Client(t).Conn()
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.ReadOnly(ctx).Err())
	require.Eventually(t, func() bool {
		n, err := conn.LLen(ctx, "delta:{a}:ledger:t").Result()
		return err == nil && n == 10
	}, atOnce, 5*time.Millisecond, "the replica has what there is")
	lagging := replica.Client(t)
	require.NoError(t, lagging.ConfigSet(ctx, "masterauth", "wrong").Err()) // what follows reaches the master alone
	require.NoError(t, lagging.Do(ctx, "client", "kill", "type", "master").Err())
	for range 3 {
		if err := write(t, s, "a", acknowledged, 0); err == nil {
			acknowledged++
		} else {
			require.ErrorIs(t, err, redisstore.ErrNotReplicated)
		}
	}
	master.Kill()
	require.Eventually(t, func() bool {
		return lagging.ConfigSet(ctx, "masterauth", "").Err() == nil && strings.Contains(lagging.Info(ctx, "replication").Val(), "role:master")
	},
		time.Minute, 50*time.Millisecond, "the replica takes over")
	require.NoError(t, master.Start(), "the old master comes back as its replica")
	until := time.Now().Add(2 * time.Minute)
	for i := 20; ; i++ {
		switch err := write(t, s, "a", i, time.Minute); {
		case err != nil:
			return acknowledged, err
		case time.Now().After(until):
			return acknowledged, nil
		}
		rs, err := s.Records(ctx, "a", "t", 1, 99)
		if err == nil && i > 22 {
			require.GreaterOrEqual(t, len(rs), acknowledged)
			return acknowledged, nil
		}
	}
}

func TestHeavyFailOverWithReplicasLosesNothing(t *testing.T) {
	n, err := failOver(t, 1)
	require.NoError(t, err)
	assert.Equal(t, 10, n, "what no replica confirmed was not acknowledged")
}

func TestHeavyFailOverWithoutReplicasIsNoticed(t *testing.T) {
	n, err := failOver(t, 0)
	require.Equal(t, 13, n)
	var lost *memory.LostError
	require.ErrorAs(t, err, &lost)
	assert.Equal(t, "a", lost.Agent)
}

// Slots that move while calls are made: each takes effect once.
func TestHeavySlotsMove(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, redisstore.Config{URL: c.URL()})
	ctx := context.Background()
	for i := range 20 {
		require.NoError(t, write(t, s, "a", i, time.Minute))
		if i%7 == 6 {
			c.Move(t, "{a}")
		}
	}
	rs, err := s.Records(ctx, "a", "t", 1, 99)
	require.NoError(t, err)
	assert.Len(t, rs, 20)
}
