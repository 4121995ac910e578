package delta_test

import (
	"context"
	"errors"
	"testing"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
)

// Whatever writes a record, the record is sealed without a further call: an operator's word and the end of a task have
// nothing behind them that would do it.
func TestI14_EveryRecordIsSealedByItself(t *testing.T) {
	type in struct {
		ID string `json:"id"`
	}
	ctx := context.Background()
	broken := errors.New("broken")
	flaky := delta.Define("flaky", func(*delta.Context, in) mo.Result[in] { return mo.Err[in](broken) }).
		Describe("Fails").Effect(action.Idempotent).Retry(1).MustBuild()
	watched := delta.Define("watched", func(_ *delta.Context, i in) mo.Result[in] { return mo.Ok(i) }).
		Describe("Is watched").Risk(1).
		Hooks(hooks.Hooks{After: func(context.Context, action.View) error { return broken }}).MustBuild()
	asking := delta.Define("asking", func(_ *delta.Context, i in) mo.Result[in] { return mo.Ok(i) }).
		Describe("Asks first").RequireApproval().MustBuild()
	clerk := delta.NewAgent("clerk").Grant(flaky, watched, asking).MustBuild()

	var id string
	parked := func(ctx context.Context, e *delta.Engine, task *delta.Task) error {
		o, err := task.Do(ctx, delta.Call{Action: "asking", Input: []byte(`{"id":"a"}`)}).Get()
		if err == nil {
			id = o.Failure.Approval()
		}
		return err
	}
	tests := []struct {
		name   string
		before func(context.Context, *delta.Engine, *delta.Task) error
		do     func(context.Context, *delta.Engine, *delta.Task, delta.Identity) error
	}{
		{name: "start"},
		{"done", nil, func(ctx context.Context, _ *delta.Engine, task *delta.Task, _ delta.Identity) error {
			return task.Done(ctx, "over")
		}},
		{"cancel", nil, func(ctx context.Context, _ *delta.Engine, task *delta.Task, _ delta.Identity) error {
			return task.Cancel(ctx, "no")
		}},
		{"threshold", nil, func(ctx context.Context, _ *delta.Engine, task *delta.Task, by delta.Identity) error {
			return task.SetThreshold(ctx, by, 2, "care")
		}},
		{"refusal", nil, func(ctx context.Context, _ *delta.Engine, task *delta.Task, _ delta.Identity) error {
			return task.Do(ctx, delta.Call{Action: "flaky", Input: []byte(`{}`)}).Error()
		}},
		{"attempts", nil, func(ctx context.Context, _ *delta.Engine, task *delta.Task, _ delta.Identity) error {
			return task.Do(ctx, delta.Call{Action: "flaky", Input: []byte(`{"id":"a"}`)}).Error()
		}},
		{"failed hook", nil, func(ctx context.Context, _ *delta.Engine, task *delta.Task, _ delta.Identity) error {
			return task.Do(ctx, delta.Call{Action: "watched", Input: []byte(`{"id":"a"}`)}).Error()
		}},
		{"rejection", parked, func(ctx context.Context, e *delta.Engine, _ *delta.Task, by delta.Identity) error {
			return e.Reject(ctx, id, by, "no")
		}},
		{"approval", parked, func(ctx context.Context, e *delta.Engine, _ *delta.Task, by delta.Identity) error {
			return e.Approve(ctx, id, by, "yes")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			engine, err := delta.New(delta.Config{Authenticator: delta.AuthenticatorFunc(func(context.Context, any) (string, error) { return "ann", nil })})
			require.NoError(t, err)
			defer func() { require.NoError(t, engine.Close(ctx)) }()
			by, err := engine.Authenticate(ctx, nil)
			require.NoError(t, err)
			task, err := engine.Start(ctx, delta.Goal{Agent: clerk, Text: "x", Approvers: []string{"ann"}})
			require.NoError(t, err)
			if tt.before != nil {
				require.NoError(t, tt.before(ctx, engine, task))
			}
			require.NoError(t, engine.Sync(ctx)) // nothing is left over that would seal what follows
			if tt.do != nil {
				require.NoError(t, tt.do(ctx, engine, task, by))
			}
			require.NoError(t, engine.Sync(ctx))
			_, report, err := task.Ledger(ctx)
			require.NoError(t, err)
			assert.Zero(t, report.Unsealed)
			assert.Positive(t, report.Sealed)
		})
	}
}
