package delta

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// What an operator does, and what is written without a condition, happens once although the reply is lost: each with the
// first access lost before and after it took effect.
func TestPlainTransactionsTakeEffectOnce(t *testing.T) {
	ctx := context.Background()
	for _, fault := range []memorytest.Fault{memorytest.LostRequest, memorytest.LostReply} {
		for _, conditioned := range []bool{false, true} {
			store := memorytest.NewFaulty(memory.New(memory.Config{}), nil)
			e, err := New(Config{Store: store})
			require.NoError(t, err)
			text, err := ledger.Encode(ledger.Event{Type: ledger.Note, At: time.Now().UnixMicro(), Agent: "a", Task: "t", Text: "x"})
			require.NoError(t, err)
			x := &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain}
			if conditioned {
				x.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: "cell", N: 0}, txn.Clause{Op: txn.Put, Scope: txn.Task, Key: "cell", Val: "v"})
			}
			x.Add(txn.Clause{Op: txn.Count, Scope: txn.Task, Key: "spent", N: 5, Min: txn.NoMin, Max: txn.NoMax}, txn.Clause{Op: txn.Event, Scope: txn.Task, Val: text})
			calls, _ := store.Calls()
			store.Replan(memorytest.FailAt(fault, calls+1))
			r, err := e.apply(ctx, x)
			require.NoError(t, err)
			assert.True(t, r.OK, "fault %v, conditioned %v", fault, conditioned)
			snap, err := store.Load(ctx, "a", "t", nil)
			require.NoError(t, err)
			assert.EqualValues(t, 5, snap.Task.Counters["spent"], "fault %v, conditioned %v", fault, conditioned)
			require.NoError(t, e.Close(ctx))
			require.NoError(t, store.Close())
		}
	}
}

// A transaction that lost a race for good is refused although its first reply was lost too.
func TestPlainTransactionsThatLoseStayRefused(t *testing.T) {
	ctx := context.Background()
	store := memorytest.NewFaulty(memory.New(memory.Config{}), nil)
	e, err := New(Config{Store: store})
	require.NoError(t, err)
	a := NewAgent("a").MustBuild()
	_, err = e.Start(ctx, Goal{ID: "t", Agent: a, Text: "the first"})
	require.NoError(t, err)
	require.NoError(t, e.Sync(ctx))
	calls, _ := store.Calls()
	store.Replan(memorytest.FailAt(memorytest.LostReply, calls+1))
	_, err = e.Start(ctx, Goal{ID: "t", Agent: a, Text: "the second"})
	assert.Equal(t, action.InFlight, action.FailureOf(err).Code, "the first runs")
	store.Replan(nil)
	task, err := e.Open(ctx, "t")
	require.NoError(t, err)
	records, _, err := task.Ledger(ctx)
	require.NoError(t, err)
	require.Len(t, records, 1)
	var first struct{ Text string }
	require.NoError(t, json.Unmarshal([]byte(records[0].Val), &first))
	assert.Equal(t, "the first", first.Text)
	require.NoError(t, e.Close(ctx))
	require.NoError(t, store.Close())
}
