//go:build heavy

package redisstore_test

import (
	"testing"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
)

// Invariants alone miss what a comparison of every reply with the reference finds.
func TestHeavyRandomAgainstTheReference(t *testing.T) {
	for name, url := range map[string]string{"server": redistest.Start(t).URL(), "cluster": redistest.StartCluster(t, 3, 0).URL()} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				memorytest.Random(t, keeping(url, -1)(t), 10_000, 100+seed)
			}
		})
	}
}
