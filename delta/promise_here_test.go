package delta_test

import (
	"context"
	"errors"
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
)

// stage is what a test of functions on their caller's goroutine works with.
type stage struct {
	engine *delta.Engine
	task   *delta.Task
	action *delta.Action[struct{}, string]
	failed int // times the hook onError ran
}

func here(t *testing.T, goal delta.Goal, f func(*delta.Context) mo.Result[string], more func(delta.Builder[struct{}, string]) delta.Builder[struct{}, string]) *stage {
	p := &stage{}
	b := delta.Define("run", func(ctx *delta.Context, _ struct{}) mo.Result[string] { return f(ctx) }).Describe("Run").Risk(1).
		Effect(action.Idempotent).Timeout(delta.NoTimeout).
		Hooks(hooks.Hooks{OnError: func(context.Context, action.View) error { p.failed++; return nil }})
	if more != nil {
		b = more(b)
	}
	p.action = b.MustBuild()
	var err error
	p.engine, err = delta.New(delta.Config{Lease: 3 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.engine.Close(context.Background()) })
	goal.Agent = delta.NewAgent("agent").Grant(p.action).MustBuild()
	p.task, err = p.engine.Start(t.Context(), goal)
	require.NoError(t, err)
	return p
}

func (p *stage) do(t *testing.T) action.Outcome {
	out, err := p.task.Do(t.Context(), delta.Call{ID: "one", Action: "run"}).Get()
	require.NoError(t, err)
	return out
}

func TestNoTimeoutRunsOnTheCallersGoroutine(t *testing.T) {
	p := here(t, delta.Goal{}, func(ctx *delta.Context) mo.Result[string] {
		var stack [1 << 14]byte
		if _, bounded := ctx.Deadline(); bounded {
			return mo.Err[string](errors.New("there is a deadline"))
		}
		return mo.Ok(string(stack[:runtime.Stack(stack[:], false)]))
	}, nil)
	out := p.do(t)
	require.True(t, out.OK(), out.Failure)
	assert.Contains(t, string(out.Output), "TestNoTimeoutRunsOnTheCallersGoroutine")
}

// I10 without a timeout: what is not an explicit Ok is none.
func TestI10_NoTimeoutContainsWhatHappens(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(*delta.Context) mo.Result[string]
		want action.Code
	}{
		{"an error", func(*delta.Context) mo.Result[string] { return mo.Err[string](errors.New("no")) }, action.Failed},
		{"a panic", func(*delta.Context) mo.Result[string] { panic("boom") }, action.Panicked},
		{"a panic of nil", func(*delta.Context) mo.Result[string] { panic(error(nil)) }, action.Panicked},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := here(t, delta.Goal{}, c.f, nil)
			assert.Equal(t, c.want, p.do(t).Code)
			assert.Equal(t, 1, p.failed)
		})
	}
}

// A function that ends its goroutine ends its caller's, but not without the call's end being written.
func TestI10_NoTimeoutAndGoexit(t *testing.T) {
	p := here(t, delta.Goal{}, func(*delta.Context) mo.Result[string] { runtime.Goexit(); return mo.Ok("") }, nil)
	back := make(chan bool, 1)
	go func() {
		defer func() { back <- true }()
		p.do(t)
		t.Error("it returned")
	}()
	<-back
	assert.Equal(t, 1, p.failed)
	out := p.do(t)
	assert.True(t, out.Recorded)
	assert.Equal(t, action.Panicked, out.Code)
	require.NoError(t, p.engine.Close(t.Context()), "nothing is left inside")
}

// A run makes a call that is proposed alone on its own goroutine. A function that ends it ends neither the run nor its caller.
func TestI10_ARunOutlivesItsGoroutine(t *testing.T) {
	p := here(t, delta.Goal{}, func(*delta.Context) mo.Result[string] { runtime.Goexit(); return mo.Ok("") }, nil)
	call := delta.Call{Action: "run"}
	var told [][]delta.Result
	steps := [][]delta.Call{{call}, {call}, nil}
	r, err := p.engine.RunWithin(t.Context(), p.task, delta.PlannerFunc(func(_ context.Context, r delta.Request) (delta.Proposal, error) {
		told = append(told, r.Last)
		return delta.Proposal{Calls: steps[r.Step-1], Done: r.Step == len(steps), Why: "all were made"}, nil
	}), delta.Bounds{}).Get()
	require.NoError(t, err)
	assert.Equal(t, delta.RunDone, r.Ended)
	assert.Equal(t, len(steps), r.Steps)
	assert.Equal(t, 2, p.failed, "each was settled")
	require.Len(t, r.Results, 2)
	for _, res := range r.Results {
		assert.Equal(t, call, res.Call)
		assert.Equal(t, action.Panicked, res.Outcome.Code)
		require.NotNil(t, res.Outcome.Failure)
	}
	require.Len(t, told, len(steps))
	for i := range told[1:] {
		assert.Len(t, told[i+1], len(steps[i]), "the planner is told of every call")
	}
	require.NoError(t, p.engine.Close(t.Context()), "nothing is left inside")
}

// That the call was stopped is noticed when the function returns, whatever it returns.
func TestNoTimeoutNoticesThatItWasStopped(t *testing.T) {
	for _, c := range []struct {
		name string
		stop func(t *testing.T, p *stage, caller context.CancelFunc)
	}{
		{"the task is cancelled", func(t *testing.T, p *stage, _ context.CancelFunc) {
			assert.NoError(t, p.task.Cancel(t.Context(), "enough"))
		}},
		{"its caller gives up", func(_ *testing.T, _ *stage, caller context.CancelFunc) { caller() }},
	} {
		for _, listens := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				var p *stage
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p = here(t, delta.Goal{}, func(inside *delta.Context) mo.Result[string] {
					if listens {
						select {
						case <-inside.Done():
							return mo.Err[string](errors.New("stopped too early"))
						default:
						}
					}
					c.stop(t, p, cancel)
					if listens {
						<-inside.Done()
						assert.Error(t, context.Cause(inside))
					}
					assert.Error(t, inside.Err())
					return mo.Ok("done")
				}, nil)
				out, err := p.task.Do(ctx, delta.Call{Action: "run"}).Get()
				require.NoError(t, err)
				assert.Equal(t, action.Interrupted, out.Code, out.Failure)
			})
		}
	}
}

// The deadline of the task and the lease: a function that takes long keeps its lease, and hears of the deadline.
func TestNoTimeoutKeepsLeaseAndDeadline(t *testing.T) {
	for _, listens := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := here(t, delta.Goal{Deadline: time.Now().Add(time.Minute)}, func(ctx *delta.Context) mo.Result[string] {
				if at, ok := ctx.Deadline(); !ok || time.Until(at) > time.Minute {
					return mo.Err[string](errors.New("the deadline is not known"))
				}
				if listens {
					<-ctx.Done()
					assert.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
				} else {
					time.Sleep(2 * time.Minute) // forty leases
				}
				return mo.Ok("done")
			}, nil)
			out := p.do(t)
			assert.Equal(t, action.Interrupted, out.Code, out.Failure)
			assert.Contains(t, out.Failure.Error(), "deadline")
			require.NoError(t, p.engine.Close(t.Context()))
		})
	}
}

// Retries are attempts like any other.
func TestNoTimeoutRetries(t *testing.T) {
	n := 0
	p := here(t, delta.Goal{}, func(ctx *delta.Context) mo.Result[string] {
		if n++; ctx.Attempt() < 3 {
			return mo.Err[string](errors.New("not yet"))
		}
		return mo.Ok("done")
	}, func(b delta.Builder[struct{}, string]) delta.Builder[struct{}, string] { return b.Retry(2) })
	out := p.do(t)
	assert.True(t, out.OK(), out.Failure)
	assert.Equal(t, 3, n)
	assert.Equal(t, 3, out.Attempts)
}

// Hooks without a timeout run where the call is made; one that ends that goroutine does not leave the call without an end.
func TestI10_HooksWithoutATimeout(t *testing.T) {
	ends := func(context.Context, action.View) error { runtime.Goexit(); return nil }
	for _, c := range []struct {
		name string
		h    hooks.Hooks
		want action.Code
		exit bool
	}{
		{"they pass", hooks.Hooks{Before: func(context.Context, action.View) error { return nil }}, action.OK, false},
		{"one before says no", hooks.Hooks{Before: func(context.Context, action.View) error { return errors.New("no") }}, action.HookFailed, false},
		{"one before panics", hooks.Hooks{Before: func(context.Context, action.View) error { panic("boom") }}, action.HookFailed, false},
		{"one before ends the goroutine", hooks.Hooks{Before: ends}, action.HookFailed, true},
		{"one after panics", hooks.Hooks{After: func(context.Context, action.View) error { panic("boom") }}, action.OK, false},
		{"one after ends the goroutine", hooks.Hooks{After: ends}, action.OK, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := false
			p := here(t, delta.Goal{}, func(*delta.Context) mo.Result[string] { ran = true; return mo.Ok("") }, func(b delta.Builder[struct{}, string]) delta.Builder[struct{}, string] {
				c.h.Timeout = hooks.NoTimeout
				return b.Hooks(c.h)
			})
			returned := make(chan bool, 1)
			go func() {
				back := false
				defer func() { returned <- back }()
				p.do(t)
				back = true
			}()
			assert.Equal(t, !c.exit, <-returned)
			out := p.do(t)
			assert.True(t, out.Recorded)
			assert.Equal(t, c.want, out.Code)
			assert.Equal(t, c.want == action.OK, ran)
			records, _, err := p.task.Ledger(t.Context())
			require.NoError(t, err)
			if c.h.After != nil {
				assert.Contains(t, records[len(records)-1].Val, string(ledger.HookFailed))
			}
			require.NoError(t, p.engine.Close(t.Context()), "nothing is left inside")
		})
	}
}

// What another engine did to the task while a hook ran is seen before the function starts.
func TestNoTimeoutNoticesWhatAnotherEngineDidMeanwhile(t *testing.T) {
	store := memory.New(memory.Config{})
	var other *delta.Task
	ran := false
	run := delta.Define("run", func(*delta.Context, struct{}) mo.Result[string] { ran = true; return mo.Ok("") }).Describe("Run").Risk(1).
		Timeout(delta.NoTimeout).Hooks(hooks.Hooks{Timeout: hooks.NoTimeout, Before: func(ctx context.Context, _ action.View) error {
		return other.Cancel(ctx, "enough")
	}}).MustBuild()
	agent := delta.NewAgent("agent").Grant(run).MustBuild()
	open := func() *delta.Engine {
		e, err := delta.New(delta.Config{Store: store})
		require.NoError(t, err)
		t.Cleanup(func() { _ = e.Close(context.Background()) })
		require.NoError(t, e.Register(agent))
		return e
	}
	mine, theirs := open(), open()
	task, err := mine.Start(t.Context(), delta.Goal{Agent: agent})
	require.NoError(t, err)
	other, err = theirs.Open(t.Context(), task.ID())
	require.NoError(t, err)
	out, err := task.Do(t.Context(), delta.Call{Action: "run"}).Get()
	require.NoError(t, err)
	assert.Equal(t, action.NotStarted, out.Code)
	assert.False(t, ran)
}
