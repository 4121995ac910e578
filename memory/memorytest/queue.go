package memorytest

import (
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

func queueCases() []testCase {
	return []testCase{
		{"queue/order", "what is due first is served first", queueOrder},
		{"queue/paging", "a queue is read page by page", queuePaging},
		{"queue/replace", "a member is due once", queueReplace},
		{"queue/due", "nothing is served early", queueDue},
	}
}

func enqueue(q, member string, n int64) txn.Clause {
	return txn.Clause{Op: txn.Queue, Key: q, Val: member, N: n}
}

func queueOrder(e *env) {
	e.must(enqueue("q", "late", 3*long), enqueue("q", "b", long), enqueue("q", "c", long), enqueue("q", "a", long),
		enqueue("q", "past", -long), enqueue("other", "x", 0))
	assert.Equal(e, []string{"past", "a", "b", "c", "late"}, e.members("q", false), "by due, then by member")
	assert.Equal(e, []string{"x"}, e.members("other", false))
	assert.Empty(e, e.members("unknown", false))
	q, err := e.Store.Queued(e.ctx, "b", "q", txn.Queued{}, false, 9)
	require.NoError(e, err)
	assert.Empty(e, q, "of another agent")
}

func queuePaging(e *env) {
	t := &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain}
	for i := range 10 {
		t.Add(enqueue("q", fmt.Sprintf("m%d", i), long*int64(i/3))) // several at one time
	}
	e.apply(t)
	all := e.queued("q", txn.Queued{}, false, 100)
	require.Len(e, all, 10)
	for size := 1; size <= 11; size++ {
		var got []txn.Queued
		after := txn.Queued{}
		for {
			page := e.queued("q", after, false, size)
			require.LessOrEqual(e, len(page), size)
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			require.LessOrEqual(e, len(got), 10)
			after = page[len(page)-1]
		}
		assert.Equal(e, all, got, "pages of %d", size)
	}
	e.must(txn.Clause{Op: txn.Unqueue, Key: "q", Val: all[4].Member})
	assert.Equal(e, all[5:7], e.queued("q", all[4], false, 2), "after a member that is gone")
	assert.Empty(e, e.queued("q", txn.Queued{}, false, 0))
}

func queueReplace(e *env) {
	e.must(enqueue("q", "m", long), enqueue("q", "n", 2*long))
	r := e.must(enqueue("q", "m", 3*long))
	assert.Equal(e, []string{"n", "m"}, e.members("q", false))
	assert.Equal(e, r.Now+3*long, e.queued("q", txn.Queued{}, false, 9)[1].Due)
	e.must(txn.Clause{Op: txn.Unqueue, Key: "q", Val: "n"}, txn.Clause{Op: txn.Unqueue, Key: "q", Val: "unknown"})
	assert.Equal(e, []string{"m"}, e.members("q", false))
	e.must(txn.Clause{Op: txn.Unqueue, Key: "q", Val: "m"}, enqueue("q", "m", 0))
	assert.Equal(e, []string{"m"}, e.members("q", true), "in order")
	e.must(enqueue("q", "m", 0), txn.Clause{Op: txn.Unqueue, Key: "q", Val: "m"})
	assert.Empty(e, e.members("q", false), "in order")
}

func queueDue(e *env) {
	e.must(enqueue("q", "now", 0), enqueue("q", "soon", short), enqueue("q", "later", long))
	got := e.members("q", true)
	require.NotEmpty(e, got)
	assert.Equal(e, "now", got[0])
	assert.NotContains(e, got, "later")
	e.wait()
	assert.Equal(e, []string{"now", "soon"}, e.members("q", true))
	assert.Equal(e, []string{"now", "soon", "later"}, e.members("q", false))
}
