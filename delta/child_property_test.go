package delta_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
)

// kin is a parent whose store loses calls, and the children that were wished for.
type kin struct {
	*rapid.T
	faulty       *memorytest.Faulty
	engines      []*delta.Engine
	lead, worker *delta.Agent
	write        *delta.Action[In, Out]
	children     int
}

var nowhere = context.Background()

func (k *kin) engine() *delta.Engine { return rapid.SampledFrom(k.engines).Draw(k.T, "engine") }

func (k *kin) open(e *delta.Engine, id string) *delta.Task {
	t, err := e.Open(nowhere, id)
	if err != nil {
		return nil
	}
	return t
}

// TestI16_WhateverIsLostTheSumHolds: delegating, working and ending at random, through two engines and a store that loses
// requests and replies, the parent never grants more than its limit; once everything has been looked after nothing is
// left reserved, what children spent is what their parent spent, and both ledgers fold to what the store holds.
func TestI16_WhateverIsLostTheSumHolds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		store := memory.New(memory.Config{})
		k := &kin{T: r, faulty: memorytest.NewFaulty(store, nil), write: spends("write", 1).MustBuild()}
		k.lead = delta.NewAgent("lead").Grant(k.write).MustBuild()
		k.worker = delta.NewAgent("worker").Grant(k.write).MustBuild()
		for range 2 {
			e, err := delta.New(delta.Config{Store: k.faulty})
			require.NoError(r, err)
			defer func() { _ = e.Close(nowhere) }()
			require.NoError(r, e.Register(k.lead, k.worker))
			k.engines = append(k.engines, e)
		}
		limit := rapid.Int64Range(0, 60).Draw(r, "limit")
		_, err := k.engines[0].Start(nowhere, delta.Goal{
			ID: "t", Agent: k.lead, Limit: action.Limit{Tokens: action.Max(limit)}, Delegation: delta.Delegation{Active: 2, Queued: 2, Depth: 2},
		})
		require.NoError(r, err)
		k.faulty.Replan(memorytest.FailRandomly(rapid.Uint64().Draw(r, "seed"), 0.1, 0.1))
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			k.step(store, limit)
		}
		k.faulty.Replan(nil)
		k.settle(store, limit)
	})
}

func (k *kin) step(store *memory.InProcess, limit int64) {
	e := k.engine()
	parent := k.open(e, "lead~t")
	if parent == nil {
		return
	}
	switch rapid.SampledFrom([]string{"delegate", "delegate", "work", "work", "work", "end", "cancel", "own", "all"}).Draw(k.T, "step") {
	case "delegate":
		k.children++
		_, _ = parent.Delegate(nowhere, delta.Goal{
			ID: fmt.Sprintf("c%d", rapid.IntRange(1, k.children).Draw(k.T, "name")), Agent: k.worker, Text: "x",
			Limit: action.Limit{Tokens: action.Max(rapid.Int64Range(0, 25).Draw(k.T, "grant"))},
		})
	case "own":
		_ = k.write.Do(nowhere, parent, In{ID: "x", N: 1})
	case "all":
		if rapid.IntRange(0, 3).Draw(k.T, "really") == 0 {
			_ = parent.Cancel(nowhere, "enough")
		}
	default:
		k.child(e, parent)
	}
	k.within(store, limit)
}

// child does something to one of the children, where it was started.
func (k *kin) child(e *delta.Engine, parent *delta.Task) {
	all, err := parent.Children(nowhere)
	if err != nil || len(all) == 0 {
		return
	}
	s := rapid.SampledFrom(all).Draw(k.T, "child")
	task := k.open(e, s.ID)
	if task == nil {
		return
	}
	switch rapid.SampledFrom([]string{"work", "work", "done", "cancel"}).Draw(k.T, "what") {
	case "work":
		_ = k.write.Do(nowhere, task, In{ID: "x", N: rapid.Int64Range(0, 1).Draw(k.T, "tokens")})
	case "done":
		_ = task.Done(nowhere, "")
	case "cancel":
		_ = task.Cancel(nowhere, "")
	}
}

// within: at no time is more granted than the limit.
func (k *kin) within(store *memory.InProcess, limit int64) {
	snap, err := store.Load(nowhere, "lead", "t", nil)
	require.NoError(k, err)
	require.LessOrEqual(k, snap.Task.Counters["granted/tokens"], limit)
	require.GreaterOrEqual(k, snap.Task.Counters["granted/tokens"], snap.Task.Counters["spent/tokens"])
}

// settle looks after everything, and checks that the books agree.
func (k *kin) settle(store *memory.InProcess, limit int64) {
	e := k.engines[0]
	parent := k.open(e, "lead~t")
	require.NotNil(k, parent)
	_ = parent.Cancel(nowhere, "the end")
	ctx, stop := context.WithCancel(nowhere)
	worked := make(chan error, 1)
	go func() { worked <- e.Work(ctx) }()
	all, err := parent.Children(nowhere)
	require.NoError(k, err)
	sum := int64(0)
	for _, s := range all {
		c, err := parent.Child(nowhere, s.Name)
		require.NoError(k, err)
		end, err := c.Wait(nowhere)
		require.NoError(k, err)
		sum += end.Spent.Tokens
		agent, task, _ := strings.Cut(s.ID, "~")
		snap, err := store.Load(nowhere, agent, task, nil)
		require.NoError(k, err)
		if n := snap.Task.Counters["granted/tokens"] - snap.Task.Counters["spent/tokens"]; n == 0 {
			require.Equal(k, snap.Task.Counters["spent/tokens"], end.Spent.Tokens, "%s", s.Name)
		}
		k.folds(store, agent, task)
	}
	stop()
	<-worked
	k.folds(store, "lead", "t")
	k.within(store, limit)
	b, err := parent.Budget(nowhere)
	require.NoError(k, err)
	require.GreaterOrEqual(k, b.Spent.Tokens, sum)
}

func (k *kin) folds(store *memory.InProcess, agent, task string) {
	records, err := store.Records(nowhere, agent, task, 1, 1<<20)
	require.NoError(k, err)
	state, err := engine.FoldLedger(records)
	require.NoError(k, err)
	snap, err := store.Load(nowhere, agent, task, nil)
	require.NoError(k, err)
	require.Equal(k, snap.Task.Cells, state.Task.Cells)
	require.Equal(k, positive(snap.Task.Counters), positive(state.Task.Counters))
}

func positive(m map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for k, n := range m {
		if n != 0 {
			out[k] = n
		}
	}
	return out
}
