package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/hooks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func returns(err error) hooks.Func {
	return func(context.Context, action.View) error { return err }
}

func TestRunReturnsWhatTheHookDoes(t *testing.T) {
	own := errors.New("no")
	var r hooks.Runner
	require.NoError(t, r.Run(t.Context(), 0, nil, action.View{}))
	require.NoError(t, r.Run(t.Context(), 0, returns(nil), action.View{}))
	require.ErrorIs(t, r.Run(t.Context(), 0, returns(own), action.View{}), own)

	err := r.Run(t.Context(), 0, func(context.Context, action.View) error { panic("boom") }, action.View{})
	var p *hooks.PanicError
	require.ErrorAs(t, err, &p)
	assert.Equal(t, "boom", p.Value)
	assert.Equal(t, "hook panicked: boom", err.Error())
	assert.Contains(t, string(p.Stack), "hooks_test.go")

	err = r.Run(t.Context(), 0, func(context.Context, action.View) error { runtime.Goexit(); return nil }, action.View{})
	assert.ErrorIs(t, err, hooks.ErrExited, "a hook that fails a test ends its goroutine: not a success")
	require.NoError(t, r.Wait(t.Context()))
	assert.Zero(t, r.EverAbandoned())
}

func TestI18_AHookHasItsOwnTimeout(t *testing.T) {
	obeys := func(ctx context.Context, _ action.View) error { <-ctx.Done(); return ctx.Err() }
	for _, c := range []struct {
		name    string
		timeout time.Duration
		want    time.Duration
	}{{"its own", 3 * time.Second, 3 * time.Second}, {"the default", 0, hooks.DefaultTimeout}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r hooks.Runner
				start := time.Now()
				err := r.Run(t.Context(), c.timeout, obeys, action.View{})
				assert.ErrorIs(t, err, hooks.ErrTimeout)
				assert.Equal(t, c.want, time.Since(start))
				assert.Zero(t, r.EverAbandoned(), "it returned when it was told")
			})
		})
	}
}

func TestAHookThatReturnsNilTooLateFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r hooks.Runner
		err := r.Run(t.Context(), time.Second, func(ctx context.Context, _ action.View) error {
			time.Sleep(time.Second + hooks.Grace/2)
			return nil
		}, action.View{})
		assert.ErrorIs(t, err, hooks.ErrTimeout)
		assert.Zero(t, r.EverAbandoned())
	})
}

func TestACancelledCallEndsItsHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r hooks.Runner
		stop := errors.New("task cancelled")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		err := r.Run(ctx, time.Minute, func(ctx context.Context, _ action.View) error { <-ctx.Done(); return nil }, action.View{})
		assert.ErrorIs(t, err, stop)
		assert.NotErrorIs(t, err, hooks.ErrTimeout)
	})
}

// A hook that ignores its context is left behind, counted, bounded in number, and drained in the end.
func TestI18_AHookThatIgnoresItsContextIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := hooks.Runner{MaxAbandoned: 2}
		open := make(chan struct{})
		deaf := func(context.Context, action.View) error { <-open; return nil }
		for i := range int64(2) {
			start := time.Now()
			err := r.Run(t.Context(), time.Second, deaf, action.View{})
			require.ErrorIs(t, err, hooks.ErrTimeout)
			require.ErrorContains(t, err, "ignores its context")
			require.Equal(t, time.Second+hooks.Grace, time.Since(start))
			require.Equal(t, i+1, r.Abandoned())
		}
		ran := false
		mark := func(context.Context, action.View) error { ran = true; return nil }
		require.ErrorIs(t, r.Run(t.Context(), time.Second, mark, action.View{}), hooks.ErrTooMany)
		require.False(t, ran, "not started: a hook before a call that did not run lets nothing through")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "2 hooks")

		close(open)
		require.NoError(t, r.Wait(t.Context()))
		require.Zero(t, r.Abandoned())
		require.Equal(t, int64(2), r.EverAbandoned())
		require.NoError(t, r.Run(t.Context(), time.Second, mark, action.View{}), "room again")
		require.True(t, ran)
	})
}

func view() action.View {
	return action.View{Action: "charge", Input: json.RawMessage(`{"amount":1}`), Outcome: &action.Outcome{
		Code: action.Failed, Output: json.RawMessage(`1`),
		Failure: action.Fail(action.Failed, "declined").With(action.DetailReason, "no funds"),
		Waived:  []*action.Failure{action.Fail(action.Denied, "no grant").With(action.DetailRule, "r")},
	}}
}

// Whatever a hook does to what it sees, neither the call nor the next hook sees it.
func TestI11_AHookSeesACopy(t *testing.T) {
	spoil := func(_ context.Context, v action.View) error {
		copy(v.Input, `{"amount":9}`)
		v.Outcome.Code, v.Outcome.Output[0] = action.OK, '2'
		v.Outcome.Failure.Code, v.Outcome.Failure.Details[action.DetailReason] = action.OK, "fine"
		v.Outcome.Waived[0].Details[action.DetailRule] = "x"
		v.Outcome.Waived[0] = nil
		return nil
	}
	var next action.View
	look := func(_ context.Context, v action.View) error { next = v; return nil }
	var r hooks.Runner
	v := view()
	require.NoError(t, hooks.Join(hooks.Hooks{OnError: spoil}, hooks.Hooks{OnError: look}).OnError(t.Context(), &r, v))
	assert.Equal(t, view(), v)
	assert.Equal(t, view(), next)
}

func TestJoinRunsAllInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		var mu sync.Mutex
		named := func(name string, err error) hooks.Func {
			return func(context.Context, action.View) error {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, name)
				return err
			}
		}
		first := errors.New("first")
		never := make(chan struct{})
		defer close(never)
		c := hooks.Join(
			hooks.Hooks{Before: named("1", first), After: named("a", nil)},
			hooks.Hooks{Before: func(context.Context, action.View) error { <-never; return nil }, Timeout: time.Second},
			hooks.Hooks{},
			hooks.Hooks{Before: func(context.Context, action.View) error { panic("3") }},
			hooks.Hooks{Before: named("4", nil), After: named("b", nil)},
		)
		var r hooks.Runner
		err := c.Before(t.Context(), &r, action.View{})
		assert.Equal(t, []string{"1", "4"}, seen, "one that fails, hangs or panics keeps no other from running")
		assert.ErrorIs(t, err, first)
		assert.ErrorIs(t, err, hooks.ErrTimeout)
		assert.ErrorContains(t, err, "panicked: 3")
		seen = nil
		require.NoError(t, c.After(t.Context(), &r, action.View{}))
		assert.Equal(t, []string{"a", "b"}, seen)
		require.NoError(t, c.OnError(t.Context(), &r, action.View{}))
		require.NoError(t, hooks.Chain(nil).Before(t.Context(), &r, action.View{}))
	})
}

func TestManyAtOnce(t *testing.T) {
	var r hooks.Runner
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 20 {
				assert.NoError(t, r.Run(context.Background(), time.Minute, returns(nil), view()))
			}
		})
	}
	wg.Wait()
	require.NoError(t, r.Wait(t.Context()))
	assert.Zero(t, r.Abandoned())
}

// Without a timeout a hook runs where its caller does; what it does is contained as far as that goes.
func TestI18_AHookWithoutATimeoutRunsOnItsCallersGoroutine(t *testing.T) {
	var r hooks.Runner
	run := func(ctx context.Context, h hooks.Func) error { return r.Run(ctx, hooks.NoTimeout, h, action.View{}) }
	require.NoError(t, run(t.Context(), func(ctx context.Context, _ action.View) error {
		stack := make([]byte, 1<<14)
		assert.Contains(t, string(stack[:runtime.Stack(stack, false)]), "TestI18_AHookWithoutATimeout")
		_, bounded := ctx.Deadline()
		assert.False(t, bounded)
		return nil
	}))
	var p *hooks.PanicError
	require.ErrorAs(t, run(t.Context(), func(context.Context, action.View) error { panic("boom") }), &p)

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	assert.ErrorIs(t, run(ctx, func(context.Context, action.View) error { cancel(why); return nil }), why, "it was told to stop: not a success")

	over := make(chan bool)
	go func() {
		defer close(over)
		_ = run(t.Context(), func(context.Context, action.View) error { runtime.Goexit(); return nil })
		t.Error("it returned")
	}()
	<-over
	require.NoError(t, r.Wait(t.Context()))
}

// What a hook gets is whole, and its own.
func TestI11_AHookHasACopyOfEverything(t *testing.T) {
	f := action.Fail(action.Failed, "no").With("a", "b")
	v := action.View{
		Agent: "agent", Task: "task", Intent: "intent", CallID: "call", Action: "action", Version: "1", Attempt: 2, Input: json.RawMessage(`{"a":1}`),
		Provenance: action.Provenance{Goal: "g"},
		Outcome:    &action.Outcome{Intent: "intent", Output: json.RawMessage(`[1]`), Failure: f, Waived: []*action.Failure{f}},
	}
	of := reflect.ValueOf(v)
	for i := range of.NumField() {
		require.False(t, of.Field(i).IsZero(), "%s has a value here, so that the copy is seen to have it", of.Type().Field(i).Name)
	}
	for _, timeout := range []time.Duration{0, hooks.NoTimeout} {
		var r hooks.Runner
		require.NoError(t, r.Run(t.Context(), timeout, func(_ context.Context, own action.View) error {
			assert.Equal(t, v, own)
			in, out := own.Input, own.Outcome.Output
			_, _ = append(in, "xxxx"...), append(out, "xxxx"...)
			assert.Equal(t, `{"a":1}`, string(in))
			assert.Equal(t, `[1]`, string(out), "they do not grow into each other")
			clear(in)
			clear(out)
			clear(own.Outcome.Failure.Details)
			clear(own.Outcome.Waived)
			return nil
		}, v))
		assert.Equal(t, `{"a":1}`, string(v.Input))
		assert.Equal(t, `[1]`, string(v.Outcome.Output))
		assert.Equal(t, "b", f.Details["a"])
		assert.NotNil(t, v.Outcome.Waived[0])
	}
}

func TestCheck(t *testing.T) {
	assert.NoError(t, hooks.Hooks{}.Check())
	assert.NoError(t, hooks.Hooks{Timeout: hooks.NoTimeout}.Check())
	assert.ErrorContains(t, hooks.Hooks{Timeout: -time.Second}.Check(), "negative")
}

func ExampleJoin() {
	say := func(what string) hooks.Func {
		return func(_ context.Context, v action.View) error {
			fmt.Println(what, v.Action)
			return nil
		}
	}
	var runner hooks.Runner
	chain := hooks.Join(hooks.Hooks{Before: say("audit")}, hooks.Hooks{Before: say("trace")})
	err := chain.Before(context.Background(), &runner, action.View{Action: "charge"})
	fmt.Println(err)
	// Output:
	// audit charge
	// trace charge
	// <nil>
}
