package approval_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/approval"
)

func TestADigesterMakesTheDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringN(0, 90, 200)
		agent, task, name, version, hash := part.Draw(t, "agent"), part.Draw(t, "task"), part.Draw(t, "action"), part.Draw(t, "version"), part.Draw(t, "hash")
		d := approval.NewDigester(agent, task, name, version, hash)
		other := approval.NewDigester(task, agent, name, version, hash)
		for range 3 {
			input := rapid.StringN(0, 700, 2000).Draw(t, "input")
			want := approval.Digest(agent, task, name, version, hash, input)
			require.Equal(t, "before"+want, string(d.Append([]byte("before"), []byte(input))))
			require.Equal(t, agent == task, string(other.Append(nil, []byte(input))) == want)
		}
	})
}

func TestADigesterAllocatesNothing(t *testing.T) {
	d, input, dst := approval.NewDigester("clerk", "t", "charge", "1", "hash"), make([]byte, 3000), make([]byte, 0, 64)
	assert.Less(t, testing.AllocsPerRun(100, func() { dst = d.Append(dst[:0], input) }), 0.5)
}

// Digests of calls that are made at the same time are those of the calls, whoever's memory they were made in.
func TestDigestersAtTheSameTime(t *testing.T) {
	d := approval.NewDigester("agent", "task", "pay", "1", "hash")
	var all sync.WaitGroup
	for i := range 8 {
		input := fmt.Sprintf(`{"n":%d}`, i)
		want := approval.Digest("agent", "task", "pay", "1", "hash", input)
		all.Go(func() {
			for range 500 {
				if got := string(d.Append(nil, []byte(input))); got != want {
					t.Errorf("of %s: %s, want %s", input, got, want)
					return
				}
			}
		})
	}
	all.Wait()
}
