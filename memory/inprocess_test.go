package memory_test

import (
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keep is longer than what the cases let pass, but for those of what goes.
const keep = 48 * time.Hour

// open enrols the in-process store under a clock that stands still until it is advanced.
func open(tb testing.TB) memorytest.Instance {
	var now atomic.Int64
	now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	s := memory.New(memory.Config{Clock: func() time.Time { return time.UnixMicro(now.Load()) }, Keep: keep})
	tb.Cleanup(func() { _ = s.Close() })
	return memorytest.Instance{Store: s, Advance: func(d time.Duration) { now.Add(d.Microseconds()) }, Keep: keep}
}

// The in-process store is enrolled by what stands above; a store with a server needs no more.
func TestInProcess(t *testing.T) { memorytest.Run(t, open) }

func TestInProcessRandom(t *testing.T) { memorytest.Random(t, open(t), 2000, 1) }

func TestInProcessWorkload(t *testing.T) { memorytest.Workload(t, open(t), memorytest.Load{}) }
