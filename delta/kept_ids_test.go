package delta_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// An id that was used is used up as long as the task runs, however long ago that was, and on whichever worker.
func TestCallIdsOutliveTheirRecords(t *testing.T) {
	l := newLoud(t, delta.Config{})
	call := delta.Call{ID: "c1", Action: "first", Input: []byte(`{"order":"a"}`)}
	out := l.task.Do(t.Context(), call).MustGet()
	require.True(t, out.OK())
	again := l.task.Do(t.Context(), call).MustGet()
	require.True(t, again.Recorded)
	l.now.Add(int64(memory.DefaultKeep + time.Minute))
	for range 8 { // the store tidies up
		_, err := l.store.Apply(t.Context(), &txn.Txn{Agent: "desk", Phase: txn.Plain})
		require.NoError(t, err)
	}
	_, kept, err := l.task.Outcome(t.Context(), out.Intent)
	require.NoError(t, err)
	require.False(t, kept, "its record is gone")

	other, err := delta.New(delta.Config{Store: bare{l.store}, Now: l.clock})
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close(t.Context())) }()
	require.NoError(t, other.Register(l.agent))
	theirs, err := other.Open(t.Context(), "desk~t")
	require.NoError(t, err)
	for where, task := range map[string]*delta.Task{"here": l.task, "elsewhere": theirs} {
		refused := task.Do(t.Context(), call).MustGet()
		assert.Equal(t, action.InputInvalid, refused.Code, where)
		assert.ErrorContains(t, refused.Err(), "is kept in the ledger alone", where)
		call.Input = []byte(`{"order":"b"}`)
		refused = task.Do(t.Context(), call).MustGet()
		assert.ErrorContains(t, refused.Err(), "already used for another call", where)
		call.Input = []byte(`{"order":"a"}`)
	}
	call.ID = "c2"
	assert.True(t, l.task.Do(t.Context(), call).MustGet().OK())
}
