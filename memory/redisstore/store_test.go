package redisstore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var tenants atomic.Int64

// keep is longer than a few transactions take on a busy machine.
const keep = 600 * time.Millisecond

// opener opens stores on one server, each under a prefix of its own.
func opener(url string) memorytest.Open { return keeping(url, keep) }

func keeping(url string, keep time.Duration) memorytest.Open {
	return func(tb testing.TB) memorytest.Instance {
		s, err := redisstore.Open(context.Background(), redisstore.Config{URL: url, Prefix: fmt.Sprint("t", tenants.Add(1)), Keep: keep})
		require.NoError(tb, err)
		tb.Cleanup(func() { _ = s.Close() })
		return memorytest.Instance{Store: s, Advance: time.Sleep, Keep: keep}
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	memorytest.Run(t, opener(redistest.Start(t).URL()))
}

func TestRandomAgainstTheReference(t *testing.T) {
	t.Parallel()
	open := keeping(redistest.Start(t).URL(), -1)
	memorytest.Random(t, open(t), 1500, 7)
}

func TestContractOnACluster(t *testing.T) {
	t.Parallel()
	memorytest.Run(t, opener(redistest.StartCluster(t, 3, 0).URL()))
}
