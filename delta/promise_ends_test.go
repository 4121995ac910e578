package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

type typedNil struct{}

func (*typedNil) Error() string { return "typed nil" }

// zero returns the zero result, which the result library takes for an Ok: of a contract that it breaks it is none.
func zero() (r mo.Result[Out]) { return r } //zeroresult:allow what is tested is that the zero result of a contract it breaks is no Ok

func TestI10_OnlyAnExplicitOkCounts(t *testing.T) {
	cases := []struct {
		name string
		f    func(*delta.Context, In) mo.Result[Out]
		code action.Code
	}{
		{"Ok", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"x"}) }, action.OK},
		{"error", fails, action.Failed},
		{"nil error", func(*delta.Context, In) mo.Result[Out] { return mo.Err[Out](nil) }, action.Failed},
		{"typed nil error", func(*delta.Context, In) mo.Result[Out] { return mo.Err[Out]((*typedNil)(nil)) }, action.Failed},
		{"a failure of its own that says OK", func(*delta.Context, In) mo.Result[Out] {
			return mo.Err[Out](&action.Failure{Code: action.OK, Executed: action.No})
		}, action.Failed},
		{"zero result", func(*delta.Context, In) mo.Result[Out] { return zero() }, action.OutputInvalid},
		{"panic", func(*delta.Context, In) mo.Result[Out] { panic("x") }, action.Panicked},
		{"panic with nil", func(*delta.Context, In) mo.Result[Out] { panic(nil) }, action.Panicked},
		{"panic with an error", func(*delta.Context, In) mo.Result[Out] { panic(errors.New("x")) }, action.Panicked},
		{"runtime error", func(_ *delta.Context, in In) mo.Result[Out] { return mo.Ok(Out{in.ID[5:]}) }, action.Panicked},
		{"Goexit", func(*delta.Context, In) mo.Result[Out] { runtime.Goexit(); return mo.Ok(Out{"x"}) }, action.Panicked},
		{"panic on the way out of an Ok", func(*delta.Context, In) mo.Result[Out] {
			defer panic("x")
			return mo.Ok(Out{"x"})
		}, action.Panicked},
		//zeroresult:allow a function that recovers and returns nothing is what is tested
		{"recovered panic that returns nothing", func(*delta.Context, In) (r mo.Result[Out]) {
			defer func() { _ = recover() }()
			panic("x")
		}, action.OutputInvalid},
		{"broken output", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{}) }, action.OutputInvalid},
		{"timeout", obeys, action.StartedUnknown},
		{"Ok after the timeout", func(ctx *delta.Context, _ In) mo.Result[Out] {
			<-ctx.Done()
			time.Sleep(time.Millisecond)
			return mo.Ok(Out{"x"})
		}, action.StartedUnknown},
		{"unknown", func(*delta.Context, In) mo.Result[Out] { return mo.Err[Out](action.Unknown(nil)) }, action.StartedUnknown},
	}
	for _, c := range cases {
		for _, p := range paths {
			t.Run(c.name+"/"+string(p), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t)
					w.does(c.f)
					o := w.make(p, call("act", "a"))
					assert.Equal(t, c.code, o.Code, "%v", o.Failure)
					assert.Equal(t, c.code == action.OK, w.offered("then-act"))
					assert.Equal(t, c.code == action.OK, o.OK())
				})
			})
		}
	}
}

// A function that was told to stop and says so ends the same whoever is quicker: of its own clock or of its function.
func TestI10_TimeoutIsNoRace(t *testing.T) {
	for range 50 {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.does(obeys)
			assert.Equal(t, action.Timeout, w.do(call("look", "a")).Code)
		})
	}
}

// Outputs that cannot be written, or that break the edge, are not Ok.
func TestI10_Outputs(t *testing.T) {
	raw := map[string]struct {
		out  action.Output
		code action.Code
	}{
		"value": {action.Output(`{"a":[1,null]}`), action.OK}, "null": {action.Output(`null`), action.OK},
		"nothing": {nil, action.OutputInvalid}, "not JSON": {action.Output(`{`), action.OutputInvalid},
		"duplicate key": {action.Output(`{"a":1,"a":2}`), action.OutputInvalid}, "two values": {action.Output(`1 2`), action.OutputInvalid},
		"too deep": {action.Output(strings.Repeat("[", 100) + strings.Repeat("]", 100)), action.OutputInvalid},
		"1e999":    {action.Output(`1e999`), action.OutputInvalid},
	}
	for name, c := range raw {
		a := delta.DefineRaw("raw", []byte(`{"type":"object"}`), func(*delta.Context, action.Input) mo.Result[action.Output] {
			return mo.Ok(c.out)
		}).Describe("raw").Risk(1).MustBuild()
		w := newWorld(t, func(w *world, g *delta.Goal) {
			w.agent = delta.NewAgent("clerk").Grant(a).MustBuild()
			g.Agent = w.agent
		})
		o := w.do(delta.Call{Action: "raw"})
		assert.Equal(t, c.code, o.Code, "%s: %v", name, o.Failure)
	}
	nan := delta.Define("nan", func(*delta.Context, In) mo.Result[struct{ F float64 }] {
		return mo.Ok(struct{ F float64 }{math.NaN()})
	}).Describe("nan").Risk(1).MustBuild()
	w := newWorld(t, func(w *world, g *delta.Goal) {
		w.agent = delta.NewAgent("clerk").Grant(nan).MustBuild()
		g.Agent = w.agent
	})
	assert.Equal(t, action.OutputInvalid, w.do(call("nan", "a")).Code)
}

// TestI11_HooksOnlyObserve: hooks that change all they are shown, fail, panic and hang, around every end.
func TestI11_HooksOnlyObserve(t *testing.T) {
	spoil := func(v action.View) {
		for i := range v.Input {
			v.Input[i] = 'x'
		}
		if v.Outcome != nil {
			v.Outcome.Code = map[bool]action.Code{true: action.Failed, false: action.OK}[v.Outcome.Code == action.OK]
			for i := range v.Outcome.Output {
				v.Outcome.Output[i] = 'x'
			}
			if v.Outcome.Failure != nil {
				v.Outcome.Failure.Code, v.Outcome.Failure.Details = action.OK, nil
			}
		}
	}
	for name, end := range map[string]func(error) error{
		"well": func(error) error { return nil }, "with an error": func(err error) error { return err }, "with a panic": func(error) error { panic("x") },
	} {
		for _, c := range []struct {
			f    func(*delta.Context, In) mo.Result[Out]
			code action.Code
			hook string
		}{
			{func(_ *delta.Context, in In) mo.Result[Out] { return mo.Ok(Out{in.ID}) }, action.OK, "after"},
			{fails, action.Failed, "onError"},
			{func(*delta.Context, In) mo.Result[Out] { panic("x") }, action.Panicked, "onError"},
			{func(*delta.Context, In) mo.Result[Out] { return mo.Err[Out](action.Unknown(nil)) }, action.StartedUnknown, "onError"},
		} {
			t.Run(fmt.Sprint(name, " after ", c.code), func(t *testing.T) {
				var mu sync.Mutex
				var order []string
				watch := func(which string, ends func(error) error) hooks.Func {
					return func(_ context.Context, v action.View) error {
						mu.Lock()
						order = append(order, which)
						mu.Unlock()
						if !json.Valid(v.Input) {
							t.Error("a hook sees what another one did")
						}
						spoil(v)
						return ends(errors.New("the hook fails"))
					}
				}
				nice := func(error) error { return nil }
				h := hooks.Hooks{Before: watch("before", nice), After: watch("after", end), OnError: watch("onError", end)}
				w := newWorld(t, func(w *world, g *delta.Goal) {
					w.cfg.Hooks = h
					a := w.keep(w.define("hooked").Hooks(h).Hooks(h))
					w.agent = delta.NewAgent("clerk").Grant(a).Actions(w.acts["forbidden"]).MustBuild()
					g.Agent = w.agent
				})
				w.does(c.f)
				o := w.do(call("hooked", "abc"))
				require.Equal(t, c.code, o.Code)
				if c.code == action.OK {
					assert.JSONEq(t, `{"said":"abc"}`, string(o.Output))
				} else {
					assert.Equal(t, c.code, o.Failure.Code)
				}
				assert.Equal(t, []string{"before", "before", "before", c.hook, c.hook, c.hook}, order)
				for _, e := range w.events() {
					if e.Type == ledger.Settled {
						assert.Equal(t, c.code, e.Code)
					}
				}
				assert.Equal(t, name != "well", w.count(ledger.HookFailed) == 1)
				order = nil
				assert.Equal(t, action.Denied, w.do(call("forbidden", "a")).Code)
				assert.Equal(t, action.InputInvalid, w.do(call("hooked", "")).Code)
				assert.Empty(t, order, "hooks authorise nothing and see no refused call")
			})
		}
	}
}

// TestI12_RecordedEndsAbsorb: whatever ended a call that has an id, the same call gets the same answer and runs no more.
func TestI12_RecordedEndsAbsorb(t *testing.T) {
	ends := map[string]struct {
		action string
		f      func(*delta.Context, In) mo.Result[Out]
		before hooks.Func
		code   action.Code
	}{
		"ok": {"act", nil, nil, action.OK}, "failed": {"act", fails, nil, action.Failed}, "timeout": {"look", obeys, nil, action.Timeout},
		"unknown": {"act", obeys, nil, action.StartedUnknown}, "hook": {"checked", nil, func(context.Context, action.View) error { return errors.New("no") }, action.HookFailed},
		"output": {"act", func(*delta.Context, In) mo.Result[Out] { return zero() }, nil, action.OutputInvalid},
	}
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.does(c.f)
				w.before = c.before
				first := delta.Call{ID: "c", Action: c.action, Input: inputOf(In{ID: "a"})}
				o := w.do(first)
				require.Equal(t, c.code, o.Code)
				ran, books := w.effects.Load(), w.books()
				w.does(nil)
				w.before = nil
				for _, e := range []*delta.Engine{w.engine, w.other()} {
					task, err := e.Open(t.Context(), w.task.ID())
					require.NoError(t, err)
					again := task.Do(t.Context(), first).MustGet()
					assert.True(t, again.Recorded)
					again.Recorded = false
					want, _ := json.Marshal(o)
					got, _ := json.Marshal(again)
					assert.JSONEq(t, string(want), string(got), "the same answer")
				}
				assert.Equal(t, ran, w.effects.Load())
				after := w.books()
				assert.Equal(t, books.events, after.events, "nothing is written")
				assert.Equal(t, books.budget, after.budget)
			})
		})
	}
}

func TestI12_EndedTasksAndApprovalsStayEnded(t *testing.T) {
	ctx := context.Background()
	for _, end := range []string{"cancelled", "closed"} {
		w := newWorld(t)
		id := w.do(call("risky", "a")).Failure.Approval()
		rejected := w.do(call("risky", "b")).Failure.Approval()
		require.NoError(t, w.engine.Reject(ctx, rejected, w.boss, "no"))
		assert.Error(t, w.engine.Approve(ctx, rejected, w.boss, "yes"))
		assert.Error(t, w.engine.Revoke(ctx, rejected, w.boss, "yes"))
		assert.Equal(t, action.ApprovalRejected, w.do(call("risky", "b")).Code)
		if end == "cancelled" {
			require.NoError(t, w.task.Cancel(ctx, "enough"))
			assert.NoError(t, w.task.Cancel(ctx, "again"), "it is what was asked for")
			assert.Error(t, w.task.Done(ctx, "done"))
		} else {
			require.NoError(t, w.task.Done(ctx, "done"))
			assert.NoError(t, w.task.Done(ctx, "again"))
			assert.Error(t, w.task.Cancel(ctx, "cancel"))
		}
		assert.Error(t, w.task.SetThreshold(ctx, w.boss, 5, "more"))
		_, err := w.engine.Start(ctx, delta.Goal{ID: w.name, Agent: w.agent})
		assert.Error(t, err, "an id is not used twice")
		_ = w.engine.Approve(ctx, id, w.boss, "fine")
		for _, a := range []string{"act", "risky", "look"} {
			o := w.do(call(a, "a"))
			assert.Equal(t, action.No, o.Code.Info().Executed, "%s: %s", a, o.Code)
		}
		status, _, err := w.task.Status(ctx)
		require.NoError(t, err)
		assert.Equal(t, end, status)
		assert.Zero(t, w.effects.Load())
		offer, err := w.task.Offer(ctx)
		require.NoError(t, err)
		assert.Empty(t, offer.Actions)
	}
}

// TestI13_BeliefsMoveOnExecutedOutcomesOnly: any sequence of calls, refused, cancelled and executed ones, moves trust and
// risk exactly by its executed Ok and Err.
func TestI13_BeliefsMoveOnExecutedOutcomesOnly(t *testing.T) {
	steps := map[string]struct {
		call    delta.Call
		ok, err int64
	}{
		"ok": {call("look", "ok"), 1, 0}, "err": {call("look", "err"), 0, 1}, "panic": {call("look", "panic"), 0, 1},
		"unknown": {call("look", "unknown"), 0, 0}, "cancelled": {call("look", "wait"), 0, 0}, "refused": {call("then-act", "x"), 0, 0},
		"invalid": {call("look", ""), 0, 0}, "denied": {call("forbidden", "a"), 0, 0}, "parked": {call("risky", "a"), 0, 0},
		"output": {call("look", "zero"), 0, 1}, "retried": {call("retried", "err"), 0, 3}, "nothing": {call("nothing", "a"), 0, 0},
	}
	names := []string{"ok", "err", "panic", "unknown", "cancelled", "refused", "invalid", "denied", "parked", "output", "retried", "nothing"}
	var cancel context.CancelFunc
	behave := func(ctx *delta.Context, in In) mo.Result[Out] {
		switch in.ID {
		case "err":
			return fails(ctx, in)
		case "panic":
			panic("x")
		case "unknown":
			return mo.Err[Out](action.Unknown(nil))
		case "wait":
			cancel()
			return obeys(ctx, in)
		case "zero":
			return zero()
		}
		return mo.Ok(Out{"ok"})
	}
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, func(_ *world, g *delta.Goal) { g.Threshold = 5 })
		w.does(behave)
		before := w.belief(r)
		for range rapid.IntRange(1, 6).Draw(r, "calls") {
			name := rapid.SampledFrom(names).Draw(r, "step")
			s := steps[name]
			var ctx context.Context
			ctx, cancel = context.WithCancel(context.Background())
			o, err := w.task.Do(ctx, s.call).Get()
			cancel()
			require.NoError(r, err)
			after := w.belief(r)
			if o.Code.Info().Executed == action.No {
				s.ok, s.err = 0, 0
			}
			require.Equal(r, []int64{before.Ok + s.ok, before.Err + s.err}, []int64{after.Ok, after.Err}, "%s: %s", name, o.Code)
			if s.ok+s.err == 0 {
				require.Equal(r, before.Trust, after.Trust, name)
			}
			before = after
		}
	})
}

// belief returns the agent's trust after checking that every number people see is finite and in its range.
func (w *world) belief(tb rapid.TB) delta.Trust {
	trust, err := w.engine.Trust(context.Background(), "clerk")
	require.NoError(tb, err)
	for _, x := range []float64{trust.Score, trust.Lower, trust.Upper} {
		require.True(tb, x >= 0 && x <= 1, "%+v", trust)
	}
	risks, err := w.engine.Risks(context.Background(), "clerk")
	require.NoError(tb, err)
	for _, r := range risks {
		require.True(tb, r.P > 0 && r.P < 1 && r.Lo <= r.Hi && r.Lo >= 0 && r.Hi <= 1, "%+v", r)
		require.True(tb, r.Effective >= float64(r.Declared) && r.Effective <= 5, "%+v", r)
	}
	return trust
}

func TestI13_AFailureCostsMoreThanASuccessEarns(t *testing.T) {
	w := newWorld(t, func(_ *world, g *delta.Goal) { g.Threshold = 5 })
	for i := range 12 {
		now := w.belief(t)
		w.does(nil)
		require.True(t, w.do(call("look", fmt.Sprint("ok", i))).OK())
		up := w.belief(t)
		w2 := newWorld(t, func(_ *world, g *delta.Goal) { g.Threshold = 5 })
		for j := range i {
			require.True(t, w2.do(call("look", fmt.Sprint("ok", j))).OK())
		}
		w2.does(fails)
		w2.do(call("look", "err"))
		down := w2.belief(t)
		assert.Greater(t, up.Score, now.Score)
		assert.Greater(t, now.Score-down.Score, up.Score-now.Score, "after %d successes", i)
	}
}

// Two engines fold the same outcomes: what one sees does not depend on who ran the call.
func TestI13_TrustIsSharedByEngines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		other := w.other()
		there, err := other.Open(t.Context(), w.task.ID())
		require.NoError(t, err)
		for i := range 6 {
			task := []*delta.Task{w.task, there}[i%2]
			require.True(t, task.Do(t.Context(), call("look", fmt.Sprint(i))).MustGet().OK())
		}
		synctest.Wait()
		a, err := w.engine.Trust(t.Context(), "clerk")
		require.NoError(t, err)
		b, err := other.Trust(t.Context(), "clerk")
		require.NoError(t, err)
		assert.EqualValues(t, 6, a.Ok)
		assert.Equal(t, a, b)
	})
}
