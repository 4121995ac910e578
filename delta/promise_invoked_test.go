package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/tool"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

type rawBuilder = delta.Builder[action.Input, action.Output]

// invoking opens a task whose action "ask" is executed by what invoke does, on a store that can be disturbed.
func invoking(t *testing.T, invoke tool.Func, shape func(rawBuilder) rawBuilder) (*delta.Task, *spy) {
	t.Helper()
	store := &spy{Store: memory.New(memory.Config{})}
	e, err := delta.New(delta.Config{Store: store, Grace: time.Second, Tools: registered(t, tool.Tool{Contract: contract("oracle"), Invoke: invoke})})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
	agent := delta.NewAgent("asker").Grant(shape(delta.DefineTool("ask", contract("oracle")).Risk(1)).MustBuild()).MustBuild()
	task, err := e.Start(context.Background(), delta.Goal{Agent: agent, Threshold: 5})
	require.NoError(t, err)
	return task, store
}

// TestI08: a tool is not invoked where the intent cannot be written.
func TestI08_NoIntentNoInvocation(t *testing.T) {
	var ran atomic.Int64
	task, store := invoking(t, func(context.Context, tool.Call) (json.RawMessage, error) {
		ran.Add(1)
		return json.RawMessage(`"yes"`), nil
	}, same[rawBuilder])
	store.set(func(s *spy) { s.before = failOn(txn.Begin) })
	assert.Equal(t, action.StoreUnavailable, ask(t, task, "ask", `{"q":"a"}`).Code)
	assert.Zero(t, ran.Load())
}

// TestI09: what a tool cannot tell is not repeated, however many attempts were declared, and stands in the way.
func TestI09_UnknownInvocationIsNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ran atomic.Int64
		task, _ := invoking(t, func(context.Context, tool.Call) (json.RawMessage, error) {
			ran.Add(1)
			return nil, action.Unknown(errors.New("no reply"))
		}, func(b rawBuilder) rawBuilder { return b.Effect(action.Irreversible) })
		assert.Equal(t, action.StartedUnknown, ask(t, task, "ask", `{"q":"a"}`).Code)
		assert.Equal(t, action.NotLegal, ask(t, task, "ask", `{"q":"a"}`).Code)
		assert.EqualValues(t, 1, ran.Load())
		b, err := task.Budget(context.Background())
		require.NoError(t, err)
		assert.EqualValues(t, 1, b.Reserved.Calls)
	})
}

// TestI09_KeyedInvocation: with an idempotency key it may be repeated, under the same key.
func TestI09_KeyedInvocation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var keys []string
		task, _ := invoking(t, func(_ context.Context, c tool.Call) (json.RawMessage, error) {
			keys = append(keys, c.Key)
			if len(keys) == 1 {
				return nil, action.Unknown(errors.New("no reply"))
			}
			return json.RawMessage(`"yes"`), nil
		}, func(b rawBuilder) rawBuilder {
			return b.IdempotencyKey(func(in action.Input) string { return "k-" + in.Text() }).Retry(1)
		})
		assert.True(t, ask(t, task, "ask", `{"q":"a"}`).OK())
		assert.Equal(t, []string{`k-{"q":"a"}`, `k-{"q":"a"}`}, keys)
	})
}

// TestI11: hooks see the invocation and change nothing of it.
func TestI11_HooksObserveInvocations(t *testing.T) {
	var seen []action.Code
	task, _ := invoking(t, func(_ context.Context, c tool.Call) (json.RawMessage, error) { return c.Input[5:8], nil }, func(b rawBuilder) rawBuilder {
		return b.Hooks(hooks.Hooks{
			Before: func(_ context.Context, v action.View) error { copy(v.Input, `{"q":"b"}`); return nil },
			After: func(_ context.Context, v action.View) error {
				seen = append(seen, v.Outcome.Code)
				v.Outcome.Code = action.Failed
				return errors.New("no")
			},
		})
	})
	o := ask(t, task, "ask", `{"q":"a"}`)
	assert.True(t, o.OK())
	assert.JSONEq(t, `"a"`, string(o.Output))
	assert.Equal(t, []action.Code{action.OK}, seen)
}

// TestI18: a tool that ignores its context is given up, counted, and what it says then changes nothing.
func TestI18_DeafToolIsAbandoned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		task, _ := invoking(t, func(context.Context, tool.Call) (json.RawMessage, error) {
			<-release
			return json.RawMessage(`"late"`), nil
		}, func(b rawBuilder) rawBuilder { return b.Effect(action.None).Timeout(time.Second) })
		began := time.Now()
		assert.Equal(t, action.Timeout, ask(t, task, "ask", `{"q":"a"}`).Code)
		assert.Equal(t, 2*time.Second, time.Since(began), "the timeout, and the grace period")
		close(release)
	})
}
