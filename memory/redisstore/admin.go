package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/seed-ab2cfece/delta-agents/memory"
)

var (
	_ memory.Lister    = (*Store)(nil)
	_ memory.Forgetter = (*Store)(nil)
	_ memory.Cutter    = (*Store)(nil)
)

// index remembers which agents this process has put into the list of all.
type index struct {
	mu    sync.Mutex
	known map[string]bool
}

// indexed bounds how many agents are remembered; beyond it all are forgotten, and listed once more when they write.
const indexed = 1 << 16

func (s *Store) agentsKey() string { return s.prefix + "agents" }

// list puts an agent into the list of all when this process first writes to it. What fails is tried again with the next
// write, and made good by [Store.Reindex]: the list is for people, no decision rests on it.
func (s *Store) list(ctx context.Context, agent string) {
	s.index.mu.Lock()
	known := s.index.known[agent]
	s.index.mu.Unlock()
	if known || s.client.ZAdd(ctx, s.agentsKey(), redis.Z{Member: agent}).Err() != nil {
		return
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if s.index.known == nil || len(s.index.known) >= indexed {
		s.index.known = map[string]bool{}
	}
	s.index.known[agent] = true
}

// Agents implements [memory.Lister].
func (s *Store) Agents(ctx context.Context, after string, limit int) ([]string, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	from := "-"
	if after != "" {
		from = "(" + after
	}
	names, err := s.client.ZRangeArgs(ctx, redis.ZRangeArgs{Key: s.agentsKey(), Start: from, Stop: "+", ByLex: true, Count: int64(limit)}).Result()
	return names, s.done(ctx, "list agents", err)
}

// Forget implements [memory.Forgetter].
func (s *Store) Forget(ctx context.Context, agent, task string, records int64, head string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	k := s.keys(agent)
	n, err := s.client.Exists(ctx, k.task(task)).Result()
	if err != nil {
		return s.done(ctx, "forget", err)
	}
	kept := fmt.Errorf("forget task %q of agent %q: %w", task, agent, memory.ErrKept)
	if n > 0 {
		return kept
	}
	if err := s.notePruned(ctx, agent, task); err != nil {
		return err
	}
	keys := []string{k.task(task), k.ledger(task), k.links(task), k.odd(task), k.records(task), k.ends(task)}
	switch found, err := redis.NewScript(s.run.forget.text).Run(ctx, s.client, keys, records, head).Int(); {
	case err != nil:
		return s.done(ctx, "forget", err)
	case found == 1:
		return kept
	case found == 2:
		return fmt.Errorf("forget task %q of agent %q: %w", task, agent, memory.ErrAnother)
	}
	return nil
}

// cutMost is how many records are dropped in one step: the server does nothing else meanwhile.
const cutMost = 20_000

// Cut implements [memory.Cutter].
func (s *Store) Cut(ctx context.Context, agent string, upto int64) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := s.raise(ctx, layoutCut); err != nil {
		return err
	}
	k := s.keys(agent)
	cut := redis.NewScript(s.run.cut.text)
	for {
		left, err := cut.Run(ctx, s.client, []string{k.agent(), k.ledger(""), k.links(""), k.odd("")}, upto, cutMost).Int64()
		switch {
		case err != nil:
			return s.done(ctx, "cut ledger", err)
		case left < 0 && upto > 0:
			return fmt.Errorf("cut the ledger of agent %q at record %d: %w", agent, upto, memory.ErrLast)
		case left <= 0:
			return nil
		}
	}
}

// Unlisted looks through all keys for agents that [Store.Agents] does not name. It takes a SCAN over every server: it is for
// an operator.
func (s *Store) Unlisted(ctx context.Context) ([]string, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var missing []string
	seen := map[string]bool{}
	err := s.masters(ctx, func(ctx context.Context, c *redis.Client) error {
		scan := c.Scan(ctx, 0, globbed(s.prefix)+"{*}:*", 1000).Iterator()
		for scan.Next(ctx) {
			name, _, _ := strings.Cut(strings.TrimPrefix(scan.Val(), s.prefix+"{"), "}:")
			name = unescape(name)
			mu.Lock()
			known := seen[name]
			seen[name] = true
			mu.Unlock()
			if known {
				continue
			}
			switch err := s.client.ZScore(ctx, s.agentsKey(), name).Err(); {
			case errors.Is(err, redis.Nil):
				mu.Lock()
				missing = append(missing, name)
				mu.Unlock()
			case err != nil:
				return err
			}
		}
		return scan.Err()
	})
	slices.Sort(missing)
	return missing, s.done(ctx, "look for agents", err)
}

// Reindex puts agents into the list of all.
func (s *Store) Reindex(ctx context.Context, agents []string) error {
	for _, a := range agents {
		if err := s.client.ZAdd(ctx, s.agentsKey(), redis.Z{Member: a}).Err(); err != nil {
			return s.done(ctx, "list agents", err)
		}
	}
	return nil
}

// masters calls f for each server that takes writes.
func (s *Store) masters(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, f)
	case *redis.Client:
		return f(ctx, c)
	}
	return fmt.Errorf("a client of type %T", s.client)
}

var globs = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)

func globbed(s string) string { return globs.Replace(s) }
