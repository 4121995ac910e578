package redisstore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

func TestSqueezedIsWhatItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"\x02", "\x01", "", "a", "{}"}).Draw(t, "begin")
		val := part + strings.Repeat(rapid.String().Draw(t, "text"), rapid.IntRange(0, 300).Draw(t, "times"))
		stored := redisstore.Squeeze(val)
		got, err := redisstore.Unsqueeze(stored)
		require.NoError(t, err)
		require.Equal(t, val, got)
		if !strings.HasPrefix(val, "\x02") {
			require.LessOrEqual(t, len(stored), len(val))
		}
	})
	_, err := redisstore.Unsqueeze("\x02no such thing")
	require.ErrorContains(t, err, "a compressed value")
}

func FuzzUnsqueeze(f *testing.F) {
	f.Add(redisstore.Squeeze(strings.Repeat("a long value, ", 99)))
	f.Add("\x02")
	f.Fuzz(func(t *testing.T, stored string) {
		val, err := redisstore.Unsqueeze(stored)
		if err != nil {
			return
		}
		again, err := redisstore.Unsqueeze(redisstore.Squeeze(val))
		require.NoError(t, err)
		require.Equal(t, val, again)
	})
}

// Long values take less room in the store, and come back from it however they are asked for.
func TestLongCellsAreCompressed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s, ctx := open(t, redisstore.Config{URL: srv.URL()}), context.Background()
	long, odd := strings.Repeat(`{"name":"charge","risk":2},`, 200), "\x02short"
	cell := func(scope txn.Scope, key, val string) txn.Clause {
		return txn.Clause{Op: txn.Put, Scope: scope, Key: key, Val: val}
	}
	r, err := s.Apply(ctx, &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{
		cell(txn.Agent, "card", long), cell(txn.Agent, "odd", odd), cell(txn.Task, "task", long), cell(txn.Task, "odd", odd), cell(txn.Record, "cold", long),
		cell(txn.Record, "odd", odd)}})
	require.NoError(t, err)
	require.True(t, r.OK)
	snap, err := s.Load(ctx, "a", "t", nil)
	require.NoError(t, err)
	read, err := s.Apply(ctx, &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{
		{Op: txn.Read, Scope: txn.Agent, Key: "card"}, {Op: txn.Read, Scope: txn.Task, Key: "odd"}, {Op: txn.Read, Scope: txn.Record, Key: "cold"},
		{Op: txn.Read, Scope: txn.Record, Key: "odd"}}})
	require.NoError(t, err)
	for name, got := range map[string][2]string{
		"card": {long, snap.Agent.Cells["card"].Val}, "odd": {odd, snap.Agent.Cells["odd"].Val}, "task": {long, snap.Task.Cells["task"].Val},
		"odd of the task": {odd, snap.Task.Cells["odd"].Val}, "card in a reply": {long, read.Fresh.Agent.Cells["card"].Val},
		"odd in a reply": {odd, read.Fresh.Task.Cells["odd"].Val}, "cold in a reply": {long, read.Fresh.Record.Cells["cold"].Val},
		"cold and odd": {odd, read.Fresh.Record.Cells["odd"].Val},
	} {
		assert.Equal(t, got[0], got[1], name)
	}
	c := srv.Client(t)
	assert.Less(t, len(c.HGet(ctx, "delta:{a}:agent", "vcard").Val()), len(long)/4)
	assert.Less(t, len(c.HGet(ctx, "delta:{a}:task:t", "vtask").Val()), len(long)/4)
	assert.Greater(t, len(c.HGet(ctx, "delta:{a}:records:t", "vcold").Val()), len(long), "what is read now and then stands as it is")
}
