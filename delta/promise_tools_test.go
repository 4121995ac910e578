package delta_test

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/seed-ab2cfece/delta-agents/tool"
)

const askSchema = `{"type":"object","properties":{"q":{"type":"string","maxLength":5}},"required":["q"],"additionalProperties":false}`

func contract(id string) tool.Contract {
	return tool.Contract{ID: id, Description: "answers", Input: json.RawMessage(askSchema), Output: json.RawMessage(`{"type":"string"}`)}
}

func answering(text string) tool.Func {
	return func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(text), nil }
}

// tooled opens a task of an agent that holds "ask", executed by the tool "oracle", and "hush", which only a policy permits.
func tooled(t *testing.T, r *tool.Registry, shape func(delta.Builder[action.Input, action.Output]) delta.Builder[action.Input, action.Output]) *delta.Task {
	t.Helper()
	e, err := delta.New(delta.Config{Tools: r})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
	b := delta.DefineTool("ask", contract("oracle")).Risk(1).Effect(action.Idempotent)
	if shape != nil {
		b = shape(b)
	}
	agent := delta.NewAgent("asker").Grant(b.MustBuild()).Actions(delta.DefineTool("hush", contract("oracle")).Risk(1).MustBuild()).MustBuild()
	task, err := e.Start(context.Background(), delta.Goal{Agent: agent, Text: "ask", Threshold: 5})
	require.NoError(t, err)
	return task
}

func registered(t *testing.T, x tool.Tool) *tool.Registry {
	t.Helper()
	r := tool.NewRegistry()
	require.NoError(t, r.Register(x))
	return r
}

func ask(t *testing.T, task *delta.Task, name, input string) action.Outcome {
	t.Helper()
	o, err := task.Do(context.Background(), delta.Call{ID: "", Action: name, Input: json.RawMessage(input), Provenance: action.Provenance{Decision: "d-1", PlanStep: "2"}}).Get()
	require.NoError(t, err)
	return o
}

// TestI04: registering a tool, and declaring an action that it executes, grants nothing.
func TestI04_RegisteredToolGrantsNothing(t *testing.T) {
	var ran atomic.Int64
	r := registered(t, tool.Tool{Contract: contract("oracle"), Invoke: func(ctx context.Context, c tool.Call) (json.RawMessage, error) {
		ran.Add(1)
		return json.RawMessage(`"yes"`), nil
	}})
	task := tooled(t, r, nil)
	assert.Equal(t, action.Denied, ask(t, task, "hush", `{"q":"a"}`).Code, "not granted")
	assert.Equal(t, action.ActionUnknown, ask(t, task, "oracle", `{"q":"a"}`).Code, "a tool is no action")
	assert.Zero(t, ran.Load())
	assert.True(t, ask(t, task, "ask", `{"q":"a"}`).OK())
	assert.EqualValues(t, 1, ran.Load())
}

func TestToolSeesWhoCalls(t *testing.T) {
	var got tool.Call
	r := registered(t, tool.Tool{Contract: contract("oracle"), Invoke: func(ctx context.Context, c tool.Call) (json.RawMessage, error) {
		got = c
		return json.RawMessage(`"yes"`), c.Spend(action.Cost{Tokens: 7})
	}})
	task := tooled(t, r, nil)
	o := ask(t, task, "ask", `{"q":"a"}`)
	require.True(t, o.OK(), "%v", o.Failure)
	assert.True(t, o.Untrusted, "what a tool said is data")
	assert.EqualValues(t, 7, o.Cost.Tokens)
	got.Spend = nil
	assert.Equal(t, tool.Call{
		Tool: "oracle", Agent: "asker", Task: task.ID(), Action: "ask", Intent: o.Intent, Attempt: 1, Repeatable: true,
		Provenance: action.Provenance{Decision: "d-1", PlanStep: "2"}, Input: json.RawMessage(`{"q":"a"}`),
	}, got, "one id leads from the decision to the invocation")
}

// TestI12_ToolCodes holds what can be wrong with a tool to codes of their own.
func TestI12_ToolCodes(t *testing.T) {
	panics := func(context.Context, tool.Call) (json.RawMessage, error) { panic("boom") }
	fails := func(context.Context, tool.Call) (json.RawMessage, error) { return nil, errors.New("no") }
	for _, c := range []struct {
		name string
		tool tool.Tool
		in   string
		want action.Code
		rule string
	}{
		{"not registered", tool.Tool{Contract: contract("other"), Invoke: answering(`"yes"`)}, `{"q":"a"}`, action.Unavailable, "not registered"},
		{"another contract", tool.Tool{Contract: tool.Contract{ID: "oracle", Description: "x", Input: json.RawMessage(`{"type":"object"}`)}, Invoke: answering(`"yes"`)}, `{"q":"a"}`, action.Unavailable, "another contract"},
		{"not healthy", tool.Tool{Contract: contract("oracle"), Invoke: answering(`"yes"`), Health: func(context.Context) error { return errors.New("down") }}, `{"q":"a"}`, action.Unavailable, "down"},
		{"its health panics", tool.Tool{Contract: contract("oracle"), Invoke: answering(`"yes"`), Health: func(context.Context) error { panic("x") }}, `{"q":"a"}`, action.Unavailable, "panicked"},
		{"input is not JSON", tool.Tool{Contract: contract("oracle"), Invoke: answering(`"yes"`)}, `{"q":`, action.InputMalformed, ""},
		{"input breaks the contract", tool.Tool{Contract: contract("oracle"), Invoke: answering(`"yes"`)}, `{"q":"too long"}`, action.InputInvalid, ""},
		{"output is not JSON", tool.Tool{Contract: contract("oracle"), Invoke: answering(`{`)}, `{"q":"a"}`, action.OutputInvalid, ""},
		{"output breaks the contract", tool.Tool{Contract: contract("oracle"), Invoke: answering(`5`)}, `{"q":"a"}`, action.OutputInvalid, ""},
		{"no output", tool.Tool{Contract: contract("oracle"), Invoke: answering(``)}, `{"q":"a"}`, action.OutputInvalid, ""},
		{"panics", tool.Tool{Contract: contract("oracle"), Invoke: panics}, `{"q":"a"}`, action.Panicked, ""},
		{"fails", tool.Tool{Contract: contract("oracle"), Invoke: fails}, `{"q":"a"}`, action.Failed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := tooled(t, registered(t, c.tool), nil)
			o := ask(t, task, "ask", c.in)
			require.Equal(t, c.want, o.Code, "%v", o.Failure)
			assert.Contains(t, o.Failure.Details[action.DetailRule], c.rule)
			assert.NotContains(t, fmt.Sprint(o.Failure.ForPlanner()), "oracle", "a planner knows actions, no tools")
			offer, err := task.Offer(context.Background())
			require.NoError(t, err)
			_, offered := offer.Find("ask")
			assert.Equal(t, c.want != action.Unavailable, offered, "what cannot be used is not offered")
		})
	}
}

func TestDefineToolRefuses(t *testing.T) {
	_, err := delta.DefineTool("ask", tool.Contract{}).Build()
	require.ErrorContains(t, err, "name is empty", "no identity")
	_, err = delta.DefineToolOf[In, Out]("ask", "").Describe("x").Build()
	require.ErrorContains(t, err, "name is empty")
}

func TestDefineToolOfHoldsBothContracts(t *testing.T) {
	r := registered(t, tool.Tool{Contract: contract("oracle"), Invoke: answering(`"yes"`)})
	e, err := delta.New(delta.Config{Tools: r})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(context.Background())) }()
	type Q struct {
		Q string `json:"q"`
	}
	a := delta.DefineToolOf[Q, string]("ask", "oracle").Describe("asks").Risk(1).MustBuild()
	task, err := e.Start(context.Background(), delta.Goal{Agent: delta.NewAgent("x").Grant(a).MustBuild()})
	require.NoError(t, err)
	got, err := a.Do(context.Background(), task, Q{"a"}).Get()
	require.NoError(t, err)
	assert.Equal(t, "yes", got)
	err = a.Do(context.Background(), task, Q{"too long"}).Error()
	assert.Equal(t, action.InputInvalid, action.FailureOf(err).Code, "the action takes it, the tool does not")
}

func TestBreakerLeavesAToolAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		var ran atomic.Int64
		r := registered(t, tool.Tool{Contract: contract("oracle"), Breaker: tool.Breaker{Failures: 2, Cooldown: time.Minute},
			Invoke: func(context.Context, tool.Call) (json.RawMessage, error) {
				ran.Add(1)
				if broken.Load() {
					return nil, errors.New("no")
				}
				return json.RawMessage(`"yes"`), nil
			}})
		task := tooled(t, r, nil)
		for range 2 {
			assert.Equal(t, action.Failed, ask(t, task, "ask", `{"q":"a"}`).Code)
		}
		assert.Equal(t, action.Unavailable, ask(t, task, "ask", `{"q":"a"}`).Code)
		assert.EqualValues(t, 2, ran.Load())
		time.Sleep(time.Minute + time.Second)
		broken.Store(false)
		assert.True(t, ask(t, task, "ask", `{"q":"a"}`).OK(), "it is tried again")
		assert.True(t, ask(t, task, "ask", `{"q":"a"}`).OK())
	})
}

func TestBreakerEndsRetries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ran atomic.Int64
		r := registered(t, tool.Tool{Contract: contract("oracle"), Breaker: tool.Breaker{Failures: 2}, Invoke: func(context.Context, tool.Call) (json.RawMessage, error) {
			ran.Add(1)
			return nil, errors.New("no")
		}})
		task := tooled(t, r, func(b delta.Builder[action.Input, action.Output]) delta.Builder[action.Input, action.Output] {
			return b.Retry(5)
		})
		o := ask(t, task, "ask", `{"q":"a"}`)
		assert.Equal(t, action.Failed, o.Code)
		assert.Equal(t, 2, o.Attempts)
		assert.EqualValues(t, 2, ran.Load())
	})
}

func TestRetriesBackOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		r := registered(t, tool.Tool{Contract: contract("oracle"), Invoke: func(context.Context, tool.Call) (json.RawMessage, error) {
			at = append(at, time.Since(began))
			return nil, errors.New("no")
		}})
		task := tooled(t, r, func(b delta.Builder[action.Input, action.Output]) delta.Builder[action.Input, action.Output] {
			return b.Retry(3).Backoff(time.Second, 2*time.Second)
		})
		ask(t, task, "ask", `{"q":"a"}`)
		require.Len(t, at, 4)
		for i, want := range []time.Duration{time.Second, 2 * time.Second, 2 * time.Second} {
			assert.InDelta(t, want.Seconds(), (at[i+1] - at[i]).Seconds(), want.Seconds()/2+0.01, "pause %d", i+1)
		}
	})
}

// TestDeadlineBoundsAllAttempts: the timeout is per attempt, the deadline is per intent.
func TestDeadlineBoundsAllAttempts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := registered(t, tool.Tool{Contract: contract("oracle"), Invoke: func(ctx context.Context, _ tool.Call) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		task := tooled(t, r, func(b delta.Builder[action.Input, action.Output]) delta.Builder[action.Input, action.Output] {
			return b.Retry(100).Timeout(10 * time.Second).Deadline(25 * time.Second)
		})
		began := time.Now()
		o := ask(t, task, "ask", `{"q":"a"}`)
		assert.Equal(t, action.Timeout, o.Code)
		assert.Equal(t, 3, o.Attempts)
		assert.InDelta(t, 25, time.Since(began).Seconds(), 1)
	})
}

func TestUnsoundLimitsAreRefused(t *testing.T) {
	b := delta.Define("act", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{}) }).Describe("x").Effect(action.None)
	for name, bad := range map[string]delta.Builder[In, Out]{
		"deadline": b.Deadline(0), "timeout": b.Timeout(-5), "backoff": b.Backoff(2, 1), "retry": b.Retry(-1),
	} {
		_, err := bad.Build()
		require.ErrorContains(t, err, name)
	}
}

// A tool that is asked for its health is asked once for all that come meanwhile, and again when its answer is old.
func TestHealthIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var asked atomic.Int64
		r := registered(t, tool.Tool{Contract: contract("oracle"), Invoke: answering(`"yes"`), HealthEvery: time.Minute, Health: func(ctx context.Context) error {
			asked.Add(1)
			time.Sleep(time.Second)
			return nil
		}})
		task := tooled(t, r, nil)
		var ends []func() action.Outcome
		for range 8 {
			ends = append(ends, background(func() action.Outcome { return ask(t, task, "ask", `{"q":"a"}`) }))
		}
		synctest.Wait()
		for _, end := range ends {
			assert.True(t, end().OK())
		}
		assert.EqualValues(t, 1, asked.Load())
		time.Sleep(time.Minute)
		assert.True(t, ask(t, task, "ask", `{"q":"a"}`).OK())
		assert.EqualValues(t, 2, asked.Load())
	})
}

// rateLimited makes one call more than the hour allows.
func rateLimited(w *world, p path) action.Outcome {
	require.True(w, w.do(call("rated", "a")).OK())
	w.begin()
	return w.make(p, call("rated", "b"))
}

// busy makes a call while the only one that may be under way is.
func busy(w *world, p path) action.Outcome {
	release := make(chan struct{})
	w.does(ignores(release))
	first := background(func() action.Outcome { return w.do(call("single", "a")) })
	w.after = func() { close(release); first() }
	synctest.Wait()
	w.begin()
	return w.make(p, call("single", "b"))
}

// unavailable needs a tool that nobody registered; the refusal is recorded like any other.
func unavailable(w *world, p path) action.Outcome {
	return w.make(p, call("by-tool", "a"))
}
