package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

func TestMeasure(t *testing.T) {
	srv := redistest.Start(t)
	st, err := redisstore.Open(context.Background(), redisstore.Config{URL: "unix://" + srv.Socket})
	if err != nil {
		t.Fatal(err)
	}
	e, err := delta.New(delta.Config{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	type in struct {
		ID string `json:"id"`
		N  int    `json:"n"`
	}
	a := delta.Define("charge", func(ctx *delta.Context, i in) mo.Result[string] { return mo.Ok("x") }).Describe("x").Effect(action.Idempotent).Risk(1).MustBuild()
	ag := delta.NewAgent("desk").Grant(a).MustBuild()
	task, err := e.Start(context.Background(), delta.Goal{Agent: ag, Text: "x"})
	if err != nil {
		t.Fatal(err)
	}
	c := srv.Client(t)
	ctx := context.Background()
	do := func(i int) {
		raw, _ := json.Marshal(in{fmt.Sprint("ORD-", i), i})
		o, err := task.Do(ctx, delta.Call{Action: "charge", Input: raw}).Get()
		if err != nil || !o.OK() {
			t.Fatal(err, o.Failure)
		}
	}
	for i := range 200 {
		do(i)
	}
	e.Sync(ctx)
	c.ConfigResetStat(ctx)
	start := time.Now()
	for i := range 2000 {
		do(1000 + i)
	}
	el := time.Since(start)
	e.Sync(ctx)
	s, _ := c.Info(ctx, "commandstats").Result()
	t.Log(el/2000, s)
	mem, _ := c.Info(ctx, "memory").Result()
	_ = mem
	k, _ := c.Keys(ctx, "*").Result()
	for _, key := range k {
		n, _ := c.MemoryUsage(ctx, key).Result()
		ty, _ := c.Type(ctx, key).Result()
		t.Log(key, ty, n)
	}
}
