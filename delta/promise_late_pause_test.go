package delta_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// Nothing starts once the task is paused or has ended, though the call had begun; what it held is given back.
func TestNothingStartsOnceTheTaskDoesNotRun(t *testing.T) {
	ends := map[string]func(*delta.Task) error{
		"paused": func(p *delta.Task) error {
			_, err := p.Escalate(context.Background(), action.ConcernLoop, "x")
			return err
		},
		"done":      func(p *delta.Task) error { return p.Done(context.Background(), "x") },
		"concluded": func(p *delta.Task) error { return p.Conclude(context.Background(), action.NotReached, "x") },
		"cancelled": func(p *delta.Task) error { return p.Cancel(context.Background(), "x") },
	}
	for name, end := range ends {
		for where, in := range map[string]func(delta.Builder[In, Out], func() error) delta.Builder[In, Out]{
			"in a hook": func(b delta.Builder[In, Out], f func() error) delta.Builder[In, Out] {
				return b.Hooks(hooks.Hooks{Before: func(context.Context, action.View) error { return f() }})
			},
			"in a key": func(b delta.Builder[In, Out], f func() error) delta.Builder[In, Out] {
				return b.IdempotencyKey(func(In) string { _ = f(); return "k" })
			},
		} {
			t.Run(name+" "+where, func(t *testing.T) {
				var p *delta.Task
				ran := false
				b := delta.Define("act", func(*delta.Context, In) mo.Result[Out] { ran = true; return mo.Ok(Out{}) }).Describe("Act").Risk(1)
				act := in(b, func() error { return end(p) }).MustBuild()
				e := engineFor(t, watched(nil))
				var err error
				p, err = e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("a").Grant(act).MustBuild(), Text: "x", Limit: action.Limit{Calls: action.Max(3)}})
				require.NoError(t, err)
				f := action.FailureOf(act.Do(t.Context(), p, In{ID: "x"}).Error())
				require.NotNil(t, f)
				want := action.NotStarted
				if where == "in a key" { // which is asked for before the call begins
					want = map[bool]action.Code{true: action.TaskPaused, false: f.Code}[name == "paused"]
					assert.Contains(t, []action.Code{action.TaskPaused, action.TaskClosed, action.Cancelled}, f.Code)
				}
				assert.Equal(t, want, f.Code)
				assert.False(t, ran)
				s, err := p.Budget(t.Context())
				require.NoError(t, err)
				assert.Zero(t, s.Reserved.Calls)
			})
		}
	}
}

// An override that is over lets nothing more through: no further attempt of a call that went through it either.
func TestNoAttemptAfterTheGlassIsRestored(t *testing.T) {
	for restore, want := range map[bool]int64{true: 1, false: 4} {
		synctest.Test(t, func(t *testing.T) {
			w := newTeam(t, watched(nil), hundred())
			var n atomic.Int64
			var p *delta.Task
			act := delta.Define("act", func(*delta.Context, In) mo.Result[Out] {
				if n.Add(1) == 1 && restore {
					if err := p.RestoreGlass(context.Background(), w.op(), "enough"); err != nil {
						return mo.Err[Out](err)
					}
				}
				return mo.Err[Out](errors.New("again"))
			}).Describe("Act").Risk(1).Effect(action.Idempotent).Retry(3).RequireApproval().MustBuild()
			var err error
			p, err = w.engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("a").Grant(act).MustBuild(), Text: "x", Approvers: []string{"ana"}})
			require.NoError(t, err)
			_, err = p.BreakGlass(t.Context(), w.op(), delta.Glass{For: time.Hour}, "urgent")
			require.NoError(t, err)
			require.Error(t, act.Do(t.Context(), p, In{ID: "x"}).Error())
			assert.Equal(t, want, n.Load(), "restored: %v", restore)
		})
	}
}

// A function that ends its caller's goroutine costs Work no place, and a run no outcome.
func TestGoexitCostsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := make(chan struct{}, 1)
		exit := delta.Define("exit", func(*delta.Context, In) mo.Result[Out] { runtime.Goexit(); return mo.Ok(Out{}) }).
			Describe("Exit").Risk(1).RequireApproval().Timeout(delta.NoTimeout).MustBuild()
		act := delta.Define("act", func(*delta.Context, In) mo.Result[Out] { ran <- struct{}{}; return mo.Ok(Out{}) }).
			Describe("Act").Risk(1).RequireApproval().MustBuild()
		cfg := watched(memory.New(memory.Config{}))
		cfg.Workers = 1
		e := engineFor(t, cfg)
		p, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("a").Grant(exit, act).MustBuild(), Text: "x", Approvers: []string{"op"}})
		require.NoError(t, err)
		op, err := e.Authenticate(t.Context(), "op")
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error, 1)
		go func() { worked <- e.Work(ctx) }()
		for _, name := range []string{"exit", "act"} {
			o := p.Do(t.Context(), delta.Call{Action: name, Input: []byte(`{"id":"x"}`)}).MustGet()
			require.NoError(t, e.Approve(t.Context(), o.Failure.Approval(), op, "yes"))
			time.Sleep(5 * time.Second)
		}
		select {
		case <-ran:
		default:
			t.Error("the place of the one that ended its goroutine is lost")
		}
		stop()
		<-worked
		r := e.Run(t.Context(), p, delta.PlannerFunc(func(_ context.Context, r delta.Request) (delta.Proposal, error) {
			return delta.Proposal{Done: true, Calls: []delta.Call{{Action: "exit", Input: []byte(`{"id":"y"}`)}}}, nil
		})).MustGet()
		require.Len(t, r.Results, 1)
		assert.Equal(t, action.ApprovalRequired, r.Results[0].Outcome.Code)
		free := delta.Define("free", func(*delta.Context, In) mo.Result[Out] { runtime.Goexit(); return mo.Ok(Out{}) }).
			Describe("Exit").Risk(1).Timeout(delta.NoTimeout).MustBuild()
		p, err = e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("b").Grant(free).MustBuild(), Text: "x"})
		require.NoError(t, err)
		r = e.Run(t.Context(), p, delta.PlannerFunc(func(_ context.Context, r delta.Request) (delta.Proposal, error) {
			return delta.Proposal{Done: true, Calls: []delta.Call{{Action: "free", Input: []byte(`{"id":"y"}`)}}}, nil
		})).MustGet()
		require.Len(t, r.Results, 1)
		assert.Equal(t, action.Panicked, r.Results[0].Outcome.Code)
		assert.Equal(t, "free", r.Results[0].Call.Action)
	})
}
