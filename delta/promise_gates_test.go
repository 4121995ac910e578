package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/internal/cputime"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/policy"
)

var paths = []path{byDo, typed, byWait, byRun}

var permitAll = policy.Func(func(policy.Request) (policy.Decision, error) { return policy.Decision{Permit: true}, nil })

// An action of another agent of the same engine does not exist for this one, whatever a policy permits.
func TestI01_ActionOfAnotherAgentNeverRuns(t *testing.T) {
	w := newWorld(t, func(w *world, _ *delta.Goal) { w.cfg.Policy = permitAll })
	foreign := w.define("drop-database").MustBuild()
	require.NoError(t, w.engine.Register(delta.NewAgent("root").Grant(foreign).MustBuild()))
	for _, p := range paths {
		o := w.make(p, call("drop-database", "a"))
		assert.Equal(t, action.ActionUnknown, o.Code, p)
	}
	assert.Zero(t, w.effects.Load())
}

// A typed call reaches neither an action that was not granted nor, of the same name, the one that was.
func TestI01_NamesakeNeverRuns(t *testing.T) {
	w := newWorld(t)
	var strange atomic.Int64
	namesake := delta.Define("act", func(*delta.Context, In) mo.Result[Out] {
		strange.Add(1)
		return mo.Ok(Out{"strange"})
	}).Describe("another").MustBuild()
	_, err := namesake.Do(t.Context(), w.task, In{ID: "a"}).Get()
	assert.Equal(t, action.ActionUnknown, action.FailureOf(err).Code)
	assert.ErrorContains(t, err, "another action named")
	assert.Zero(t, strange.Load())
	assert.Zero(t, w.effects.Load())
	assert.Equal(t, 1, w.count(ledger.Refused))
}

// badInputs are refused before any schema library and any user code sees them.
var badInputs = []struct {
	name, input string
	code        action.Code
}{
	{"invalid UTF-8", "{\"id\":\"a\xff\"}", action.InputMalformed},
	{"lone surrogate", `{"id":"\ud800"}`, action.InputMalformed},
	{"lone low surrogate", `{"id":"\udc00x"}`, action.InputMalformed},
	{"duplicate key", `{"id":"a","id":"a"}`, action.InputMalformed},
	{"duplicate key, escaped", `{"id":"a","\u0069d":"b"}`, action.InputMalformed},
	{"duplicate key, nested", `{"id":"a","x":{"k":1,"k":2}}`, action.InputMalformed},
	{"case variant", `{"id":"a","ID":"b"}`, action.InputMalformed},
	{"case variant alone", `{"Id":"a"}`, action.InputMalformed},
	{"exponent of seven digits", `{"id":"a","x":1e1000001}`, action.InputMalformed},
	{"beyond float64", `{"id":"a","x":99999e308}`, action.InputMalformed},
	{"rounds to zero", `{"id":"a","x":1e-999}`, action.InputMalformed},
	{"a million digits", `{"id":"a","x":` + strings.Repeat("9", 1_000_000) + `}`, action.InputMalformed},
	{"a number of 65 characters", `{"id":"a","x":` + strings.Repeat("9", 65) + `}`, action.InputMalformed},
	{"100,000 nested arrays", `{"id":"a","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, action.InputMalformed},
	{"depth 65", `{"id":"a","x":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`, action.InputMalformed},
	{"10 MiB", `{"id":"` + strings.Repeat("a", 10<<20) + `"}`, action.InputMalformed},
	{"trailing data", `{"id":"a"} {}`, action.InputMalformed},
	{"not JSON", `id=a`, action.InputMalformed},
	{"cut short", `{"id":"a"`, action.InputMalformed},
	{"only space", ` `, action.InputMalformed},
	{"null", `null`, action.InputInvalid},
	{"array", `["a"]`, action.InputInvalid},
	{"nothing", ``, action.InputInvalid},
	{"wrong type", `{"id":1}`, action.InputInvalid},
	{"unknown field", `{"id":"a","extra":true}`, action.InputInvalid},
	{"too short", `{"id":""}`, action.InputInvalid},
}

const probeSchema = `{"type":"object","properties":{"id":{"type":"string","minLength":1},"x":{}},"required":["id"],"additionalProperties":false}`

func TestI02_NoUserCodeSeesBadInput(t *testing.T) {
	var saw atomic.Int64
	see := func() { saw.Add(1) }
	hook := func(context.Context, action.View) error { see(); return nil }
	all := hooks.Hooks{Before: hook, After: hook, OnError: hook}
	probe := delta.DefineRaw("probe", []byte(probeSchema), func(*delta.Context, action.Input) mo.Result[action.Output] {
		see()
		return mo.Ok(action.Output(`1`))
	}).Describe("probe").Risk(1).
		RiskWhen("any", func(action.Input) bool { see(); return false }, 2).
		IdempotencyKey(func(action.Input) string { see(); return "k" }).Hooks(all).MustBuild()
	w := newWorld(t, func(w *world, g *delta.Goal) {
		w.agent = delta.NewAgent("clerk").Grant(probe).MustBuild()
		g.Agent = w.agent
		w.cfg.Hooks = all
		w.cfg.Policy = policy.Func(func(r policy.Request) (policy.Decision, error) {
			if !r.AnyInput {
				see()
			}
			return policy.Decision{}, nil
		})
	})
	for _, bad := range badInputs {
		for _, p := range []path{byDo, byWait, byRun} {
			started := cputime.Now()
			o := w.make(p, delta.Call{Action: "probe", Input: json.RawMessage(bad.input)})
			assert.Equal(t, bad.code, o.Code, "%s by %s: %v", bad.name, p, o.Failure)
			assert.Less(t, len(o.Failure.Error()), 1000, bad.name)
			assert.Less(t, cputime.Now()-started, 2*time.Second, bad.name)
		}
	}
	assert.Zero(t, saw.Load(), "user code saw bad input")
	require.Equal(t, action.OK, w.do(delta.Call{Action: "probe", Input: json.RawMessage(`{"id":"a"}`)}).Code)
	assert.EqualValues(t, 8, saw.Load(), "rule, policy, key, function, and before and after of both")
}

// What a typed call cannot write as JSON that fits never gets to user code.
func TestI02_TypedInputThatCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	bad := delta.DefineRaw("act", []byte(probeSchema), func(*delta.Context, action.Input) mo.Result[action.Output] {
		return mo.Ok(action.Output(`1`))
	}).Describe("x").MustBuild()
	task, err := w.engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("raw").Grant(bad).MustBuild()})
	require.NoError(t, err)
	_, err = bad.Do(t.Context(), task, action.Input{}).Get() // marshals to null
	assert.Equal(t, action.InputInvalid, action.FailureOf(err).Code)
	assert.Zero(t, w.effects.Load())
}

func TestI04_NothingPermitsByItself(t *testing.T) {
	broken := errors.New("no attribute")
	cases := []struct {
		name, action string
		policy       policy.Policy
		code         action.Code
	}{
		{"registered and listed only", "forbidden", nil, action.Denied},
		{"granted", "act", nil, action.OK},
		{"permitted by policy only", "forbidden", permitAll, action.OK},
		{"policy says nothing of it", "forbidden", policy.Func(func(policy.Request) (policy.Decision, error) { return policy.Decision{}, nil }), action.Denied},
		{"granted, the policy fails", "act", policy.Func(func(policy.Request) (policy.Decision, error) { return policy.Decision{Permit: true}, broken }), action.Denied},
		{"granted, the policy panics", "act", policy.Func(func(policy.Request) (policy.Decision, error) { panic("oops") }), action.Denied},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, p := range paths {
				w := newWorld(t, func(w *world, _ *delta.Goal) { w.cfg.Policy = c.policy })
				before := len(w.events())
				o := w.make(p, call(c.action, "a"))
				assert.Equal(t, c.code, o.Code, p)
				if c.code == action.Denied {
					assert.Zero(t, w.effects.Load())
					found := false
					for _, e := range w.events()[before:] {
						found = found || e.Type == ledger.Refused && e.Code == action.Denied && e.Failure.Details[action.DetailRule] != ""
					}
					assert.True(t, found, "the denial and its reason are recorded")
				}
			}
		})
	}
}

// Declared risk, per-argument risk and threshold: runs without a person exactly below the threshold.
func TestI05_NothingRunsAtTheThresholdUnasked(t *testing.T) {
	for declared := 1; declared <= 5; declared++ {
		var ran atomic.Int64
		a := delta.Define("a", func(*delta.Context, In) mo.Result[Out] { ran.Add(1); return mo.Ok(Out{"x"}) }).
			Describe("a").Risk(declared).
			RiskWhen("four", func(in In) bool { return in.N == 4 }, 4).
			RiskWhen("panics", func(in In) bool { return in.N == 9 && func() bool { panic("no") }() }, 1).
			RiskWhen("lower", func(In) bool { return true }, 1).MustBuild()
		agent := delta.NewAgent("clerk").Grant(a).MustBuild()
		for threshold := 1; threshold <= 5; threshold++ {
			w := newWorld(t, func(w *world, g *delta.Goal) {
				w.agent, g.Agent, g.Threshold = agent, agent, float64(threshold)
				w.acts["a"] = a
			})
			for n, level := range map[int64]int{0: declared, 4: max(declared, 4), 9: 5} {
				ran.Store(0)
				o := w.do(delta.Call{Action: "a", Input: inputOf(In{ID: fmt.Sprint("a", n), N: n})})
				asked := o.Code == action.ApprovalRequired
				assert.Equal(t, level >= threshold, asked, "declared %d, by argument %d, threshold %d: %s", declared, level, threshold, o.Code)
				assert.Equal(t, !asked, ran.Load() == 1)
			}
		}
	}
}

// What was observed gates too, and effective risk never falls below what was declared.
func TestI05_ObservedFailuresGate(t *testing.T) {
	w := newWorld(t, func(_ *world, g *delta.Goal) { g.Threshold = 3 })
	w.does(fails)
	var o action.Outcome
	for i := 0; i < 60 && o.Code != action.ApprovalRequired; i++ {
		o = w.do(call("act", fmt.Sprint(i)))
	}
	require.Equal(t, action.ApprovalRequired, o.Code)
	ran := w.effects.Load()
	for _, p := range []path{byDo, typed, byRun} {
		assert.Equal(t, action.ApprovalRequired, w.make(p, call("act", "z")).Code)
	}
	assert.Equal(t, ran, w.effects.Load())
	offer, err := w.task.Offer(t.Context())
	require.NoError(t, err)
	for _, a := range offer.Actions {
		if a.Name == "act" {
			assert.Equal(t, action.Gated, a.Status)
		}
	}
	w = newWorld(t, func(_ *world, g *delta.Goal) { g.Threshold = 5 })
	for i := range 40 {
		w.do(delta.Call{Action: "steep", Input: inputOf(In{ID: fmt.Sprint(i)})})
	}
	o = w.do(delta.Call{Action: "steep", Input: inputOf(In{ID: "x", N: 500})})
	assert.Equal(t, action.ApprovalRequired, o.Code, "no history answers a per-argument risk")
}

func TestI06_AnApprovalRunsWhatItShowedOnce(t *testing.T) {
	for _, p := range []path{byDo, typed, byRun} {
		t.Run(string(p), func(t *testing.T) {
			w := newWorld(t)
			o := w.do(call("risky", "a"))
			id := o.Failure.Approval()
			a, err := w.engine.Approval(t.Context(), id)
			require.NoError(t, err)
			assert.JSONEq(t, `{"id":"a"}`, string(a.Input), "the whole input is shown")
			require.NoError(t, w.engine.Approve(t.Context(), id, w.boss, "fine"))
			other := w.make(p, call("risky", "b"))
			require.Equal(t, action.ApprovalRequired, other.Code, "another input is another request")
			assert.NotEqual(t, id, other.Failure.Approval())
			require.Equal(t, action.OK, w.make(p, call("risky", "a")).Code)
			assert.Equal(t, action.ApprovalRequired, w.make(p, call("risky", "a")).Code, "once")
			assert.EqualValues(t, 1, w.effects.Load())
			assert.Error(t, w.engine.Approve(t.Context(), id, w.boss, "again"), "a used approval stays used")
			assert.Error(t, w.engine.Revoke(t.Context(), id, w.boss, "too late"))
		})
	}
}

func TestI06_WhoMayNotApprove(t *testing.T) {
	w := newWorld(t, func(_ *world, g *delta.Goal) { g.Requester, g.Approvers = "boss", []string{"boss", "eve"} })
	id := w.do(call("risky", "a")).Failure.Approval()
	as := func(e *delta.Engine, name string) delta.Identity {
		i, err := e.Authenticate(t.Context(), name)
		require.NoError(t, err)
		return i
	}
	for name, who := range map[string]delta.Identity{
		"the requester": w.boss, "somebody else": as(w.engine, "mallory"), "nobody": {},
		"an approver whom another engine vouches for": as(w.other(), "eve"), "a name that reads like the requester's": as(w.engine, "Boss"),
		"the agent": as(w.engine, "clerk"),
	} {
		assert.Error(t, w.engine.Approve(t.Context(), id, who, "fine"), name)
	}
	require.Equal(t, action.ApprovalRequired, w.do(call("risky", "a")).Code)
	require.NoError(t, w.engine.Approve(t.Context(), id, as(w.engine, "eve"), "fine"))
	assert.True(t, w.do(call("risky", "a")).OK())
}

// However many make the call, wait for it and work: it runs once.
func TestI06_OneApprovalOneRunUnderConcurrency(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.does(func(*delta.Context, In) mo.Result[Out] { time.Sleep(50 * time.Millisecond); return mo.Ok(Out{"once"}) })
		c := delta.Call{ID: "c", Action: "risky", Input: inputOf(In{ID: "a"})}
		id := w.do(c).Failure.Approval()
		other := w.other()
		there, err := other.Open(t.Context(), w.task.ID())
		require.NoError(t, err)
		var outs []func() action.Outcome
		for range 4 {
			for _, task := range []*delta.Task{w.task, there} {
				outs = append(outs, background(func() action.Outcome { return task.DoWait(context.Background(), c).MustGet() }))
			}
		}
		stops := []func(){w.work(w.engine), w.work(other)}
		time.Sleep(time.Second)
		require.NoError(t, w.engine.Approve(t.Context(), id, w.boss, "fine"))
		for _, out := range outs {
			o := out()
			assert.Equal(t, action.OK, o.Code, "%v", o.Failure)
		}
		for _, stop := range stops {
			stop()
		}
		assert.EqualValues(t, 1, w.effects.Load())
		assert.Equal(t, 1, w.count(ledger.Begun))
	})
}

// A consent that runs out between begin and start covers nothing: the call is given back, and so is the consent.
func TestI06_ExpiresBeforeTheStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(w *world, g *delta.Goal) {
			g.ApprovalTTL = 10 * time.Second
			w.cfg.Hooks = hooks.Hooks{Before: func(context.Context, action.View) error { time.Sleep(4 * time.Second); return nil }}
		})
		o := w.do(call("risky", "a"))
		time.Sleep(9 * time.Second)
		require.NoError(t, w.engine.Approve(t.Context(), o.Failure.Approval(), w.boss, "just in time"))
		assert.Equal(t, action.NotStarted, w.do(call("risky", "a")).Code)
		assert.Equal(t, action.ApprovalExpired, w.do(call("risky", "a")).Code)
		assert.Zero(t, w.effects.Load())
	})
}

// An approval is of one version of the action: a worker that holds another one leaves the parked call alone.
func TestI06_AnotherVersionIsNotApproved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		o := w.do(call("risky", "a"))
		require.NoError(t, w.engine.Approve(t.Context(), o.Failure.Approval(), w.boss, "fine"))
		w.agent = delta.NewAgent("clerk").Grant(w.define("risky").Risk(5).Version("2").MustBuild()).MustBuild()
		newer := w.other()
		stop := w.work(newer)
		time.Sleep(time.Minute)
		stop()
		assert.Zero(t, w.effects.Load())
		there, err := newer.Open(t.Context(), w.task.ID())
		require.NoError(t, err)
		assert.Equal(t, action.ApprovalRequired, there.Do(t.Context(), call("risky", "a")).MustGet().Code, "another version is another request")
		stop = w.work(w.engine)
		time.Sleep(time.Minute)
		stop()
		assert.EqualValues(t, 1, w.effects.Load(), "the worker that holds the version runs it")
	})
}

// What a call that never started had taken is given back: the consent and the facts it would have used up.
func TestI06_NotStartedGivesBack(t *testing.T) {
	for _, hook := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			fail := atomic.Bool{}
			w := newWorld(t, func(w *world, g *delta.Goal) {
				g.Threshold = 5
				look := w.acts["look"]
				once := w.keep(w.define("once").Risk(5).Needs(look.On("id").Consumed()).Hooks(hooks.Hooks{Before: func(ctx context.Context, _ action.View) error {
					if fail.Load() && hook {
						return errors.New("no")
					}
					return nil
				}}).IdempotencyKey(func(In) string {
					if fail.Load() && !hook {
						return ""
					}
					return "k"
				}))
				w.agent = delta.NewAgent("clerk").Grant(look, once).MustBuild()
				g.Agent = w.agent
			})
			require.True(t, w.do(call("look", "a")).OK())
			id := w.do(call("once", "a")).Failure.Approval()
			require.NoError(t, w.engine.Approve(t.Context(), id, w.boss, "fine"))
			fail.Store(true)
			assert.Equal(t, map[bool]action.Code{true: action.HookFailed, false: action.NotStarted}[hook], w.do(call("once", "a")).Code)
			assert.True(t, w.offered("once"))
			fail.Store(false)
			assert.Equal(t, action.OK, w.do(call("once", "a")).Code, "the same consent")
			assert.False(t, w.offered("once"), "used up")
			assert.Equal(t, action.NotLegal, w.do(call("once", "a")).Code)
			assert.Equal(t, 1, w.count(ledger.ApprovalRequested))
		})
	}
}
