package course_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/internal/course"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errLate, errEnough = errors.New("too late"), errors.New("enough")

// Whatever ends it, everything that a context shows agrees, whether anybody listened before or not, and so do the contexts
// made from it.
func TestWhatEndsIt(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(c *course.Context, parent, stop context.CancelCauseFunc, clock *course.Clock)
		err   error
		cause error
	}{
		"its parent": {func(_ *course.Context, parent, _ context.CancelCauseFunc, _ *course.Clock) { parent(errEnough) }, context.Canceled, errEnough},
		"what stops it": {func(_ *course.Context, _, stop context.CancelCauseFunc, clock *course.Clock) {
			stop(errEnough)
			clock.Check()
		}, context.Canceled, errEnough},
		"its end": {func(*course.Context, context.CancelCauseFunc, context.CancelCauseFunc, *course.Clock) {
			time.Sleep(time.Minute)
		}, context.DeadlineExceeded, errLate},
		"its owner":   {func(c *course.Context, _, _ context.CancelCauseFunc, _ *course.Clock) { c.Cancel(errEnough) }, context.Canceled, errEnough},
		"no cause":    {func(c *course.Context, _, _ context.CancelCauseFunc, _ *course.Clock) { c.Cancel(nil) }, context.Canceled, context.Canceled},
		"no cause up": {func(_ *course.Context, parent, _ context.CancelCauseFunc, _ *course.Clock) { parent(nil) }, context.Canceled, context.Canceled},
	} {
		for _, listens := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var clock course.Clock
					parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "v"))
					defer cancel(nil)
					stop, halt := context.WithCancelCause(context.Background())
					defer halt(nil)
					var x, kid course.Context
					x.Start(course.Options{Parent: parent, Stop: stop, End: time.Now().Add(time.Minute), Late: errLate, Clock: &clock, Lane: 99})
					kid.Start(course.Options{Parent: &x, Clock: &clock})
					defer kid.Cancel(nil)
					all := []context.Context{&x, &kid}
					if listens {
						derived, cancel := context.WithCancel(&x)
						defer cancel()
						timed, cancel := context.WithTimeout(&kid, time.Hour)
						defer cancel()
						all = append(all, derived, timed)
						for _, ctx := range all {
							_ = ctx.Done()
						}
					}
					for _, ctx := range all {
						require.NoError(t, ctx.Err())
						require.NoError(t, context.Cause(ctx))
						require.Equal(t, "v", ctx.Value(key{}))
						at, ok := ctx.Deadline()
						require.True(t, ok)
						require.Equal(t, time.Minute, time.Until(at))
					}
					c.end(&x, cancel, halt, &clock)
					if listens {
						synctest.Wait()
					}
					for _, ctx := range all {
						<-ctx.Done()
						assert.Equal(t, c.err, ctx.Err())
						assert.Equal(t, c.cause, context.Cause(ctx))
						assert.Equal(t, "v", ctx.Value(key{}))
					}
					assert.Equal(t, c.cause, x.Why())
					x.Cancel(errors.New("it stays as it ended"))
					assert.Equal(t, c.cause, context.Cause(&x))
				})
			})
		}
	}
}

type key struct{}

// What is made from it by the standard library ends before whoever ended it goes on, and no goroutine waits for that.
func TestContextsMadeFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock course.Clock
		var x course.Context
		x.Start(course.Options{Parent: t.Context(), Clock: &clock})
		derived, cancel := context.WithCancel(&x)
		defer cancel()
		undone, cancel := context.WithCancel(&x)
		cancel()
		ran := 0
		stop := context.AfterFunc(&x, func() { ran++ })
		undo := context.AfterFunc(&x, func() { ran += 100 })
		require.True(t, undo())
		require.False(t, undo())
		require.NoError(t, x.Err())
		require.Error(t, undone.Err())
		x.Cancel(errEnough)
		assert.Equal(t, context.Canceled, derived.Err(), "at once")
		assert.Equal(t, errEnough, context.Cause(derived))
		synctest.Wait()
		assert.Equal(t, 1, ran)
		assert.False(t, stop())

		late, cancel := context.WithTimeout(&x, time.Hour)
		defer cancel()
		assert.Equal(t, context.Canceled, late.Err())
		assert.False(t, context.AfterFunc(&x, func() { ran++ })())
		synctest.Wait()
		assert.Equal(t, 2, ran)
	})
}

// A function that hangs holds nobody up for long.
func TestAFunctionThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x course.Context
		x.Start(course.Options{Parent: t.Context()})
		open := make(chan struct{})
		defer close(open)
		x.AfterFunc(func() { <-open })
		derived, cancel := context.WithCancel(&x)
		defer cancel()
		from := time.Now()
		x.Cancel(errEnough)
		assert.Error(t, derived.Err())
		assert.Less(t, time.Since(from), time.Second)
	})
}

// A timer a lane serves many ends, in whatever order they are asked for.
func TestClockTellsEachInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock course.Clock
		defer clock.Close()
		from := time.Now()
		var wg sync.WaitGroup
		for _, d := range []time.Duration{5, 1, 3, 3, 2, 4, 60} {
			x := new(course.Context)
			x.Start(course.Options{Parent: t.Context(), End: from.Add(d * time.Second), Clock: &clock, Lane: uint8(d) % 2})
			wg.Go(func() {
				<-x.Done()
				assert.Equal(t, d*time.Second, time.Since(from))
				assert.Equal(t, context.DeadlineExceeded, x.Err())
			})
		}
		synctest.Wait()
		wg.Wait()
	})
}

// Whoever waits learns of the first of the two, and is not woken in vain for good.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock course.Clock
		var bells course.Bells
		for range 2 { // the second time with a bell that rang already
			bell := bells.Take()
			bell.Ring()
			bell.Ring()
			var over atomic.Bool
			var x course.Context
			from := time.Now()
			x.Start(course.Options{Parent: t.Context(), End: from.Add(time.Minute), Clock: &clock})
			go func() {
				time.Sleep(time.Second)
				over.Store(true)
				bell.Ring()
			}()
			require.True(t, x.Wait(bell, &over))
			require.Equal(t, time.Second, time.Since(from))
			require.NoError(t, x.Err())

			over.Store(false)
			require.False(t, x.Wait(bell, &over))
			require.Equal(t, time.Minute, time.Since(from))
			require.False(t, x.Wait(bell, &over), "it has ended")
			over.Store(true)
			require.True(t, x.Wait(bell, &over), "both: what is there has come")
			bells.Put(bell)
		}
	})
}

// The parent ends while children come and go, are asked and listened to: nobody waits for anybody for ever.
func TestManyAtOnce(t *testing.T) {
	var clock course.Clock
	defer clock.Close()
	for range 50 {
		parent, cancel := context.WithCancel(context.Background())
		var x course.Context
		x.Start(course.Options{Parent: parent, End: time.Now().Add(time.Hour), Clock: &clock})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				var kid course.Context
				kid.Start(course.Options{Parent: &x, End: time.Now().Add(time.Hour), Clock: &clock, Lane: uint8(i)})
				derived, cancel := context.WithCancel(&kid)
				defer cancel()
				if i%2 == 0 {
					<-derived.Done()
				}
				kid.Cancel(errEnough)
				_ = x.Err()
			})
		}
		wg.Go(cancel)
		wg.Go(clock.Check)
		wg.Wait()
		<-x.Done()
	}
}

// An attempt that nobody listens to, and one that is waited for, cost what lies in their owner's memory.
func TestAllocatesNothing(t *testing.T) {
	var clock course.Clock
	var bells course.Bells
	bells.Put(bells.Take())
	type owner struct {
		call, attempt course.Context
		over          atomic.Bool
	}
	owners := make([]owner, 201)
	n := 0
	end := time.Now().Add(time.Hour)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		o := &owners[n]
		n++
		o.call.Start(course.Options{Parent: context.Background(), End: end, Clock: &clock})
		o.attempt.Start(course.Options{Parent: &o.call, End: end, Clock: &clock})
		bell := bells.Take()
		o.over.Store(n%2 == 0)
		go func() {
			o.over.Store(true)
			bell.Ring()
		}()
		o.attempt.Wait(bell, &o.over)
		bells.Put(bell)
		_ = o.attempt.Err()
		o.attempt.Cancel(nil)
		o.call.Cancel(nil)
	})-1, "but for the goroutine")
	clock.Close()
}
