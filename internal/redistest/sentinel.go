package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Set is a master with one replica, and sentinels that watch both. Its name is mymaster.
type Set struct {
	Servers   []*Server // the master first, as they are started
	Sentinels []*Server
}

// StartSet starts a set of two servers and three sentinels, two of which must agree that the master is gone. Arguments are the
// servers'. It is stopped with the test.
func StartSet(tb testing.TB, args ...string) *Set {
	tb.Helper()
	s := &Set{Servers: []*Server{Start(tb, args...)}}
	host, port, _ := net.SplitHostPort(s.Servers[0].Addr)
	s.Servers = append(s.Servers, Start(tb, append([]string{"--replicaof", host + " " + port}, args...)...))
	for range 3 {
		s.Sentinels = append(s.Sentinels, startSentinel(tb, host, port))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, one := range s.Sentinels {
		c := redis.NewSentinelClient(&redis.Options{Addr: one.Addr})
		tb.Cleanup(func() { _ = c.Close() })
		err := until(ctx, "sentinels to know each other and the replica", func() bool {
			known, err := c.Master(ctx, "mymaster").Result()
			return err == nil && known["num-slaves"] == "1" && known["num-other-sentinels"] == "2"
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// URL names the set by its sentinels.
func (s *Set) URL() string {
	var hosts []string
	for _, one := range s.Sentinels {
		hosts = append(hosts, one.Addr)
	}
	return "redis+sentinel://" + strings.Join(hosts, ",") + "/mymaster/0"
}

func startSentinel(tb testing.TB, host, port string) *Server {
	tb.Helper()
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	own, err := freePort()
	if err != nil {
		tb.Fatal(err)
	}
	conf := filepath.Join(dir, "sentinel.conf") // sentinels write what they learn into it
	text := fmt.Sprintf("bind 127.0.0.1\nport %d\ndir %s\nloglevel warning\nsentinel monitor mymaster %s %s 2\n"+
		"sentinel down-after-milliseconds mymaster 1000\nsentinel failover-timeout mymaster 5000\n", own, dir, host, port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	s := &Server{Addr: "127.0.0.1:" + strconv.Itoa(own), dir: dir, args: []string{Path(tb), conf, "--sentinel"}}
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return s
}
