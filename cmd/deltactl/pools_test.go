package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

// fund is "fund [gone]": two agents spend out of pools of their own and out of one that they share; with gone an engine without
// pools works for one of them afterwards.
func fund(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: ts.Getenv("DELTA_STORE"), Prefix: ts.Getenv("DELTA_PREFIX")})
	ts.Check(err)
	defer func() { ts.Check(store.Close()) }()
	pools := []delta.Pool{
		{Name: "monthly", Period: delta.Month, Limit: action.Limit{Tokens: action.Max(100)}},
		{Name: "team", Agents: []string{"writer", "reader", "idle"}, Shared: true, Limit: action.Limit{Tokens: action.Max(80), Money: action.Max(8_000_000), Currency: "EUR"}},
	}
	if len(args) > 0 {
		pools = nil
	}
	engine, err := delta.New(delta.Config{Store: store, Pools: pools})
	ts.Check(err)
	defer func() { ts.Check(errors.Join(engine.Close(ctx), engine.Sync(ctx))) }()
	type words struct {
		N int64 `json:"n"`
	}
	spend := delta.Define("spend", func(ctx *delta.Context, in words) mo.Result[int64] {
		if err := ctx.Spend(action.Cost{Tokens: in.N}); err != nil {
			return mo.Err[int64](err)
		}
		return mo.Ok(in.N)
	}).Describe("Spend tokens").Risk(1).Cost(action.Cost{Tokens: 5}).Effect(action.Idempotent).MustBuild()
	for name, n := range map[string]int64{"writer": 4, "reader": 2} {
		if len(args) > 0 && name != args[0] {
			continue
		}
		task, err := engine.Start(ctx, delta.Goal{Agent: delta.NewAgent(name).Grant(spend).MustBuild(), Text: "spend"})
		ts.Check(err)
		o, err := task.Do(ctx, delta.Call{Action: "spend", Input: fmt.Appendf(nil, `{"n":%d}`, n)}).Get()
		ts.Check(err)
		if !o.OK() {
			ts.Fatalf("spend: %v", o.Failure)
		}
	}
}
