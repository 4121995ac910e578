package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Health is what is left undone of one agent.
type Health struct {
	Expired  int           // leases that nobody has taken over, at most healthMost
	Late     time.Duration // by how much the oldest of them is late
	Pending  int           // outcomes that are not folded into the beliefs yet
	Unsealed int64         // records without a link, of the agent's own ledger and of those of at most healthMost tasks that have not ended
}

// healthMost bounds what is looked at of one agent.
const healthMost = 200

// Health looks at what is left undone of an agent. All of it is normal for a moment, and none of it for minutes.
func (s *Store) Health(ctx context.Context, agent string) (Health, error) {
	var h Health
	snap, err := s.Load(ctx, agent, "", nil)
	if err != nil {
		return h, err
	}
	h.Pending = len(snap.Pending)
	late, err := s.Queued(ctx, agent, txn.Leases, txn.Queued{}, true, healthMost)
	if err != nil {
		return h, err
	}
	if h.Expired = len(late); h.Expired > 0 {
		h.Late = time.Duration(snap.Now-late[0].Due) * time.Microsecond
	}
	tasks, err := s.client.ZRange(ctx, s.keys(agent).queue("tasks"), 0, healthMost-1).Result()
	if err != nil {
		return h, s.done(ctx, "look at tasks", err)
	}
	h.Unsealed, err = s.unsealed(ctx, agent, append(tasks, ""))
	return h, s.done(ctx, "look at ledgers", err)
}

// unsealed counts the records of ledgers that have no link.
func (s *Store) unsealed(ctx context.Context, agent string, tasks []string) (n int64, err error) {
	k := s.keys(agent)
	lengths, links := make([]*redis.IntCmd, len(tasks)), make([]*redis.IntCmd, len(tasks))
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, t := range tasks {
			lengths[i], links[i] = p.LLen(ctx, k.ledger(t)), p.StrLen(ctx, k.links(t))
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for i := range tasks {
		n += max(0, lengths[i].Val()-links[i].Val()/linkSize)
	}
	return n, nil
}

// String says it in a line.
func (h Health) String() string {
	return strconv.Itoa(h.Expired) + " expired leases, " + strconv.Itoa(h.Pending) + " outcomes not folded, " + strconv.FormatInt(h.Unsealed, 10) + " records not sealed"
}
