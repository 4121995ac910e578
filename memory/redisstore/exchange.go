package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// The breaker opens after so many exchanges in a row without an answer, and lets one through again after the pause.
const (
	breakAfter = 5
	breakPause = time.Second
)

func newBreaker() *gobreaker.CircuitBreaker[any] {
	return gobreaker.NewCircuitBreaker[any](gobreaker.Settings{
		Name: "redis", Timeout: breakPause,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		IsSuccessful: answered,
	})
}

// answered reports whether the server was there: a refusal is an answer too, and a caller who gave up says nothing.
func answered(err error) bool {
	var refused redis.Error
	return err == nil || errors.As(err, &refused) && !redis.HasErrorPrefix(err, "CLUSTERDOWN") && !redis.HasErrorPrefix(err, "LOADING") ||
		errors.Is(err, context.Canceled) || errors.Is(err, ErrNotReplicated)
}

// script runs one of the scripts through the breaker.
func (s *Store) script(ctx context.Context, which script, keys, args []string, on turns) ([]any, error) {
	return s.through(func() ([]any, error) { return s.batch.run(ctx, which, command(which.hash, keys, args), on) })
}

func (s *Store) through(exchange func() ([]any, error)) ([]any, error) {
	v, err := s.breaker.Execute(func() (any, error) { return exchange() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return nil, fmt.Errorf("the server did not answer %d times in a row; it is asked again within %v", breakAfter, breakPause)
	}
	list, _ := v.([]any)
	return list, err
}

// ErrNotReplicated is returned where a transaction was accepted, but too few replicas have confirmed it in time. Whether it
// survives a fail-over is not known; repeating it is safe.
var ErrNotReplicated = errors.New("too few replicas confirmed the write in time")

// replicated runs the transaction's script and waits for replicas in the same trip.
func (s *Store) replicated(ctx context.Context, e *encoder) (v []any, err error) {
	for try := range 4 {
		v, err = s.through(func() ([]any, error) { return s.withWait(ctx, e) })
		switch {
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			err = s.load(ctx, e.k[0])
		case redis.HasErrorPrefix(err, "MOVED"), redis.HasErrorPrefix(err, "ASK"):
			if c, ok := s.client.(*redis.ClusterClient); ok {
				c.ReloadState(ctx)
			}
			err = pause(ctx, time.Duration(try+1)*50*time.Millisecond)
		default:
			return v, err
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the script, or its slot, moves from server to server")
}

func (s *Store) withWait(ctx context.Context, e *encoder) ([]any, error) {
	node, err := s.node(ctx, e.k[0])
	if err != nil {
		return nil, err
	}
	call, wait := evaluation(ctx, e.command(s.run.apply.hash)), (*redis.Cmd)(nil)
	_, err = node.Pipelined(ctx, func(p redis.Pipeliner) error {
		_ = p.Process(ctx, call)
		wait = p.Do(ctx, "wait", s.replicas, s.waitTime.Milliseconds())
		return nil
	})
	v, callErr := call.Slice()
	switch {
	case callErr != nil:
		return nil, callErr
	case len(v) > 0 && v[0] == int64(0): // refused: nothing was written
		return v, nil
	case wait.Err() != nil:
		return nil, wait.Err()
	case err != nil:
		return nil, err
	}
	if n, err := wait.Int(); err != nil || n < s.replicas {
		return nil, fmt.Errorf("%w: %d of %d", ErrNotReplicated, n, s.replicas)
	}
	return v, nil
}

// node returns the client of the server that has the key.
func (s *Store) node(ctx context.Context, key string) (redis.UniversalClient, error) {
	if c, ok := s.client.(*redis.ClusterClient); ok {
		return c.MasterForKey(ctx, key)
	}
	return s.client, nil
}

func (s *Store) load(ctx context.Context, key string) error {
	node, err := s.node(ctx, key)
	if err != nil {
		return err
	}
	return node.ScriptLoad(ctx, s.run.apply.text).Err()
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
