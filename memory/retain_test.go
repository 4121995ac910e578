package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// A store that works for long holds what is recent: its ledgers alone grow.
func TestWhatEndedDoesNotPileUp(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := New(Config{Keep: time.Minute, Clock: func() time.Time { return now }})
	ctx := context.Background()
	apply := func(x *txn.Txn) {
		t.Helper()
		r, err := s.Apply(ctx, x)
		require.NoError(t, err)
		require.True(t, r.OK)
	}
	for i := range 20_000 {
		now = now.Add(100 * time.Millisecond) // 600 calls a Keep
		id, task := fmt.Sprint("i", i), fmt.Sprint("t", i/50)
		put := func(k string) txn.Clause { return txn.Clause{Op: txn.Put, Scope: txn.Record, Key: k + id} }
		apply(&txn.Txn{Agent: "a", Task: task, Phase: txn.Begin, Intent: id, Fence: 1, Owner: "o", TTL: 1000, Clauses: []txn.Clause{
			put("intent/"), put("call/"), {Op: txn.Event, Scope: txn.Task, Val: "begun"}, {Op: txn.Put, Scope: txn.Task, Key: "k"}}})
		apply(&txn.Txn{Agent: "a", Task: task, Phase: txn.Settle, Intent: id, Fence: 1, Owner: "o", Clauses: []txn.Clause{
			put("out/"), {Op: txn.Event, Scope: txn.Task, Val: "settled"}, {Op: txn.Pend, Val: "o"}}})
		apply(&txn.Txn{Agent: "a", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Trim, N: int64(i + 1)}}})
		if i%50 == 49 {
			apply(&txn.Txn{Agent: "a", Task: task, Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Expire, Scope: txn.Task}}})
		}
	}
	v, _ := s.agents.Load("a")
	a := v.(*shard)
	intents, cells, full := 0, 0, 0
	for _, k := range a.tasks {
		intents, cells = intents+len(k.intents), cells+len(k.record.Cells)
		if !k.expired {
			full++
			assert.Zero(t, k.lively)
		}
	}
	assert.InDelta(t, 600, intents, 60)
	assert.Equal(t, 3*intents, cells)
	assert.LessOrEqual(t, full, 14)
	assert.LessOrEqual(t, int(a.intents.n), 700, "places are used again")
	assert.LessOrEqual(t, int(a.owned.n), 2100, "places are used again")
	assert.LessOrEqual(t, len(a.ends), 700)
	assert.Empty(t, a.leases)
	assert.Empty(t, a.pending)
	books, err := s.Records(ctx, "a", "t0", 1, 1000)
	require.NoError(t, err)
	assert.Len(t, books, 100)
}

func TestKeepForEver(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := New(Config{Keep: -1, Clock: func() time.Time { return now }})
	refuse := &txn.Txn{Agent: "a", Task: "t", Phase: txn.Refuse, Intent: "i", Fence: 1, Owner: "o", Clauses: []txn.Clause{{Op: txn.Expire, Scope: txn.Task}}}
	for range 3 {
		r, err := s.Apply(context.Background(), refuse)
		require.NoError(t, err)
		require.True(t, r.OK)
		now = now.Add(1000 * 24 * time.Hour)
	}
	v, _ := s.agents.Load("a")
	assert.Empty(t, v.(*shard).ends)
}

// A book gives back what was written, whatever page it is on.
func TestBookPages(t *testing.T) {
	var b book
	for i := range int64(5000) {
		require.Equal(t, i+1, b.write(i, fmt.Sprint(i+1)))
	}
	for _, seq := range []int64{1, 8, 9, 24, 25, 2040, 2041, 4999, 5000} {
		b.link(seq, "link")
		b.link(seq, "another")
	}
	b.link(0, "none")
	b.link(5001, "none")
	for from := int64(0); from < 5003; from += 7 {
		for _, limit := range []int{0, 1, 40, 3000} {
			got := b.read(from, limit)
			want := min(int64(limit), max(0, 5001-max(from, 1)))
			require.Len(t, got, int(want), "from %d, limit %d", from, limit)
			for i, r := range got {
				require.Equal(t, max(from, 1)+int64(i), r.Seq)
				require.Equal(t, fmt.Sprint(r.Seq), r.Val)
			}
		}
	}
	assert.Equal(t, "link", b.read(2041, 1)[0].Link)
	assert.Empty(t, b.read(2042, 1)[0].Link)
}
