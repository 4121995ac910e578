package redisstore_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// The user that doc/redis.md gives a tenant can do all that a store does, under its own prefix and under no other.
func TestTheTenantsUser(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../doc/redis.md")
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^ACL SETUSER acme .*$`).Find(doc)
	require.NotEmpty(t, line)
	srv := redistest.Start(t)
	var args []any
	for _, a := range strings.Fields(string(line)) {
		args = append(args, a)
	}
	ctx := context.Background()
	require.NoError(t, srv.Client(t).Do(ctx, args...).Err())

	c := redisstore.Config{URL: srv.URL(), User: "acme", Password: "secret", Prefix: "acme"}
	s := open(t, c)
	reply, err := s.Apply(ctx, put("a", "1"))
	require.NoError(t, err)
	assert.True(t, reply.OK)
	records, err := s.Records(ctx, "a", "t", 1, 9)
	require.NoError(t, err)
	assert.Len(t, records, 1)
	_, err = s.Queued(ctx, "a", txn.Leases, txn.Queued{}, false, 9)
	require.NoError(t, err)

	c.Prefix = "other"
	_, err = redisstore.Open(ctx, c)
	require.ErrorContains(t, err, "NOPERM")
}
