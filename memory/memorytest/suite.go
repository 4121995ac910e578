package memorytest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Instance is a store under test.
type Instance struct {
	Store memory.Store
	// Advance lets at least d pass on the store's clock. Where that is the wall clock, it sleeps.
	Advance func(d time.Duration)
	// Keep is how long the store keeps what ended. 0: it cannot be waited for, and the cases of what goes are skipped.
	Keep time.Duration
}

// Open returns a fresh and empty store; what it needs to shut down it registers with tb.Cleanup. Cases close the store
// themselves only where closing is what they look at.
type Open func(tb testing.TB) Instance

// testCase is one promise. The reason says what goes wrong where it is not kept.
type testCase struct {
	name, reason string
	run          func(e *env)
}

// Run holds the store to the contract, each case on a fresh instance.
func Run(t *testing.T, open Open) {
	for _, c := range allCases() {
		t.Run(c.name, func(t *testing.T) {
			c.run(newEnv(t, open))
			if t.Failed() {
				t.Log("why it matters: " + c.reason)
			}
		})
	}
}

func allCases() []testCase {
	return slices.Concat(leaseCases(), clauseCases(), wholeCases(), bookCases(), queueCases(), snapshotCases(), noteCases(),
		lifeCases(), keepCases(), faultCases(), concurrencyCases())
}

// Lease lengths of the cases: one that no case outlives, and one that wait outlives.
const (
	long  = int64(time.Hour / time.Microsecond)
	short = int64(20 * time.Millisecond / time.Microsecond)
)

// env is a case's store with what most cases do to it. Its agent is "a" and its task "t".
type env struct {
	testing.TB
	Instance
	ctx context.Context
}

func newEnv(tb testing.TB, open Open) *env {
	return &env{TB: tb, Instance: open(tb), ctx: context.Background()}
}

// wait outlives what is short.
func (e *env) wait() { e.Advance(time.Duration(short) * time.Microsecond) }

// apply applies the transaction; a store error fails the case.
func (e *env) apply(t *txn.Txn) txn.Reply {
	e.Helper()
	r, err := e.Store.Apply(e.ctx, t)
	require.NoError(e, err)
	return r
}

// plain applies clauses without a lease.
func (e *env) plain(cs ...txn.Clause) txn.Reply {
	e.Helper()
	return e.apply(&txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain, Clauses: cs})
}

// must applies clauses that have to be accepted.
func (e *env) must(cs ...txn.Clause) txn.Reply {
	e.Helper()
	r := e.plain(cs...)
	require.True(e, r.OK, "refused at clause %d of %+v", r.Failed, cs)
	return r
}

// read returns everything the store has under a key of the scope.
func (e *env) read(sc txn.Scope, key string) (txn.Cell, int64, *txn.Token) {
	e.Helper()
	r := e.must(txn.Clause{Op: txn.Read, Scope: sc, Key: key})
	require.NotNil(e, r.Fresh, "a Read clause brought no values")
	sp := r.Fresh.Space(sc)
	var token *txn.Token
	if t, ok := sp.Tokens[key]; ok {
		token = &t
	}
	return sp.Cells[key], sp.Counters[key], token
}

// lease returns the lease of an intent of task t.
func (e *env) lease(intent string) (txn.Lease, bool) {
	e.Helper()
	r := e.apply(&txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain, Intent: intent, Clauses: []txn.Clause{
		{Op: txn.Read, Scope: txn.Task, Key: "nothing"},
	}})
	require.NotNil(e, r.Fresh)
	l, ok := r.Fresh.Leases[intent]
	return l, ok
}

func (e *env) load(have *txn.Snapshot) *txn.Snapshot {
	e.Helper()
	s, err := e.Store.Load(e.ctx, "a", "t", have)
	require.NoError(e, err)
	return s
}

func (e *env) records(task string, from int64, limit int) []txn.Stored {
	e.Helper()
	rs, err := e.Store.Records(e.ctx, "a", task, from, limit)
	require.NoError(e, err)
	return rs
}

func (e *env) queued(queue string, after txn.Queued, dueOnly bool, limit int) []txn.Queued {
	e.Helper()
	q, err := e.Store.Queued(e.ctx, "a", queue, after, dueOnly, limit)
	require.NoError(e, err)
	return q
}

// members returns the queue's members, in order.
func (e *env) members(queue string, dueOnly bool) []string {
	e.Helper()
	var out []string
	for _, m := range e.queued(queue, txn.Queued{}, dueOnly, 1000) {
		out = append(out, m.Member)
	}
	return out
}

func event(sc txn.Scope, val string) txn.Clause {
	return txn.Clause{Op: txn.Event, Scope: sc, Val: val}
}

func values(rs []txn.Stored) []string {
	var out []string
	for _, r := range rs {
		out = append(out, r.Val)
	}
	return out
}
