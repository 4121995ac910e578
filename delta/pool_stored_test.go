package delta_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// Whoever has the store sees how its budget pools stand, without the configuration of those who work on it.
func ExampleEngine_Pools() {
	ctx, store := context.Background(), memory.New(memory.Config{})
	team := delta.Pool{Name: "team", Agents: []string{"reader", "writer"}, Shared: true, Limit: action.Limit{Tokens: action.Max(80)}}
	worker, _ := delta.New(delta.Config{Store: store, Pools: []delta.Pool{team}})
	defer worker.Close(ctx)
	type text struct{ Words int64 }
	spend := delta.Define("spend", func(ctx *delta.Context, in text) mo.Result[int64] {
		return mo.TupleToResult(in.Words, ctx.Spend(action.Cost{Tokens: in.Words}))
	}).Describe("Spend tokens").Risk(1).Cost(action.Cost{Tokens: 5}).MustBuild()
	task, _ := worker.Start(ctx, delta.Goal{Agent: delta.NewAgent("writer").Grant(spend).MustBuild()})
	spend.Do(ctx, task, text{4})

	watcher, _ := delta.New(delta.Config{Store: store})
	defer watcher.Close(ctx)
	_ = watcher.Adopt(ctx, "writer")
	pools, err := watcher.Pools(ctx)
	for _, p := range pools {
		limit, _ := p.Limit.Tokens.Get()
		fmt.Println(p.Name, "spent", p.Spent().Tokens, "of", limit, "lent", p.Lent.Tokens, err)
		for _, a := range p.Agents {
			lent, _ := a.Limit.Tokens.Get()
			fmt.Println(" ", a.Agent, "spent", a.Spent.Tokens, "of", lent)
		}
	}
	// Output:
	// team spent 4 of 80 lent 10 <nil>
	//   reader spent 0 of 0
	//   writer spent 4 of 10
}

func TestPoolsOfAStore(t *testing.T) {
	store := memory.New(memory.Config{})
	own := func(limit int64) delta.Pool {
		return delta.Pool{Name: "own", Limit: action.Limit{Tokens: action.Max(limit)}}
	}
	write := spends("write", 1).MustBuild()
	work := func(agent string, pools ...delta.Pool) {
		e := engineFor(t, delta.Config{Store: store, Pools: pools})
		require.NoError(t, write.Do(t.Context(), startOf(t, e, spender(agent, write)), In{ID: "x", N: 1}).Error())
	}
	watcher := engineFor(t, delta.Config{Store: store})
	pools := func(agents ...string) []delta.StoredPool {
		p, err := watcher.Pools(t.Context(), agents...)
		require.NoError(t, err)
		return p
	}
	assert.Empty(t, pools("a", "b"))
	work("a", own(40))
	work("b", own(60))
	got := pools("b", "a")
	require.Len(t, got, 1)
	assert.True(t, got[0].Differs, "engines are configured differently")
	require.Len(t, got[0].Agents, 2)
	assert.Equal(t, "a", got[0].Agents[0].Agent, "in the order of names")
	assert.Equal(t, action.Max(40), got[0].Agents[0].Limit.Tokens)
	assert.Equal(t, action.Max(60), got[0].Agents[1].Limit.Tokens)

	work("a")
	got = pools("a", "b")
	require.Len(t, got, 2, "of a the pool is not declared any more")
	assert.False(t, got[0].Undeclared)
	assert.Equal(t, []delta.PoolShare{{Agent: "b", Spent: got[0].Agents[0].Spent, Limit: own(60).Limit}}, got[0].Agents)
	assert.True(t, got[1].Undeclared)
	assert.EqualValues(t, 1, got[1].Agents[0].Spent.Tokens, "what it counted is still told")
	assert.Equal(t, delta.NoCurrency, got[1].Agents[0].Spent.Currency)
}
