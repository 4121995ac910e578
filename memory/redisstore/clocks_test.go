package redisstore_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
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

// C24, C17: workers whose clocks are an hour apart keep to the server's. A call under way is not taken over because its
// lease looks old, an approval has not expired, a deadline has not passed.
func TestClocksAnHourApart(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var ran atomic.Int64
	flying, land := make(chan struct{}, 8), make(chan struct{})
	declare := func(name string, risk int, wait bool) delta.Definition {
		return delta.DefineRaw(name, json.RawMessage(`{"type":"object"}`), func(*delta.Context, action.Input) mo.Result[action.Output] {
			ran.Add(1)
			if wait {
				flying <- struct{}{}
				<-land
			}
			return mo.Ok(action.Output(`{}`))
		}).Describe(name).Risk(risk).Effect(action.Irreversible).MustBuild()
	}
	agent := delta.NewAgent("clerk").Grant(declare("slow", 1, true), declare("risky", 5, false)).MustBuild()
	worker := func(off time.Duration) *delta.Engine {
		e, err := delta.New(delta.Config{
			Store: open(t, redisstore.Config{URL: url}), Now: func() time.Time { return time.Now().Add(off) },
			Lease: time.Minute, Poll: 20 * time.Millisecond,
			Authenticator: delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil }),
		})
		require.NoError(t, err)
		require.NoError(t, e.Register(agent))
		t.Cleanup(func() { assert.NoError(t, e.Close(context.Background())) })
		return e
	}
	early, late := worker(-time.Hour), worker(time.Hour)
	done := make(chan error, 2)
	for _, e := range []*delta.Engine{early, late} {
		go func() { done <- e.Work(ctx) }()
	}
	task, err := early.Start(ctx, delta.Goal{ID: "t", Agent: agent, Text: "get it done", Approvers: []string{"ana"}, Threshold: 4, ApprovalTTL: 10 * time.Minute,
		Deadline: time.Now().Add(-time.Hour).Add(10 * time.Minute)})
	require.NoError(t, err)

	end := make(chan action.Outcome, 1)
	go func() { end <- task.Do(ctx, delta.Call{ID: "c", Action: "slow", Input: []byte(`{}`)}).MustGet() }()
	<-flying
	out := task.Do(ctx, delta.Call{ID: "r", Action: "risky", Input: []byte(`{}`)}).MustGet()
	require.Equal(t, action.ApprovalRequired, out.Code)
	who, err := late.Authenticate(ctx, "ana")
	require.NoError(t, err)
	require.NoError(t, late.Approve(ctx, out.Failure.Approval(), who, "fine"), "it has not expired")
	require.Eventually(t, func() bool { return ran.Load() == 2 }, 30*time.Second, 5*time.Millisecond, "some worker runs what was approved")
	status, why, err := task.Status(ctx)
	require.NoError(t, err)
	assert.Equal(t, "running", status, why)
	close(land)
	assert.True(t, (<-end).OK(), "nobody took it over")
	assert.EqualValues(t, 2, ran.Load(), "each once")
	cancel()
	for range 2 {
		require.ErrorIs(t, <-done, context.Canceled)
	}
}
