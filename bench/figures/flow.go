package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// stepsOfFlow is how many steps a workflow has, one after the other.
const stepsOfFlow = 8

// flow is a step of a workflow whose action does nothing, beside that action called by itself. What a workflow costs at its
// start and its end counts in its steps.
func flow(ctx context.Context) (pair, error) {
	noop, err := delta.DefineRaw("noop", json.RawMessage(`{"type":"object"}`), func(*delta.Context, action.Input) mo.Result[action.Output] { return mo.Ok(action.Output(`{}`)) }).
		Describe("Nothing").Risk(1).Effect(action.Idempotent).Timeout(delta.NoTimeout).Build()
	if err != nil {
		return pair{}, err
	}
	b := workflow.New("chain", "1")
	for i := range stepsOfFlow {
		s := workflow.Execute(fmt.Sprint("s", i), "noop")
		if i > 0 {
			s = s.Needs(fmt.Sprint("s", i-1))
		}
		b = b.Step(s)
	}
	def, err := b.Build()
	if err != nil {
		return pair{}, err
	}
	e, err := delta.New(delta.Config{Workflows: delta.Workflows{Definitions: []*workflow.Definition{def}}})
	if err != nil {
		return pair{}, err
	}
	t, err := start(ctx, e, "clerk", noop)
	if err != nil {
		return pair{}, err
	}
	instance := func() error {
		i, err := e.StartWorkflow(ctx, def, delta.Goal{Agent: t.Agent(), Text: "serve the counter"}, nil)
		if err != nil {
			return err
		}
		s, err := i.Run(ctx)
		if err == nil && s.Status != workflow.Completed {
			err = fmt.Errorf("the workflow ended as %s: %w", s.Status, s.Failure)
		}
		return err
	}
	steps := func(n int) (time.Duration, error) {
		runs := (n + stepsOfFlow - 1) / stepsOfFlow
		sum, err := timed(instance)(runs)
		return time.Duration(float64(sum) * float64(n) / float64(runs*stepsOfFlow)), err
	}
	calls := 0
	return pair{steps, timed(func() error {
		calls++
		out, err := t.Do(ctx, delta.Call{Action: "noop", Input: fmt.Appendf(nil, `{"n":%d}`, calls)}).Get()
		if err == nil && !out.OK() {
			err = fmt.Errorf("the call ended as %s: %w", out.Code, out.Err())
		}
		return err
	}), func() { _ = e.Close(context.Background()) }}, nil
}
