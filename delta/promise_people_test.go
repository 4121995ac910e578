package delta_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// What waits for a person: the answer reaches DoWait whoever gives it and whoever runs the call.
func TestDoWait(t *testing.T) {
	ways := map[string]struct {
		decide func(w *world, e *delta.Engine, id string) error
		code   action.Code
		runs   int64
	}{
		"approved":       {func(w *world, e *delta.Engine, id string) error { return e.Approve(w.Context(), id, w.as(e), "fine") }, action.OK, 1},
		"rejected":       {func(w *world, e *delta.Engine, id string) error { return e.Reject(w.Context(), id, w.as(e), "no") }, action.ApprovalRejected, 0},
		"revoked":        {func(w *world, e *delta.Engine, id string) error { return e.Revoke(w.Context(), id, w.as(e), "no") }, action.ApprovalRejected, 0},
		"never decided":  {func(*world, *delta.Engine, string) error { return nil }, action.ApprovalExpired, 0},
		"task cancelled": {func(w *world, e *delta.Engine, _ string) error { return w.cancelBy(e) }, action.Cancelled, 0},
		"approved, fails": {func(w *world, e *delta.Engine, id string) error {
			w.does(fails)
			return e.Approve(w.Context(), id, w.as(e), "fine")
		}, action.Failed, 1},
	}
	for name, way := range ways {
		for _, id := range []string{"", "c"} {
			for _, working := range []bool{false, true} {
				for _, here := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/call id %q/worker %v/decided here %v", name, id, working, here), func(t *testing.T) {
						bubble(t, func(t *testing.T) {
							w := newWorld(t, func(_ *world, g *delta.Goal) { g.ApprovalTTL = time.Minute })
							e := w.engine
							if !here {
								e = w.other()
							}
							c := delta.Call{ID: id, Action: "risky", Input: inputOf(In{ID: "a"})}
							out := background(func() action.Outcome { return w.task.DoWait(context.Background(), c).MustGet() })
							if working {
								defer w.work(w.other())()
							}
							time.Sleep(time.Second)
							pending, err := e.Approvals(t.Context(), 9)
							require.NoError(t, err)
							require.Len(t, pending, 1)
							require.NoError(t, way.decide(w, e, pending[0].ID))
							decided := time.Now()
							o := out()
							assert.Equal(t, way.code, o.Code, "%v", o.Failure)
							if name != "never decided" {
								assert.Less(t, time.Since(decided), 5*time.Second)
							}
							if !assert.Equal(t, way.runs, w.effects.Load()) {
								for _, e := range w.events() {
									t.Log(e.Type, e.Intent, e.Owner, e.Code, e.Approval, e.ApprovalFrom, e.ApprovalState)
								}
							}
							time.Sleep(time.Minute)
							pending, err = e.Approvals(t.Context(), 9)
							require.NoError(t, err)
							assert.Empty(t, pending, "nothing is asked again")
							assert.Equal(t, 1, w.count(ledger.ApprovalRequested))
						})
					})
				}
			}
		}
	}
}

func (w *world) as(e *delta.Engine) delta.Identity {
	i, err := e.Authenticate(w.Context(), "boss")
	require.NoError(w, err)
	return i
}

func (w *world) cancelBy(e *delta.Engine) error {
	t, err := e.Open(w.Context(), w.task.ID())
	if err != nil {
		return err
	}
	return t.Cancel(w.Context(), "enough")
}

// When the caller's own wait ends first, the call stays parked and runs once it is approved.
func TestDoWait_CallerGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		o := w.task.DoWait(ctx, call("risky", "a")).MustGet()
		require.Equal(t, action.ApprovalRequired, o.Code)
		require.NoError(t, w.engine.Approve(t.Context(), o.Failure.Approval(), w.boss, "fine"))
		stop := w.work(w.engine)
		time.Sleep(time.Second)
		stop()
		assert.EqualValues(t, 1, w.effects.Load())
	})
}

// A parked call that can no longer run ends, with the code of the gate that refuses it, and is not tried for ever.
func TestResume_RefusedCallsEnd(t *testing.T) {
	cases := map[string]struct {
		action string
		before func(w *world)
		code   action.Code
	}{
		"cancelled": {"risky", cancelTask, action.Cancelled},
		"closed":    {"risky", func(w *world) { require.NoError(w, w.task.Done(w.Context(), "done")) }, action.TaskClosed},
		"budget": {"risky", func(w *world) {
			for i := range 2 {
				require.True(w, w.do(call("act", fmt.Sprint(i))).OK())
			}
		}, action.BudgetExhausted},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, func(_ *world, g *delta.Goal) { g.Limit.Calls = action.Max(2) })
				parked := delta.Call{ID: "c", Action: c.action, Input: inputOf(In{ID: "a"})}
				o := w.do(parked)
				require.NoError(t, w.engine.Approve(t.Context(), o.Failure.Approval(), w.boss, "fine"))
				c.before(w)
				ran := w.effects.Load()
				stop := w.work(w.other())
				time.Sleep(time.Minute)
				stop()
				ready, err := w.shared.Queued(t.Context(), "clerk", "ready", txn.Queued{}, false, 9)
				require.NoError(t, err)
				assert.Empty(t, ready)
				again := w.do(parked)
				assert.Equal(t, c.code, again.Code)
				assert.True(t, again.Recorded)
				assert.Equal(t, ran, w.effects.Load())
			})
		})
	}
}

// A parked call whose risk rises before it resumes is asked about again and runs once, after the second approval.
func TestResume_RiskRose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(_ *world, g *delta.Goal) { g.Threshold = 1 })
		parked := delta.Call{ID: "c", Action: "look", Input: inputOf(In{ID: "a"})}
		first := w.do(parked).Failure.Approval()
		require.NotEmpty(t, first)
		w.does(fails)
		for i := range 8 { // each with an approval of its own
			o := w.do(call("look", fmt.Sprint(i)))
			require.NoError(t, w.engine.Approve(t.Context(), o.Failure.Approval(), w.boss, "fine"))
			w.do(call("look", fmt.Sprint(i)))
		}
		w.does(nil)
		ran := w.effects.Load()
		require.NoError(t, w.engine.Approve(t.Context(), first, w.boss, "fine"))
		stop := w.work(w.other())
		time.Sleep(10 * time.Second)
		assert.Equal(t, ran, w.effects.Load(), "more than the approver saw")
		pending, err := w.engine.Approvals(t.Context(), 20)
		require.NoError(t, err)
		require.Len(t, pending, 1)
		assert.NotEqual(t, first, pending[0].ID)
		require.NoError(t, w.engine.Approve(t.Context(), pending[0].ID, w.boss, "still fine"))
		time.Sleep(10 * time.Second)
		stop()
		assert.Equal(t, ran+1, w.effects.Load())
		o := w.do(parked)
		assert.Equal(t, action.OK, o.Code, "%v", o.Failure)
		assert.True(t, o.Recorded)
	})
}

// Two that wait for the same call without an id: each consent runs it once. Whichever wakes first runs the call that was
// parked; the other one takes over its answer where it was its own, and asks anew otherwise.
func TestDoWait_TwoOfTheSame(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		wait := func() action.Outcome { return w.task.DoWait(context.Background(), call("risky", "a")).MustGet() }
		first, second := background(wait), background(wait)
		given := int64(0)
		for range 3 {
			time.Sleep(5 * time.Second)
			assert.Equal(t, given, w.effects.Load())
			pending, err := w.engine.Approvals(t.Context(), 9)
			require.NoError(t, err)
			for _, a := range pending {
				require.NoError(t, w.engine.Approve(t.Context(), a.ID, w.boss, "fine"))
				given++
			}
		}
		assert.True(t, first().OK())
		assert.True(t, second().OK())
		assert.Equal(t, given, w.effects.Load())
		assert.EqualValues(t, w.count(ledger.ApprovalRequested), given)
	})
}
