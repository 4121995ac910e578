package redisstore_test

import (
	"context"
	"encoding/json"
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

// TestI16_StoppingReachesOtherAgentsOnOtherEngines: what is stopped in one engine, an agent or a task with all that works for
// it, stops in another that shares nothing but the server.
func TestI16_StoppingReachesOtherAgentsOnOtherEngines(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	begun := make(chan struct{}, 1)
	wait := delta.DefineRaw("wait", json.RawMessage(`{"type":"object"}`), func(ctx *delta.Context, _ action.Input) mo.Result[action.Output] {
		begun <- struct{}{}
		<-ctx.Done()
		return mo.Err[action.Output](ctx.Err())
	}).Describe("Wait").Risk(1).Effect(action.None).Timeout(time.Hour).MustBuild()
	look := delta.DefineRaw("look", json.RawMessage(`{"type":"object"}`), func(*delta.Context, action.Input) mo.Result[action.Output] {
		return mo.Ok(action.Output(`{}`))
	}).Describe("Look").Risk(1).Effect(action.None).MustBuild()
	boss := delta.NewAgent("boss").Grant(wait, look).MustBuild()
	hand := delta.NewAgent("hand").Grant(wait, look).MustBuild()
	engine := func() (*delta.Engine, delta.Identity) {
		e, err := delta.New(delta.Config{
			Store: open(t, redisstore.Config{URL: srv.URL()}), Operators: []string{"op"}, Lease: 600 * time.Millisecond,
			Authenticator: delta.AuthenticatorFunc(func(context.Context, any) (string, error) { return "op", nil }),
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
		require.NoError(t, e.Register(boss, hand))
		op, err := e.Authenticate(ctx, nil)
		require.NoError(t, err)
		return e, op
	}
	here, op := engine()
	there, _ := engine()
	parent, err := here.Start(ctx, delta.Goal{ID: "root", Agent: boss, Text: "go"})
	require.NoError(t, err)
	child, err := parent.Delegate(ctx, delta.Goal{ID: "part", Agent: hand, Text: "a part"})
	require.NoError(t, err)
	far, err := there.Open(ctx, child.ID())
	require.NoError(t, err)
	do := func(name string) action.Outcome {
		out, err := far.Do(ctx, delta.Call{Action: name, Input: []byte(`{}`)}).Get()
		require.NoError(t, err)
		return out
	}
	waiting := func() chan action.Code {
		end := make(chan action.Code, 1)
		go func() {
			out, _ := far.Do(ctx, delta.Call{Action: "wait", Input: []byte(`{}`)}).Get()
			end <- out.Code
		}()
		<-begun
		return end
	}

	end := waiting()
	require.NoError(t, here.HaltAgent(ctx, "boss", op, delta.HaltNow, "a drill"))
	assert.Equal(t, action.Interrupted, <-end)
	assert.Equal(t, action.TaskPaused, do("look").Code)
	require.NoError(t, here.LiftAgent(ctx, "boss", op, "the drill is over"))
	assert.Equal(t, action.OK, do("look").Code)

	require.NoError(t, here.HaltAction(ctx, "boss", "look", op, delta.HaltAfter, "it lies"))
	assert.Equal(t, action.Cancelled, do("look").Code)
	require.NoError(t, here.LiftAction(ctx, "boss", "look", op, "it does not"))
	assert.Equal(t, action.OK, do("look").Code)

	end = waiting()
	require.NoError(t, parent.CancelBy(ctx, op, "enough"))
	assert.Equal(t, action.Interrupted, <-end)
	assert.Equal(t, action.Cancelled, do("look").Code)
}
