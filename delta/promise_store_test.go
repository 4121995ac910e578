package delta_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// effect is one start of a function, or of a before hook.
type effect struct {
	intent  string
	attempt int
}

// effects collects them.
type effects struct {
	mu  sync.Mutex
	all []effect
}

func (e *effects) note(intent string, attempt int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, effect{intent, attempt})
}

// checkBegun holds every effect to a durable record that was written before it: the intent's begin, and for a further
// attempt the record of that attempt, or a begin under a later fence.
func (w *world) checkBegun(all []effect) {
	w.Helper()
	begun := map[string]int{} // begins and attempts of an intent
	for _, e := range w.events() {
		if e.Type == ledger.Begun || e.Type == ledger.Attempt {
			begun[e.Intent]++
		}
	}
	starts := map[string]int{}
	for _, e := range all {
		starts[e.intent]++
		assert.LessOrEqual(w, starts[e.intent], begun[e.intent], "intent %s started %d times, recorded %d times", e.intent, starts[e.intent], begun[e.intent])
	}
}

// routine is what happens while the store fails: calls on every path, a parked one, a repeated one.
func routine(w *world) {
	ctx := context.Background()
	w.task.Do(ctx, call("act", "a"))
	w.task.Do(ctx, delta.Call{ID: "c", Action: "checked", Input: inputOf(In{ID: "a"})})
	w.task.Do(ctx, call("retried", "a"))
	w.engine.Run(ctx, w.task, script(call("look", "a")))
	if o, err := w.task.Do(ctx, call("risky", "a")).Get(); err == nil && o.Code == action.ApprovalRequired {
		if w.engine.Approve(ctx, o.Failure.Approval(), w.boss, "fine") == nil {
			w.task.Do(ctx, call("risky", "a"))
		}
	}
	w.task.Do(ctx, delta.Call{ID: "c", Action: "checked", Input: inputOf(In{ID: "a"})})
	if o, err := w.task.Do(ctx, call("risky", "b")).Get(); err == nil && o.Code == action.ApprovalRequired {
		w.engine.Approve(ctx, o.Failure.Approval(), w.boss, "fine") // left to Work
	}
}

// TestI08_NoEffectWithoutRecord fails the store at each of its calls in turn, before and after it took effect, once and
// also when it is tried again. Whatever happens: every effect was recorded before; what may not be repeated ran at most
// once; and once the store is back, reservations stand for unknown outcomes only.
func TestI08_NoEffectWithoutRecord(t *testing.T) {
	for _, fault := range []memorytest.Fault{memorytest.LostRequest, memorytest.LostReply} {
		for n := 1; n <= 40; n++ {
			for _, width := range []int{1, 2 + n%2} { // 2: also when it is tried again; 3: and when it is looked up
				failing := []int{n, n + 1, n + 2}[:width]
				bubble(t, func(t *testing.T) {
					failingAt(t, memorytest.FailAt(fault, failing...), fmt.Sprintf("fault %d at %v", fault, failing))
				})
			}
		}
	}
}

func failingAt(t *testing.T, plan memorytest.Plan, name string) {
	w := newWorld(t, func(w *world, g *delta.Goal) {
		w.cfg.Lease, w.cfg.Poll, g.ApprovalTTL = time.Second, 20*time.Second, time.Minute
		g.Limit.Calls = action.Max(100)
	})
	var seen effects
	tries := map[string]int{}
	w.does(func(ctx *delta.Context, in In) mo.Result[Out] {
		seen.note(ctx.ExecutionID(), ctx.Attempt())
		w.mu.Lock()
		defer w.mu.Unlock()
		tries[ctx.ExecutionID()]++
		if tries[ctx.ExecutionID()] == 1 && ctx.Attempt() == 1 && in.ID == "a" {
			return mo.Err[Out](errors.New("the first attempt fails"))
		}
		return mo.Ok(Out{"ok"})
	})
	var hooked effects
	w.before = func(_ context.Context, v action.View) error {
		hooked.note(v.Intent, v.Attempt)
		return nil
	}
	require.NoError(t, w.engine.Sync(t.Context()))
	faulty := memorytest.NewFaulty(w.store.Store, plan)
	w.store.set(func(s *spy) { s.Store = faulty })
	routine(w)
	faulty.Replan(nil)
	stop := w.work(w.engine)
	time.Sleep(5 * time.Minute) // leases and approvals run out, a proposal's last
	stop()
	synctest.Wait()
	w.checkBegun(seen.all)
	w.checkBegun(hooked.all)
	for _, e := range w.events() {
		if e.Type == ledger.Begun && e.Fence > 1 {
			assert.Contains(t, []string{"look", "retried"}, e.Action, "%s: taken over", name)
		}
	}
	require.NoError(t, w.engine.Sync(t.Context()))
	defer func() {
		if t.Failed() {
			t.Log(name)
			for _, e := range w.events() {
				t.Log(e.Type, e.Action, e.Intent, e.Attempt, e.Fence, e.Code, e.Reserved, e.Charged, e.Approval)
			}
		}
	}()
	a := audit(t, w.task, action.Limit{Calls: action.Max(100)})
	unknown := map[string]bool{}
	for _, e := range w.events() {
		if e.Code == action.StartedUnknown && e.Type == ledger.Settled {
			unknown[e.Intent] = true
		}
	}
	assert.Len(t, a.held, len(unknown), "%s: what is reserved is unknown", name)
	queued, err := w.shared.Queued(t.Context(), "clerk", "ready", txn.Queued{}, true, 10)
	require.NoError(t, err)
	assert.Empty(t, queued, "%s: approved calls ran or ended", name)
	_, _, err = w.task.Ledger(t.Context())
	require.NoError(t, err, "%s: the chain holds", name)
}

// TestI15_StoreDownNothingExecutes: with no store, half a store, and a store that comes and goes.
func TestI15_StoreDownNothingExecutes(t *testing.T) {
	outages := map[string]func(*spy){
		"all":   func(s *spy) { s.down = true },
		"begin": func(s *spy) { s.before = failOn(txn.Begin) },
		"apply": func(s *spy) { s.before = func(*txn.Txn) error { return errDown } },
	}
	for name, outage := range outages {
		for _, p := range []path{byDo, typed, byWait} {
			t.Run(fmt.Sprint(name, "/", p), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t)
					parked := w.do(call("risky", "p"))
					require.NoError(t, w.engine.Approve(t.Context(), parked.Failure.Approval(), w.boss, "fine"))
					hooked := false
					w.before = func(context.Context, action.View) error { hooked = true; return nil }
					w.store.set(outage)
					for _, a := range []string{"act", "look", "checked", "risky"} {
						o := w.make(p, call(a, "p"))
						assert.Equal(t, action.StoreUnavailable, o.Code, "%s: %v", a, o.Failure)
						assert.True(t, o.Failure.Retryable)
					}
					report := w.engine.Run(t.Context(), w.task, script(call("act", "p"))).MustGet()
					assert.Equal(t, delta.RunStore, report.Ended, "%v", report.Err)
					stop := w.work(w.engine)
					time.Sleep(time.Minute)
					stop()
					assert.Zero(t, w.effects.Load())
					assert.False(t, hooked)
					w.store.set(func(s *spy) { s.down, s.before = false, nil })
					assert.True(t, w.make(p, call("act", "p")).OK(), "it comes back")
				})
			})
		}
	}
}

// TestI09_UnknownIsNotRepeated: not by calling again on any path, not by another worker, not after its lease ran out.
func TestI09_UnknownIsNotRepeated(t *testing.T) {
	for _, how := range []string{"said", "timeout", "lost"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				c := delta.Call{ID: "c", Action: "act", Input: inputOf(In{ID: "a"})}
				intent := w.makeUnknown(how, c)
				other := w.other()
				stops := []func(){w.work(w.engine), w.work(other)}
				there, err := other.Open(t.Context(), w.task.ID())
				require.NoError(t, err)
				for _, p := range paths {
					o := w.make(p, call("act", "a"))
					assert.Equal(t, action.NotLegal, o.Code, p)
				}
				assert.Equal(t, action.NotLegal, there.Do(t.Context(), call("act", "a")).MustGet().Code)
				again := w.do(c)
				assert.Equal(t, action.StartedUnknown, again.Code, "the same call id answers what is recorded")
				assert.True(t, again.Recorded)
				time.Sleep(10 * time.Minute)
				for _, stop := range stops {
					stop()
				}
				assert.EqualValues(t, 1, w.effects.Load())
				assert.False(t, w.offered("then-act"))

				assert.Error(t, w.task.Resolve(t.Context(), intent, delta.Identity{}, true, []byte(`{"said":"x"}`), action.Cost{}, "?"), "nobody resolves")
				assert.Error(t, w.task.Resolve(t.Context(), intent, w.boss, true, []byte(`{"said":1}`), action.Cost{}, "?"), "an output that does not fit")
				require.NoError(t, w.task.Resolve(t.Context(), intent, w.boss, true, []byte(`{"said":"it did"}`), action.Cost{Calls: 1}, "looked"))
				assert.Error(t, w.task.Resolve(t.Context(), intent, w.boss, false, nil, action.Cost{}, "again"), "once")
				assert.True(t, w.offered("then-act"))
				again = w.do(c)
				assert.Equal(t, action.OK, again.Code)
				assert.JSONEq(t, `{"said":"it did"}`, string(again.Output))
				b, err := w.task.Budget(t.Context())
				require.NoError(t, err)
				assert.Zero(t, b.Reserved.Calls)
				assert.Equal(t, action.OK, w.do(call("then-act", "a")).Code)
			})
		})
	}
}

// makeUnknown makes a call end STARTED_UNKNOWN and returns its intent.
func (w *world) makeUnknown(how string, c delta.Call) string {
	switch how {
	case "said":
		w.does(func(*delta.Context, In) mo.Result[Out] { return mo.Err[Out](action.Unknown(nil)) })
	case "timeout":
		w.does(obeys)
	case "lost":
		w.store.set(func(s *spy) { s.before = failOn(txn.Settle) })
	}
	o := w.do(c)
	require.Equal(w, action.StartedUnknown, o.Code)
	if how == "lost" {
		w.store.set(func(s *spy) { s.before = nil })
		stop := w.work(w.engine)
		time.Sleep(10 * time.Second)
		stop()
	}
	w.does(nil)
	return o.Intent
}

// Resolving as not done lets the call be made again.
func TestI09_ResolvedAsFailedMayRunAgain(t *testing.T) {
	w := newWorld(t)
	intent := w.makeUnknown("said", call("act", "a"))
	before, err := w.engine.Trust(t.Context(), "clerk")
	require.NoError(t, err)
	require.NoError(t, w.task.Resolve(t.Context(), intent, w.boss, false, nil, action.Cost{Calls: 1}, "it did not"))
	after, err := w.engine.Trust(t.Context(), "clerk")
	require.NoError(t, err)
	assert.Equal(t, before.Err+1, after.Err, "the operator's word is learned")
	assert.Equal(t, action.OK, w.do(call("act", "a")).Code)
}

// An effect with an idempotency key, or one that may be repeated, is run again by whoever takes it over, under its key.
func TestI09_RepeatableIsTakenOver(t *testing.T) {
	for _, name := range []string{"keyed", "look", "retried"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				var mu sync.Mutex
				keys := map[string]int{}
				w.does(func(ctx *delta.Context, _ In) mo.Result[Out] {
					mu.Lock()
					defer mu.Unlock()
					keys[ctx.ExecutionID()+"/"+ctx.IdempotencyKey()]++
					return mo.Ok(Out{"ok"})
				})
				w.store.set(func(s *spy) { s.before = failOn(txn.Settle) })
				require.Equal(t, action.StartedUnknown, w.do(call(name, "a")).Code)
				other := w.other()
				stop := w.work(other)
				time.Sleep(10 * time.Second)
				stop()
				assert.EqualValues(t, 2, w.effects.Load())
				assert.Len(t, keys, 1, "one intent, one key")
				e := w.events()
				assert.Equal(t, action.OK, e[len(e)-1].Code)
				assert.EqualValues(t, 2, e[len(e)-1].Fence)
			})
		})
	}
}

// TestI17_TwoWorkersOneLease: a worker whose lease was taken over cannot settle, and overlap is of repeatable effects only.
func TestI17_TwoWorkersOneLease(t *testing.T) {
	for _, name := range []string{"act", "amend", "look", "keyed"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, func(w *world, _ *delta.Goal) { w.cfg.Lease = 300 * time.Millisecond })
				release := make(chan struct{})
				var running, most, overlapping int
				var mu sync.Mutex
				w.does(func(*delta.Context, In) mo.Result[Out] {
					mu.Lock()
					running++
					most = max(most, running)
					overlapping++
					first := overlapping == 1
					mu.Unlock()
					if first {
						<-release
					}
					mu.Lock()
					running--
					mu.Unlock()
					return mo.Ok(Out{fmt.Sprint("by worker ", map[bool]int{true: 1, false: 2}[first])})
				})
				w.store.set(func(s *spy) { s.before = failOn(txn.Renew) }) // cut off
				c := delta.Call{ID: "c", Action: name, Input: inputOf(In{ID: "a"})}
				first := background(func() action.Outcome { return w.do(c) })
				stop := w.work(w.other())
				time.Sleep(5 * time.Second)
				stop()
				w.store.set(func(s *spy) { s.before = nil }) // back
				close(release)
				o := first()
				assert.Equal(t, action.Late, o.Code, "%v", o.Failure)
				settled, live := 0, map[int64]bool{}
				for _, e := range w.events() {
					switch e.Type {
					case ledger.Begun:
						assert.False(t, live[e.Fence], "fence %d was given out twice", e.Fence)
						live[e.Fence] = true
					case ledger.Settled:
						settled++
					}
				}
				assert.Equal(t, 1, settled, "one end")
				assert.Equal(t, 1, w.count(ledger.Late))
				repeatable := name == "look" || name == "keyed"
				final := w.do(c)
				if repeatable {
					assert.Equal(t, action.OK, final.Code)
					assert.Contains(t, string(final.Output), "worker 2")
					assert.Equal(t, 2, most)
					assert.EqualValues(t, 2, audit(t, w.task, action.Limit{}).spent.Calls, "both ran, both are charged")
				} else {
					assert.Equal(t, action.StartedUnknown, final.Code)
					assert.Equal(t, 1, most, "never at once")
				}
			})
		})
	}
}

// While its worker keeps the lease alive, nobody takes a call over, however long it runs.
func TestI17_LiveLeaseIsNotTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(w *world, _ *delta.Goal) { w.cfg.Lease = 300 * time.Millisecond })
		w.does(func(*delta.Context, In) mo.Result[Out] { time.Sleep(30 * time.Second); return mo.Ok(Out{"slow"}) })
		stop := w.work(w.other())
		o := w.do(call("look", "a"))
		stop()
		assert.True(t, o.OK())
		assert.EqualValues(t, 1, w.effects.Load())
	})
}

// A lease that ran out and that nobody took still settles.
func TestI17_ExpiredLeaseThatNobodyTookSettles(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.store.set(func(s *spy) { s.before = failOn(txn.Renew) })
		w.does(func(*delta.Context, In) mo.Result[Out] { time.Sleep(30 * time.Second); return mo.Ok(Out{"slow"}) })
		assert.Equal(t, action.OK, w.do(call("act", "a")).Code)
	})
}

// TestTwoRoundTrips counts what a call costs: begin and settle, a refusal one. Folding beliefs and sealing the ledger go
// on beside it.
func TestTwoRoundTrips(t *testing.T) {
	w := newWorld(t)
	require.True(t, w.do(call("act", "warm")).OK())
	require.NoError(t, w.engine.Sync(t.Context()))
	var mu sync.Mutex
	var trips []string
	w.store.set(func(s *spy) {
		s.before = func(x *txn.Txn) error {
			mu.Lock()
			defer mu.Unlock()
			if x.Phase != txn.Plain {
				trips = append(trips, string(rune(x.Phase)))
			}
			for _, c := range x.Clauses { // housekeeping is folding, trimming and linking, nothing else
				if x.Phase == txn.Plain && !strings.ContainsRune("LDPVE", rune(c.Op)) {
					trips = append(trips, "plain "+string(rune(c.Op)))
				}
			}
			return nil
		}
	})
	for _, c := range []struct {
		name  string
		call  delta.Call
		code  action.Code
		trips []string
	}{
		{"ok", call("act", "a"), action.OK, []string{"B", "X"}},
		{"ok, with a call id", delta.Call{ID: "c", Action: "act", Input: inputOf(In{ID: "b"})}, action.OK, []string{"B", "X"}},
		{"failed", call("then-act", "a"), action.OK, []string{"B", "X"}},
		{"unknown action", call("nothing", "a"), action.ActionUnknown, []string{"Z"}},
		{"bad input", call("act", ""), action.InputInvalid, []string{"Z"}},
		{"not legal", call("then-act", "z"), action.NotLegal, []string{"Z"}},
		{"denied", call("forbidden", "z"), action.Denied, []string{"Z"}},
		{"parked", call("risky", "z"), action.ApprovalRequired, []string{"K"}},
	} {
		require.NoError(t, w.engine.Sync(t.Context()))
		mu.Lock()
		trips = nil
		mu.Unlock()
		assert.Equal(t, c.code, w.do(c.call).Code, c.name)
		mu.Lock()
		assert.Equal(t, c.trips, trips, c.name)
		mu.Unlock()
	}
}
