package memorytest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/assert"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

func concurrencyCases() []testCase {
	return []testCase{
		{"concurrency/a counter stays within", "a budget is a limit under any interleaving", concurrentCount},
		{"concurrency/one token, one taker", "an approval runs once", concurrentToken},
		{"concurrency/one intent, one owner", "one intent must not run twice at once", concurrentBegin},
		{"concurrency/a repeat in flight", "a client repeats while the first is still on its way", concurrentRepeat},
		{"concurrency/compare and set", "a fold lost is an outcome lost", concurrentCells},
	}
}

const workers = 64

// all runs f at the same time by every worker and returns how many it was accepted for.
func (e *env) all(f func(w int) *txn.Txn) int {
	e.Helper()
	var wg sync.WaitGroup
	var accepted atomic.Int64
	start := make(chan struct{})
	for w := range workers {
		wg.Go(func() {
			<-start
			r, err := e.Store.Apply(e.ctx, f(w))
			if !assert.NoError(e, err) {
				return
			}
			if r.OK && !r.Replay {
				accepted.Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	return int(accepted.Load())
}

func concurrentCount(e *env) {
	got := e.all(func(w int) *txn.Txn {
		return begin(fmt.Sprint("t", w%4), fmt.Sprint("i", w),
			txn.Clause{Op: txn.Count, Scope: txn.Agent, Key: "granted", N: 3, Min: 0, Max: 100},
			event(txn.Agent, "e"), pend("o"), txn.Clause{Op: txn.Queue, Key: "q", Val: fmt.Sprint(w)})
	})
	assert.Equal(e, 33, got)
	_, n, _ := e.read(txn.Agent, "granted")
	assert.EqualValues(e, 99, n)
	rs := e.records("", 1, 1000)
	assert.Len(e, rs, 33)
	for i, r := range rs {
		assert.EqualValues(e, i+1, r.Seq)
	}
	for i, p := range e.load(nil).Pending {
		assert.EqualValues(e, i+1, p.Seq)
	}
	assert.Len(e, e.members("q", false), 33)
	assert.Len(e, e.members(txn.Leases, false), 33)
	assert.EqualValues(e, 33, e.load(nil).Agent.Rev)
}

func concurrentToken(e *env) {
	e.must(txn.Clause{Op: txn.Set, Scope: txn.Task, Key: "approval", To: "approved"})
	got := e.all(func(w int) *txn.Txn {
		return begin("t", fmt.Sprint("i", w),
			txn.Clause{Op: txn.Take, Scope: txn.Task, Key: "approval", From: "approved", To: fmt.Sprint("used by ", w)}, event(txn.Task, "e"))
	})
	assert.Equal(e, 1, got)
	assert.Len(e, e.records("t", 1, 100), 1)
}

func concurrentBegin(e *env) {
	got := e.all(func(w int) *txn.Txn {
		t := begin("t", "i", event(txn.Task, "e"))
		t.Owner = fmt.Sprint("w", w)
		return t
	})
	assert.Equal(e, 1, got)
	assert.Len(e, e.records("t", 1, 100), 1)
}

func concurrentRepeat(e *env) {
	got := e.all(func(int) *txn.Txn {
		return begin("t", "i", event(txn.Task, "e"), txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "n", N: 1, Max: 1})
	})
	assert.Equal(e, 1, got)
	assert.Len(e, e.records("t", 1, 100), 1)
}

func concurrentCells(e *env) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for done, ver := 0, int64(0); done < 10; {
				r, err := e.Store.Apply(e.ctx, &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{
					{Op: txn.Expect, Scope: txn.Agent, Key: "fold", N: ver}, {Op: txn.Put, Scope: txn.Agent, Key: "fold", Val: "x"}}})
				switch {
				case !assert.NoError(e, err):
					return
				case r.OK:
					done, ver = done+1, ver+1
				case !assert.NotNil(e, r.Fresh):
					return
				default:
					ver = r.Fresh.Agent.Cells["fold"].Ver
				}
			}
		})
	}
	wg.Wait()
	cell, _, _ := e.read(txn.Agent, "fold")
	assert.EqualValues(e, 80, cell.Ver)
}
