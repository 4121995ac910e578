package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// stepsOfFlow is how many steps a workflow has, one after the other.
const stepsOfFlow = 8

// chain is a workflow of so many steps that all call one action.
func chain(name string) (*workflow.Definition, error) {
	b := workflow.New("chain", "1")
	for i := range stepsOfFlow {
		s := workflow.Execute(fmt.Sprint("s", i), name)
		if i > 0 {
			s = s.Needs(fmt.Sprint("s", i-1))
		}
		b = b.Step(s)
	}
	return b.Build()
}

// flow is a step of a workflow whose action does nothing, beside that action called by itself, of one client. What a workflow
// costs at its start and its end counts in its steps.
func flow(ctx context.Context, s *server, samples int) (rows []row, err error) {
	client := redis.NewClient(&redis.Options{Addr: s.addr, ContextTimeoutEnabled: true, PoolSize: 64})
	store, err := redisstore.New(ctx, client, redisstore.Config{})
	if err != nil {
		return nil, err
	}
	def, err := chain("noop")
	if err != nil {
		return nil, err
	}
	noop, err := delta.DefineRaw("noop", json.RawMessage(`{"type":"object"}`), func(*delta.Context, action.Input) mo.Result[action.Output] { return mo.Ok(action.Output(`{}`)) }).
		Describe("Nothing").Risk(1).Effect(action.Idempotent).Timeout(delta.NoTimeout).Build()
	if err != nil {
		return nil, err
	}
	a, err := delta.NewAgent("runner").Grant(noop).Build()
	if err != nil {
		return nil, err
	}
	e, err := delta.New(delta.Config{Store: store, Workflows: delta.Workflows{Definitions: []*workflow.Definition{def}}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close(context.Background()), store.Close(), client.Close()) }()
	t, err := e.Start(ctx, delta.Goal{Agent: a, Text: "serve the counter"})
	if err != nil {
		return nil, err
	}
	const runs = 8
	var ours, beside, ratios []float64
	calls := 0
	for range samples + 1 {
		from := time.Now()
		for range runs {
			if err := completes(ctx, e, def, a); err != nil {
				return nil, err
			}
		}
		x := float64(time.Since(from).Microseconds()) / (runs * stepsOfFlow)
		if err := e.Sync(ctx); err != nil {
			return nil, err
		}
		from = time.Now()
		for range runs * stepsOfFlow {
			calls++
			out, err := t.Do(ctx, delta.Call{Action: "noop", Input: fmt.Appendf(nil, `{"n":%d}`, calls)}).Get()
			if err != nil || !out.OK() {
				return nil, fmt.Errorf("the call ended as %s: %w", out.Code, errors.Join(err, out.Err()))
			}
		}
		y := float64(time.Since(from).Microseconds()) / (runs * stepsOfFlow)
		ours, beside, ratios = append(ours, x), append(beside, y), append(ratios, x/y)
	}
	return []row{{"step of a workflow", "a governed call", 2, false, "×", quantile(ratios[1:], 0.5),
		fmt.Sprintf("%.0f µs, %.0f beside; %.0f steps/s", quantile(ours, 0.5), quantile(beside, 0.5), 1e6/quantile(ours, 0.5))}}, nil
}

// completes runs one instance.
func completes(ctx context.Context, e *delta.Engine, def *workflow.Definition, a *delta.Agent) error {
	i, err := e.StartWorkflow(ctx, def, delta.Goal{Agent: a, Text: "serve the counter"}, nil)
	if err != nil {
		return err
	}
	s, err := i.Run(ctx)
	if err == nil && s.Status != workflow.Completed {
		err = fmt.Errorf("the workflow ended as %s: %w", s.Status, s.Failure)
	}
	return err
}
