package memorytest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// clauseRow is one clause on one key. Scope and key are filled in: a row runs in every scope that its op has.
type clauseRow struct {
	name  string
	setup []txn.Clause // applied one by one before
	wait  bool         // outlive what is short, between setup and clause
	do    txn.Clause
	ok    bool
	// What the key holds afterwards; the token's times count from the last setup clause, or from the clause itself where
	// anew is set.
	cell    txn.Cell
	counter int64
	token   *txn.Token
	anew    bool
}

func expect(n int64) txn.Clause { return txn.Clause{Op: txn.Expect, N: n} }
func put(val string) txn.Clause { return txn.Clause{Op: txn.Put, Val: val} }
func count(n, low, high int64) txn.Clause {
	return txn.Clause{Op: txn.Count, N: n, Min: low, Max: high}
}
func add(n int64) txn.Clause { return count(n, txn.NoMin, txn.NoMax) }
func have(from string, n int64) txn.Clause {
	return txn.Clause{Op: txn.Have, From: from, N: n}
}
func take(from, to string, n int64) txn.Clause {
	return txn.Clause{Op: txn.Take, From: from, To: to, N: n}
}
func soft(c txn.Clause) txn.Clause { c.Soft = true; return c }
func set(to, val string, n int64) txn.Clause {
	return txn.Clause{Op: txn.Set, To: to, Val: val, N: n}
}

func is(state, val string, exp int64) *txn.Token {
	return &txn.Token{State: state, Val: val, Exp: exp}
}

func setup(cs ...txn.Clause) []txn.Clause { return cs }

// clauseRows are the conditions and writes of cells, counters and tokens.
var clauseRows = []clauseRow{
	{name: "expect absent, absent", do: expect(0), ok: true},
	{name: "expect absent, there", setup: setup(put("x")), do: expect(0), cell: txn.Cell{Ver: 1, Val: "x"}},
	{name: "expect present, absent", do: expect(1)},
	{name: "expect, as it is", setup: setup(put("x"), put("y")), do: expect(2), ok: true, cell: txn.Cell{Ver: 2, Val: "y"}},
	{name: "expect, older", setup: setup(put("x"), put("y")), do: expect(1), cell: txn.Cell{Ver: 2, Val: "y"}},
	{name: "expect, newer", setup: setup(put("x")), do: expect(2), cell: txn.Cell{Ver: 1, Val: "x"}},
	{name: "expect, never", setup: setup(put("x")), do: expect(-1), cell: txn.Cell{Ver: 1, Val: "x"}},
	{name: "put anew", do: put("x"), ok: true, cell: txn.Cell{Ver: 1, Val: "x"}},
	{name: "put over", setup: setup(put("x")), do: put("y"), ok: true, cell: txn.Cell{Ver: 2, Val: "y"}},
	{name: "put the same", setup: setup(put("x")), do: put("x"), ok: true, cell: txn.Cell{Ver: 2, Val: "x"}},
	{name: "put nothing", setup: setup(put("x")), do: put(""), ok: true, cell: txn.Cell{Ver: 2}},
	{name: "put any bytes", do: put("a|b\n\x00\xff{}\"é"), ok: true, cell: txn.Cell{Ver: 1, Val: "a|b\n\x00\xff{}\"é"}},

	{name: "count from nothing", do: count(3, 0, 3), ok: true, counter: 3},
	{name: "count up to the most", setup: setup(add(2)), do: count(3, 0, 5), ok: true, counter: 5},
	{name: "count beyond the most", setup: setup(add(2)), do: count(4, 0, 5), counter: 2},
	{name: "count down", setup: setup(add(5)), do: add(-7), ok: true, counter: -2},
	{name: "count down, at the least", setup: setup(add(5)), do: count(-7, 5, 9), ok: true, counter: -2},
	{name: "count, below the least", setup: setup(add(4)), do: count(1, 5, 9), counter: 4},
	{name: "count, least of an absent one", do: count(1, 1, 9)},
	{name: "count, already above the most", setup: setup(add(9)), do: count(0, 0, 5), counter: 9},
	{name: "count back under the most", setup: setup(add(9)), do: count(-4, 0, 5), ok: true, counter: 5},
	{name: "count nothing, within", setup: setup(add(5)), do: count(0, 5, 5), ok: true, counter: 5},
	{name: "count exactly up to 2^53-1", setup: setup(add(txn.NoMax - 1)), do: add(1), ok: true, counter: txn.NoMax},
	{name: "count beyond 2^53-1", setup: setup(add(txn.NoMax)), do: add(1), counter: txn.NoMax},
	{name: "count exactly down to 1-2^53", setup: setup(add(txn.NoMin + 1)), do: add(-1), ok: true, counter: txn.NoMin},
	{name: "count beyond 1-2^53", setup: setup(add(txn.NoMin)), do: add(-1), counter: txn.NoMin},
	{name: "soft count has no condition", setup: setup(add(9)), do: soft(count(4, 0, 5)), ok: true, counter: 13},
	{name: "soft count stays within 2^53-1", setup: setup(add(txn.NoMax - 1)), do: soft(add(5)), ok: true, counter: txn.NoMax},
	{name: "soft count stays within 1-2^53", setup: setup(add(txn.NoMin)), do: soft(add(-1)), ok: true, counter: txn.NoMin},
	{name: "count keeps all digits", setup: setup(add(9007199254740001)), do: add(-8007199254740000), ok: true, counter: 1000000000000001},

	{name: "set anew", do: set("x", "v", 0), ok: true, token: is("x", "v", 0), anew: true},
	{name: "set over", setup: setup(set("x", "v", long)), do: set("y", "w", 0), ok: true, token: is("y", "w", 0), anew: true},
	{name: "set to expire", do: set("x", "a|b\n", long), ok: true, token: is("x", "a|b\n", long), anew: true},
	{name: "have absent, absent", do: have("", 0), ok: true},
	{name: "have absent, there", setup: setup(set("x", "", 0)), do: have("", 0), token: is("x", "", 0)},
	{name: "have absent, expired", setup: setup(set("x", "", short)), wait: true, do: have("", 0), ok: true, token: is("x", "", short)},
	{name: "have absent, expiring", setup: setup(set("x", "", long)), do: have("", 0), token: is("x", "", long)},
	{name: "have a state, absent", do: have("x", 0)},
	{name: "have a state", setup: setup(set("x", "v", 0)), do: have("x", 0), ok: true, token: is("x", "v", 0)},
	{name: "have a state, in another", setup: setup(set("y", "v", 0)), do: have("x", 0), token: is("y", "v", 0)},
	{name: "have a state, not yet expired", setup: setup(set("x", "v", long)), do: have("x", 0), ok: true, token: is("x", "v", long)},
	{name: "have a state, expired", setup: setup(set("x", "v", short)), wait: true, do: have("x", 0), token: is("x", "v", short)},
	{name: "have a state, expired or not", setup: setup(set("x", "v", short)), wait: true, do: have("x", -1), ok: true, token: is("x", "v", short)},
	{name: "have another state, expired or not", setup: setup(set("y", "v", short)), wait: true, do: have("x", -1), token: is("y", "v", short)},
	{name: "have within, fresh", setup: setup(set("x", "v", 0)), do: have("x", long), ok: true, token: is("x", "v", 0)},
	{name: "have within, old", setup: setup(set("x", "v", 0)), wait: true, do: have("x", short-1), token: is("x", "v", 0)},
	{name: "have within, expired", setup: setup(set("x", "v", short)), wait: true, do: have("x", long), token: is("x", "v", short)},

	{name: "take", setup: setup(set("x", "v", 0)), do: take("x", "y", 0), ok: true, token: is("y", "v", 0)},
	{name: "take keeps value and expiry", setup: setup(set("x", "v", long)), do: take("x", "y", 0), ok: true, token: is("y", "v", long)},
	{name: "take away", setup: setup(set("x", "v", long)), do: take("x", "", 0), ok: true},
	{name: "take in another state", setup: setup(set("y", "v", 0)), do: take("x", "z", 0), token: is("y", "v", 0)},
	{name: "take absent", do: take("x", "y", 0)},
	{name: "take expired", setup: setup(set("x", "v", short)), wait: true, do: take("x", "y", 0), token: is("x", "v", short)},
	{name: "take expired or not", setup: setup(set("x", "v", short)), wait: true, do: take("x", "y", -1), ok: true, token: is("y", "v", short)},
	{name: "take old", setup: setup(set("x", "v", 0)), wait: true, do: take("x", "y", short-1), token: is("x", "v", 0)},
	{name: "take within", setup: setup(set("x", "v", 0)), do: take("x", "y", long), ok: true, token: is("y", "v", 0)},
	{name: "take from nothing", do: take("", "y", 0), ok: true, token: is("y", "", 0), anew: true},
	{name: "take from nothing, there", setup: setup(set("x", "v", 0)), do: take("", "y", 0), token: is("x", "v", 0)},
	{name: "take from nothing, expired", setup: setup(set("x", "v", short)), wait: true, do: take("", "y", 0), ok: true, token: is("y", "", 0), anew: true},
	{name: "take from nothing to nothing", setup: setup(set("x", "v", short)), wait: true, do: take("", "", 0), ok: true},
	{name: "soft take that matches", setup: setup(set("x", "v", 0)), do: soft(take("x", "y", 0)), ok: true, token: is("y", "v", 0)},
	{name: "soft take, in another state", setup: setup(set("y", "v", long)), do: soft(take("x", "z", 0)), ok: true, token: is("y", "v", long)},
	{name: "soft take, absent", do: soft(take("x", "z", 0)), ok: true},
	{name: "soft take, expired", setup: setup(set("x", "v", short)), wait: true, do: soft(take("x", "z", 0)), ok: true, token: is("x", "v", short)},
	{name: "soft take, expired or not", setup: setup(set("x", "v", short)), wait: true, do: soft(take("x", "z", -1)), ok: true, token: is("z", "v", short)},
}

func clauseCases() []testCase {
	out := []testCase{
		{"clause/time", "deadlines", clauseTime},
		{"clause/name spaces", "a counter must not answer for a cell of the same name", clauseApart},
		{"clause/conditions see the state before", "what a transaction writes must not satisfy its own condition", clauseBefore},
		{"clause/read", "cold cells are read by name", clauseRead},
	}
	for _, row := range clauseRows {
		for _, sc := range []txn.Scope{txn.Task, txn.Record, txn.Agent} {
			out = append(out, testCase{"clause/" + row.name + "/" + string(rune(sc)), "clauses are all that a decision rests on",
				func(e *env) { row.run(e, sc) }})
		}
	}
	return out
}

func (row clauseRow) run(e *env, sc txn.Scope) {
	var at int64
	fill := func(c txn.Clause) txn.Clause { c.Scope, c.Key = sc, "key"; return c }
	for _, c := range row.setup {
		at = e.must(fill(c)).Now
	}
	if row.wait {
		e.wait()
	}
	r := e.plain(fill(row.do))
	require.Equal(e, row.ok, r.OK, "%+v", r)
	if row.anew {
		at = r.Now
	}
	if !row.ok {
		assert.Zero(e, r.Failed, "the index of the clause")
		require.NotNil(e, r.Fresh, "a refusal brings the truth")
		shows(e, row, r.Fresh.Space(sc), at)
	}
	cell, counter, token := e.read(sc, "key")
	assert.Equal(e, row.cell, cell)
	assert.Equal(e, row.counter, counter)
	assert.Equal(e, row.since(at), token)
}

// since returns the token that the row leaves, set at the given time.
func (row clauseRow) since(at int64) *txn.Token {
	if row.token == nil {
		return nil
	}
	t := *row.token
	t.At = at
	if t.Exp > 0 {
		t.Exp += at
	}
	return &t
}

// shows checks what a refusal brings of the clause's key.
func shows(tb testing.TB, row clauseRow, sp *txn.Space, at int64) {
	tb.Helper()
	cells, counters, tokens := row.do.Names()
	if cells {
		assert.Equal(tb, row.cell, sp.Cells["key"])
	}
	if counters {
		assert.Equal(tb, row.counter, sp.Counters["key"])
	}
	if tokens {
		t, ok := sp.Tokens["key"]
		require.Equal(tb, row.token != nil, ok)
		if ok {
			assert.Equal(tb, *row.since(at), t)
		}
	}
}

func clauseTime(e *env) {
	now := e.must(event(txn.Task, "x")).Now
	for _, c := range []struct {
		low, high int64
		ok        bool
	}{
		{0, now + long, true}, {now, now + long, true}, {now + long, now + 2*long, false},
		{0, now - 1, false}, {0, 0, false}, {txn.NoMin, txn.NoMax, true},
	} {
		r := e.plain(txn.Clause{Op: txn.Time, Min: c.low, Max: c.high})
		assert.Equal(e, c.ok, r.OK, "[%d, %d] at %d", c.low, c.high, r.Now)
	}
}

func clauseApart(e *env) {
	spaces := []txn.Scope{txn.Task, txn.Record, txn.Agent}
	for i, sc := range spaces {
		for _, c := range []txn.Clause{put(string(rune(sc))), add(int64(i + 1)), set(string(rune(sc)), "", 0)} {
			c.Scope, c.Key = sc, "same"
			e.must(c)
		}
	}
	for i, sc := range spaces {
		cell, counter, token := e.read(sc, "same")
		assert.Equal(e, txn.Cell{Ver: 1, Val: string(rune(sc))}, cell)
		assert.EqualValues(e, i+1, counter)
		require.NotNil(e, token)
		assert.Equal(e, string(rune(sc)), token.State)
	}
	r := e.apply(&txn.Txn{Agent: "a", Task: "u", Phase: txn.Plain, Clauses: []txn.Clause{
		{Op: txn.Expect, Scope: txn.Task, Key: "same"}, {Op: txn.Expect, Scope: txn.Record, Key: "same"},
		{Op: txn.Expect, Scope: txn.Agent, Key: "same", N: 1}}})
	assert.True(e, r.OK, "tasks are apart, the agent's state is shared by them")
	r = e.apply(&txn.Txn{Agent: "b", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{
		{Op: txn.Expect, Scope: txn.Task, Key: "same"}, {Op: txn.Expect, Scope: txn.Agent, Key: "same"}}})
	assert.True(e, r.OK, "agents are apart")
}

func clauseBefore(e *env) {
	in := func(c txn.Clause) txn.Clause { c.Scope, c.Key = txn.Task, "k"; return c }
	r := e.plain(in(put("x")), in(expect(1)))
	assert.False(e, r.OK)
	assert.Equal(e, 1, r.Failed)
	e.must(in(put("x")), in(expect(0)))
	assert.False(e, e.plain(in(add(5)), in(count(0, 5, 9))).OK)
	e.must(in(add(5)), in(count(0, 0, 0)))
	assert.False(e, e.plain(in(set("x", "", 0)), in(have("x", 0))).OK)
	e.must(in(set("x", "", 0)), in(have("", 0)))
	assert.False(e, e.plain(in(take("x", "y", 0)), in(have("y", 0))).OK)
	e.must(in(take("x", "y", 0)), in(have("x", 0)))
}

func clauseRead(e *env) {
	for _, c := range []txn.Clause{put("cold"), add(7), set("s", "v", 0)} {
		c.Scope, c.Key = txn.Record, "k"
		e.must(c)
	}
	p := put("new")
	p.Scope, p.Key = txn.Record, "k"
	r := e.must(p, txn.Clause{Op: txn.Read, Scope: txn.Record, Key: "k"}, txn.Clause{Op: txn.Read, Scope: txn.Agent, Key: "absent"},
		txn.Clause{Op: txn.Pend, Val: "o"})
	require.NotNil(e, r.Fresh)
	f := plainReply(r).Fresh
	assert.Equal(e, map[string]txn.Cell{"k": {Ver: 2, Val: "new"}}, f.Record.Cells, "as they are after the transaction")
	assert.Equal(e, map[string]int64{"k": 7}, f.Record.Counters)
	assert.Len(e, f.Record.Tokens, 1)
	assert.Equal(e, txn.NewSpace().Cells, f.Agent.Cells)
	assert.Equal(e, []txn.Pending{{Seq: 1, Val: "o"}}, f.Pending)
	assert.Equal(e, []int64{r.Now, r.TaskRev, r.AgentRev}, []int64{f.Now, f.Task.Rev, f.Agent.Rev})
	r = e.must(p)
	assert.Nil(e, r.Fresh, "nothing was asked for")
}
