package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Version is the newest layout of keys and values that this program knows; [Open] refuses a newer one. What is stored has the
// oldest that can express it: layout 4 is layout 3 with an agent's own ledger that does not begin with its first record, and a
// store gets it with the first [Store.Cut]. Programs that know layout 3 alone do not open it any more; those that have it open
// must be gone before. Layouts 1 and 2 were never released.
const Version = 4

const (
	layoutFirst = 3
	layoutCut   = 4
)

// Config says where the state is held. Its zero value is the server at localhost:6379.
type Config struct {
	// URL names the server:
	//
	//	redis://user:password@host:6379/0            one server; rediss:// with TLS
	//	unix:///run/redis/redis.sock?db=0            one server, by its socket
	//	redis+cluster://host1:6379,host2:6379        a cluster; rediss+cluster:// with TLS
	//	redis+sentinel://host1:26379,host2:26379/mymaster/0   a Sentinel set; rediss+sentinel:// with TLS
	URL string
	// User and Password replace those of the URL: what stands in a URL is easily logged.
	User, Password string
	// SentinelUser and SentinelPassword are for the sentinels of a set, which have users of their own.
	SentinelUser, SentinelPassword string
	// CAFile, CertFile and KeyFile are PEM files for TLS: who signs the server's certificate, and the client's own.
	CAFile, CertFile, KeyFile string
	// ServerName is what a server's certificate must be for. Default: the host of each connection, which for the nodes of a
	// cluster and the servers of a Sentinel set is how they announce themselves.
	ServerName string
	// Prefix separates tenants on one server: every key starts with it and a colon. Default "delta".
	Prefix string
	// Dial, Read and Write bound the steps of one exchange with the server. Defaults 500 ms, 2 s, 2 s.
	Dial, Read, Write time.Duration
	// Pool bounds the connections to a server. Default 10 for each processor.
	Pool int
	// WaitReplicas is how many replicas must confirm a transaction before it counts as written; it costs their delay and
	// no further trip. 0: a fail-over may lose what was acknowledged, which is noticed, see [memory.LostError].
	WaitReplicas int
	// WaitTime is how long they may take. Default 1 s.
	WaitTime time.Duration
	// Keep is how long intents and tasks that ended are kept at least, see [memory.Store]. As long as a call is kept, its
	// repeat gets its outcome again; later, as long as its task is there, it is refused and does not run. Default 7 days; less
	// than 0 keeps all.
	Keep time.Duration
	// Log is told once, when the store is opened, of servers that may lose state: those that evict, or that persist nothing.
	// Nil: nobody is, and they are not looked at.
	Log *slog.Logger
	// Notes bounds what each agent remembers; nothing is dropped, more is an error. Default 10,000.
	Notes int
}

func (c Config) withDefaults() Config {
	set(&c.URL, "redis://localhost:6379")
	set(&c.Prefix, "delta")
	set(&c.Dial, 500*time.Millisecond)
	set(&c.Read, 2*time.Second)
	set(&c.Write, 2*time.Second)
	set(&c.WaitTime, time.Second)
	set(&c.Keep, 7*24*time.Hour)
	set(&c.Notes, 10_000)
	return c
}

func keep(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return max(d, time.Millisecond).Microseconds()
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// check reports settings that cannot be meant.
func (c *Config) check() error {
	switch {
	case strings.ContainsAny(c.Prefix, "{}:* \t\r\n"):
		return fmt.Errorf("redis: prefix %q: want no braces, colons, stars or blanks", c.Prefix)
	case c.WaitReplicas < 0 || c.WaitTime < time.Millisecond:
		return errors.New("redis: WaitReplicas is negative, or WaitTime less than a millisecond")
	case c.Dial < 0 || c.Read < 0 || c.Write < 0 || c.Pool < 0 || c.Notes < 0:
		return errors.New("redis: a timeout, the pool or the number of notes is negative")
	}
	return nil
}

// Open connects to the server and checks that the store can work with it.
func Open(ctx context.Context, c Config) (*Store, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	o, cluster, err := c.options()
	if err != nil {
		return nil, err
	}
	var client redis.UniversalClient
	switch {
	case cluster:
		client = redis.NewClusterClient(clusterOptions(o))
	case o.MasterName != "":
		client = redis.NewFailoverClient(o.Failover())
	default:
		client = redis.NewClient(o.Simple())
	}
	s, err := New(ctx, client, c)
	if err != nil {
		return nil, errors.Join(mismatched(ctx, err, o.TLSConfig != nil), client.Close())
	}
	s.owned = true
	return s, nil
}

// mismatched says where one side speaks TLS and the other does not, which looks like silence or a broken connection.
func mismatched(ctx context.Context, err error, secure bool) error {
	switch {
	case secure && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Errorf("%w; does the server speak TLS at that port? Without it the URL begins with redis, not rediss", err)
	case !secure && errors.Is(err, io.EOF):
		return fmt.Errorf("%w; does the server speak TLS at that port? With it the URL begins with rediss", err)
	}
	return err
}

// New makes a store of a client that the caller configured and closes. Of the configuration, Prefix, WaitReplicas, WaitTime,
// Keep, Log and Notes count.
func New(ctx context.Context, client redis.UniversalClient, c Config) (*Store, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Store{
		client: client, run: shipped, prefix: c.Prefix + ":", notes: c.Notes,
		batch: &batcher{client: client}, breaker: newBreaker(), keep: keep(c.Keep), replicas: c.WaitReplicas, waitTime: c.WaitTime,
	}
	if err := s.checkVersion(ctx); err != nil {
		return nil, err
	}
	if c.Log != nil {
		s.warn(ctx, c.Log)
	}
	return s, nil
}

// checkVersion claims the layout for this version, or refuses one that it does not know.
func (s *Store) checkVersion(ctx context.Context) error {
	key := s.prefix + "version"
	if err := s.client.SetNX(ctx, key, layoutFirst, 0).Err(); err != nil {
		return s.done(ctx, "open", err)
	}
	v, err := s.client.Get(ctx, key).Int()
	switch {
	case err != nil:
		return s.done(ctx, "open", err)
	case v > Version:
		return fmt.Errorf("redis: the state under %q has layout %d and this program knows %d: use a newer one", s.prefix, v, Version)
	case v < layoutFirst:
		return fmt.Errorf("redis: the state under %q has layout %d, which no release wrote; the first is %d: use another prefix", s.prefix, v, layoutFirst)
	}
	return nil
}

// raise gives the store a newer layout, before anything is written that needs it.
func (s *Store) raise(ctx context.Context, layout int) error {
	key := s.prefix + "version"
	v, err := s.client.Get(ctx, key).Int()
	if err == nil && v < layout { // two who raise it write the same, or one after the other what is newer
		err = s.client.Set(ctx, key, layout, 0).Err()
	}
	return s.done(ctx, "raise the layout", err)
}

// forms are those that a URL has.
const forms = "redis://host:6379/0, rediss://host:6379/0, unix:///path?db=0, redis+cluster://h1,h2 or redis+sentinel://h1,h2/name/0"

// Quiet drops what the driver logs by itself, on standard error and in its own form, for the whole process: connections that
// fail, mostly, which the errors of the store say too. It is for programs; call it before the first Open.
func Quiet() { redis.SetLogger(quiet{}) }

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func (c *Config) options() (o *redis.UniversalOptions, cluster bool, err error) {
	o = &redis.UniversalOptions{
		DialTimeout: c.Dial, ReadTimeout: c.Read, WriteTimeout: c.Write, PoolSize: c.Pool, ContextTimeoutEnabled: true,
		MaxRetries: 2, DialerRetries: 1, MinRetryBackoff: 8 * time.Millisecond, MaxRetryBackoff: 256 * time.Millisecond,
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, false, errors.New("redis: the URL cannot be read; want " + forms) // its text may hold a password
	}
	scheme, kind, _ := strings.Cut(u.Scheme, "+")
	if u.Scheme == "unix" {
		scheme = "redis"
		o.Addrs = []string{u.Path}
		o.DB, err = db(u.Query().Get("db"))
	} else {
		err = c.hosts(o, u, kind)
	}
	if err != nil {
		return nil, false, err
	}
	switch scheme {
	case "redis":
	case "rediss":
		if o.TLSConfig, err = c.tls(); err != nil {
			return nil, false, err
		}
	default:
		return nil, false, fmt.Errorf("redis: scheme %q of the URL is none; want "+forms, u.Scheme)
	}
	o.Username = u.User.Username()
	o.Password, _ = u.User.Password()
	if c.User != "" {
		o.Username = c.User
	}
	if c.Password != "" {
		o.Password = c.Password
	}
	o.SentinelUsername, o.SentinelPassword = c.SentinelUser, c.SentinelPassword
	return o, kind == "cluster", nil
}

// hosts reads the part of a URL that says where the servers are.
func (c *Config) hosts(o *redis.UniversalOptions, u *url.URL, kind string) (err error) {
	port := ":6379"
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch kind {
	case "":
		o.DB, err = db(path[0])
	case "cluster":
		if path[0] != "" && path[0] != "0" {
			err = errors.New("redis: a cluster has database 0 alone")
		}
	case "sentinel":
		port = ":26379"
		if o.MasterName = path[0]; path[0] == "" {
			return errors.New("redis: a sentinel URL names the set behind the hosts: redis+sentinel://host:26379/mymaster/0")
		}
		if len(path) > 1 {
			o.DB, err = db(path[1])
		}
	default:
		return fmt.Errorf("redis: scheme %q of the URL is none; want "+forms, u.Scheme)
	}
	for _, h := range strings.Split(u.Host, ",") {
		if h == "" {
			h = "localhost"
		}
		if !strings.Contains(h[strings.LastIndex(h, "]")+1:], ":") {
			h += port
		}
		o.Addrs = append(o.Addrs, h)
	}
	return err
}

func db(s string) (n int, err error) {
	if s == "" {
		return 0, nil
	}
	if _, err := fmt.Sscanf(s+"\n", "%d\n", &n); err != nil || n < 0 {
		return 0, fmt.Errorf("redis: database %q of the URL: want a number", s)
	}
	return n, nil
}

// clusterOptions follow a fail-over within seconds instead of the client's default of most of a minute.
func clusterOptions(u *redis.UniversalOptions) *redis.ClusterOptions {
	o := u.Cluster()
	o.ClusterStateReloadInterval = time.Second
	return o
}

func (c *Config) tls() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("redis: certificate authority: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("redis: certificate authority %s holds no certificate", c.CAFile)
		}
	}
	if c.CertFile != "" || c.KeyFile != "" {
		own, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("redis: client certificate: %w", err)
		}
		t.Certificates = []tls.Certificate{own}
	}
	return t, nil
}
