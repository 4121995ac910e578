package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-ab2cfece/delta-agents/memory"
)

// What was pruned is remembered for a while, so that a worker which knew it is not told of a loss. A worker that asks later,
// or for one of more than are remembered, is.
const (
	prunedFor  = 30 * 24 * time.Hour
	prunedMost = 10_000 // of an agent
)

// notePruned remembers that a task is dropped on purpose, before it is: a run that ends in between is repeated.
func (s *Store) notePruned(ctx context.Context, agent, task string) error {
	now, err := s.client.Time(ctx).Result()
	if err != nil {
		return s.done(ctx, "forget", err)
	}
	key := s.keys(agent).pruned()
	p := s.client.Pipeline()
	p.ZAdd(ctx, key, redis.Z{Score: float64(now.UnixMicro()), Member: task})
	p.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(now.Add(-prunedFor).UnixMicro(), 10))
	p.ZRemRangeByRank(ctx, key, 0, -prunedMost-1)
	p.Expire(ctx, key, prunedFor)
	_, err = p.Exec(ctx)
	return s.done(ctx, "forget", err)
}

// orPruned is the loss, or that the task was dropped on purpose.
func (s *Store) orPruned(ctx context.Context, loss error) error {
	var lost *memory.LostError
	if !errors.As(loss, &lost) || lost.Task == "" {
		return loss
	}
	switch pruned, err := s.wasPruned(ctx, lost.Agent, lost.Task); {
	case err != nil:
		return fmt.Errorf("%w; whether it was pruned cannot be read: %w", loss, err)
	case pruned:
		return &memory.PrunedError{Agent: lost.Agent, Task: lost.Task}
	}
	return loss
}

// wasPruned reports whether a task of that id was dropped on purpose.
func (s *Store) wasPruned(ctx context.Context, agent, task string) (bool, error) {
	switch err := s.client.ZScore(ctx, s.keys(agent).pruned(), task).Err(); {
	case err == nil:
		return true, nil
	case errors.Is(err, redis.Nil):
		return false, nil
	default:
		return false, err
	}
}
