package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// slots is how many slots a cluster has.
const slots = 16384

// Cluster is a cluster of masters, each with the replicas it was started with.
type Cluster struct {
	Masters  []*Server
	Replicas []*Server // replica i follows master i modulo the number of masters
}

// StartCluster starts a cluster; it is stopped with the test.
func StartCluster(tb testing.TB, masters, replicas int, args ...string) *Cluster {
	tb.Helper()
	c := &Cluster{}
	for i := range masters + replicas {
		s := Start(tb, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "10000", "--cluster-allow-replica-migration", "no"}, args...)...)
		if i < masters {
			c.Masters = append(c.Masters, s)
		} else {
			c.Replicas = append(c.Replicas, s)
		}
	}
	if err := c.join(tb); err != nil {
		tb.Fatal(err)
	}
	return c
}

func (c *Cluster) join(tb testing.TB) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	first := c.Masters[0].Client(tb)
	host, port, _ := net.SplitHostPort(c.Masters[0].Addr)
	for i, s := range c.Masters {
		cl := s.Client(tb)
		if err := cl.ClusterAddSlotsRange(ctx, i*slots/len(c.Masters), (i+1)*slots/len(c.Masters)-1).Err(); err != nil {
			return err
		}
		if err := cl.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			return err
		}
	}
	for _, s := range append(c.Masters[1:len(c.Masters):len(c.Masters)], c.Replicas...) {
		if err := s.Client(tb).ClusterMeet(ctx, host, port).Err(); err != nil {
			return err
		}
	}
	known := func() bool {
		n, err := first.ClusterNodes(ctx).Result()
		return err == nil && strings.Count(n, "\n") == len(c.Masters)+len(c.Replicas)
	}
	if err := until(ctx, "nodes to meet", known); err != nil {
		return err
	}
	for i, s := range c.Replicas {
		id, err := c.Masters[i%len(c.Masters)].Client(tb).Do(ctx, "cluster", "myid").Text()
		if err != nil {
			return err
		}
		cl := s.Client(tb)
		if err := until(ctx, "a replica to follow", func() bool { return cl.ClusterReplicate(ctx, id).Err() == nil }); err != nil {
			return err
		}
	}
	for _, s := range append(c.Masters[:len(c.Masters):len(c.Masters)], c.Replicas...) {
		cl := s.Client(tb)
		if err := until(ctx, "the cluster", func() bool {
			info, err := cl.ClusterInfo(ctx).Result()
			if err != nil || !strings.Contains(info, "cluster_state:ok") {
				return false
			}
			n, err := cl.ClusterNodes(ctx).Result()
			return err == nil && strings.Count(n, "slave ") == len(c.Replicas)
		}); err != nil {
			return err
		}
	}
	return nil
}

// URL is the cluster's URL.
func (c *Cluster) URL() string {
	var hosts []string
	for _, s := range c.Masters {
		hosts = append(hosts, s.Addr)
	}
	return "redis+cluster://" + strings.Join(hosts, ",")
}

func until(ctx context.Context, what string, ok func() bool) error {
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// Of returns the master of the key's slot, and the replica that follows it, where there is one.
func (c *Cluster) Of(tb testing.TB, key string) (master, replica *Server) {
	tb.Helper()
	slot, err := c.Masters[0].Client(tb).ClusterKeySlot(context.Background(), key).Result()
	if err != nil {
		tb.Fatal(err)
	}
	for i, m := range c.Masters {
		if int(slot) >= i*slots/len(c.Masters) && int(slot) < (i+1)*slots/len(c.Masters) {
			master = m
			if i < len(c.Replicas) {
				replica = c.Replicas[i]
			}
		}
	}
	return master, replica
}

// Move gives the key's slot, with all that is in it, to another master.
func (c *Cluster) Move(tb testing.TB, key string) {
	tb.Helper()
	ctx := context.Background()
	slot, err := c.Masters[0].Client(tb).ClusterKeySlot(ctx, key).Result()
	if err != nil {
		tb.Fatal(err)
	}
	do := func(s *Server, args ...any) string {
		tb.Helper()
		v, err := s.Client(tb).Do(ctx, args...).Text()
		if err != nil {
			tb.Fatal(args, err)
		}
		return v
	}
	ids := make([]string, len(c.Masters))
	for i, m := range c.Masters {
		ids[i] = do(m, "cluster", "myid")
	}
	from := 0
	for _, shard := range c.Masters[0].Client(tb).ClusterShards(ctx).Val() {
		if slices.ContainsFunc(shard.Slots, func(r redis.SlotRange) bool { return slot >= r.Start && slot <= r.End }) {
			from = slices.Index(ids, shard.Nodes[0].ID)
		}
	}
	to := (from + 1) % len(c.Masters)
	do(c.Masters[to], "cluster", "setslot", slot, "importing", ids[from])
	do(c.Masters[from], "cluster", "setslot", slot, "migrating", ids[to])
	host, port, _ := net.SplitHostPort(c.Masters[to].Addr)
	cl := c.Masters[from].Client(tb)
	for {
		keys, err := cl.ClusterGetKeysInSlot(ctx, int(slot), 100).Result()
		if err != nil {
			tb.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		args := []any{"migrate", host, port, "", 0, 5000, "keys"}
		for _, k := range keys {
			args = append(args, k)
		}
		do(c.Masters[from], args...)
	}
	for _, i := range []int{to, from} {
		do(c.Masters[i], "cluster", "setslot", slot, "node", ids[to])
	}
}
