//go:build heavy

package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
)

func TestHeavyInProcess(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("random/", seed), func(t *testing.T) { memorytest.Random(t, open(t), 10_000, seed) })
		t.Run(fmt.Sprint("workload/", seed), func(t *testing.T) {
			memorytest.Workload(t, open(t), memorytest.Load{Workers: 16, Intents: 800, Seed: seed, Lost: 0.15})
		})
	}
}

// The wall clock is a clock too: the suite holds where advancing means sleeping.
func TestHeavyWallClock(t *testing.T) {
	memorytest.Run(t, func(tb testing.TB) memorytest.Instance {
		s := memory.New(memory.Config{})
		tb.Cleanup(func() { _ = s.Close() })
		return memorytest.Instance{Store: s, Advance: time.Sleep}
	})
}
