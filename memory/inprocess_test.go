package memory_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

func TestInProcessSmoke(t *testing.T) {
	ctx := context.Background()
	now := time.UnixMicro(1_000_000)
	s := memory.New(memory.Config{Clock: func() time.Time { return now }})
	begin := &txn.Txn{Agent: "a", Task: "t", Phase: txn.Begin, Intent: "i", Fence: 1, Owner: "w", TTL: 1000, Clauses: []txn.Clause{
		{Op: txn.Count, Scope: txn.Task, Key: "spent", N: 3, Max: 5},
		{Op: txn.Event, Scope: txn.Task, Val: "begun"},
	}}
	r, err := s.Apply(ctx, begin)
	require.NoError(t, err)
	require.Equal(t, txn.Reply{OK: true, Now: 1_000_000, Seq: 1, Until: 1_001_000, TaskRev: 1}, r)
	r, err = s.Apply(ctx, begin)
	require.NoError(t, err)
	require.True(t, r.Replay)
	q, err := s.Queued(ctx, "a", txn.Leases, txn.Queued{}, false, 10)
	require.NoError(t, err)
	require.Equal(t, []txn.Queued{{Member: "t\ni", Due: 1_001_000}}, q)
	n, err := s.Load(ctx, "a", "t", nil)
	require.NoError(t, err)
	require.Equal(t, int64(3), n.Task.Counters["spent"])
}
