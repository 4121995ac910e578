package redisstore

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// SetClock makes the scripts of a store on one server tell the time by the clock: its time is written to the server
// before each call.
func (s *Store) SetClock(clock func() time.Time) *Timed {
	s.run = newScripts(func(text string) string {
		return strings.Replace(text, "call('TIME')", "call('LRANGE', '"+s.prefix+"clock', 0, 1)", 1)
	})
	return &Timed{Store: s, clock: clock}
}

// Timed is a store whose time is that of a clock.
type Timed struct {
	*Store
	clock func() time.Time
}

// Tell writes the time to the server; it never goes back.
func (t *Timed) Tell(ctx context.Context) error {
	const forward = `
		local s, us = tonumber(redis.call('LINDEX', KEYS[1], 0) or '0'), tonumber(redis.call('LINDEX', KEYS[1], 1) or '0')
		if s * 1e6 + us >= ARGV[1] * 1e6 + ARGV[2] then return 0 end
		redis.call('DEL', KEYS[1])
		return redis.call('RPUSH', KEYS[1], ARGV[1], ARGV[2])`
	now := t.clock()
	return t.client.Eval(ctx, forward, []string{t.prefix + "clock"}, now.Unix(), fmt.Sprint(now.Nanosecond()/1000)).Err()
}

// What is stored for a value of a cell, and back.
var (
	Squeeze   = squeeze
	Unsqueeze = unsqueeze
)
