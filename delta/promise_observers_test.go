package delta_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// audience keeps what it is told.
type audience struct {
	mu      sync.Mutex
	records []delta.Record
	gaps    []delta.Gap
	before  func(context.Context)
}

func (a *audience) Observe(ctx context.Context, r delta.Record) {
	if a.before != nil {
		a.before(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records = append(a.records, r)
}

func (a *audience) Missed(_ context.Context, g delta.Gap) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gaps = append(a.gaps, g)
}

func (a *audience) of(task string) (out []delta.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.records {
		if r.TaskID() == task {
			out = append(out, r)
		}
	}
	return out
}

func watchedBy(ws ...delta.Watch) change {
	return func(w *world, _ *delta.Goal) { w.cfg.Observers = ws }
}

// What an observer is told is the ledger: every event of this engine, as recorded, in its order, with its numbers and times.
func TestObserver_IsToldTheLedger(t *testing.T) {
	a := &audience{}
	w := newWorld(t, watchedBy(delta.Watch{Observer: a}))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 10 {
				w.do(call("act", fmt.Sprintf("%d-%d", i, j)))
				w.do(call("risky", fmt.Sprintf("%d-%d", i, j)))
				w.do(call("nothing", "x"))
			}
		})
	}
	all.Wait()
	require.NoError(t, w.engine.Sync(t.Context()))
	records, _, err := w.task.Ledger(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.engine.Close(t.Context()))
	got := a.of(w.task.ID())
	require.Len(t, got, len(records))
	for i, r := range records {
		e, err := ledger.Decode(r.Val)
		require.NoError(t, err)
		require.Equal(t, delta.Record{Event: e, Seq: r.Seq, Stored: r.At}, got[i])
	}
	assert.Empty(t, a.gaps)
	assert.NotEmpty(t, a.of(""), "the agent's own ledger: beliefs are folded")
}

// Nothing is told that the store did not take; what it may have taken without saying so is a gap.
func TestObserver_OnlyWhatTheStoreAccepted(t *testing.T) {
	a := &audience{}
	w := newWorld(t, watchedBy(delta.Watch{Observer: a}))
	w.store.set(func(s *spy) {
		s.before = func(x *txn.Txn) error {
			if x.Phase == txn.Begin {
				return errors.New("the line is cut")
			}
			return nil
		}
	})
	o := w.do(call("act", "a"))
	require.Equal(t, action.StoreUnavailable, o.Code)
	require.NoError(t, w.engine.Close(t.Context()))
	for _, r := range a.of(w.task.ID()) {
		assert.NotEqual(t, ledger.Begun, r.Type)
	}
	require.NotEmpty(t, a.gaps)
	assert.Equal(t, delta.Gap{Agent: "clerk", Task: w.name, From: 2}, a.gaps[0])
}

// A slow observer loses records, is told which, and holds up no call.
func TestObserver_OverflowIsAGapWithNumbers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		slow := &audience{before: func(context.Context) { <-release }}
		quick := &audience{}
		w := newWorld(t, watchedBy(delta.Watch{Observer: slow, Queue: 3, Name: "slow"}, delta.Watch{Observer: quick}))
		synctest.Wait() // it has the start of the task in hand
		start := time.Now()
		for i := range 10 {
			require.True(t, w.do(call("act", fmt.Sprint(i))).OK())
		}
		assert.Zero(t, time.Since(start), "no call waited")
		require.NoError(t, w.engine.Sync(t.Context()))
		st := w.engine.Observers()[0]
		assert.Equal(t, "slow", st.Name)
		assert.EqualValues(t, 3, st.Waiting)
		assert.Positive(t, st.Dropped)
		close(release)
		require.NoError(t, w.engine.Close(t.Context()))

		all, told := quick.of(w.task.ID()), slow.of(w.task.ID())
		missed := map[int64]bool{}
		for _, g := range slow.gaps {
			if g.Task != w.name {
				continue
			}
			assert.LessOrEqual(t, g.From, g.To)
			for i := g.From; i <= g.To; i++ {
				missed[i] = true
			}
		}
		assert.Less(t, len(told), len(all))
		last := int64(0)
		for _, r := range told {
			assert.Greater(t, r.Seq, last, "in order")
			last = r.Seq
			delete(missed, r.Seq)
		}
		assert.Len(t, missed, len(all)-len(told), "what it was not told is in the gaps")
	})
}

// An observer that panics or ends its goroutine is told the next record; one that hangs holds up Close for the grace period.
func TestObserver_IsContained(t *testing.T) {
	faults := map[string]func(){"panic": func() { panic("observer") }, "exit": runtime.Goexit}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			n := 0
			a := &audience{before: func(context.Context) {
				if n++; n == 2 {
					fault()
				}
			}}
			w := newWorld(t, watchedBy(delta.Watch{Observer: a}))
			require.True(t, w.do(call("act", "a")).OK())
			require.NoError(t, w.engine.Close(t.Context()))
			assert.Len(t, a.of(w.task.ID()), 2, "three were recorded")
			assert.EqualValues(t, 1, w.engine.Observers()[0].Panics)
		})
	}
}

func TestI18_HangingObserverIsLeftBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		a := &audience{before: func(context.Context) { <-release }}
		w := newWorld(t, func(w *world, _ *delta.Goal) {
			w.cfg.Observers = []delta.Watch{{Observer: a, Name: "sleeper", Patience: time.Second}}
		})
		require.True(t, w.do(call("act", "a")).OK())
		time.Sleep(5 * time.Second)
		assert.Equal(t, 5*time.Second, w.engine.Observers()[0].Busy)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		assert.ErrorContains(t, w.engine.Close(ctx), "sleeper")
		assert.LessOrEqual(t, time.Since(start), 5*time.Second)
		assert.Equal(t, 1, w.engine.Abandoned())
		close(release)
		synctest.Wait()
		assert.Equal(t, 0, w.engine.Abandoned())
		assert.EqualValues(t, 1, w.engine.Observers()[0].Overdue)
	})
}

func TestObserver_Filters(t *testing.T) {
	cases := []struct {
		name   string
		filter func(task string) delta.Filter
		want   int
		why    string
	}{
		{"all", func(string) delta.Filter { return delta.Filter{} }, 6, "start, two calls that began and ended, a refusal; folds are of the agent"},
		{"types", func(string) delta.Filter { return delta.Filter{Types: []ledger.Type{ledger.Begun}} }, 2, "two calls began"},
		{"actions", func(string) delta.Filter { return delta.Filter{Actions: []string{"act"}} }, 2, "of one action"},
		{"this task", func(id string) delta.Filter { return delta.Filter{Tasks: []string{id}} }, 6, "all of it"},
		{"another task", func(string) delta.Filter { return delta.Filter{Tasks: []string{"clerk~other"}} }, 0, "none"},
		{"another agent", func(string) delta.Filter { return delta.Filter{Agents: []string{"other"}} }, 0, "none"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := &audience{}
			w := newWorld(t, func(w *world, _ *delta.Goal) {
				w.cfg.Observers = []delta.Watch{{Observer: a, Filter: c.filter("clerk~" + w.name)}}
			})
			w.do(call("act", "a"))
			w.do(call("look", "a"))
			w.do(call("nothing", "a"))
			require.NoError(t, w.engine.Close(t.Context()))
			assert.Len(t, a.of(w.task.ID()), c.want, c.why)
		})
	}
}

func TestConfig_ChecksObservers(t *testing.T) {
	_, err := delta.New(delta.Config{Observers: []delta.Watch{{}, {Observer: &audience{}, Queue: -1, Filter: delta.Filter{Types: []ledger.Type{"x"}}}}})
	assert.ErrorContains(t, err, "Observers[0] has no Observer")
	assert.ErrorContains(t, err, "Observers[1]: queue -1")
	assert.ErrorContains(t, err, `no event type "x"`)
}

// What another process writes is read, not observed.
func TestFollow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &audience{}
		w := newWorld(t, watchedBy(delta.Watch{Observer: a}))
		elsewhere := w.other()
		theirs, err := elsewhere.Open(t.Context(), w.task.ID())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var seen []delta.Record
		ended := background(func() (last error) {
			for r, err := range w.engine.Follow(ctx, w.task.ID(), 1) {
				if err != nil {
					return err
				}
				seen = append(seen, r)
			}
			return nil
		})
		require.True(t, theirs.Do(t.Context(), call("act", "a")).MustGet().OK())
		time.Sleep(2 * time.Second)
		cancel()
		require.ErrorIs(t, ended(), context.Canceled)
		require.Len(t, seen, 3)
		assert.Equal(t, []ledger.Type{ledger.TaskStarted, ledger.Begun, ledger.Settled}, []ledger.Type{seen[0].Type, seen[1].Type, seen[2].Type})
		assert.EqualValues(t, 3, seen[2].Seq)
		for r, err := range w.engine.Follow(t.Context(), w.task.ID(), 3) {
			require.NoError(t, err)
			assert.EqualValues(t, 3, r.Seq)
			break
		}
		for _, err := range w.engine.Follow(t.Context(), "", 0) {
			assert.ErrorContains(t, err, "no id")
		}
	})
}
