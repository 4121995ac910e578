package delta_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// limited opens so many tasks of one agent, each on an engine of its own over one store.
func limited(t *testing.T, n int, shape func(delta.Builder[In, Out]) delta.Builder[In, Out], agent func(delta.AgentBuilder) delta.AgentBuilder, do delta.Func[In, Out]) []*delta.Task {
	t.Helper()
	store := memory.New(memory.Config{})
	act := shape(delta.Define("act", do).Describe("acts").Risk(1).Effect(action.None)).MustBuild()
	a := agent(delta.NewAgent("worker").Grant(act)).MustBuild()
	var tasks []*delta.Task
	for i := range n {
		e, err := delta.New(delta.Config{Store: &spy{Store: store}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
		task, err := e.Start(context.Background(), delta.Goal{ID: fmt.Sprint("t", i), Agent: a})
		require.NoError(t, err)
		tasks = append(tasks, task)
	}
	return tasks
}

func same[B any](b B) B { return b }

// TestAtOnceHoldsOverTasksAndWorkers: never more at a time than the limit, whoever asks, and it comes back.
func TestAtOnceHoldsOverTasksAndWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		shape func(delta.Builder[In, Out]) delta.Builder[In, Out]
		agent func(delta.AgentBuilder) delta.AgentBuilder
	}{
		"of an action": {func(b delta.Builder[In, Out]) delta.Builder[In, Out] { return b.AtOnce(3) }, same[delta.AgentBuilder]},
		"of an agent":  {same[delta.Builder[In, Out]], func(b delta.AgentBuilder) delta.AgentBuilder { return b.AtOnce(3) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var now, most atomic.Int64
				tasks := limited(t, 4, c.shape, c.agent, func(*delta.Context, In) mo.Result[Out] {
					n := now.Add(1)
					defer now.Add(-1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					time.Sleep(time.Second)
					return mo.Ok(Out{"ok"})
				})
				for range 3 {
					var ends []func() action.Outcome
					for i := range 24 {
						ends = append(ends, background(func() action.Outcome {
							return tasks[i%len(tasks)].Do(context.Background(), call("act", fmt.Sprint(i))).MustGet()
						}))
					}
					ok := 0
					for _, end := range ends {
						o := end()
						if o.OK() {
							ok++
							continue
						}
						assert.Contains(t, []action.Code{action.RateLimited, action.Stale}, o.Code, "%v", o.Failure)
					}
					assert.Equal(t, 3, ok, "as many as there is room for")
				}
				assert.EqualValues(t, 3, most.Load())
			})
		})
	}
}

// TestRateHoldsInAnyPeriod: wherever a period starts, no more begin in it than the rate says.
func TestRateHoldsInAnyPeriod(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var at []time.Time
		tasks := limited(t, 2, func(b delta.Builder[In, Out]) delta.Builder[In, Out] { return b.Rate(5, time.Minute) }, same[delta.AgentBuilder],
			func(*delta.Context, In) mo.Result[Out] {
				at = append(at, time.Now())
				return mo.Ok(Out{"ok"})
			})
		for i := range 200 {
			o := tasks[i%2].Do(context.Background(), call("act", "a")).MustGet()
			if !o.OK() {
				require.Equal(t, action.RateLimited, o.Code, "%v", o.Failure)
				wait, err := time.ParseDuration(o.Failure.ForPlanner().Details[action.DetailAfter])
				require.NoError(t, err)
				assert.LessOrEqual(t, wait, time.Minute)
			}
			time.Sleep(time.Duration(i%7) * time.Second)
			synctest.Wait()
		}
		require.Greater(t, len(at), 30)
		for i := 5; i < len(at); i++ {
			assert.GreaterOrEqual(t, at[i].Sub(at[i-5]), time.Minute, "six began within a minute, at %d", i)
		}
	})
}

func TestThrottlesAreChecked(t *testing.T) {
	act := delta.Define("act", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("x").Effect(action.None)
	for name, b := range map[string]delta.Builder[In, Out]{
		"none per minute": act.Rate(0, time.Minute), "too many": act.Rate(101, time.Minute), "no period": act.Rate(1, 0), "a week": act.Rate(1, 7*24*time.Hour), "nobody": act.AtOnce(0),
	} {
		_, err := b.Build()
		require.Error(t, err, name)
	}
	for name, b := range map[string]delta.AgentBuilder{"rate": delta.NewAgent("a").Rate(0, 1), "at once": delta.NewAgent("a").AtOnce(-1)} {
		_, err := b.Build()
		require.ErrorContains(t, err, name)
	}
}
