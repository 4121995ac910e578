package memory_test

import (
	"testing"

	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
)

func BenchmarkInProcess(b *testing.B) { memorytest.Bench(b, open) }
