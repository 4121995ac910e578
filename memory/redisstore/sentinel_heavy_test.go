//go:build heavy

package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

// A Sentinel set whose master dies: the store follows to the one that was promoted, and what a replica had confirmed is there.
func TestHeavySentinelsPromoteAnother(t *testing.T) {
	set := redistest.StartSet(t)
	ctx := context.Background()
	s := open(t, redisstore.Config{URL: set.URL(), WaitReplicas: 1, WaitTime: 500 * time.Millisecond, Dial: 300 * time.Millisecond, Read: 700 * time.Millisecond})
	for i := range 10 {
		require.NoError(t, write(t, s, "a", i, atOnce))
	}
	set.Servers[0].Kill()
	promoted := set.Servers[1].Client(t)
	require.Eventually(t, func() bool { return strings.Contains(promoted.Info(ctx, "replication").Val(), "role:master") },
		time.Minute, 20*time.Millisecond)
	require.NoError(t, set.Servers[0].Start(), "it comes back, and the sentinels make it a replica")
	for i := range 10 {
		require.NoError(t, write(t, s, "a", 10+i, 2*time.Minute))
	}
	rs, err := s.Records(ctx, "a", "t", 1, 99)
	require.NoError(t, err)
	assert.Len(t, rs, 20)
	assert.Equal(t, rs[19].Val, promotedLast(t, promoted.LIndex(ctx, "delta:{a}:ledger:t", -1).Val()), "it is written to the one that was promoted")
}

// promotedLast is the text of an element of a ledger, behind its time.
func promotedLast(t *testing.T, element string) string {
	require.Greater(t, len(element), 16)
	return element[16:]
}
