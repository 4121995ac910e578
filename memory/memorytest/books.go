package memorytest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

func bookCases() []testCase {
	return []testCase{
		{"ledger/sequence", "a hole is a lost record", ledgerSequence},
		{"ledger/ranges", "a ledger is read page by page", ledgerRanges},
		{"ledger/apart", "each task is audited by itself", ledgerApart},
		{"ledger/links", "the chain is sealed once, after the records", ledgerLinks},
		{"ledger/cut", "a ledger that only grows fills the store", ledgerCut},
		{"ledger/cut to nothing", "nobody could tell what the rest goes on from", ledgerCutAll},
		{"pending/order", "outcomes are folded in the order in which they happened", pendingOrder},
		{"pending/trim", "folded twice or never, a belief is wrong", pendingTrim},
	}
}

func ledgerSequence(e *env) {
	for i := range int64(5) {
		r := e.must(event(txn.Task, fmt.Sprint(2*i)), event(txn.Task, fmt.Sprint(2*i+1)), event(txn.Agent, fmt.Sprint(i)))
		assert.Equal(e, 2*i+1, r.Seq, "sequence of the first event")
		assert.False(e, e.plain(event(txn.Task, "no"), txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: "k", N: 1}).OK)
		e.must(txn.Clause{Op: txn.Put, Scope: txn.Task, Key: "x"})
	}
	r := e.must(event(txn.Agent, "5"), event(txn.Task, "10"))
	assert.EqualValues(e, 6, r.Seq, "sequence of the first event, whichever ledger it is in")
	assert.Zero(e, e.must(txn.Clause{Op: txn.Put, Scope: txn.Task, Key: "x"}).Seq, "no event")
	for task, n := range map[string]int{"t": 11, "": 6} {
		rs := e.records(task, 1, 100)
		require.Len(e, rs, n)
		for i, rec := range rs {
			assert.EqualValues(e, i+1, rec.Seq)
			assert.Equal(e, fmt.Sprint(i), rec.Val)
			assert.Empty(e, rec.Link)
		}
	}
}

func ledgerRanges(e *env) {
	for i := range 10 {
		e.must(event(txn.Task, fmt.Sprint(i+1)))
	}
	for _, c := range []struct {
		from  int64
		limit int
		want  []string
	}{
		{1, 3, []string{"1", "2", "3"}}, {9, 3, []string{"9", "10"}}, {4, 1, []string{"4"}}, {10, 1, []string{"10"}},
		{11, 3, nil}, {100, 3, nil}, {1, 0, nil}, {0, 2, []string{"1", "2"}},
	} {
		assert.Equal(e, c.want, values(e.records("t", c.from, c.limit)), "from %d, at most %d", c.from, c.limit)
	}
	assert.Empty(e, e.records("unknown", 1, 3))
	rs := e.records("t", 1, 3)
	rs[0].Val = "changed by the caller"
	assert.Equal(e, "1", e.records("t", 1, 1)[0].Val)
}

func ledgerApart(e *env) {
	for _, t := range []*txn.Txn{
		{Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{event(txn.Task, "a/t")}},
		{Agent: "a", Task: "u", Phase: txn.Plain, Clauses: []txn.Clause{event(txn.Task, "a/u")}},
		{Agent: "b", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{event(txn.Task, "b/t"), event(txn.Agent, "b")}},
	} {
		assert.EqualValues(e, 1, e.apply(t).Seq)
	}
	assert.Equal(e, []string{"a/t"}, values(e.records("t", 1, 9)))
	assert.Equal(e, []string{"a/u"}, values(e.records("u", 1, 9)))
	assert.Empty(e, e.records("", 1, 9))
	rs, err := e.Store.Records(e.ctx, "b", "", 1, 9)
	require.NoError(e, err)
	assert.Equal(e, []string{"b"}, values(rs))
}

func ledgerLinks(e *env) {
	link := func(sc txn.Scope, n int64, val string) txn.Clause {
		return txn.Clause{Op: txn.Link, Scope: sc, N: n, Val: val}
	}
	e.must(event(txn.Task, "1"), event(txn.Task, "2"), event(txn.Agent, "1"))
	e.must(link(txn.Task, 1, "one"), link(txn.Task, 9, "of no record"))
	e.must(link(txn.Task, 1, "again"), link(txn.Task, 2, "two"))
	e.must(event(txn.Task, "3"), link(txn.Task, 3, "at once"))
	var got []string
	for _, r := range e.records("t", 1, 9) {
		got = append(got, r.Val+" "+r.Link)
	}
	assert.Equal(e, []string{"1 one", "2 two", "3 at once"}, got, "each where there was none")
	assert.Empty(e, e.records("", 1, 9)[0].Link, "of the other ledger")
	e.must(link(txn.Agent, 1, "agent's"))
	assert.Equal(e, "agent's", e.records("", 1, 9)[0].Link)
}

func pend(val string) txn.Clause { return txn.Clause{Op: txn.Pend, Val: val} }
func trim(n int64) txn.Clause    { return txn.Clause{Op: txn.Trim, N: n} }

func pendingOrder(e *env) {
	r := e.must(pend("1"), pend("2"))
	assert.Equal(e, []txn.Pending{{Seq: 1, Val: "1"}, {Seq: 2, Val: "2"}}, r.Pending)
	r = e.apply(&txn.Txn{Agent: "a", Task: "u", Phase: txn.Plain, Clauses: []txn.Clause{pend("3")}})
	assert.Len(e, r.Pending, 3, "of all tasks of the agent")
	r = e.plain(pend("4"), txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: "k", N: 1})
	assert.Len(e, r.Pending, 3, "a refused one is not among them")
	want := []txn.Pending{{Seq: 1, Val: "1"}, {Seq: 2, Val: "2"}, {Seq: 3, Val: "3"}}
	assert.Equal(e, want, e.load(nil).Pending)
	r = e.must(event(txn.Task, "e"))
	assert.Equal(e, want, r.Pending, "every reply brings them")
	r.Pending[0].Val = "changed by the caller"
	assert.Equal(e, want, e.load(nil).Pending)
	other := e.apply(&txn.Txn{Agent: "b", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{pend("b")}})
	assert.Equal(e, []txn.Pending{{Seq: 1, Val: "b"}}, other.Pending)
}

func pendingTrim(e *env) {
	e.must(pend("1"), pend("2"), pend("3"))
	assert.Equal(e, []txn.Pending{{Seq: 3, Val: "3"}}, e.must(trim(2)).Pending)
	assert.Equal(e, []txn.Pending{{Seq: 3, Val: "3"}}, e.must(trim(1)).Pending, "a repeat takes nothing more")
	assert.Equal(e, []txn.Pending{{Seq: 3, Val: "3"}}, e.must(trim(0)).Pending)
	assert.Empty(e, e.must(trim(9)).Pending)
	assert.Equal(e, []txn.Pending{{Seq: 4, Val: "4"}}, e.must(pend("4")).Pending, "sequences go on")
	assert.Equal(e, []txn.Pending{{Seq: 5, Val: "5"}}, e.must(trim(4), pend("5")).Pending, "in order")
	assert.Equal(e, []txn.Pending{{Seq: 5, Val: "5"}}, e.load(nil).Pending)
}

// cutter is the store as one that drops the beginning of an agent's own ledger.
func (e *env) cutter() memory.Cutter {
	c, ok := e.Store.(memory.Cutter)
	if !ok {
		e.Skip("this store keeps agents' own ledgers whole")
	}
	return c
}

func ledgerCut(e *env) {
	c := e.cutter()
	link := func(n int64) string { return strings.Repeat(strconv.FormatInt(n%10, 10), 64) }
	for i := int64(1); i <= 20; i++ {
		e.must(event(txn.Agent, fmt.Sprint(i)), event(txn.Task, "t"))
		if i <= 15 {
			e.must(txn.Clause{Op: txn.Link, Scope: txn.Agent, N: i, Val: link(i)})
		}
	}
	e.must(txn.Clause{Op: txn.Link, Scope: txn.Agent, N: 16, Val: "odd"}, txn.Clause{Op: txn.Put, Scope: txn.Agent, Key: "k", Val: "v"})
	look := func(first, last int64) {
		e.Helper()
		rs := e.records("", 1, 100)
		require.Len(e, rs, int(last-first+1))
		for i, r := range rs {
			seq := first + int64(i)
			assert.Equal(e, seq, r.Seq)
			assert.Equal(e, fmt.Sprint(seq), r.Val)
			want := ""
			if seq <= 15 {
				want = link(seq)
			} else if seq == 16 {
				want = "odd"
			}
			assert.Equal(e, want, r.Link, "link of %d", seq)
		}
		assert.Equal(e, last, e.records("", last, 9)[0].Seq)
		assert.Len(e, e.records("", first+1, 2), int(min(2, last-first)))
	}
	require.NoError(e, c.Cut(e.ctx, "a", 0))
	look(1, 20)
	require.NoError(e, c.Cut(e.ctx, "a", 4))
	look(5, 20)
	require.NoError(e, c.Cut(e.ctx, "a", 4), "once more")
	require.NoError(e, c.Cut(e.ctx, "a", 2), "what is gone is gone")
	look(5, 20)
	assert.EqualValues(e, 21, e.must(event(txn.Agent, "21")).Seq, "numbers go on")
	e.must(txn.Clause{Op: txn.Link, Scope: txn.Agent, N: 3, Val: link(9)}, txn.Clause{Op: txn.Link, Scope: txn.Agent, N: 30, Val: link(9)},
		txn.Clause{Op: txn.Link, Scope: txn.Agent, N: 10, Val: link(9)})
	look(5, 21)
	require.NoError(e, c.Cut(e.ctx, "a", 15))
	look(16, 21)
	require.NoError(e, c.Cut(e.ctx, "a", 20))
	assert.EqualValues(e, 22, e.must(event(txn.Agent, "22")).Seq)
	e.must(txn.Clause{Op: txn.Link, Scope: txn.Agent, N: 21, Val: link(1)}, txn.Clause{Op: txn.Link, Scope: txn.Agent, N: 22, Val: "other"})
	rs := e.records("", 1, 9)
	require.Len(e, rs, 2)
	assert.Equal(e, []string{link(1), "other"}, []string{rs[0].Link, rs[1].Link})
	assert.Len(e, e.records("t", 1, 100), 20, "a task's ledger is another")
	cell, _, _ := e.read(txn.Agent, "k")
	assert.Equal(e, "v", cell.Val)
}

func ledgerCutAll(e *env) {
	c := e.cutter()
	require.NoError(e, c.Cut(e.ctx, "a", 0), "nothing is dropped of nothing")
	e.must(event(txn.Agent, "1"), event(txn.Agent, "2"))
	require.ErrorIs(e, c.Cut(e.ctx, "a", 2), memory.ErrLast)
	require.ErrorIs(e, c.Cut(e.ctx, "a", 9), memory.ErrLast)
	assert.Len(e, e.records("", 1, 9), 2)
	require.NoError(e, c.Cut(e.ctx, "a", 1))
	require.ErrorIs(e, c.Cut(e.ctx, "a", 2), memory.ErrLast)
	assert.Len(e, e.records("", 1, 9), 1)
}
