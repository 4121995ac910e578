package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-ab2cfece/delta-agents/conformance"
	"github.com/seed-ab2cfece/delta-agents/conformance/subject"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// TestConformance runs every case of other engines' faults on the Redis store, each with a clock moved by hand.
func TestConformance(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	conformance.Run(t, subject.Open(func(clock func() time.Time) (memory.Store, error) {
		s, err := redisstore.Open(context.Background(), redisstore.Config{URL: url, Prefix: fmt.Sprint("c", tenants.Add(1))})
		if err != nil {
			return nil, err
		}
		return told{s.SetClock(clock)}, nil
	}))
}

// told tells the server the time before each call.
type told struct{ *redisstore.Timed }

func (s told) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	if err := s.tell(ctx); err != nil {
		return txn.Reply{}, err
	}
	return s.Timed.Apply(ctx, t)
}

func (s told) Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error) {
	if err := s.tell(ctx); err != nil {
		return nil, err
	}
	return s.Timed.Load(ctx, agent, task, have)
}

func (s told) Queued(ctx context.Context, agent, queue string, after txn.Queued, dueOnly bool, limit int) ([]txn.Queued, error) {
	if err := s.tell(ctx); err != nil {
		return nil, err
	}
	return s.Timed.Queued(ctx, agent, queue, after, dueOnly, limit)
}

func (s told) Remember(ctx context.Context, agent string, n memory.Note) error {
	return errors.Join(s.tell(ctx), s.Timed.Remember(ctx, agent, n))
}

func (s told) tell(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := s.Tell(ctx); err != nil && !errors.Is(err, memory.ErrClosed) {
		return err
	}
	return nil
}
