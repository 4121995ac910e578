package delta_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// A call within a call that waits for a person is parked like any other, and says whose it was also when it runs at last.
func TestParkedWithinACallRunsOnItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		risky := does("risky", func(*delta.Context, In) mo.Result[Out] { ran++; return mo.Ok(Out{"ok"}) }).Risk(5).MustBuild()
		var inner action.Outcome
		outer := does("outer", func(ctx *delta.Context, in In) mo.Result[Out] {
			inner = ctx.Tool("risky").Call(in).MustGet()
			return mo.Ok(Out{string(inner.Code)})
		}).Tools("risky").MustBuild()
		store := memory.New(memory.Config{})
		e, err := delta.New(delta.Config{Authenticator: anybody, Store: store})
		require.NoError(t, err)
		defer e.Close(context.Background())
		task, err := e.Start(t.Context(), delta.Goal{ID: "t", Agent: delta.NewAgent("a").Grant(risky, outer).MustBuild(), Approvers: []string{"boss"}})
		require.NoError(t, err)
		out := task.Do(t.Context(), call("outer", "x")).MustGet()
		require.Equal(t, action.ApprovalRequired, inner.Code)
		require.Zero(t, ran)
		boss, err := e.Authenticate(t.Context(), "boss")
		require.NoError(t, err)
		require.NoError(t, e.Approve(t.Context(), inner.Failure.Approval(), boss, "yes"))

		ctx, cancel := context.WithCancel(t.Context())
		done := background(func() error { return e.Work(ctx) })
		time.Sleep(10 * time.Second)
		cancel()
		done()
		require.Equal(t, 1, ran)
		o, ended, err := task.Outcome(t.Context(), inner.Intent)
		require.NoError(t, err)
		assert.True(t, ended && o.OK())
		events, err := task.Events(t.Context())
		require.NoError(t, err)
		for _, ev := range events {
			if ev.Intent == inner.Intent && (ev.Type == ledger.Begun || ev.Type == ledger.Settled || ev.Type == ledger.ApprovalRequested) {
				assert.Equal(t, out.Intent, ev.Within, "%s", ev.Type)
			}
		}
		folds(t, store, "a", "t")
	})
}

// What is under way when an engine closes finishes, the calls it makes included; what is cancelled takes them along.
func TestCallsWithinLiveAndDieWithTheirCall(t *testing.T) {
	for _, how := range []string{"close", "cancel"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := does("slow", func(ctx *delta.Context, _ In) mo.Result[Out] {
					select {
					case <-time.After(time.Second):
						return mo.Ok(Out{"ok"})
					case <-ctx.Done():
						return mo.Err[Out](context.Cause(ctx))
					}
				}).MustBuild()
				var mu sync.Mutex
				codes := map[action.Code]int{}
				outer := does("outer", func(ctx *delta.Context, in In) mo.Result[Out] {
					time.Sleep(time.Second)
					var all sync.WaitGroup
					for range 8 {
						all.Go(func() {
							o, err := ctx.Tool("slow").Call(in).Get()
							mu.Lock()
							defer mu.Unlock()
							if err != nil {
								o.Code = "none"
							}
							codes[o.Code]++
						})
					}
					all.Wait()
					return mo.Ok(Out{"ok"})
				}).Tools("slow").MustBuild()
				e, err := delta.New(delta.Config{})
				require.NoError(t, err)
				task, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("a").Grant(slow, outer).MustBuild(), Limit: action.Limit{Calls: action.Max(6)}})
				require.NoError(t, err)
				out := background(func() action.Outcome { return task.Do(context.Background(), call("outer", "x")).MustGet() })
				if how == "close" {
					synctest.Wait()
					require.NoError(t, e.Close(context.Background()), "it waits")
					assert.True(t, out().OK())
					assert.Equal(t, 5, codes[action.OK], "six calls were allowed, the outer one included: %v", codes)
					assert.Equal(t, 3, codes[action.BudgetExhausted]+codes[action.Stale], "%v", codes)
					return
				}
				time.Sleep(1500 * time.Millisecond)
				require.NoError(t, task.Cancel(context.Background(), "enough"))
				assert.Equal(t, action.Interrupted, out().Code)
				assert.Zero(t, codes[action.OK], "%v", codes)
				require.NoError(t, e.Close(context.Background()))
			})
		})
	}
}
