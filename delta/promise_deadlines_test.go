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
	"github.com/seed-ab2cfece/delta-agents/policy"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// stuck waits until the bubble's test lets it go.
var stuck func()

type stuckText struct{ s string }

func (x *stuckText) UnmarshalText(b []byte) error {
	if x.s = string(b); x.s == "stuck" {
		stuck()
	}
	return nil
}
func (x stuckText) MarshalText() ([]byte, error) {
	if x.s == "stuck out" {
		stuck()
	}
	return []byte(x.s), nil
}

type StuckIn struct {
	ID stuckText `json:"id"`
}

type guessing struct {
	delta.PlannerFunc
	estimate func() action.Cost
}

func (e guessing) EstimatePlan() action.Cost { return e.estimate() }

// All user code has a deadline, is given up after it, counted, and keeps neither the call nor Close.
func TestI18_AllUserCodeHasADeadline(t *testing.T) {
	type result struct {
		code action.Code
		took time.Duration
	}
	ok := func(*delta.Context, StuckIn) mo.Result[stuckText] { return mo.Ok(stuckText{"x"}) }
	define := func() delta.Builder[StuckIn, stuckText] {
		return delta.Define("a", ok).Describe("a").Risk(1).Timeout(10 * time.Second)
	}
	do := func(in string, b delta.Builder[StuckIn, stuckText]) func(*testing.T, *delta.Engine) action.Code {
		return func(t *testing.T, e *delta.Engine) action.Code {
			g := delta.NewAgent("g").Grant(b.MustBuild()).MustBuild()
			require.NoError(t, e.Register(g))
			task, err := e.Start(t.Context(), delta.Goal{Agent: g, Approvers: []string{"*"}})
			require.NoError(t, err)
			o, err := task.Do(t.Context(), delta.Call{Action: "a", Input: []byte(fmt.Sprintf(`{"id":%q}`, in))}).Get()
			if err != nil {
				return action.Code(err.Error())
			}
			return o.Code
		}
	}
	plan := func(p delta.Planner) func(*testing.T, *delta.Engine) action.Code {
		return func(t *testing.T, e *delta.Engine) action.Code {
			g := delta.NewAgent("g").Grant(define().MustBuild()).MustBuild()
			require.NoError(t, e.Register(g))
			task, err := e.Start(t.Context(), delta.Goal{Agent: g})
			require.NoError(t, err)
			r := e.RunWithin(t.Context(), task, p, delta.Bounds{PlanTime: 7 * time.Second}).MustGet()
			if f := action.FailureOf(r.Err); f != nil {
				return f.Code
			}
			return action.Code(r.Ended)
		}
	}
	for name, c := range map[string]struct {
		play func(*testing.T, *delta.Engine) action.Code
		cfg  delta.Config
		want result
	}{
		"decoding":                  {play: do("stuck", define()), want: result{action.InputInvalid, 5 * time.Second}},
		"a quick action's decoding": {play: do("stuck", define().Timeout(time.Second)), want: result{action.InputInvalid, time.Second}},
		"a risk rule":               {play: do("x", define().RiskWhen("r", func(StuckIn) bool { stuck(); return false }, 2)), want: result{action.ApprovalRequired, 5 * time.Second}},
		"an idempotency key":        {play: do("x", define().IdempotencyKey(func(StuckIn) string { stuck(); return "k" })), want: result{action.NotStarted, 5 * time.Second}},
		"writing the output": {play: do("x", delta.Define("a", func(*delta.Context, StuckIn) mo.Result[stuckText] { return mo.Ok(stuckText{"stuck out"}) }).
			Describe("a").Risk(1).Effect(action.None).Timeout(3*time.Second)), want: result{action.Timeout, 4 * time.Second}},
		"a policy": {play: do("x", define()), cfg: delta.Config{Policy: policy.Func(func(policy.Request) (policy.Decision, error) { stuck(); return policy.Decision{}, nil })},
			want: result{action.Denied, 5 * time.Second}},
		"an estimate": {play: plan(guessing{func(context.Context, delta.Request) (delta.Proposal, error) { return delta.Proposal{Done: true}, nil },
			func() action.Cost { stuck(); return action.Cost{} }}), want: result{action.Failed, 5 * time.Second}},
		"a planner": {play: plan(delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) { stuck(); return delta.Proposal{}, nil })),
			want: result{action.Timeout, 8 * time.Second}},
		"an Authenticator": {play: func(t *testing.T, e *delta.Engine) action.Code {
			_, err := e.Authenticate(t.Context(), "x")
			assert.Error(t, err)
			return ""
		}, cfg: delta.Config{Authenticator: delta.AuthenticatorFunc(func(context.Context, any) (string, error) { stuck(); return "x", nil })}, want: result{"", 61 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				release := make(chan struct{})
				stuck = func() { <-release }
				if c.cfg.Authenticator == nil {
					c.cfg.Authenticator = anybody
				}
				e, err := delta.New(c.cfg)
				require.NoError(t, err)
				started := time.Now()
				assert.Equal(t, c.want, result{c.play(t, e), time.Since(started)})
				assert.Equal(t, 1, e.Abandoned())

				if c.want.code == "" { // no call: Close does not wait for it
					require.NoError(t, e.Close(t.Context()))
					close(release)
					synctest.Wait()
					return
				}
				again := background(func() action.Code { return c.play(t, e) }) // and while it hangs, the engine closes
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				started = time.Now()
				err = e.Close(ctx)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorContains(t, err, "were given up and still run")
				assert.LessOrEqual(t, time.Since(started), 100*time.Millisecond+2*time.Second)
				close(release)
				_ = again
				synctest.Wait()
				assert.Zero(t, e.Abandoned())
			})
		})
	}
}

// A policy that hangs, or that asks the engine in turn, holds up neither other tasks of the agent nor itself for good.
func TestI18_APolicyHoldsUpNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		var w *world
		var asked atomic.Int64
		w = newWorld(t, func(w *world, _ *delta.Goal) {
			w.cfg.Policy = policy.Func(func(q policy.Request) (policy.Decision, error) {
				switch {
				case q.AnyInput:
				case q.Action == "act":
					<-release
				case q.Action == "look":
					_, err := w.task.Budget(context.Background())
					assert.NoError(t, err)
					_, err = w.task.Offer(context.Background())
					assert.NoError(t, err)
					asked.Add(1)
				}
				return policy.Decision{}, nil
			})
		})
		other, err := w.engine.Start(t.Context(), delta.Goal{Agent: w.agent})
		require.NoError(t, err)
		worlds.Store(other.ID(), w)
		defer worlds.Delete(other.ID())
		slow := background(func() action.Outcome { return w.do(call("act", "a")) })
		synctest.Wait()
		started := time.Now()
		o := other.Do(t.Context(), call("look", "a")).MustGet()
		assert.True(t, o.OK(), "%v", o.Failure)
		assert.NoError(t, other.Cancel(t.Context(), "enough"))
		assert.Zero(t, time.Since(started))
		assert.Positive(t, asked.Load())
		assert.Equal(t, action.Denied, slow().Code)
		close(release)
		synctest.Wait()
		assert.Equal(t, action.OK, w.do(call("act", "a")).Code)
	})
}

// A caller who stops waiting while user code is asked is not answered with a decision.
func TestACallerMayLeaveWhileRulesAreAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		a := delta.Define("a", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"x"}) }).Describe("a").Risk(1).
			RiskWhen("r", func(In) bool { <-release; return false }, 2).MustBuild()
		e, err := delta.New(delta.Config{})
		require.NoError(t, err)
		defer e.Close(context.Background())
		task, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("g").Grant(a).MustBuild(), Approvers: []string{"*"}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = task.Do(ctx, call("a", "x")).Get()
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		events, err := task.Events(t.Context())
		require.NoError(t, err)
		assert.Len(t, events, 1, "only its start: nothing was decided")
	})
}

// Planners that hang are bounded like functions, and keep no function from starting.
func TestI18_StuckPlannersAreBoundedForThemselves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(w *world, _ *delta.Goal) { w.cfg.MaxAbandoned = 2 })
		release := make(chan struct{})
		var asked atomic.Int64
		p := delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
			asked.Add(1)
			<-release
			return delta.Proposal{}, nil
		})
		for i := range 5 {
			r := w.engine.RunWithin(t.Context(), w.task, p, delta.Bounds{PlanTime: time.Second}).MustGet()
			assert.Equal(t, delta.RunFailed, r.Ended)
			if i >= 2 {
				assert.ErrorContains(t, r.Err, "2 planners were given up and still run")
			}
		}
		assert.Equal(t, int64(2), asked.Load())
		assert.Equal(t, 2, w.engine.Abandoned())
		assert.Equal(t, action.OK, w.do(call("act", "a")).Code)
		close(release)
		synctest.Wait()
		r := w.engine.Run(t.Context(), w.task, script()).MustGet()
		assert.Equal(t, delta.RunDone, r.Ended)
	})
}

// deaf is a store that ignores its context while it is told to.
type deaf struct {
	memory.Store
	hang func(*txn.Txn)
}

func (d *deaf) Apply(ctx context.Context, x *txn.Txn) (txn.Reply, error) {
	d.hang(x)
	return d.Store.Apply(ctx, x)
}
func (d *deaf) Close() error { return nil }

// Close returns even where the store does not, and says what is left.
func TestI18_CloseReturnsWhateverHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		d := &deaf{memory.New(memory.Config{}), func(x *txn.Txn) {
			if x.Phase == txn.Begin {
				<-release
			}
		}}
		e, err := delta.New(delta.Config{Store: d})
		require.NoError(t, err)
		a := delta.Define("a", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"x"}) }).Describe("a").Risk(1).MustBuild()
		task, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("g").Grant(a).MustBuild()})
		require.NoError(t, err)
		out := background(func() action.Code { return task.Do(context.Background(), call("a", "a")).MustGet().Code })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		started := time.Now()
		err = e.Close(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "1 calls or loops are still under way")
		assert.LessOrEqual(t, time.Since(started), 14*time.Second)
		close(release)
		assert.NotEqual(t, action.OK, out(), "what began so late is not started")
	})
}
