package delta_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// pair is two engines on one store, with an agent whose "bad" always fails and whose "good" never does.
type pair struct {
	one, two *delta.Engine
	store    *spy
	agent    *delta.Agent
	good     atomic.Int64 // runs
}

func newPair(t *testing.T, policies policy.Policy, good func(delta.Builder[In, Out]) delta.Builder[In, Out]) *pair {
	p := &pair{store: &spy{Store: memory.New(memory.Config{})}}
	bad := delta.Define("bad", func(*delta.Context, In) mo.Result[Out] { return mo.Err[Out](errors.New("no")) }).
		Describe("Fail").Risk(1).Effect(action.None).MustBuild()
	b := delta.Define("good", func(*delta.Context, In) mo.Result[Out] {
		p.good.Add(1)
		return mo.Ok(Out{"done"})
	}).Describe("Succeed").Risk(1).Effect(action.None)
	p.agent = delta.NewAgent("pair").Grant(bad, good(b).MustBuild()).MustBuild()
	for _, e := range []**delta.Engine{&p.one, &p.two} {
		var err error
		*e, err = delta.New(delta.Config{Store: p.store, Policy: policies})
		require.NoError(t, err)
		t.Cleanup(func() { _ = (*e).Close(context.Background()) })
	}
	return p
}

// TestI05_OutcomesOfAnotherEngineCount: what another engine observed, folded into the beliefs long ago, decides here too:
// the trust that waives an approval, and the trust that a policy asks for.
func TestI05_OutcomesOfAnotherEngineCount(t *testing.T) {
	trusted := policy.Func(func(q policy.Request) (policy.Decision, error) {
		return policy.Decision{Forbid: q.Action == "good" && q.Trust < 0.8, Reason: "not trusted"}, nil
	})
	for _, tt := range []struct {
		name   string
		policy policy.Policy
		good   func(delta.Builder[In, Out]) delta.Builder[In, Out]
		want   action.Code
	}{
		{"the trust that waived an approval is gone", nil, func(b delta.Builder[In, Out]) delta.Builder[In, Out] {
			return b.RequireApproval(delta.UntilTrust(0.8))
		}, action.ApprovalRequired},
		{"the trust that a policy asks for is gone", trusted, func(b delta.Builder[In, Out]) delta.Builder[In, Out] { return b }, action.Denied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, tt.policy, tt.good)
			start := func(e *delta.Engine, id string) *delta.Task {
				task, err := e.Start(t.Context(), delta.Goal{Agent: p.agent, ID: id, Threshold: 5, Approvers: []string{"ana"}})
				require.NoError(t, err)
				return task
			}
			warm, err := delta.New(delta.Config{Store: p.store})
			require.NoError(t, err)
			defer warm.Close(t.Context())
			earn(t, warm, p.agent)
			mine, theirs := start(p.two, "mine"), start(p.one, "theirs")
			require.Equal(t, action.OK, mine.Do(t.Context(), call("good", "first")).MustGet().Code)
			before := p.good.Load()
			for range 12 {
				theirs.Do(t.Context(), call("bad", "x"))
			}
			require.NoError(t, p.one.Sync(t.Context()))
			require.Equal(t, tt.want, mine.Do(t.Context(), call("good", "second")).MustGet().Code)
			require.Equal(t, before, p.good.Load(), "nothing ran on trust that was lost")
		})
	}
}

// earn makes the agent trusted, with an agent of the same name whose "good" needs nothing.
func earn(t *testing.T, e *delta.Engine, like *delta.Agent) {
	plain := delta.Define("good", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"done"}) }).
		Describe("Succeed").Risk(1).Effect(action.None).MustBuild()
	agent := delta.NewAgent(like.Name()).Grant(plain).MustBuild()
	task, err := e.Start(t.Context(), delta.Goal{Agent: agent, ID: "earn"})
	require.NoError(t, err)
	for range 30 {
		require.True(t, task.Do(t.Context(), call("good", "x")).MustGet().OK())
	}
	require.NoError(t, e.Sync(t.Context()))
}

// TestI07_EveryAttemptIsPaidFor: a failed attempt is charged when it failed and the next reserves anew, within the limit.
func TestI07_EveryAttemptIsPaidFor(t *testing.T) {
	var tries atomic.Int64
	price := action.Cost{Money: 10_000_000, Currency: "EUR"}
	buy := delta.Define("buy", func(ctx *delta.Context, in In) mo.Result[Out] {
		tries.Add(1)
		if err := ctx.Spend(price); err != nil {
			return mo.Err[Out](err)
		}
		return mo.Err[Out](errors.New("sold out"))
	}).Describe("Buy").Risk(1).Effect(action.Idempotent).Cost(price).Retry(9).MustBuild()
	engine, err := delta.New(delta.Config{})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	task, err := engine.Start(t.Context(), delta.Goal{
		Agent: delta.NewAgent("buyer").Grant(buy).MustBuild(), Limit: action.Limit{Money: action.Max(25_000_000), Currency: "EUR"},
	})
	require.NoError(t, err)
	out := task.Do(t.Context(), call("buy", "x")).MustGet()
	require.Equal(t, action.Failed, out.Code)
	require.EqualValues(t, 2, tries.Load(), "there is money for two")
	b, err := task.Budget(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(20_000_000), b.Spent.Money)
	require.Zero(t, b.Reserved.Money)
	audit(t, task, action.Limit{Money: action.Max(25_000_000), Currency: "EUR"})
}

// TestI04_AttemptsArePermittedOneByOne: permission that is withdrawn after the first attempt ends the retries.
func TestI04_AttemptsArePermittedOneByOne(t *testing.T) {
	var tries atomic.Int64
	once := policy.Func(func(policy.Request) (policy.Decision, error) {
		return policy.Decision{Forbid: tries.Load() > 0, Reason: "once"}, nil
	})
	flaky := delta.Define("flaky", func(*delta.Context, In) mo.Result[Out] {
		tries.Add(1)
		return mo.Err[Out](errors.New("no"))
	}).Describe("Fail").Risk(1).Effect(action.Idempotent).Retry(5).MustBuild()
	engine, err := delta.New(delta.Config{Policy: once})
	require.NoError(t, err)
	defer engine.Close(t.Context())
	task, err := engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("x").Grant(flaky).MustBuild()})
	require.NoError(t, err)
	require.Equal(t, action.Failed, task.Do(t.Context(), call("flaky", "x")).MustGet().Code)
	require.EqualValues(t, 1, tries.Load())
}

// TestI18_DeadlineHoldsFromBeginToEnd: nothing starts after it, attempts included, what runs is told to stop, and nobody
// approves a call that could not run any more.
func TestI18_DeadlineHoldsFromBeginToEnd(t *testing.T) {
	type builder = delta.Builder[In, Out]
	slowly := func(context.Context, action.View) error {
		time.Sleep(2 * time.Second)
		return nil
	}
	for _, tt := range []struct {
		name string
		make func(builder) builder
		does func(*delta.Context) error
		runs int64
		code action.Code
	}{
		{"a before hook outlasts it", func(b builder) builder { return b.Hooks(hooks.Hooks{Before: slowly}) },
			func(*delta.Context) error { return nil }, 0, action.NotStarted},
		{"the function outlasts it", func(b builder) builder { return b },
			func(ctx *delta.Context) error { <-ctx.Done(); return context.Cause(ctx) }, 1, action.Interrupted},
		{"retries outlast it", func(b builder) builder { return b.Retry(9).Backoff(time.Millisecond, time.Millisecond) },
			func(*delta.Context) error { time.Sleep(400 * time.Millisecond); return errors.New("no") }, 3, action.Interrupted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var tries atomic.Int64
				act := tt.make(delta.Define("work", func(ctx *delta.Context, in In) mo.Result[Out] {
					tries.Add(1)
					if err := tt.does(ctx); err != nil {
						return mo.Err[Out](err)
					}
					return mo.Ok(Out{"done"})
				}).Describe("Work").Risk(1).Effect(action.None)).MustBuild()
				engine, err := delta.New(delta.Config{})
				require.NoError(t, err)
				defer engine.Close(context.Background())
				task, err := engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("x").Grant(act).MustBuild(), Deadline: time.Now().Add(time.Second)})
				require.NoError(t, err)
				out := task.Do(t.Context(), call("work", "x")).MustGet()
				require.Equal(t, tt.code, out.Code, "%+v", out.Failure)
				require.Equal(t, tt.runs, tries.Load())
			})
		})
	}
}

// TestI17_NoRepeatAfterTheCancellation: a cancellation that slips in between looking at a lost call and taking it over is
// noticed by the takeover itself.
func TestI17_NoRepeatAfterTheCancellation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(w *world, _ *delta.Goal) { w.cfg.Lease = 300 * time.Millisecond })
		var runs atomic.Int64
		release := make(chan struct{})
		w.does(func(*delta.Context, In) mo.Result[Out] {
			if runs.Add(1) == 1 {
				<-release
			}
			return mo.Ok(Out{"done"})
		})
		w.store.set(func(s *spy) { s.before = failOn(txn.Renew) }) // cut off
		c := delta.Call{ID: "c", Action: "look", Input: inputOf(In{ID: "a"})}
		first := background(func() action.Outcome { return w.do(c) })
		synctest.Wait()
		second := &spy{Store: w.shared}
		other := w.open(second)
		second.set(func(s *spy) {
			s.before = func(x *txn.Txn) error {
				if x.Phase == txn.Begin && x.Fence > 1 {
					require.NoError(t, w.task.Cancel(context.Background(), "stop"))
				}
				return nil
			}
		})
		stop := w.work(other)
		time.Sleep(5 * time.Second)
		stop()
		close(release)
		first()
		require.EqualValues(t, 1, runs.Load())
		begun := slices.DeleteFunc(w.events(), func(e ledger.Event) bool { return e.Type != ledger.Begun })
		require.Len(t, begun, 1)
	})
}
