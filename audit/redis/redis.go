// Package redis writes an audit trail into a Redis stream, each entry once, from however many processes.
//
//	sink, err := redis.New(redis.Config{Client: client, Stream: "audit"})
//
// An entry of the stream has the fields ledger, seq, event, status, code, agent, action and entry, which is all of it as
// JSON. Beside the stream lies a hash with the number of the last entry of each ledger: one script compares and appends, so
// what a second process, or a repetition, brings again is passed over. Both keys have the same hash tag and so lie on one
// node of a cluster. Redis 7.0 or later.
//
// Give the trail the stream's own positions, [NewPositions]: then a process that starts again, after whatever end, goes on behind
// the last entry that the stream has, without a gap or a repetition. Without positions, what a process that died had not
// written is written with the next event of the same ledger.
package redis

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/seed-ab2cfece/delta-agents/audit"
)

// Config says where.
type Config struct {
	// Client is the program's; closing the sink does not close it.
	Client redis.UniversalClient
	// Stream is the name of the stream: its key is "{Stream}", that of the numbers "{Stream}:seq". Default "audit".
	Stream string
	// MaxLen is about how many entries the stream keeps; 0 is all.
	MaxLen int64
}

//go:embed append.lua
var source string

var script = redis.NewScript(source)

// New returns the sink. It does not reach for the server before there is something to write.
func New(c Config) (audit.Sink, error) {
	c, err := c.checked()
	if err != nil {
		return nil, err
	}
	return &sink{c}, nil
}

func (c Config) checked() (Config, error) {
	if c.Client == nil {
		return c, errors.New("audit redis: no Client")
	}
	if c.MaxLen < 0 {
		return c, fmt.Errorf("audit redis: MaxLen %d is negative; 0 keeps all", c.MaxLen)
	}
	if c.Stream == "" {
		c.Stream = "audit"
	}
	return c, nil
}

// key is that of the stream.
func (c Config) key() string { return "{" + c.Stream + "}" }

type sink struct{ Config }

// Write appends what the stream does not have yet.
func (s *sink) Write(ctx context.Context, entries []audit.Entry) error {
	args := make([]any, 0, 1+9*len(entries))
	args = append(args, s.MaxLen)
	for i := range entries {
		e := &entries[i]
		b, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("audit redis: entry %d of %s: %w", e.Seq, e.Ledger, err)
		}
		args = append(args, e.Ledger, strconv.FormatInt(e.Seq, 10), string(e.Event), e.Status, string(e.Code), e.Agent, e.Action, string(b))
	}
	keys := []string{s.key(), s.key() + ":seq"}
	if err := script.Run(ctx, s.Client, keys, args...).Err(); err != nil {
		return fmt.Errorf("audit redis: %w", err)
	}
	return nil
}

func (s *sink) Close() error { return nil }
