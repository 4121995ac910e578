package delta_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// lastingShop holds an action that establishes facts, and actions that rest on them: across tasks, in the task, using them up.
func lastingShop() *delta.Agent {
	named := func(name string) delta.Builder[In, Out] {
		return delta.Define(name, func(_ *delta.Context, in In) mo.Result[Out] { return mo.Ok(Out{in.ID}) }).Describe(name).Risk(1).Effect(action.Idempotent)
	}
	confirm := named("confirm").MustBuild()
	return delta.NewAgent("clerk").Grant(confirm,
		named("charge").Needs(confirm.On("id").Across(time.Hour)).MustBuild(),
		named("ask").Needs(confirm.On("id")).MustBuild(),
		named("ship").Needs(confirm.On("id").Consumed()).MustBuild(),
	).MayDelegate(confirm).MustBuild()
}

// TestI03_FactsOfEarlierTasks holds engines to a model that is one table: when who confirmed what, where. An Ok counts in its
// own task, and in tasks of the same tenant that started after it, for an hour; what did not ask for that never sees it.
func TestI03_FactsOfEarlierTasks(t *testing.T) {
	for seed := range uint64(12) {
		bubble(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			type work struct {
				*delta.Task
				tenant string
				began  time.Time
				own    map[string]time.Time // when it confirmed what
				left   map[string]bool      // not used up
			}
			store, agent := memory.New(memory.Config{}), lastingShop()
			var engines []*delta.Engine
			for range 2 {
				e, err := delta.New(delta.Config{Store: store})
				require.NoError(t, err)
				require.NoError(t, e.Register(agent))
				defer e.Close(context.Background())
				engines = append(engines, e)
			}
			var tasks []*work
			counts := func(w *work, id string) bool {
				now := time.Now()
				if at, ok := w.own[id]; ok && now.Sub(at) <= time.Hour {
					return true
				}
				for _, o := range tasks {
					at, ok := o.own[id]
					if ok && o.tenant == w.tenant && at.Before(w.began) && now.Sub(at) <= time.Hour {
						return true
					}
				}
				return false
			}
			for range 120 {
				time.Sleep(time.Duration(1+rnd.IntN(600)) * time.Second)
				e := engines[rnd.IntN(2)]
				if len(tasks) == 0 || rnd.IntN(6) == 0 {
					tenant := []string{"", "north"}[rnd.IntN(2)]
					task, err := e.Start(t.Context(), delta.Goal{Agent: agent, Tenant: tenant, Limit: action.Limit{Calls: action.Max(10_000)}})
					require.NoError(t, err)
					tasks = append(tasks, &work{task, tenant, time.Now(), map[string]time.Time{}, map[string]bool{}})
					continue
				}
				w, id := tasks[rnd.IntN(len(tasks))], fmt.Sprint("o", rnd.IntN(4))
				task, err := e.Open(t.Context(), w.ID())
				require.NoError(t, err)
				name := []string{"confirm", "charge", "charge", "ask", "ship"}[rnd.IntN(5)]
				confirmed := !w.own[id].IsZero()
				want := map[string]bool{"confirm": true, "charge": counts(w, id), "ask": confirmed && w.left[id], "ship": confirmed && w.left[id]}[name]
				out := task.Do(t.Context(), call(name, id)).MustGet()
				if out.Code == action.TaskPaused { // it repeated itself
					continue
				}
				require.Equal(t, want, out.OK(), "seed %d: %s %s in %s: %v", seed, name, id, w.ID(), out.Failure)
				switch {
				case name == "confirm":
					w.own[id], w.left[id] = time.Now(), true
				case name == "ship" && out.OK():
					w.left[id] = false
				}
			}
			for _, w := range tasks {
				local := strings.TrimPrefix(w.ID(), "clerk~")
				records, err := store.Records(t.Context(), "clerk", local, 1, 10_000)
				require.NoError(t, err)
				state, err := engine.FoldLedger(records)
				require.NoError(t, err)
				snap, err := store.Load(t.Context(), "clerk", local, nil)
				require.NoError(t, err)
				for name, c := range snap.Task.Cells {
					assert.Equal(t, c.Val, state.Task.Cells[name].Val, "I14: %s", name)
				}
				assert.Equal(t, snap.Task.Counters, state.Task.Counters, "I14")
			}
		})
	}
}

// I16: an action that earlier tasks unlock too is not the parent's that they do not.
func TestI16_AcrossIsPartOfWhatAnActionIs(t *testing.T) {
	var ran atomic.Int64
	confirm := counts("confirm", &ran).MustBuild()
	pay := func(p delta.Pre) *delta.Agent {
		return delta.NewAgent(fmt.Sprint("a", ran.Add(1))).Grant(confirm, counts("pay", &ran).Needs(p).MustBuild()).MustBuild()
	}
	e := engineFor(t, delta.Config{})
	task, err := e.Start(t.Context(), delta.Goal{Agent: pay(confirm.On("id").Within(time.Hour))})
	require.NoError(t, err)
	for _, c := range []struct {
		need delta.Pre
		want action.Code
	}{{confirm.On("id").Across(time.Hour), action.Denied}, {confirm.On("id").Within(time.Hour), action.OK}} {
		child, err := task.Delegate(t.Context(), delta.Goal{Agent: pay(c.need)})
		require.NoError(t, err)
		of, err := child.Task(t.Context())
		require.NoError(t, err)
		require.Equal(t, action.OK, of.Do(t.Context(), call("confirm", "x")).MustGet().Code)
		assert.Equal(t, c.want, of.Do(t.Context(), call("pay", "x")).MustGet().Code)
	}
}

// A fact that becomes too old between the decision and the begin does not let the call begin.
func TestI03_AnEarlierFactStillCountsWhenTheCallBegins(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &spy{Store: memory.New(memory.Config{})}
		e, err := delta.New(delta.Config{Store: store})
		require.NoError(t, err)
		defer e.Close(context.Background())
		agent := lastingShop()
		first, err := e.Start(t.Context(), delta.Goal{Agent: agent})
		require.NoError(t, err)
		require.True(t, first.Do(t.Context(), call("confirm", "a")).MustGet().OK())
		second, err := e.Start(t.Context(), delta.Goal{Agent: agent})
		require.NoError(t, err)
		begins := 0
		store.set(func(s *spy) {
			s.before = func(x *txn.Txn) error {
				if x.Phase == txn.Begin {
					begins++
					time.Sleep(2 * time.Second)
				}
				return nil
			}
		})
		time.Sleep(time.Hour - time.Second)
		out := second.Do(t.Context(), call("charge", "a")).MustGet()
		assert.Equal(t, action.NotLegal, out.Code)
		assert.Contains(t, out.Failure.Error(), "too long ago")
		assert.Equal(t, 1, begins)
	})
}

// I16: a child begins with nothing, whatever its parent and earlier tasks of its agent have established; what it does
// establish counts for later tasks as anybody's does.
func TestI16_AChildInheritsNoFacts(t *testing.T) {
	e := engineFor(t, delta.Config{})
	agent := lastingShop()
	start := func(parent *delta.Task) *delta.Task {
		if parent == nil {
			task, err := e.Start(t.Context(), delta.Goal{Agent: agent, Limit: action.Limit{Calls: action.Max(100)}})
			require.NoError(t, err)
			return task
		}
		c, err := parent.Delegate(t.Context(), delta.Goal{Agent: agent, Limit: action.Limit{Calls: action.Max(10)}})
		require.NoError(t, err)
		task, err := c.Task(t.Context())
		require.NoError(t, err)
		return task
	}
	code := func(task *delta.Task, name, id string) action.Code {
		return task.Do(t.Context(), call(name, id)).MustGet().Code
	}
	require.Equal(t, action.OK, code(start(nil), "confirm", "a"))
	parent := start(nil)
	require.Equal(t, action.OK, code(parent, "charge", "a"))
	require.Equal(t, action.OK, code(parent, "confirm", "b"))
	child := start(parent)
	assert.Equal(t, action.NotLegal, code(child, "charge", "a"))
	assert.Equal(t, action.NotLegal, code(child, "charge", "b"))
	require.Equal(t, action.OK, code(child, "confirm", "c"))
	assert.Equal(t, action.OK, code(child, "charge", "c"))
	assert.Equal(t, action.NotLegal, code(parent, "charge", "c"), "it started before")
	assert.Equal(t, action.OK, code(start(nil), "charge", "c"))
}

// What outlasts tasks is bounded: a task is told of the newest, an agent keeps the newest, what is too old goes.
func TestFactsOfEarlierTasksAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := memory.New(memory.Config{})
		e, err := delta.New(delta.Config{Store: store})
		require.NoError(t, err)
		defer e.Close(context.Background())
		agent := lastingShop()
		start := func() *delta.Task {
			task, err := e.Start(t.Context(), delta.Goal{Agent: agent})
			require.NoError(t, err)
			return task
		}
		kept := func() int {
			q, err := store.Queued(t.Context(), "clerk", engine.QueueLasting, txn.Queued{}, false, 9999)
			require.NoError(t, err)
			return len(q)
		}
		const n = engine.MaxLasting + 100
		first := start()
		for i := range n {
			require.True(t, first.Do(t.Context(), call("confirm", fmt.Sprint("o", i))).MustGet().OK())
			time.Sleep(time.Millisecond)
		}
		assert.Equal(t, n, kept())
		second := start()
		assert.Equal(t, engine.MaxLasting, kept(), "the newest")
		for i, want := range map[int]action.Code{n - 1: action.OK, n - engine.MaxEarlier: action.OK, n - engine.MaxEarlier - 1: action.NotLegal, 0: action.NotLegal} {
			assert.Equal(t, want, second.Do(t.Context(), call("charge", fmt.Sprint("o", i))).MustGet().Code, i)
		}
		time.Sleep(2 * time.Hour)
		assert.Equal(t, action.NotLegal, second.Do(t.Context(), call("charge", fmt.Sprint("o", n-1))).MustGet().Code, "too long ago")
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		require.ErrorIs(t, e.Work(ctx), context.DeadlineExceeded)
		assert.Zero(t, kept(), "whoever works drops what is too old")
	})
}

func TestAcrossIsChecked(t *testing.T) {
	confirm := named("confirm").MustBuild()
	for reason, p := range map[string]delta.Pre{
		"consumed":                   confirm.On("city").Across(time.Hour).Consumed(),
		"say one of them":            confirm.On("city").Within(time.Minute).Across(time.Hour),
		"across 1h0m0s and within":   confirm.On("city").Across(time.Hour).Within(time.Minute),
		"want at least a microsecon": confirm.On("city").Across(0),
	} {
		pay, err := named("pay").Needs(p).Build()
		if err == nil {
			_, err = delta.NewAgent("a").Grant(confirm, pay).Build()
		}
		assert.ErrorContains(t, err, reason)
	}
}
