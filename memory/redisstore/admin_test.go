package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
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

func TestAgentsAreListed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx := context.Background()
	s := open(t, redisstore.Config{URL: srv.URL(), Prefix: "pre"})
	for _, a := range []string{"b", "a{x}:y", "c"} {
		_, err := s.Apply(ctx, put(a, "1"))
		require.NoError(t, err)
	}
	_, err := s.Apply(ctx, &txn.Txn{Agent: "looked-at", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Read, Scope: txn.Agent, Key: "k"}}})
	require.NoError(t, err)
	names, err := s.Agents(ctx, "", 10)
	require.NoError(t, err)
	assert.Equal(t, []string{"a{x}:y", "b", "c"}, names, "who was only looked at is none")
	names, err = s.Agents(ctx, "a{x}:y", 1)
	require.NoError(t, err)
	assert.Equal(t, []string{"b"}, names)

	require.NoError(t, srv.Client(t).ZRem(ctx, "pre:agents", "a{x}:y", "c").Err())
	missing, err := s.Unlisted(ctx)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"a{x}:y", "c"}, missing)
	require.NoError(t, s.Reindex(ctx, missing))
	names, err = s.Agents(ctx, "", 10)
	require.NoError(t, err)
	assert.Equal(t, []string{"a{x}:y", "b", "c"}, names)
}

func TestForgetWaitsForTheState(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx := context.Background()
	s := open(t, redisstore.Config{URL: srv.URL(), Keep: 20 * time.Millisecond})
	_, err := s.Apply(ctx, put("a", "1"))
	require.NoError(t, err)
	require.ErrorIs(t, s.Forget(ctx, "a", "t", 1, ""), memory.ErrKept)
	_, err = s.Apply(ctx, &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Expire, Scope: txn.Task}}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return errors.Is(s.Forget(ctx, "a", "t", 2, ""), memory.ErrAnother) }, 30*time.Second, 10*time.Millisecond, "not the ledger that was seen")
	require.ErrorIs(t, s.Forget(ctx, "a", "t", 1, strings.Repeat("a", 64)), memory.ErrAnother)
	require.NoError(t, s.Forget(ctx, "a", "t", 1, ""))
	keys, err := srv.Client(t).Keys(ctx, "delta:{a}:*:t").Result()
	require.NoError(t, err)
	assert.Empty(t, keys)
	require.NoError(t, s.Forget(ctx, "a", "t", 1, ""), "what is not there is forgotten")
}

// Who knows layout 3 alone would number an agent's records anew: it must not open what was cut.
func TestCutRaisesTheLayout(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx := context.Background()
	s := open(t, redisstore.Config{URL: srv.URL()})
	layout := func() string { return srv.Client(t).Get(ctx, "delta:version").Val() }
	assert.Equal(t, "3", layout())
	for range 300 {
		_, err := s.Apply(ctx, &txn.Txn{Agent: "a", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Event, Scope: txn.Agent, Val: strings.Repeat("x", 100)}}})
		require.NoError(t, err)
	}
	used := func() int64 { return srv.Client(t).MemoryUsage(ctx, "delta:{a}:ledger").Val() }
	before := used()
	require.NoError(t, s.Cut(ctx, "a", 290))
	assert.Equal(t, "4", layout())
	assert.Less(t, used(), before/4, "what is dropped is gone")
	again := open(t, redisstore.Config{URL: srv.URL()})
	rs, err := again.Records(ctx, "a", "", 1, 100)
	require.NoError(t, err)
	require.Len(t, rs, 10)
	assert.EqualValues(t, 291, rs[0].Seq)
	assert.Equal(t, redisstore.Fine, severities(t, again)["layout"])
}

// severities are the findings of a server by their check.
func severities(t *testing.T, s *redisstore.Store) map[string]redisstore.Severity {
	found, err := s.Examine(context.Background())
	require.NoError(t, err)
	out := map[string]redisstore.Severity{}
	for _, f := range found {
		out[f.Check] = f.Severity
		if f.Severity != redisstore.Fine {
			assert.NotEmpty(t, f.Do, "%s: a finding says the way out", f.Check)
		}
	}
	return out
}

func TestExamine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	srv := redistest.Start(t, "--appendonly", "yes")
	s := open(t, redisstore.Config{URL: srv.URL()})
	fine := severities(t, s)
	for _, check := range []string{"clock", "version", "eviction", "persistence", "replicas", "layout"} {
		assert.Equal(t, redisstore.Fine, fine[check], check)
	}
	c := srv.Client(t)
	for _, x := range []struct {
		name, setting, value, check string
		want                        redisstore.Severity
	}{
		{"a server that evicts", "maxmemory-policy", "allkeys-lru", "eviction", redisstore.Severe},
		{"a journal that is not flushed", "appendfsync", "no", "persistence", redisstore.Warning},
		{"nothing persists", "appendonly", "no", "persistence", redisstore.Severe},
		{"snapshots", "save", "60 1", "persistence", redisstore.Warning},
	} {
		require.NoError(t, c.ConfigSet(ctx, x.setting, x.value).Err())
		assert.Equal(t, x.want, severities(t, s)[x.check], x.name)
	}
	few := open(t, redisstore.Config{URL: srv.URL(), WaitReplicas: 1})
	assert.Equal(t, redisstore.Severe, severities(t, few)["replicas"])

	var log bytes.Buffer
	open(t, redisstore.Config{URL: srv.URL(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	assert.Contains(t, log.String(), "allkeys-lru", "said at start")
	assert.Contains(t, log.String(), "CONFIG SET maxmemory-policy noeviction")
}

func TestHealth(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx := context.Background()
	s := open(t, redisstore.Config{URL: srv.URL()})
	_, err := s.Apply(ctx, &txn.Txn{Agent: "a", Task: "t", Phase: txn.Begin, Intent: "i", Fence: 1, Owner: "o", TTL: 1, Clauses: []txn.Clause{
		{Op: txn.Event, Scope: txn.Task, Val: "one"}, {Op: txn.Event, Scope: txn.Task, Val: "two"}, {Op: txn.Queue, Key: "tasks", Val: "t", N: 1e12},
		{Op: txn.Pend, Val: "{}"}, {Op: txn.Link, Scope: txn.Task, N: 1, Val: "0123456789012345678901234567890123456789012345678901234567890123"}}})
	require.NoError(t, err)
	h, err := s.Health(ctx, "a")
	require.NoError(t, err)
	assert.Positive(t, h.Late)
	h.Late = 0
	assert.Equal(t, redisstore.Health{Expired: 1, Pending: 1, Unsealed: 1}, h)
}
