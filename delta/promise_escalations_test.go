package delta_test

import (
	"context"
	"fmt"
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
)

// trouble is what brings a task before a person.
var trouble = []struct {
	concern action.Concern
	name    string
	setup   change
	play    func(w *world)
}{
	{action.ConcernFailure, "failures in a row", func(w *world, g *delta.Goal) { w.cfg.Escalate.Failures, g.Threshold = 3, 5 }, func(w *world) {
		w.does(fails)
		for i := range 3 {
			require.Equal(w, action.Failed, w.do(call("act", fmt.Sprint(i))).Code)
		}
	}},
	{action.ConcernPolicy, "denials in a row", func(w *world, _ *delta.Goal) { w.cfg.Escalate.Denials = 3 }, func(w *world) {
		for i := range 3 {
			require.Equal(w, action.Denied, w.do(call("forbidden", fmt.Sprint(i))).Code)
		}
	}},
	{action.ConcernRisk, "above the ceiling", func(w *world, g *delta.Goal) { w.cfg.Escalate.Risky, g.Ceiling = 3, 4 }, func(w *world) {
		for i := range 3 {
			require.Equal(w, action.RiskCeiling, w.do(call("risky", fmt.Sprint(i))).Code)
		}
	}},
	{action.ConcernRisk, "asked again and again", func(w *world, _ *delta.Goal) { w.cfg.Escalate.Asked = 3 }, func(w *world) {
		for i := range 3 {
			require.Equal(w, action.ApprovalRequired, w.do(call("risky", fmt.Sprint(i))).Code)
		}
	}},
	{action.ConcernLoop, "the same again", func(w *world, _ *delta.Goal) { w.cfg.Escalate.Loop = 4 }, func(w *world) {
		for range 6 { // the first establishes a fact
			w.do(call("look", "a"))
		}
	}},
	{action.ConcernBudget, "much for little", func(_ *world, g *delta.Goal) { g.Limit.Calls = action.Max(20) }, func(w *world) {
		for range 8 { // one fact for eight calls
			require.True(w, w.do(call("act", "a")).OK())
		}
		_, err := w.task.Offer(w.Context())
		require.NoError(w, err)
	}},
	{action.ConcernSurprise, "a change for the worse", func(w *world, _ *delta.Goal) { w.cfg.Escalate.Surprise = true }, func(w *world) {
		for i := range 30 {
			require.True(w, w.do(call("act", fmt.Sprint(i))).OK())
		}
		w.does(fails)
		for i := range 9 {
			w.do(call("act", fmt.Sprint("f", i)))
		}
	}},
	{action.ConcernRisk, "by hand", nil, func(w *world) {
		_, err := w.task.Escalate(w.Context(), action.ConcernRisk, "I do not like it")
		require.NoError(w, err)
	}},
	{action.ConcernSurprise, "by a function", nil, func(w *world) {
		w.does(func(ctx *delta.Context, _ In) mo.Result[Out] {
			if err := ctx.Escalate(action.ConcernSurprise, "the shelf is empty"); err != nil {
				return mo.Err[Out](err)
			}
			return mo.Ok(Out{"done"})
		})
		require.True(w, w.do(call("act", "a")).OK(), "the call itself goes on")
		w.does(nil)
	}},
}

// Every concern pauses the task: nothing begins, people see why, and go on or end it; never whoever requested it.
func TestEscalation_PausesUntilResolved(t *testing.T) {
	for _, c := range trouble {
		for _, goOn := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%s/resume %v", c.concern, c.name, goOn), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, func(w *world, g *delta.Goal) {
						g.Requester = "bo"
						if c.setup != nil {
							c.setup(w, g)
						}
					})
					c.play(w)
					status, reason, err := w.task.Status(t.Context())
					require.NoError(t, err)
					require.Equal(t, "paused", status)
					assert.Contains(t, reason, string(c.concern)+": ")
					elsewhere := w.other()
					standing, err := elsewhere.Escalations(t.Context(), 9)
					require.NoError(t, err)
					require.Len(t, standing, 1)
					esc := standing[0]
					assert.Equal(t, c.concern, esc.Concern)
					assert.Equal(t, w.task.ID(), esc.Task)
					assert.True(t, esc.Paused)

					ran := w.effects.Load()
					o := w.do(call("look", "x"))
					assert.Equal(t, action.TaskPaused, o.Code)
					assert.True(t, o.Failure.Retryable)
					assert.Equal(t, ran, w.effects.Load())
					offer, err := w.task.Offer(t.Context())
					require.NoError(t, err)
					assert.Empty(t, offer.Actions)
					assert.Contains(t, offer.Guidance, "The task is paused until a person has looked at it: nothing can be done now.")

					w.does(nil)
					bo, err := w.engine.Authenticate(t.Context(), "bo")
					require.NoError(t, err)
					clerk, err := w.engine.Authenticate(t.Context(), "clerk")
					require.NoError(t, err)
					for _, nobody := range []delta.Identity{bo, clerk, {}} {
						assert.Error(t, w.engine.ResumeTask(t.Context(), esc.ID, nobody, "go"))
						assert.Error(t, w.engine.EndTask(t.Context(), esc.ID, nobody, "go"))
					}
					resolve, want := elsewhere.ResumeTask, action.OK
					if !goOn {
						resolve, want = elsewhere.EndTask, action.Cancelled
					}
					require.NoError(t, resolve(t.Context(), esc.ID, w.as(elsewhere), "I looked"))
					assert.Error(t, resolve(t.Context(), esc.ID, w.as(elsewhere), "again"), "once")
					again := w.do(call("look", "y"))
					assert.Equal(t, want, again.Code, "%v", again.Failure)
					standing, err = elsewhere.Escalations(t.Context(), 9)
					require.NoError(t, err)
					assert.Empty(t, standing)

					raised, resolved := w.only(ledger.EscalationRaised), w.only(ledger.EscalationResolved)
					assert.Equal(t, esc.ID, raised.Escalation)
					assert.Equal(t, string(c.concern), raised.Text)
					assert.Equal(t, "boss", resolved.Identity)
					assert.Equal(t, "I looked", resolved.Reason)
				})
			})
		}
	}
}

// only returns the one event of a type.
func (w *world) only(kind ledger.Type) (found ledger.Event) {
	w.Helper()
	n := 0
	for _, e := range w.events() {
		if e.Type == kind {
			found, n = e, n+1
		}
	}
	require.Equal(w, 1, n, "%s", kind)
	return found
}

// Where nobody can be asked nothing is paused: the event is all.
func TestEscalation_NobodyToAsk(t *testing.T) {
	ways := map[string]change{
		"no approvers": func(_ *world, g *delta.Goal) { g.Approvers = nil },
		"observe mode": func(w *world, _ *delta.Goal) { w.cfg.Observe = true },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(w *world, g *delta.Goal) {
				w.cfg.Escalate.Failures, g.Threshold = 2, 5
				way(w, g)
			})
			w.does(fails)
			for i := range 3 {
				assert.Equal(t, action.Failed, w.do(call("act", fmt.Sprint(i))).Code)
			}
			status, _, err := w.task.Status(t.Context())
			require.NoError(t, err)
			assert.Equal(t, "running", status)
			assert.Equal(t, 1, w.count(ledger.EscalationRaised), "counted anew from there")
			esc, err := w.task.Escalate(t.Context(), action.ConcernRisk, "hm")
			require.NoError(t, err)
			assert.False(t, esc.Paused)
		})
	}
}

// An operator is somebody to ask, of tasks without approvers too.
func TestEscalation_Operators(t *testing.T) {
	w := newWorld(t, func(w *world, g *delta.Goal) { g.Approvers, w.cfg.Operators = nil, []string{"ops"} })
	esc, err := w.task.Escalate(t.Context(), action.ConcernRisk, "hm")
	require.NoError(t, err)
	require.True(t, esc.Paused)
	assert.Error(t, w.engine.ResumeTask(t.Context(), esc.ID, w.boss, "I am no operator"))
	ops, err := w.engine.Authenticate(t.Context(), "ops")
	require.NoError(t, err)
	require.NoError(t, w.engine.ResumeTask(t.Context(), esc.ID, ops, "fine"))
	assert.True(t, w.do(call("act", "a")).OK())
}

// What runs finishes, what waits for a person stays, and runs once the task goes on.
func TestEscalation_RunningFinishesParkedStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		parked := w.do(call("risky", "p"))
		hold := make(chan struct{})
		w.does(func(*delta.Context, In) mo.Result[Out] { <-hold; return mo.Ok(Out{"done"}) })
		running := background(func() action.Outcome { return w.task.Do(context.Background(), call("act", "r")).MustGet() })
		synctest.Wait()
		esc, err := w.task.Escalate(t.Context(), action.ConcernRisk, "hm")
		require.NoError(t, err)
		close(hold)
		assert.True(t, running().OK(), "what runs finishes")
		stop := w.work(w.other())
		defer stop()
		require.NoError(t, w.engine.Approve(t.Context(), parked.Failure.Approval(), w.boss, "fine"), "may be decided meanwhile")
		time.Sleep(time.Minute)
		assert.EqualValues(t, 1, w.effects.Load(), "but does not run")
		require.NoError(t, w.engine.ResumeTask(t.Context(), esc.ID, w.boss, "go"))
		time.Sleep(time.Minute)
		assert.EqualValues(t, 2, w.effects.Load())
		out, ended, err := w.task.Outcome(t.Context(), parked.Intent)
		require.NoError(t, err)
		assert.True(t, ended && out.OK())
	})
}

// Who waits for people waits for this too; who does not ends with the reason.
func TestEscalation_RunAndDoWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		esc, err := w.task.Escalate(t.Context(), action.ConcernRisk, "hm")
		require.NoError(t, err)
		r := w.engine.Run(t.Context(), w.task, script(call("act", "a"))).MustGet()
		assert.Equal(t, delta.RunPaused, r.Ended)
		assert.Contains(t, r.Why, "hm")
		waited := background(func() action.Outcome { return w.task.DoWait(context.Background(), call("act", "b")).MustGet() })
		ran := background(func() delta.Report {
			return w.engine.RunWithin(context.Background(), w.task, script(call("act", "c")), delta.Bounds{Wait: true}).MustGet()
		})
		risky := background(func() action.Outcome { return w.task.DoWait(context.Background(), call("risky", "d")).MustGet() })
		time.Sleep(time.Minute)
		assert.Zero(t, w.effects.Load())
		require.NoError(t, w.engine.ResumeTask(t.Context(), esc.ID, w.boss, "go"))
		assert.True(t, waited().OK())
		assert.Equal(t, delta.RunDone, ran().Ended)
		time.Sleep(time.Second)
		pending, err := w.engine.Approvals(t.Context(), 9)
		require.NoError(t, err)
		require.Len(t, pending, 1, "only now is a person asked about the other")
		require.NoError(t, w.engine.Approve(t.Context(), pending[0].ID, w.boss, "fine"))
		assert.True(t, risky().OK())

		_, err = w.task.Escalate(t.Context(), action.ConcernRisk, "hm")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.Equal(t, action.TaskPaused, w.task.DoWait(ctx, call("act", "e")).MustGet().Code)
	})
}

// Nobody resolves it: the task stays paused, or is closed where that is configured. Waiting too long is never consent.
func TestEscalation_Unresolved(t *testing.T) {
	for _, close := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprint(close), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, func(w *world, _ *delta.Goal) { w.cfg.Escalate.CloseAfter = close })
				stop := w.work(w.engine)
				defer stop()
				esc, err := w.task.Escalate(t.Context(), action.ConcernRisk, "hm")
				require.NoError(t, err)
				assert.Equal(t, close > 0, !esc.Closes.IsZero())
				time.Sleep(59 * time.Minute)
				status, _, err := w.task.Status(t.Context())
				require.NoError(t, err)
				assert.Equal(t, "paused", status)
				time.Sleep(24 * time.Hour)
				status, reason, err := w.task.Status(t.Context())
				require.NoError(t, err)
				if close == 0 {
					assert.Equal(t, "paused", status)
					return
				}
				assert.Equal(t, "closed", status)
				assert.Contains(t, reason, "nobody resolved its escalation in time")
			})
		})
	}
}

// Ending a task interrupts what runs, and a resumed one keeps its deadline.
func TestEscalation_EndInterruptsAndDeadlineHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(w *world, g *delta.Goal) {
			w.cfg.Escalate.CloseAfter, g.Deadline = time.Hour, time.Now().Add(2*time.Hour)
		})
		stop := w.work(w.engine)
		defer stop()
		esc, err := w.task.Escalate(t.Context(), action.ConcernRisk, "hm")
		require.NoError(t, err)
		require.NoError(t, w.engine.ResumeTask(t.Context(), esc.ID, w.boss, "go"))
		time.Sleep(90 * time.Minute)
		w.does(obeys)
		out := background(func() action.Outcome { return w.task.Do(context.Background(), call("look", "a")).MustGet() })
		synctest.Wait()
		esc, err = w.task.Escalate(t.Context(), action.ConcernRisk, "hm")
		require.NoError(t, err)
		require.NoError(t, w.engine.EndTask(t.Context(), esc.ID, w.boss, "no more"))
		assert.Equal(t, action.Interrupted, out().Code)
	})
}

// Calls that fail at once raise one escalation at most, and lose no end.
func TestEscalation_ConcurrentFailures(t *testing.T) {
	w := newWorld(t, func(w *world, _ *delta.Goal) { w.cfg.Escalate.Failures = 2 })
	var gate, all sync.WaitGroup
	gate.Add(8)
	w.does(func(ctx *delta.Context, in In) mo.Result[Out] {
		gate.Done()
		gate.Wait()
		return fails(ctx, in)
	})
	for i := range 8 {
		all.Go(func() { assert.Equal(t, action.Failed, w.do(call("act", fmt.Sprint(i))).Code) })
	}
	all.Wait()
	assert.Equal(t, 8, w.count(ledger.Settled))
	assert.LessOrEqual(t, w.count(ledger.EscalationRaised), 1, "calls that end at the same instant may count as one")
}
