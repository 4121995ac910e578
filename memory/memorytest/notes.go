package memorytest

import (
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/memory"
)

func noteCases() []testCase {
	return []testCase{
		{"notes/round trip", "what was remembered comes back as it was", notesRound},
		{"notes/newest", "without a query the latest counts", notesNewest},
		{"notes/ranking", "the note about it comes first", notesRanking},
		{"notes/tenants", "another tenant's notes are not told, and do not hide one's own", notesTenants},
		{"notes/apart", "an agent must not read another's memory", notesApart},
	}
}

func (e *env) remember(agent string, n memory.Note) {
	e.Helper()
	require.NoError(e, e.Store.Remember(e.ctx, agent, n))
}

func (e *env) recall(agent, query string, limit int) []string {
	e.Helper()
	ns, err := e.Store.Recall(e.ctx, agent, "", query, limit)
	require.NoError(e, err)
	var out []string
	for _, n := range ns {
		out = append(out, n.Content)
	}
	return out
}

func notesRound(e *env) {
	from := e.load(nil).Now
	n := memory.Note{Tenant: "acme", Task: "t", Intent: "i", Kind: "fact", Content: "Zoë paid 3.50 €\n\x01 \"twice\""}
	e.remember("a", n)
	to := e.load(nil).Now
	got, err := e.Store.Recall(e.ctx, "a", "acme", "zoë", 9)
	require.NoError(e, err)
	require.Len(e, got, 1)
	at := got[0].At.UnixMicro()
	assert.True(e, from <= at && at <= to, "stamped by the store's clock: %d ≤ %d ≤ %d", from, at, to)
	n.At = got[0].At
	assert.Equal(e, n, got[0])
}

func notesNewest(e *env) {
	assert.Empty(e, e.recall("a", "", 9))
	for i := range 5 {
		e.remember("a", memory.Note{Content: fmt.Sprint("note ", i)})
	}
	assert.Equal(e, []string{"note 4", "note 3"}, e.recall("a", "", 2))
	assert.Len(e, e.recall("a", "", 9), 5)
	assert.Empty(e, e.recall("a", "", 0))
	assert.Empty(e, e.recall("a", "note", 0))
	assert.Len(e, e.recall("a", "note", 3), 3)
}

func notesRanking(e *env) {
	for _, c := range []string{
		"the customer prefers to be called in the morning",
		"the refund of order ORD-7 was sent on Monday",
		"the customer asked for a refund once",
		"the warehouse is closed on Sunday",
	} {
		e.remember("a", memory.Note{Kind: "observation", Content: c})
	}
	assert.Equal(e, "the refund of order ORD-7 was sent on Monday", e.recall("a", "Refund ORD-7?", 9)[0], "both words")
	assert.Equal(e, "the warehouse is closed on Sunday", e.recall("a", "the WAREHOUSE", 1)[0], "the rare word counts")
}

func notesTenants(e *env) {
	of := func(tenant, query string, limit int) (out []string) {
		ns, err := e.Store.Recall(e.ctx, "a", tenant, query, limit)
		require.NoError(e, err)
		for _, n := range ns {
			assert.Equal(e, tenant, n.Tenant)
			out = append(out, n.Content)
		}
		return out
	}
	for _, c := range []string{"order 1", "order 2 paid"} {
		e.remember("a", memory.Note{Tenant: "acme", Content: c})
	}
	e.remember("a", memory.Note{Content: "order of nobody"})
	for range 300 {
		e.remember("a", memory.Note{Tenant: "evil", Content: "order paid"})
	}
	assert.Equal(e, []string{"order 2 paid", "order 1"}, of("acme", "", 2), "the newest, of its own")
	assert.Equal(e, []string{"order 2 paid"}, of("acme", "", 1))
	assert.Equal(e, []string{"order 2 paid", "order 1"}, of("acme", "paid order", 9))
	assert.Equal(e, []string{"order of nobody"}, of("", "order", 9), "no tenant is one too")
	assert.Empty(e, of("other", "", 9))
	assert.Len(e, of("evil", "", 999), 300)
}

func notesApart(e *env) {
	e.remember("a", memory.Note{Content: "secret of a"})
	e.remember("b", memory.Note{Content: "secret of b"})
	assert.Equal(e, []string{"secret of a"}, e.recall("a", "secret", 9))
	assert.Equal(e, []string{"secret of b"}, e.recall("b", "", 9))
	assert.Empty(e, e.recall("c", "secret", 9))
	assert.Error(e, e.Store.Remember(e.ctx, "", memory.Note{Content: "nobody's"}))
}
