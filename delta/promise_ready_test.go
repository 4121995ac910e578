package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

// TestI09_WhatCannotBeMadeReadyIsTriedAgain: nothing ran, so the class of the effect does not matter.
func TestI09_WhatCannotBeMadeReadyIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		ready  int // the try that succeeds, 0 for none
		effect action.Effect
		want   action.Code
		tries  int
	}{
		{"never, irreversible", 0, action.Irreversible, action.NotStarted, 3},
		{"never, idempotent", 0, action.Idempotent, action.NotStarted, 3},
		{"at the second try, irreversible", 2, action.Irreversible, action.OK, 2},
		{"at the third try, compensatable", 3, action.Compensatable, action.OK, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				tries := 0
				r := registered(t, tool.Tool{Contract: contract("oracle"), Invoke: func(_ context.Context, call tool.Call) (json.RawMessage, error) {
					assert.Equal(t, 1, call.Attempt, "a try is no attempt")
					assert.Equal(t, c.effect.Repeatable(), call.Repeatable)
					if tries++; tries != c.ready {
						return nil, action.Unstarted(errors.New("no bubble-wrap at /secret/place"))
					}
					return json.RawMessage(`"yes"`), nil
				}})
				task := tooled(t, r, func(b delta.Builder[action.Input, action.Output]) delta.Builder[action.Input, action.Output] {
					return b.Effect(c.effect)
				})
				o := ask(t, task, "ask", `{"q":"a"}`)
				require.Equal(t, c.want, o.Code, "%v", o.Failure)
				assert.Equal(t, c.tries, tries)
				if c.want == action.OK {
					return
				}
				assert.Equal(t, action.No, o.Failure.Executed)
				assert.True(t, o.Cost.IsZero(), "%v", o.Cost)
				assert.NotContains(t, o.Failure.ForPlanner().Error(), "secret")
				assert.Contains(t, o.Failure.Explain(), "/secret/place", "operators see why")
			})
		})
	}
}

// What was under way when the time was up, and began nothing, is no unknown outcome.
func TestI09_NothingBegunWhenTheTimeIsUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := registered(t, tool.Tool{Contract: contract("oracle"), Invoke: func(ctx context.Context, _ tool.Call) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, action.Unstarted(ctx.Err())
		}})
		task := tooled(t, r, func(b delta.Builder[action.Input, action.Output]) delta.Builder[action.Input, action.Output] {
			return b.Effect(action.Irreversible).Timeout(time.Second).Deadline(time.Second)
		})
		assert.Equal(t, action.NotStarted, ask(t, task, "ask", `{"q":"a"}`).Code)
	})
}

// An attempt that ran is not taken back by one that could not start.
func TestI09_AnAttemptBeforeIsNotTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tries := 0
		r := registered(t, tool.Tool{Contract: contract("oracle"), Invoke: func(context.Context, tool.Call) (json.RawMessage, error) {
			if tries++; tries == 1 {
				return nil, errors.New("no")
			}
			return nil, action.Unstarted(errors.New("not ready"))
		}})
		task := tooled(t, r, func(b delta.Builder[action.Input, action.Output]) delta.Builder[action.Input, action.Output] {
			return b.Retry(1)
		})
		o := ask(t, task, "ask", `{"q":"a"}`)
		assert.Equal(t, action.Interrupted, o.Code)
		assert.NotEqual(t, action.No, o.Failure.Executed)
	})
}
