package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

type order struct {
	ID   string `json:"orderId"`
	Card string `json:"card,omitempty" delta:"secret"`
}

// deskAgents are an agent with something to look at, and another.
func deskAgents() (desk, attic *delta.Agent) {
	confirm := delta.Define("confirm", func(_ *delta.Context, in order) mo.Result[string] {
		if in.ID == "bad" {
			return mo.Err[string](errors.New("no such order"))
		}
		return mo.Ok("confirmed " + in.ID)
	}).Describe("Confirm an order").Risk(1).MustBuild()
	charge := delta.Define("charge", func(_ *delta.Context, in order) mo.Result[string] {
		return mo.Err[string](action.Unknown(errors.New("no answer from the bank")))
	}).Describe("Charge a card").Risk(2).MustBuild()
	refund := delta.Define("refund", func(_ *delta.Context, in order) mo.Result[string] { return mo.Ok("refunded " + in.ID) }).
		Describe("Give the money back").Risk(3).RequireApproval().MustBuild()
	return delta.NewAgent("desk").Grant(confirm, charge, refund).MustBuild(), delta.NewAgent("attic").Grant(confirm).MustBuild()
}

// fill is "fill": it has agents work on the script's store, and sets APPROVAL, OWN and INTENT to what waits there.
func fill(ts *testscript.TestScript, _ bool, _ []string) {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: ts.Getenv("DELTA_STORE"), Prefix: ts.Getenv("DELTA_PREFIX")})
	ts.Check(err)
	flags := storeFlags{keys: ts.Getenv("DELTA_KEYS")}
	ring, err := flags.ring()
	ts.Check(err)
	engine, err := delta.New(delta.Config{Store: store, Authenticator: delta.VoucherFunc(osUser), Keys: ring})
	ts.Check(err)
	defer func() { ts.Check(errors.Join(engine.Close(ctx), store.Close())) }()
	me, err := user.Current()
	ts.Check(err)
	desk, attic := deskAgents()
	start := func(g delta.Goal) *delta.Task {
		t, err := engine.Start(ctx, g)
		ts.Check(err)
		return t
	}
	call := func(t *delta.Task, name, id string) action.Outcome {
		o, err := t.Do(ctx, delta.Call{Action: name, Input: fmt.Appendf(nil, `{"orderId":%q,"card":"visa-4111"}`, id)}).Get()
		ts.Check(err)
		return o
	}
	t1 := start(delta.Goal{ID: "t1", Agent: desk, Text: "settle orders", Approvers: []string{"*"}, Requester: "bo", Limit: action.Limit{Calls: action.Max(10)}})
	for _, id := range []string{"a", "b", "bad"} {
		call(t1, "confirm", id)
	}
	ts.Setenv("APPROVAL", call(t1, "refund", "a").Failure.Approval())
	t2 := start(delta.Goal{ID: "t2", Agent: desk, Text: "mine", Approvers: []string{"*"}, Requester: me.Username})
	ts.Setenv("OWN", call(t2, "refund", "b").Failure.Approval())
	t3 := start(delta.Goal{ID: "t3", Agent: desk, Text: "lost", Approvers: []string{"*"}, Requester: "bo"})
	ts.Setenv("INTENT", call(t3, "charge", "c").Intent)
	ts.Check(start(delta.Goal{ID: "t4", Agent: desk}).Done(ctx, "all done"))
	start(delta.Goal{ID: "t5", Agent: attic, Text: "dust"})
	ts.Check(engine.Sync(ctx))
}

// tune is "tune": it has an agent work whose engine learns by another estimator than the default.
func tune(ts *testscript.TestScript, _ bool, _ []string) {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: ts.Getenv("DELTA_STORE"), Prefix: ts.Getenv("DELTA_PREFIX")})
	ts.Check(err)
	engine, err := delta.New(delta.Config{Store: store, Risk: risk.Single(), Observe: true})
	ts.Check(err)
	defer func() { ts.Check(errors.Join(engine.Close(ctx), store.Close())) }()
	desk, _ := deskAgents()
	t, err := engine.Start(ctx, delta.Goal{ID: "t9", Agent: desk, Text: "by other numbers"})
	ts.Check(err)
	for _, id := range []string{"a", "bad"} {
		_, err := t.Do(ctx, delta.Call{Action: "confirm", Input: fmt.Appendf(nil, `{"orderId":%q}`, id)}).Get()
		ts.Check(err)
	}
	ts.Check(engine.Sync(ctx))
}

// anew is "anew AGENT TASK": it starts a task of an id that is free again, and ends it.
func anew(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: ts.Getenv("DELTA_STORE"), Prefix: ts.Getenv("DELTA_PREFIX")})
	ts.Check(err)
	engine, err := delta.New(delta.Config{Store: store})
	ts.Check(err)
	defer func() { ts.Check(errors.Join(engine.Close(ctx), store.Close())) }()
	desk, attic := deskAgents()
	t, err := engine.Start(ctx, delta.Goal{ID: args[1], Agent: map[string]*delta.Agent{"desk": desk, "attic": attic}[args[0]]})
	ts.Check(err)
	ts.Check(t.Done(ctx, "again"))
	ts.Check(engine.Sync(ctx))
}

// storeEnv gives a script a store of its own on the tests' server.
func storeEnv(e *testscript.Env, s *redistest.Server) {
	name := strings.ReplaceAll(e.WorkDir[strings.LastIndexByte(e.WorkDir, '/')+1:], "script-", "")
	e.Setenv("DELTA_STORE", s.URL())
	e.Setenv("DELTA_PREFIX", name)
}

// unlist is "unlist AGENT": it takes an agent out of the list of all.
func unlist(ts *testscript.TestScript, _ bool, args []string) {
	c := redis.NewClient(addressOf(ts))
	defer func() { ts.Check(c.Close()) }()
	ts.Check(c.ZRem(context.Background(), ts.Getenv("DELTA_PREFIX")+":agents", args[0]).Err())
}

// expire is "expire AGENT TASK": it makes the store let a task's state go, as it does some time after its end.
func expire(ts *testscript.TestScript, _ bool, args []string) {
	c := redis.NewClient(addressOf(ts))
	defer func() { ts.Check(c.Close()) }()
	base := ts.Getenv("DELTA_PREFIX") + ":{" + args[0] + "}:"
	ts.Check(c.Del(context.Background(), base+"task:"+args[1], base+"records:"+args[1]).Err())
}

func addressOf(ts *testscript.TestScript) *redis.Options {
	o, err := redis.ParseURL(ts.Getenv("DELTA_STORE"))
	ts.Check(err)
	return o
}

// nowhere is "nowhere TEXT": no value in the script's store holds the text.
func nowhere(ts *testscript.TestScript, _ bool, args []string) {
	ctx, c := context.Background(), redis.NewClient(addressOf(ts))
	defer func() { ts.Check(c.Close()) }()
	n := 0
	all := c.Scan(ctx, 0, ts.Getenv("DELTA_PREFIX")+":*", 1000).Iterator()
	for n = 0; all.Next(ctx); n++ {
		key := all.Val()
		kind, err := c.Type(ctx, key).Result()
		ts.Check(err)
		read := map[string][]any{
			"string": {"GET", key}, "hash": {"HGETALL", key}, "list": {"LRANGE", key, 0, -1}, "set": {"SMEMBERS", key},
			"zset": {"ZRANGE", key, 0, -1}, "stream": {"XRANGE", key, "-", "+"},
		}[kind]
		v, err := c.Do(ctx, read...).Result()
		ts.Check(err)
		if text := fmt.Sprint(key, v); strings.Contains(text, args[0]) {
			ts.Fatalf("%s holds %s: %s", key, args[0], text)
		}
	}
	ts.Check(all.Err())
	if n == 0 {
		ts.Fatalf("there is nothing in the store")
	}
}
