package redis_test

import (
	"fmt"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/audit"
	"github.com/seed-ab2cfece/delta-agents/audit/redis"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// However often an entry is brought, and by whom, the stream has it once.
func TestAnEntryIsThereOnce(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	write := func(ledger string, seqs ...int64) {
		sink, err := redis.New(redis.Config{Client: client, Stream: "trail"})
		require.NoError(t, err)
		var entries []audit.Entry
		for _, s := range seqs {
			entries = append(entries, audit.Entry{Ledger: ledger, Seq: s, Event: "note", Agent: "a"})
		}
		require.NoError(t, sink.Write(t.Context(), entries))
		require.NoError(t, sink.Close())
	}
	write("a~t", 1, 2)
	write("a~t", 1, 2, 3)
	write("a~u", 1)
	write("a~t", 2)
	got, err := client.XRange(t.Context(), "{trail}", "-", "+").Result()
	require.NoError(t, err)
	var have []string
	for _, m := range got {
		have = append(have, fmt.Sprint(m.Values["ledger"], m.Values["seq"]))
		assert.Contains(t, m.Values["entry"], `"event":"note"`)
	}
	assert.Equal(t, []string{"a~t1", "a~t2", "a~t3", "a~u1"}, have)

	server.Kill()
	sink, err := redis.New(redis.Config{Client: client})
	require.NoError(t, err)
	assert.ErrorContains(t, sink.Write(t.Context(), []audit.Entry{{Ledger: "a", Seq: 1}}), "audit redis")
}

func TestTheStreamIsBounded(t *testing.T) {
	client := redistest.Start(t).Client(t)
	sink, err := redis.New(redis.Config{Client: client, MaxLen: 10})
	require.NoError(t, err)
	for i := range 5 {
		var entries []audit.Entry
		for j := range 100 {
			entries = append(entries, audit.Entry{Ledger: "a", Seq: int64(100*i + j + 1)})
		}
		require.NoError(t, sink.Write(t.Context(), entries))
	}
	n, err := client.XLen(t.Context(), "{audit}").Result()
	require.NoError(t, err)
	assert.Less(t, n, int64(250))
}

func TestWhatCannotBe(t *testing.T) {
	_, err := redis.New(redis.Config{})
	require.ErrorContains(t, err, "no Client")
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	_, err = redis.New(redis.Config{Client: client, MaxLen: -1})
	require.ErrorContains(t, err, "negative")
}

func ExampleNew() {
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	config := redis.Config{Client: client, Stream: "audit", MaxLen: 1_000_000}
	sink, err := redis.New(config)
	if err != nil {
		panic(err)
	}
	positions, err := redis.NewPositions(config) // to go on after a restart
	if err != nil {
		panic(err)
	}
	trail, err := audit.New(audit.Config{Sink: sink, Positions: positions})
	fmt.Println(trail != nil, err != nil) // where there is no server
	// Output: false true
}
