//go:build heavy

package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
)

// Invariants alone miss what a comparison of every reply with the reference finds. Each seed has a server of its own: they
// run beside each other.
func TestHeavyRandomAgainstTheReference(t *testing.T) {
	urls := map[string]func(testing.TB) string{
		"server":  func(tb testing.TB) string { return redistest.Start(tb).URL() },
		"cluster": func(tb testing.TB) string { return redistest.StartCluster(tb, 3, 0).URL() },
	}
	for name, start := range urls {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				t.Parallel()
				memorytest.Random(t, keeping(start(t), -1)(t), 10_000, 100+seed)
			})
		}
	}
}
