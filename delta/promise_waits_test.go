package delta_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// TestI18_AbandonedFunction: a function that ignores its context is given up after its timeout and grace, counted, and
// what it returns later is LATE: recorded, charged beyond what was, no outcome changed.
func TestI18_AbandonedFunction(t *testing.T) {
	for _, c := range []struct {
		action string
		code   action.Code
	}{{"look", action.Timeout}, {"act", action.StartedUnknown}} {
		t.Run(c.action, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				release := make(chan struct{})
				w.does(func(ctx *delta.Context, _ In) mo.Result[Out] {
					<-release
					assert.NoError(t, ctx.Spend(action.Cost{Tokens: 7}), "it still runs: what it uses counts")
					return mo.Ok(Out{"at last"})
				})
				started := time.Now()
				o := w.do(call(c.action, "a"))
				assert.Equal(t, c.code, o.Code)
				assert.Equal(t, time.Minute+time.Second, time.Since(started), "timeout and grace")
				assert.Equal(t, 1, w.engine.Abandoned())
				before := w.books()
				close(release)
				synctest.Wait()
				assert.Zero(t, w.engine.Abandoned())
				e := w.events()
				last := e[len(e)-1]
				assert.Equal(t, []any{ledger.Late, action.Late}, []any{last.Type, last.Code})
				after := w.books()
				assert.Equal(t, before.trust.Trust, after.trust.Trust, "nothing is learned of it")
				assert.False(t, w.offered("then-"+c.action))
				if c.code == action.Timeout {
					assert.EqualValues(t, 7, after.budget.Spent.Tokens)
					assert.EqualValues(t, 1, after.budget.Spent.Calls)
				} else {
					assert.Equal(t, before.budget, after.budget, "an operator says what it cost")
				}
				audit(t, w.task, action.Limit{})
			})
		})
	}
}

// Too many abandoned functions keep others from starting, until some return.
func TestI18_AbandonedAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(w *world, _ *delta.Goal) { w.cfg.MaxAbandoned = 2 })
		release := make(chan struct{})
		w.does(ignores(release))
		for i := range 2 {
			assert.Equal(t, action.StartedUnknown, w.do(call("act", fmt.Sprint(i))).Code)
		}
		assert.Equal(t, action.NotStarted, w.do(call("act", "x")).Code)
		close(release)
		synctest.Wait()
		assert.Equal(t, action.OK, w.do(call("act", "x")).Code)
	})
}

// The context of a function ends with the caller's, the task, the engine and its own timeout, whichever is first.
func TestI18_FunctionIsToldToStop(t *testing.T) {
	ends := map[string]func(w *world, cancel context.CancelFunc){
		"caller": func(_ *world, cancel context.CancelFunc) { cancel() },
		"task":   func(w *world, _ context.CancelFunc) { cancelTask(w) },
		"task, by another engine": func(w *world, _ context.CancelFunc) {
			there, err := w.other().Open(context.Background(), w.task.ID())
			require.NoError(w, err)
			require.NoError(w, there.Cancel(context.Background(), "enough"))
		},
		"engine": func(w *world, _ context.CancelFunc) {
			now, stop := context.WithCancel(context.Background())
			stop()
			assert.ErrorIs(w, w.engine.Close(now), context.Canceled)
		},
	}
	for name, end := range ends {
		for _, a := range []string{"look", "act"} {
			t.Run(name+"/"+a, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t)
					w.does(obeys)
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					out := background(func() action.Outcome { return w.task.Do(ctx, call(a, "a")).MustGet() })
					synctest.Wait()
					end(w, cancel)
					o := out()
					want := map[string]action.Code{"look": action.Interrupted, "act": action.StartedUnknown}[a]
					assert.Equal(t, want, o.Code, "%v", o.Failure)
					e := w.events()
					found := false
					for _, e := range e {
						found = found || e.Type == ledger.Settled && e.Code == want
					}
					assert.True(t, found, "it is recorded although its context had ended")
				})
			})
		}
	}
}

// A planner that ignores its context is given up like a function.
func TestI18_PlannerIgnoresItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		release := make(chan struct{})
		p := delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
			<-release
			return delta.Proposal{Done: true}, nil
		})
		started := time.Now()
		r := w.engine.RunWithin(context.Background(), w.task, p, delta.Bounds{PlanTime: time.Minute}).MustGet()
		assert.Equal(t, delta.RunFailed, r.Ended)
		assert.Equal(t, time.Minute+time.Second, time.Since(started))
		assert.Equal(t, 1, w.engine.Abandoned())
		b, err := w.task.Budget(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []int64{1, 0}, []int64{b.Spent.Calls, b.Reserved.Calls}, "planning is spent all the same")
		close(release)
		synctest.Wait()
		assert.Zero(t, w.engine.Abandoned())
	})
}

// Planners that break: each ends the run, none the program, and what planning held is given back.
func TestI18_PlannersThatBreak(t *testing.T) {
	broken := map[string]func(context.Context, delta.Request) (delta.Proposal, error){
		"error": func(context.Context, delta.Request) (delta.Proposal, error) { return delta.Proposal{}, errors.New("x") },
		"panic": func(context.Context, delta.Request) (delta.Proposal, error) { panic("x") },
		"Goexit": func(context.Context, delta.Request) (delta.Proposal, error) {
			runtime.Goexit()
			return delta.Proposal{}, nil
		},
	}
	for name, p := range broken {
		w := newWorld(t)
		r := w.engine.Run(t.Context(), w.task, delta.PlannerFunc(p)).MustGet()
		assert.Equal(t, delta.RunFailed, r.Ended, name)
		b, err := w.task.Budget(t.Context())
		require.NoError(t, err)
		assert.Zero(t, b.Reserved.Calls, name)
	}
	w := newWorld(t)
	assert.Equal(t, delta.RunFailed, w.engine.Run(t.Context(), w.task, panicking{}).MustGet().Ended, "an estimate that panics")
}

type panicking struct{ estimating }

func (panicking) EstimatePlan() action.Cost { panic("x") }

// Runs end: by their steps, by proposals that break rules only, by turning in circles, by what planning may cost.
func TestI18_RunsEnd(t *testing.T) {
	always := func(calls ...delta.Call) delta.Planner {
		return delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) { return delta.Proposal{Calls: calls}, nil })
	}
	n := 0
	fresh := delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
		n++
		return delta.Proposal{Calls: []delta.Call{call("act", fmt.Sprint(n))}}, nil
	})
	many := make([]delta.Call, 17)
	for i := range many {
		many[i] = call("act", fmt.Sprint(i))
	}
	cases := []struct {
		name  string
		p     delta.Planner
		limit action.Limit
		ended delta.Ended
	}{
		{"steps", fresh, action.Limit{}, delta.RunSteps},
		{"unknown actions", always(call("nothing", "a")), action.Limit{}, delta.RunInvalid},
		{"not legal", always(call("then-act", "a"), call("forbidden", "b")), action.Limit{}, delta.RunInvalid},
		{"too many at once", always(many...), action.Limit{}, delta.RunInvalid},
		{"circles", always(call("act", "a")), action.Limit{}, delta.RunLoop},
		{"budget", fresh, action.Limit{Calls: action.Max(5)}, delta.RunBudget},
		{"done", script(call("act", "a")), action.Limit{}, delta.RunDone},
	}
	for _, c := range cases {
		w := newWorld(t, func(_ *world, g *delta.Goal) { g.Limit = c.limit })
		r := w.engine.Run(t.Context(), w.task, c.p).MustGet()
		assert.Equal(t, c.ended, r.Ended, "%s: %s", c.name, r.Why)
	}
	w := newWorld(t)
	twice := delta.Call{ID: "c", Action: "act", Input: inputOf(In{ID: "a"})}
	r := w.engine.Run(t.Context(), w.task, script(twice, twice)).MustGet()
	assert.Equal(t, []action.Code{action.OK, action.InputInvalid}, []action.Code{r.Results[0].Outcome.Code, r.Results[1].Outcome.Code})
	cancelTask(w)
	assert.Equal(t, delta.RunClosed, w.engine.Run(t.Context(), w.task, fresh).MustGet().Ended)
}

// A hook that ignores its context is left behind after its timeout; Close says so and does not hang.
func TestI18_HookIgnoresItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		release := make(chan struct{})
		h := hooks.Hooks{After: func(context.Context, action.View) error { <-release; return nil }, Timeout: time.Second}
		w.cfg.Hooks = h
		e := w.open(w.store)
		task, err := e.Open(t.Context(), w.task.ID())
		require.NoError(t, err)
		started := time.Now()
		require.True(t, task.Do(t.Context(), call("act", "a")).MustGet().OK())
		assert.Equal(t, time.Second+hooks.Grace, time.Since(started))
		assert.Equal(t, 1, e.Abandoned())
		assert.Error(t, e.Close(t.Context()), "it says what is left")
		close(release)
		synctest.Wait()
		assert.Zero(t, e.Abandoned())
	})
}

// Close takes no more calls and waits for those under way.
func TestI18_CloseDrains(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.does(func(*delta.Context, In) mo.Result[Out] { time.Sleep(20 * time.Second); return mo.Ok(Out{"x"}) })
		running := background(func() action.Outcome { return w.do(call("act", "a")) })
		waiting := background(func() action.Outcome { return w.task.DoWait(context.Background(), call("risky", "a")).MustGet() })
		planning := background(func() delta.Report {
			n := 0
			return w.engine.Run(context.Background(), w.task, delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
				n++
				return delta.Proposal{Calls: []delta.Call{call("look", fmt.Sprint(n))}}, nil
			})).MustGet()
		})
		working := background(func() error { return w.engine.Work(context.Background()) })
		synctest.Wait()
		closed := background(func() error { return w.engine.Close(context.Background()) })
		synctest.Wait()
		_, err := w.task.Do(context.Background(), call("act", "b")).Get()
		assert.ErrorIs(t, err, delta.ErrClosed)
		assert.NoError(t, closed())
		assert.Equal(t, action.OK, running().Code, "what was under way ended in its own time")
		assert.Equal(t, action.ApprovalRequired, waiting().Code, "it stays parked")
		assert.Equal(t, delta.RunStopped, planning().Ended)
		assert.NoError(t, working())
	})
}

// A worker that is told to go finishes what it has in hand.
func TestI18_WorkFinishesWhatItHasInHand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.does(func(ctx *delta.Context, _ In) mo.Result[Out] {
			select {
			case <-ctx.Done():
				return mo.Err[Out](ctx.Err())
			case <-time.After(20 * time.Second):
				return mo.Ok(Out{"x"})
			}
		})
		c := delta.Call{ID: "c", Action: "risky", Input: inputOf(In{ID: "a"})}
		require.NoError(t, w.engine.Approve(t.Context(), w.do(c).Failure.Approval(), w.boss, "fine"))
		stop := w.work(w.engine)
		time.Sleep(time.Second)
		stop()
		assert.Equal(t, action.OK, w.do(c).Code)
	})
}

// A call that runs for long holds up nothing that is due behind it, and neither does what this worker cannot run.
func TestI18_WorkIsNotHeldUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.does(func(_ *delta.Context, in In) mo.Result[Out] {
			if in.ID == "long" {
				time.Sleep(50 * time.Second)
			}
			return mo.Ok(Out{"x"})
		})
		park := func(id string) {
			require.NoError(t, w.engine.Approve(t.Context(), w.do(call("risky", id)).Failure.Approval(), w.boss, "fine"))
		}
		park("long")
		for i := range 70 { // more than a page of another version
			park(fmt.Sprint("old", i))
		}
		stop := w.work(w.engine)
		time.Sleep(10 * time.Second)
		assert.EqualValues(t, 71, w.effects.Load())
		park("late")
		time.Sleep(10 * time.Second)
		assert.EqualValues(t, 72, w.effects.Load(), "while the long one runs")
		time.Sleep(time.Minute)
		stop()

		for i := range 70 {
			park(fmt.Sprint("older", i))
		}
		w.agent = delta.NewAgent("clerk").Grant(w.define("risky").Risk(5).Version("2").MustBuild()).MustBuild()
		newer := w.other()
		there, err := newer.Open(t.Context(), w.task.ID())
		require.NoError(t, err)
		o := there.Do(t.Context(), call("risky", "new")).MustGet()
		require.NoError(t, newer.Approve(t.Context(), o.Failure.Approval(), w.as(newer), "fine"))
		stop = w.work(newer)
		time.Sleep(10 * time.Second)
		stop()
		assert.EqualValues(t, 73, w.effects.Load(), "behind a page of calls that only another worker can run")
	})
}

// hanging is a store that never answers.
type hanging struct{ memory.Store }

func (hanging) Apply(ctx context.Context, _ *txn.Txn) (txn.Reply, error) {
	<-ctx.Done()
	return txn.Reply{}, ctx.Err()
}

func (hanging) Load(ctx context.Context, _, _ string, _ *txn.Snapshot) (*txn.Snapshot, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) Records(ctx context.Context, _, _ string, _ int64, _ int) ([]txn.Stored, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) Queued(ctx context.Context, _, _ string, _ txn.Queued, _ bool, _ int) ([]txn.Queued, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Every wait for the store has a deadline, whatever context the caller brings.
func TestI18_StoreThatNeverAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		stuck := background(func() action.Outcome { return w.do(call("risky", "a")) })().Failure.Approval()
		require.NoError(t, w.engine.Sync(t.Context()))
		w.store.set(func(s *spy) { s.Store = hanging{s.Store} })
		ctx := context.Background()
		for name, f := range map[string]func() error{
			"do":        func() error { return w.do(call("act", "a")).Err() },
			"wait":      func() error { return w.task.DoWait(ctx, call("act", "a")).MustGet().Err() },
			"run":       func() error { return w.engine.Run(ctx, w.task, script(call("act", "a"))).MustGet().Err },
			"offer":     func() error { _, err := w.task.Offer(ctx); return err },
			"budget":    func() error { _, err := w.task.Budget(ctx); return err },
			"explain":   func() error { _, err := w.task.Explain(ctx, "act"); return err },
			"ledger":    func() error { _, _, err := w.task.Ledger(ctx); return err },
			"trust":     func() error { _, err := w.engine.Trust(ctx, "clerk"); return err },
			"approvals": func() error { _, err := w.engine.Approvals(ctx, 9); return err },
			"approve":   func() error { return w.engine.Approve(ctx, stuck, w.boss, "x") },
			"cancel":    func() error { return w.task.Cancel(ctx, "x") },
			"open":      func() error { _, err := w.engine.Open(ctx, w.name); return err },
			"start":     func() error { _, err := w.engine.Start(ctx, delta.Goal{Agent: w.agent}); return err },
		} {
			started := time.Now()
			assert.Error(t, f(), name)
			assert.LessOrEqual(t, time.Since(started), time.Minute, name)
		}
		w.store.set(func(s *spy) { s.Store = w.shared })
		assert.Equal(t, action.OK, w.do(call("act", "a")).Code, "it comes back")
		assert.Zero(t, w.effects.Load()-1)
	})
}

// A task cancelled by somebody else between any two steps: nothing begins behind the cancellation, and what had begun ends.
func TestI18_CancelledAtAnyMoment(t *testing.T) {
	for n := 1; n <= 16; n++ {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			there, err := w.other().Open(t.Context(), w.task.ID())
			require.NoError(t, err)
			w.does(func(ctx *delta.Context, _ In) mo.Result[Out] {
				if ctx.Attempt() == 1 {
					return mo.Err[Out](errors.New("the first attempt fails"))
				}
				return mo.Ok(Out{"ok"})
			})
			require.NoError(t, w.engine.Sync(t.Context()))
			calls := 0
			w.store.set(func(s *spy) {
				s.before = func(x *txn.Txn) error {
					if x.Phase == txn.Plain {
						return nil
					}
					if calls++; calls == n {
						return there.Cancel(context.Background(), "enough")
					}
					return nil
				}
			})
			routine(w)
			w.store.set(func(s *spy) { s.before = nil })
			stop := w.work(w.engine)
			time.Sleep(5 * time.Minute)
			stop()
			cancelled, open := false, map[string]bool{}
			for _, e := range w.events() {
				switch e.Type {
				case ledger.TaskCancelled:
					cancelled = true
				case ledger.Begun, ledger.Attempt:
					assert.False(t, cancelled, "%s %s after the cancellation", e.Type, e.Action)
					open[e.Intent] = true
				case ledger.Settled:
					delete(open, e.Intent)
					if cancelled && e.Action != "delta.plan" {
						assert.NotEqual(t, action.OK, e.Code, "cancelled at %d: %s", n, e.Action)
					}
				}
			}
			assert.Empty(t, open)
			audit(t, w.task, action.Limit{})
		})
	}
}

// A function may make calls of its own: they pass the gates like any other.
func TestNestedCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(_ *world, g *delta.Goal) { g.Limit.Calls = action.Max(3) })
		depth := 0
		w.does(func(ctx *delta.Context, in In) mo.Result[Out] {
			depth++
			o := w.task.Do(ctx, call("act", in.ID+"x")).MustGet()
			return mo.Ok(Out{string(o.Code)})
		})
		o := w.do(call("act", "a"))
		assert.True(t, o.OK())
		assert.Equal(t, 3, depth)
		audit(t, w.task, action.Limit{Calls: action.Max(3)})
	})
}
