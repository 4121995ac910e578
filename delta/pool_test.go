package delta_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
)

func spender(name string, acts ...delta.Definition) *delta.Agent {
	return delta.NewAgent(name).Grant(acts...).MustBuild()
}

func startOf(t require.TestingT, e *delta.Engine, a *delta.Agent) *delta.Task {
	require.NoError(t, e.Register(a))
	task, err := e.Start(context.Background(), delta.Goal{Agent: a})
	require.NoError(t, err)
	return task
}

func ExampleEngine_Pool() {
	ctx := context.Background()
	write := spends("write", 1).MustBuild()
	desk := delta.NewAgent("desk").Grant(write).MustBuild()
	engine, _ := delta.New(delta.Config{Pools: []delta.Pool{
		{Name: "tokens-a-day", Period: delta.Day, Limit: action.Limit{Tokens: action.Max(100)}}, // of each agent
	}})
	defer engine.Close(ctx)
	for range 2 { // tasks without a limit of their own
		task, _ := engine.Start(ctx, delta.Goal{Agent: desk})
		fmt.Println(write.Do(ctx, task, In{ID: "x", N: 100}).Error())
	}
	p, _ := engine.Pool(ctx, "tokens-a-day")
	fmt.Println(p.Agents[0].Agent, p.Spent().Tokens, "of", p.Limit.Tokens)
	// Output:
	// <nil>
	// BUDGET_EXHAUSTED: a budget that tasks share does not allow "write": the call may need 1 token, 0 tokens left
	// desk 100 of {true 100}
}

func TestI07_PoolsCountAcrossTasksAndStartAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		write := spends("write", 1).MustBuild()
		a, b := spender("a", write), spender("b", write)
		e := engineFor(t, delta.Config{Pools: []delta.Pool{{Name: "daily", Period: delta.Day, Agents: []string{"a"}, Limit: action.Limit{Tokens: action.Max(10)}}}})
		require.NoError(t, write.Do(t.Context(), startOf(t, e, a), In{ID: "x", N: 10}).Error())
		f := action.FailureOf(write.Do(t.Context(), startOf(t, e, a), In{ID: "x", N: 1}).Error())
		require.NotNil(t, f)
		assert.Equal(t, action.BudgetExhausted, f.Code)
		assert.Contains(t, f.Details[action.DetailRule], "daily@2000-01-01", "an operator is told which pool")
		assert.NotContains(t, f.ForPlanner().Explain(), "daily", "a planner is not")
		assert.NoError(t, write.Do(t.Context(), startOf(t, e, b), In{ID: "x", N: 100}).Error(), "b is not named")
		offer, err := startOf(t, e, a).Offer(t.Context())
		require.NoError(t, err)
		assert.Empty(t, offer.Actions, "what no pool allows is not offered")
		time.Sleep(24 * time.Hour)
		assert.NoError(t, write.Do(t.Context(), startOf(t, e, a), In{ID: "x", N: 1}).Error(), "another day")
		p, err := e.Pool(t.Context(), "daily")
		require.NoError(t, err)
		assert.Equal(t, "daily@2000-01-02", p.ID)
		assert.EqualValues(t, 1, p.Spent().Tokens)
	})
}

func TestI07_PlanningCountsInPools(t *testing.T) {
	write := spends("write", 1).MustBuild()
	e := engineFor(t, delta.Config{Pools: []delta.Pool{{Name: "all", Limit: action.Limit{Tokens: action.Max(10)}}}})
	planner := delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
		return delta.Proposal{Used: action.Cost{Tokens: 4}}, nil
	})
	for range 2 {
		r, err := e.RunWithin(t.Context(), startOf(t, e, spender("a", write)), planner, delta.Bounds{Steps: 9}).Get()
		require.NoError(t, err)
		assert.LessOrEqual(t, r.Steps, 5)
	}
	p, err := e.Pool(t.Context(), "all")
	require.NoError(t, err)
	assert.EqualValues(t, 12, p.Spent().Tokens, "what was used without a forecast overran, and then nothing was planned any more")
}

func TestI07_ASharedPoolLendsAndTakesBack(t *testing.T) {
	write := spends("write", 1).MustBuild()
	a, b := spender("a", write), spender("b", write)
	e := engineFor(t, delta.Config{Pools: []delta.Pool{{Name: "team", Agents: []string{"a", "b"}, Shared: true, Limit: action.Limit{Tokens: action.Max(80)}}}})
	ta, tb := startOf(t, e, a), startOf(t, e, b)
	require.NoError(t, write.Do(t.Context(), ta, In{ID: "x", N: 1}).Error())
	p, err := e.Pool(t.Context(), "team")
	require.NoError(t, err)
	assert.EqualValues(t, 10, p.Lent.Tokens, "an eighth at a time")
	for range 79 {
		if write.Do(t.Context(), tb, In{ID: "x", N: 1}).IsError() {
			break
		}
	}
	for _, task := range []*delta.Task{tb} {
		f := action.FailureOf(write.Do(t.Context(), task, In{ID: "x", N: 1}).Error())
		require.NotNil(t, f)
		assert.Equal(t, action.BudgetExhausted, f.Code)
		assert.Equal(t, "budget pool team", f.Details[action.DetailRule])
	}
	p, err = e.Pool(t.Context(), "team")
	require.NoError(t, err)
	assert.Greater(t, p.Spent().Tokens, int64(70), "what a does not use goes to b; forecasts keep the last few")
	assert.EqualValues(t, 80, p.Lent.Tokens)
}

// TestI07_NoSharedPoolIsOvergranted: whatever is lost on the way, and whoever lends and gives back at the same time, the
// agents together never grant more than the limit, and what both sides' ledgers say is what they hold.
func TestI07_NoSharedPoolIsOvergranted(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		store := memory.New(memory.Config{})
		faulty := memorytest.NewFaulty(store, memorytest.FailRandomly(rapid.Uint64().Draw(r, "seed"), 0.05, 0.1))
		limit := rapid.Int64Range(0, 60).Draw(r, "limit")
		pool := delta.Pool{Name: "team", Agents: []string{"a", "b", "c"}, Shared: true, Limit: action.Limit{Tokens: action.Max(limit)}}
		write := spends("write", 1).MustBuild()
		var all sync.WaitGroup
		for range 2 {
			e, err := delta.New(delta.Config{Store: faulty, Pools: []delta.Pool{pool}})
			require.NoError(r, err)
			defer func() { _ = e.Close(context.Background()) }()
			for _, name := range pool.Agents {
				all.Go(func() {
					task, err := e.Start(context.Background(), delta.Goal{Agent: spender(name, write)})
					if err != nil {
						return
					}
					for range 5 {
						_ = write.Do(context.Background(), task, In{ID: "x", N: 1})
					}
				})
			}
		}
		all.Wait()
		faulty.Replan(nil)
		e, err := delta.New(delta.Config{Store: store, Pools: []delta.Pool{pool}})
		require.NoError(r, err)
		defer func() { _ = e.Close(context.Background()) }()
		p, err := e.Pool(context.Background(), "team")
		require.NoError(r, err)
		require.LessOrEqual(r, p.Lent.Tokens, limit)
		granted := int64(0)
		for _, a := range p.Agents {
			granted += a.Spent.Tokens + a.Reserved.Tokens
			n, _ := a.Limit.Tokens.Get()
			require.LessOrEqual(r, a.Spent.Tokens+a.Reserved.Tokens, n, a.Agent)
		}
		require.LessOrEqual(r, granted, p.Lent.Tokens)
		for _, shard := range append([]string{engine.PoolShard("team")}, pool.Agents...) {
			records, err := store.Records(context.Background(), shard, "", 1, 1<<20)
			require.NoError(r, err)
			folded, err := engine.FoldPools(records)
			require.NoError(r, err)
			snap, err := store.Load(context.Background(), shard, "", nil)
			require.NoError(r, err)
			for k, c := range folded.Cells {
				require.Equal(r, c, snap.Agent.Cells[k], "%s of %s", k, shard)
			}
			if shard == engine.PoolShard("team") {
				require.Equal(r, snap.Agent.Counters, folded.Counters, "what is lent is the fold of the pool's ledger")
			}
		}
	})
}
