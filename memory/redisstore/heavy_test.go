//go:build heavy

package redisstore_test

import (
	"testing"

	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
)

// Invariants alone miss what a comparison of every reply with the reference finds.
func TestHeavyRandomAgainstTheReference(t *testing.T) {
	open := opener(redistest.Start(t).URL())
	for seed := range uint64(3) {
		memorytest.Random(t, open(t), 10_000, 100+seed)
	}
}
