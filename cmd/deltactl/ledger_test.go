package main

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"
)

// spoil is "spoil AGENT TASK": somebody writes a number into the store by hand.
func spoil(ts *testscript.TestScript, _ bool, args []string) {
	c := redis.NewClient(addressOf(ts))
	defer func() { ts.Check(c.Close()) }()
	ts.Check(c.HSet(context.Background(), ts.Getenv("DELTA_PREFIX")+":{"+args[0]+"}:task:"+args[1], "cgranted/calls", "99").Err())
}
