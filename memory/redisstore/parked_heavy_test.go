//go:build heavy

package redisstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Ten thousand instances that wait for a person, in Redis, cost their one worker no goroutine, and any of them goes on within a
// second of its answer, which another process took.
func TestHeavyParkedWorkflowsOnRedis(t *testing.T) {
	const many = 10_000
	url := redistest.Start(t).URL()
	type item struct {
		ID string `json:"id"`
	}
	pay := delta.Define("pay", func(_ *delta.Context, in item) mo.Result[item] { return mo.Ok(in) }).
		Describe("Pay").Risk(1).Effect(action.Idempotent).MustBuild()
	agent := delta.NewAgent("shop").Grant(pay).MustBuild()
	d := workflow.New("sop", "1").Input(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`).Owners("ana").
		Step(workflow.AskPerson("ask").Hitl(workflow.Hitl{Intake: json.RawMessage(`{"type":"object"}`)})).
		Step(workflow.Execute("pay", "pay").Needs("ask").Map("id", "input.id")).MustBuild()
	open := func() *delta.Engine {
		store, err := redisstore.Open(t.Context(), redisstore.Config{URL: url})
		require.NoError(t, err)
		e, err := delta.New(delta.Config{
			Store: store, Poll: 200 * time.Millisecond, Workflows: delta.Workflows{Definitions: []*workflow.Definition{d}},
			Authenticator: delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil }),
		})
		require.NoError(t, err)
		require.NoError(t, e.Register(agent))
		t.Cleanup(func() {
			assert.NoError(t, e.Close(context.Background()))
			assert.NoError(t, store.Close())
		})
		return e
	}
	worker, desk := open(), open()
	runs := make([]*delta.Instance, many)
	var starters sync.WaitGroup
	for k := range 8 {
		starters.Go(func() {
			for n := k; n < many; n += 8 {
				var err error
				runs[n], err = desk.StartWorkflow(t.Context(), d, delta.Goal{Agent: agent}, fmt.Appendf(nil, `{"id":"o%d"}`, n))
				assert.NoError(t, err)
			}
		})
	}
	starters.Wait()
	before := runtime.NumGoroutine() // the worker's own come on top
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Work(ctx) }()
	defer func() { cancel(); <-ended }()
	state := func(n int) workflow.State {
		s, err := runs[n].State(t.Context())
		require.NoError(t, err)
		return s
	}
	require.Eventually(t, func() bool {
		for n := many - 1; n >= 0; n -= 100 {
			if s := state(n); !s.Parked() || len(s.Waits()) == 0 {
				return false
			}
		}
		return true
	}, 8*time.Minute, 500*time.Millisecond)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() < before+100 }, time.Minute, 100*time.Millisecond, "none for each of %d", many)
	ana, err := desk.Authenticate(t.Context(), "ana")
	require.NoError(t, err)
	worst := time.Duration(0)
	for n := 7; n < many; n += many / 25 {
		told := time.Now()
		require.NoError(t, runs[n].Signal(t.Context(), "ask", ana, []byte(`{}`)))
		require.Eventually(t, func() bool { return state(n).Status == workflow.Completed }, 20*time.Second, 5*time.Millisecond)
		worst = max(worst, time.Since(told))
	}
	assert.Less(t, worst, time.Second)
	t.Logf("%d parked; the slowest of 25 went on %v after its answer", many, worst)
}
