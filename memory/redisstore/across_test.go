package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

type customer struct {
	ID string `json:"id"`
}

// What one engine's task established another engine's later task may rest on, by the server's clock, until it is too old;
// not those of another tenant.
func TestFactsOfEarlierTasks(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	ctx := context.Background()
	define := func(name string) delta.Builder[customer, string] {
		return delta.Define(name, func(_ *delta.Context, in customer) mo.Result[string] { return mo.Ok(name + in.ID) }).Describe(name).Risk(1)
	}
	identify := define("identify").MustBuild()
	desk := delta.NewAgent("desk").Grant(identify,
		define("advise").Needs(identify.On("id").Across(time.Hour)).MustBuild(),
		define("greet").Needs(identify.On("id").Across(time.Second)).MustBuild()).MustBuild()
	worker := func(off time.Duration) *delta.Engine {
		e, err := delta.New(delta.Config{Store: open(t, redisstore.Config{URL: url}), Now: func() time.Time { return time.Now().Add(off) }})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, e.Close(ctx)) })
		return e
	}
	here, there := worker(-2*time.Hour), worker(2*time.Hour)
	do := func(e *delta.Engine, tenant, name string) action.Code {
		task, err := e.Start(ctx, delta.Goal{Agent: desk, Tenant: tenant})
		require.NoError(t, err)
		return task.Do(ctx, delta.Call{Action: name, Input: []byte(`{"id":"ada"}`)}).MustGet().Code
	}
	require.Equal(t, action.NotLegal, do(there, "", "advise"))
	require.Equal(t, action.OK, do(here, "", "identify"))
	assert.Equal(t, action.OK, do(there, "", "advise"))
	assert.Equal(t, action.OK, do(here, "", "advise"))
	assert.Equal(t, action.NotLegal, do(there, "north", "advise"))
	time.Sleep(1100 * time.Millisecond)
	assert.Equal(t, action.NotLegal, do(there, "", "greet"), "it is too old")
	assert.Equal(t, action.OK, do(there, "", "advise"))
}
