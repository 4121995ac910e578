package delta_test

import (
	"context"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/faulty"
)

// forgetful opens a world on a store that can lose its latest writes.
func forgetful(t *testing.T) (*world, *faulty.Rewinding) {
	var r *faulty.Rewinding
	w := newWorld(t, func(w *world, g *delta.Goal) {
		r = faulty.NewRewinding(func(clock func() time.Time) memory.Store { return memory.New(memory.Config{Clock: clock}) })
		w.shared, w.store = r, &spy{Store: r}
		w.cfg.Store = w.store
		g.Limit.Calls = action.Max(100)
	})
	require.NoError(t, w.engine.Sync(t.Context()))
	return w, r
}

const lostWords = "the store lost acknowledged writes"

// TestI15_LostWrites loses all that came after a moment and makes the same call again: nothing runs, the caller is told
// why, and the task is cancelled, durably and with the reason.
func TestI15_LostWrites(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := forgetful(t)
		require.True(t, w.do(call("act", "a")).OK())
		require.NoError(t, w.engine.Sync(t.Context()))
		before := r.Written()
		for range 3 {
			require.True(t, w.do(call("act", "b")).OK())
		}
		require.NoError(t, w.engine.Sync(t.Context()))
		require.NoError(t, r.Rewind(t.Context(), before))
		ran := w.effects.Load()

		out := w.do(call("act", "c"))
		// Housekeeping may notice first: then the task has been stopped already.
		assert.Contains(t, []action.Code{action.StoreUnavailable, action.Cancelled}, out.Code)
		require.NotNil(t, out.Failure)
		assert.Contains(t, out.Failure.Explain(), lostWords)
		assert.Equal(t, ran, w.effects.Load(), "nothing runs on grounds that nobody can read any more")
		require.NoError(t, w.engine.Sync(t.Context()))
		status, why, err := w.task.Status(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "cancelled", status)
		assert.Contains(t, why, lostWords)
		assert.Equal(t, action.Cancelled, w.do(call("act", "d")).Code)
		assert.Equal(t, ran, w.effects.Load())
		require.NoError(t, w.engine.Sync(t.Context()))
		_, report, err := w.task.Ledger(t.Context())
		require.NoError(t, err, "the chain goes on from what is left")
		assert.EqualValues(t, len(w.events()), report.Sealed)

		next, err := w.engine.Start(t.Context(), delta.Goal{ID: "next", Agent: w.agent, Text: "the agent goes on"})
		require.NoError(t, err)
		worlds.Store(next.ID(), w)
		defer worlds.Delete(next.ID())
		assert.True(t, next.Do(t.Context(), call("act", "a")).MustGet().OK())
	})
}

// A loss of the agent's own state concerns all tasks that are held; one that is seen in a task concerns that task alone.
func TestALossStopsTheTasksConcerned(t *testing.T) {
	for _, c := range []struct {
		name  string
		whole bool
	}{{"of the agent", true}, {"of a task", false}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, r := forgetful(t)
				other, err := w.engine.Start(t.Context(), delta.Goal{ID: "other", Agent: w.agent, Text: "something else"})
				require.NoError(t, err)
				worlds.Store(other.ID(), w)
				defer worlds.Delete(other.ID())
				require.True(t, w.do(call("act", "a")).OK())
				require.NoError(t, w.engine.Sync(t.Context()))
				before := r.Written()
				if c.whole {
					require.True(t, w.do(call("act", "b")).OK())
					require.NoError(t, w.engine.Sync(t.Context()), "a fold is written to the agent")
				} else {
					require.NoError(t, w.task.SetPhase(t.Context(), "late", ""))
				}
				require.NoError(t, r.Rewind(t.Context(), before))
				w.do(call("act", "c"))
				require.NoError(t, w.engine.Sync(t.Context()))
				for task, stopped := range map[*delta.Task]bool{w.task: true, other: c.whole} {
					status, _, err := task.Status(t.Context())
					require.NoError(t, err)
					assert.Equal(t, stopped, status == "cancelled", "%s is %s", task, status)
				}
			})
		})
	}
}

// A call under way when the loss is noticed is told to stop, and its end is written all the same where its begin is left.
func TestALossInterruptsCallsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := forgetful(t)
		require.NoError(t, w.engine.Sync(t.Context()))
		flying := make(chan struct{})
		w.does(func(ctx *delta.Context, in In) mo.Result[Out] {
			close(flying)
			return obeys(ctx, in)
		})
		end := background(func() action.Outcome { return w.do(call("act", "a")) })
		<-flying
		require.NoError(t, w.engine.Sync(t.Context()))
		before := r.Written()
		require.NoError(t, w.task.SetPhase(t.Context(), "late", ""))
		require.NoError(t, r.Rewind(t.Context(), before))
		_, _, err := w.task.Status(t.Context())
		require.ErrorContains(t, err, lostWords)
		out := end()
		assert.Equal(t, action.StartedUnknown, out.Code, "an effect that may have happened")
		require.NoError(t, w.engine.Sync(t.Context()))
		assert.Equal(t, 1, w.count(ledger.Settled))
		assert.Equal(t, 1, w.count(ledger.TaskCancelled))
	})
}

// A store that was emptied has nothing to cancel: what is not there cannot run.
func TestAStoreThatWasEmptied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, r := forgetful(t)
		require.True(t, w.do(call("act", "a")).OK())
		require.NoError(t, w.engine.Sync(t.Context()))
		require.NoError(t, r.Rewind(context.Background(), 0))
		ran := w.effects.Load()
		assert.Equal(t, action.StoreUnavailable, w.do(call("act", "b")).Code)
		require.NoError(t, w.engine.Sync(t.Context()))
		assert.False(t, w.do(call("act", "c")).OK())
		assert.Equal(t, ran, w.effects.Load())
	})
}
