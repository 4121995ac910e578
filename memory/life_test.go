package memory_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

func event() *txn.Txn {
	return &txn.Txn{Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Event, Scope: txn.Task, Val: "e"}}}
}

func TestStoreTimeNeverGoesBack(t *testing.T) {
	ctx := context.Background()
	clock := []int64{5, 3, 9, 0, 8, 10}
	s := memory.New(memory.Config{Clock: func() time.Time {
		now := clock[0]
		clock = clock[1:]
		return time.UnixMicro(now)
	}})
	for _, want := range []int64{5, 5, 9, 9, 9, 10} {
		r, err := s.Apply(ctx, event())
		require.NoError(t, err)
		assert.Equal(t, want, r.Now)
	}
}

func TestZeroConfigTellsTheTime(t *testing.T) {
	s := memory.New(memory.Config{})
	from := time.Now().UnixMicro()
	r, err := s.Apply(context.Background(), event())
	require.NoError(t, err)
	assert.True(t, from <= r.Now && r.Now <= time.Now().UnixMicro())
}

func TestReadingLeavesNoTrace(t *testing.T) {
	ctx, s := context.Background(), open(t).Store
	for i := range 100 { // agents that never were: nothing is kept of them that a later reading could see
		n, err := s.Load(ctx, fmt.Sprint(i), "t", nil)
		require.NoError(t, err)
		n.Task.Cells["k"] = txn.Cell{Ver: 1}
		n, err = s.Load(ctx, fmt.Sprint(i), "t", nil)
		require.NoError(t, err)
		assert.Empty(t, n.Task.Cells)
	}
}

func TestCloseUnderLoad(t *testing.T) {
	ctx, s := context.Background(), open(t).Store
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				if _, err := s.Apply(ctx, event()); err != nil {
					assert.ErrorIs(t, err, memory.ErrClosed)
					return
				}
			}
		})
	}
	require.NoError(t, s.Close())
	wg.Wait()
}

// One agent's transaction holds up no other agent; whoever gives up waiting for the lock has changed nothing.
func TestAgentsDoNotWaitForEachOther(t *testing.T) {
	ctx := context.Background()
	inside, release := make(chan struct{}), make(chan struct{})
	var called atomic.Bool
	s := memory.New(memory.Config{Clock: func() time.Time {
		if !called.Swap(true) { // the first call stands still, its agent locked
			close(inside)
			<-release
		}
		return time.UnixMicro(1)
	}})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := s.Apply(ctx, event())
		assert.NoError(t, err)
	})
	<-inside
	other := event()
	other.Agent = "b"
	r, err := s.Apply(ctx, other)
	require.NoError(t, err)
	assert.True(t, r.OK)
	waiting, cancel := context.WithCancel(ctx)
	wg.Go(func() {
		_, err := s.Apply(waiting, event())
		assert.ErrorIs(t, err, context.Canceled)
	})
	cancel()
	close(release)
	wg.Wait()
	rs, err := s.Records(ctx, "a", "t", 1, 9)
	require.NoError(t, err)
	assert.Len(t, rs, 1)
}
