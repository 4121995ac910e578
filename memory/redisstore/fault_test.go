package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

func open(t testing.TB, c redisstore.Config) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(context.Background(), c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// put is a transaction of task t that writes and records.
func put(agent, val string) *txn.Txn {
	return &txn.Txn{Agent: agent, Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{
		{Op: txn.Put, Scope: txn.Task, Key: "k", Val: val}, {Op: txn.Event, Scope: txn.Task, Val: val}}}
}

func TestScriptsAreSentAgainWhereTheServerForgotThem(t *testing.T) {
	srv := redistest.Start(t)
	for _, replicas := range []int{0, 1} {
		s := open(t, redisstore.Config{URL: srv.URL(), Prefix: fmt.Sprint("p", replicas), WaitReplicas: replicas, WaitTime: time.Millisecond})
		for i := range 3 {
			_, err := s.Apply(context.Background(), put("a", fmt.Sprint(i)))
			if replicas > 0 {
				require.ErrorIs(t, err, redisstore.ErrNotReplicated, "this server has no replica")
			} else {
				require.NoError(t, err)
			}
			require.NoError(t, srv.Client(t).ScriptFlush(context.Background()).Err())
		}
		rs, err := s.Records(context.Background(), "a", "t", 1, 9)
		require.NoError(t, err)
		assert.Len(t, rs, 3, "each once")
	}
}

func TestI15_NoServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, redisstore.Config{URL: srv.URL()})
	_, err := s.Apply(context.Background(), put("a", "1"))
	require.NoError(t, err)
	srv.Kill()
	require.Eventually(t, func() bool { // after five that fail; on a busy machine its second may be over before the next
		_, err = s.Apply(context.Background(), put("a", "2"))
		return assert.Error(t, err) && strings.Contains(err.Error(), "did not answer")
	}, 30*time.Second, time.Millisecond, "the breaker is open: no call waits for a server that is gone")
	require.NoError(t, srv.Start())
	require.Eventually(t, func() bool {
		_, err = s.Apply(context.Background(), put("a", "3"))
		return err == nil
	}, 30*time.Second, 20*time.Millisecond, "it is asked again")
	rs, err := s.Records(context.Background(), "a", "t", 1, 9)
	require.NoError(t, err)
	assert.Len(t, rs, 2, "what was acknowledged is there, what was refused is not")
}

func TestWhatCannotWorkIsSaid(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, "--requirepass", "hunter2")
	full := redistest.Start(t, "--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
	newer := redistest.Start(t)
	require.NoError(t, newer.Client(t).Set(context.Background(), "delta:version", 9, 0).Err())
	older := redistest.Start(t)
	require.NoError(t, older.Client(t).Set(context.Background(), "delta:version", 2, 0).Err())
	for _, c := range []struct{ name, url, want string }{
		{"no password", locked.URL(), "NOAUTH"},
		{"wrong password", "redis://:swordfish@" + locked.Addr, "WRONGPASS"},
		{"nobody there", "redis://127.0.0.1:1", "refused"},
		{"a newer layout", newer.URL(), "use a newer one"},
		{"a layout from before the first", older.URL(), "which no release wrote"},
		{"no such scheme", "http://localhost", "scheme"},
		{"no scheme", "127.0.0.1:6379", "want redis://host:6379/0"},
		{"a host alone", "localhost:6379", "want redis://host:6379/0"},
		{"no database", "redis://localhost/x", "database"},
		{"a sentinel set without a name", "redis+sentinel://localhost", "names the set"},
		{"no URL", "redis://a b:swordfish@x/%zz", "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := redisstore.Open(context.Background(), redisstore.Config{URL: c.url})
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "swordfish", "no secret in an error")
		})
	}
	t.Run("memory is full", func(t *testing.T) {
		s := open(t, redisstore.Config{URL: full.URL()})
		var err error
		n := 0
		for ; err == nil && n < 10_000; n++ {
			_, err = s.Apply(context.Background(), put("a", strings.Repeat("x", 10_000)))
		}
		require.ErrorContains(t, err, "OOM")
		rs, err := s.Records(context.Background(), "a", "t", 1, 10_000)
		require.NoError(t, err)
		assert.Len(t, rs, n-1, "all that was acknowledged, nothing of what was refused")
	})
}

func TestALossIsNoticed(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, redisstore.Config{URL: srv.URL()})
	other := open(t, redisstore.Config{URL: srv.URL()})
	ctx := context.Background()
	for i := range 3 {
		_, err := s.Apply(ctx, put("a", fmt.Sprint(i)))
		require.NoError(t, err)
	}
	_, err := other.Load(ctx, "a", "t", nil)
	require.NoError(t, err)
	c := srv.Client(t)
	require.NoError(t, c.HSet(ctx, "delta:{a}:task:t", "m", "0000000000000001"+"0000000000000001"+"0000000000000000"+"0000000000000001"+"00", "vk", "0000000000000001x").Err(), "as a lagging replica has it")
	_, err = s.Apply(ctx, put("a", "3"))
	var lost *memory.LostError
	require.ErrorAs(t, err, &lost)
	assert.Equal(t, memory.LostError{Agent: "a", Task: "t", Had: 3, Has: 2}, *lost)
	_, err = other.Load(ctx, "a", "t", nil)
	require.ErrorAs(t, err, &lost, "each who knew better")
	_, err = s.Apply(ctx, put("a", "4"))
	require.NoError(t, err, "said once: what is left counts from then on")
	_, err = open(t, redisstore.Config{URL: srv.URL()}).Load(ctx, "a", "t", nil)
	require.NoError(t, err, "who comes later cannot know")
}

// flaky is a proxy that delays and drops what it passes on.
type flaky struct {
	addr  string
	delay time.Duration
	drop  func(n int) bool // the n-th chunk of the server's answers
}

func (f *flaky) listen(t *testing.T, to string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.addr = l.Addr().String()
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			go f.pass(out, in, false)
			go f.pass(in, out, true)
		}
	}()
}

func (f *flaky) pass(to, from net.Conn, answers bool) {
	defer func() { _ = to.Close(); _ = from.Close() }()
	buf := make([]byte, 64<<10)
	for n := 0; ; n++ {
		k, err := from.Read(buf)
		if err != nil {
			return
		}
		if answers {
			time.Sleep(f.delay)
			if f.drop != nil && f.drop(n) {
				return
			}
		}
		if _, err := to.Write(buf[:k]); err != nil {
			return
		}
	}
}

// A begin whose answer is lost is asked again by the client, and gets its first answer: nothing is doubled.
func TestLostAnswersAndLatency(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	slow := &flaky{delay: 200 * time.Millisecond}
	slow.listen(t, srv.Addr)
	dropping := &flaky{drop: func(n int) bool { return n%5 == 4 }}
	dropping.listen(t, srv.Addr)
	ctx := context.Background()

	s := open(t, redisstore.Config{URL: "redis://" + slow.addr, Prefix: "slow"})
	_, err := s.Apply(ctx, put("a", "1"))
	require.NoError(t, err, "slow is not gone")
	brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = s.Load(brief, "a", "t", nil)
	require.ErrorIs(t, err, context.DeadlineExceeded, "who has no time does not wait")

	s = open(t, redisstore.Config{URL: "redis://" + dropping.addr, Prefix: "dropping"})
	for i := range 50 {
		id := fmt.Sprint("i", i)
		begin := &txn.Txn{Agent: "a", Task: "t", Phase: txn.Begin, Intent: id, Fence: 1, Owner: "w", TTL: 1e9, Clauses: []txn.Clause{
			{Op: txn.Count, Scope: txn.Task, Key: "n", N: 1, Min: txn.NoMin, Max: txn.NoMax}, {Op: txn.Event, Scope: txn.Task, Val: id}}}
		var r txn.Reply
		for range 5 {
			if r, err = s.Apply(ctx, begin); err == nil {
				break
			}
		}
		require.NoError(t, err)
		require.True(t, r.OK)
	}
	clear := open(t, redisstore.Config{URL: srv.URL(), Prefix: "dropping"})
	snap, err := clear.Load(ctx, "a", "t", nil)
	require.NoError(t, err)
	assert.EqualValues(t, 50, snap.Task.Counters["n"])
	rs, err := clear.Records(ctx, "a", "t", 1, 99)
	require.NoError(t, err)
	assert.Len(t, rs, 50)
}
