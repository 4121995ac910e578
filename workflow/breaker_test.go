package workflow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-ab2cfece/delta-agents/workflow"
)

func ExampleBreaker_Open() {
	b := workflow.Breaker{Failures: 2, Window: time.Minute, Cooldown: 10 * time.Minute}
	at := func(d time.Duration) int64 { return d.Microseconds() }
	until := b.Open([]int64{at(10 * time.Second), at(30 * time.Second)}, at(time.Minute))
	fmt.Println(time.Duration(until) * time.Microsecond)
	// Output: 10m30s
}

func TestBreakerOpen(t *testing.T) {
	b := workflow.Breaker{Failures: 3, Window: 10 * time.Second, Cooldown: 60 * time.Second}
	for _, c := range []struct {
		name     string
		failures []int64 // s
		now      int64
		until    int64
	}{
		{"none", nil, 0, 0},
		{"too few", []int64{1, 2}, 3, 0},
		{"enough", []int64{1, 2, 3}, 3, 63},
		{"until it has cooled down", []int64{1, 2, 3}, 62, 63},
		{"then not", []int64{1, 2, 3}, 63, 0},
		{"spread out", []int64{1, 6, 12}, 12, 0},
		{"at the edge of the window", []int64{1, 2, 11}, 11, 0},
		{"within it", []int64{2, 3, 11}, 11, 71},
		{"those under way when it tripped", []int64{1, 2, 3, 4, 5}, 5, 63},
		{"so many that it trips again", []int64{1, 2, 3, 4, 5, 6}, 6, 66},
		{"what tripped it is forgotten", []int64{1, 2, 3, 64, 65}, 65, 0},
		{"and counts anew", []int64{1, 2, 3, 64, 65, 66}, 66, 126},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := make([]int64, len(c.failures))
			for i, s := range c.failures {
				at[i] = s * 1_000_000
			}
			assert.Equal(t, c.until*1_000_000, b.Open(at, c.now*1_000_000))
		})
	}
}
