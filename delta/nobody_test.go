package delta_test

import (
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/keys"
)

// What is kept for all agents, a halt of everything and the account of a shared pool, stands where agents do and is none: it is
// not listed, and what goes through all agents goes past it.
func TestWhatIsKeptForAllAgentsIsNoAgent(t *testing.T) {
	look := delta.Define("look", func(_ *delta.Context, in struct{}) mo.Result[string] { return mo.Ok("") }).Describe("Look").Risk(1).MustBuild()
	first, last := delta.NewAgent("desk").Grant(look).MustBuild(), delta.NewAgent("zoo").Grant(look).MustBuild()
	key, err := keys.NewKey("march", time.Now())
	require.NoError(t, err)
	ring, err := keys.NewSet(key)
	require.NoError(t, err)
	e, err := delta.New(delta.Config{Keys: ring, Authenticator: anybody, Operators: []string{"olga"}, Pools: []delta.Pool{
		{Name: "all", Shared: true, Agents: []string{"desk", "zoo"}, Limit: action.Limit{Calls: action.Max(100)}},
	}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close(t.Context()) })
	olga := as(t, e, "olga")
	for _, a := range []*delta.Agent{first, last} {
		task, err := e.Start(t.Context(), delta.Goal{Agent: a, Subject: "customer-1"})
		require.NoError(t, err)
		require.True(t, look.Do(t.Context(), task, struct{}{}).IsOk())
	}
	require.NoError(t, e.HaltAll(t.Context(), olga, delta.HaltNow, "everything burns"))
	for _, limit := range []int{1, 2, 3, 4, 100} {
		var all []string
		for after := ""; ; after = all[len(all)-1] {
			page, err := e.Agents(t.Context(), after, limit)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), limit)
			if all = append(all, page...); len(page) < limit {
				break
			}
		}
		assert.Equal(t, []string{"desk", "zoo"}, all, limit)
	}
	_, err = e.Rewrap(t.Context(), olga, 100)
	require.NoError(t, err)
	done, err := e.Erase(t.Context(), "customer-1", olga, "asked for")
	require.NoError(t, err)
	assert.Equal(t, 2, done.Keys)
	assert.Equal(t, 2, done.Tasks)
}
