package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Severity says how bad a finding is.
type Severity string

// The severities, from good to bad.
const (
	Fine    Severity = "ok"
	Warning Severity = "warning" // something may be lost, or was not checked
	Severe  Severity = "severe"  // something will be lost, or does not work
)

// Finding is one thing that was looked at.
type Finding struct {
	Check    string   `json:"check"`
	Server   string   `json:"server,omitempty"` // "" is the store as a whole
	Severity Severity `json:"severity"`
	Found    string   `json:"found"`
	Do       string   `json:"do,omitempty"` // the way out
}

// MostSkew is how far the clocks of server and worker may be apart before it is worth a word: leases and deadlines go by
// the server's alone, but people read the worker's time in records.
const MostSkew = 2 * time.Second

// Examine looks at every server that takes writes: its version, whether it evicts or loses what it holds, its replicas
// against WaitReplicas, its clock, and the state of the cluster. A server that does not let itself be looked at is a
// finding, not an error.
func (s *Store) Examine(ctx context.Context) ([]Finding, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	var all [][]Finding
	err := s.masters(ctx, func(ctx context.Context, c *redis.Client) error {
		found := s.server(ctx, c)
		s.index.mu.Lock()
		defer s.index.mu.Unlock()
		all = append(all, found)
		return nil
	})
	if err != nil {
		return nil, s.done(ctx, "examine", err)
	}
	var out []Finding
	for _, found := range all {
		out = append(out, found...)
	}
	if c, ok := s.client.(*redis.ClusterClient); ok {
		out = append(out, cluster(ctx, c))
	}
	return append(out, s.layout(ctx)), nil
}

func (s *Store) layout(ctx context.Context) Finding {
	f := Finding{Check: "layout", Severity: Fine}
	v, err := s.client.Get(ctx, s.prefix+"version").Int()
	f.Found = strconv.Itoa(v)
	switch {
	case err != nil:
		f.Severity, f.Found, f.Do = Severe, err.Error(), "the key "+s.prefix+"version says the layout: restore it"
	case v < layoutFirst || v > Version:
		f.Severity, f.Do = Severe, fmt.Sprintf("this program knows layouts up to %d: use one that knows %d", Version, v)
	}
	return f
}

// server looks at one server.
func (s *Store) server(ctx context.Context, c *redis.Client) []Finding {
	name := c.Options().Addr
	var out []Finding
	add := func(check string, sev Severity, found, do string) {
		if sev == Fine {
			do = ""
		}
		out = append(out, Finding{check, name, sev, found, do})
	}
	before := time.Now()
	at, err := c.Time(ctx).Result()
	if err != nil {
		add("reachable", Severe, err.Error(), "start the server, or correct the URL")
		return out
	}
	skew := at.Sub(before.Add(time.Since(before) / 2)).Round(time.Millisecond)
	add("clock", worseIf(skew.Abs() > MostSkew, Warning), skew.String()+" ahead of this machine",
		"synchronise the clocks: leases go by the server's, what people read by the workers'")
	info := infoOf(ctx, c)
	add("version", worseIf(!atLeast7(info["redis_version"]), Severe), orUnknown(info["redis_version"]), "Redis 7.0 or later is needed")
	s.memory(info, settings(ctx, c, "maxmemory-policy"), add)
	durable(info, settings(ctx, c, "save"), settings(ctx, c, "appendfsync"), add)
	n, _ := strconv.Atoi(info["connected_slaves"])
	switch {
	case n < s.replicas:
		add("replicas", Severe, fmt.Sprintf("%d, and %d must confirm each write", n, s.replicas), "start replicas, or lower WaitReplicas: nothing is written until then")
	case n > 0 && s.replicas == 0:
		add("replicas", Warning, fmt.Sprintf("%d, and none must confirm a write", n), "a fail-over may lose what was acknowledged: set WaitReplicas, or accept that it is noticed")
	default:
		add("replicas", Fine, strconv.Itoa(n), "")
	}
	return out
}

func worseIf(bad bool, s Severity) Severity {
	if bad {
		return s
	}
	return Fine
}

func orUnknown(s string) string {
	if s == "" {
		return "not said"
	}
	return s
}

func (s *Store) memory(info map[string]string, policy string, add func(string, Severity, string, string)) {
	if policy == "" {
		policy = info["maxmemory_policy"]
	}
	most, _ := strconv.ParseInt(info["maxmemory"], 10, 64)
	used, _ := strconv.ParseInt(info["used_memory"], 10, 64)
	switch {
	case policy == "":
		add("eviction", Warning, "maxmemory-policy is not said", "see that it is noeviction: allow CONFIG GET or INFO to this user")
	case policy != "noeviction":
		add("eviction", Severe, "maxmemory-policy is "+policy, "CONFIG SET maxmemory-policy noeviction: a server that evicts drops ledgers and budgets without a word")
	case most > 0 && used > most/10*9:
		add("eviction", Warning, fmt.Sprintf("noeviction, and %d of %d bytes are used", used, most), "raise maxmemory, or prune: when it is full nothing is written and nothing runs")
	default:
		add("eviction", Fine, policy, "")
	}
}

func durable(info map[string]string, save, fsync string, add func(string, Severity, string, string)) {
	const fix = "CONFIG SET appendonly yes, and appendfsync always where not even a second may be lost"
	aof, known := info["aof_enabled"]
	switch {
	case !known:
		add("persistence", Warning, "not said", "see that appendonly is yes: allow INFO to this user")
	case info["aof_last_write_status"] == "err":
		add("persistence", Severe, "appendonly yes, and the last write to the file failed", "see the server's log: its disk may be full")
	case aof == "1" && fsync == "no":
		add("persistence", Warning, "appendonly yes, appendfsync no", "CONFIG SET appendfsync everysec, or always")
	case aof == "1":
		add("persistence", Fine, strings.TrimSuffix("appendonly yes, appendfsync "+fsync, ", appendfsync "), "")
	case save != "":
		add("persistence", Warning, "snapshots alone, save "+save, "a crash loses what came after the last one: "+fix)
	default:
		add("persistence", Severe, "neither appendonly nor save", "a restart loses everything: "+fix)
	}
}

func cluster(ctx context.Context, c *redis.ClusterClient) Finding {
	f := Finding{Check: "cluster", Severity: Fine, Found: "ok"}
	info, err := c.ClusterInfo(ctx).Result()
	switch {
	case err != nil:
		f.Severity, f.Found, f.Do = Warning, err.Error(), "allow CLUSTER INFO to this user"
	case !strings.Contains(info, "cluster_state:ok"):
		f.Severity, f.Found, f.Do = Severe, "it is down", "see CLUSTER INFO: slots without a master, or too few masters"
	}
	return f
}

// infoOf is what INFO says, empty where the server does not say it.
func infoOf(ctx context.Context, c *redis.Client) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(c.Info(ctx).Val()) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			out[k] = v
		}
	}
	return out
}

// settings is a setting of the server, "" where it does not say it.
func settings(ctx context.Context, c *redis.Client, name string) string {
	return c.ConfigGet(ctx, name).Val()[name]
}

func atLeast7(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 7
}

// examineTime bounds what opening a store spends on looking at it.
const examineTime = 2 * time.Second

// warn says in the log what would lose state without a word.
func (s *Store) warn(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	found, err := s.Examine(ctx)
	if err != nil {
		log.Warn("the store could not be looked at", "error", err)
		return
	}
	for _, f := range found {
		if f.Severity == Severe || f.Severity == Warning && (f.Check == "eviction" || f.Check == "persistence") {
			log.Warn("the store may lose state", "check", f.Check, "server", f.Server, "found", f.Found, "do", f.Do)
		}
	}
}
