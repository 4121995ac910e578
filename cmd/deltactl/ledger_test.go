package main

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// spoil is "spoil AGENT TASK": somebody writes a number into the store by hand.
func spoil(ts *testscript.TestScript, _ bool, args []string) {
	c := redis.NewClient(addressOf(ts))
	defer func() { ts.Check(c.Close()) }()
	ts.Check(c.HSet(context.Background(), ts.Getenv("DELTA_PREFIX")+":{"+args[0]+"}:task:"+args[1], "cgranted/calls", "99").Err())
}

// long is "long AGENT": it makes the agent's own ledger longer than a checkpoint of it.
func long(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: ts.Getenv("DELTA_STORE"), Prefix: ts.Getenv("DELTA_PREFIX")})
	ts.Check(err)
	text, err := ledger.Encode(ledger.Event{Type: ledger.Note, Agent: args[0], Text: strings.Repeat("long ago ", 100)})
	ts.Check(err)
	for range 20 {
		_, err := store.Apply(ctx, &txn.Txn{Agent: args[0], Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Event, Scope: txn.Agent, Val: text}}})
		ts.Check(err)
	}
	ts.Check(store.Close())
}

// drop is "drop AGENT KEY": somebody deletes a key of an agent by hand.
func drop(ts *testscript.TestScript, _ bool, args []string) {
	c := redis.NewClient(addressOf(ts))
	defer func() { ts.Check(c.Close()) }()
	n, err := c.Del(context.Background(), ts.Getenv("DELTA_PREFIX")+":{"+args[0]+"}:"+args[1]).Result()
	ts.Check(err)
	if n != 1 {
		ts.Fatalf("there is no key %s of %s", args[1], args[0])
	}
}
