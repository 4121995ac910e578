package statespace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// A fact that outlasts its task answers only needs that asked for it, and for that age; an Ok of the task answers them all.
func TestLastingFactsAreKeptApart(t *testing.T) {
	on := []statespace.Bind{{Mine: "x", Theirs: "x"}}
	need := func(within time.Duration, across bool) []statespace.Need {
		return []statespace.Need{{Action: "a", Bind: on, Within: within, Across: across}}
	}
	g, err := statespace.Compile([]statespace.Node{{Name: "a"},
		{Name: "here", Needs: need(0, false)}, {Name: "brief", Needs: need(time.Minute, false)},
		{Name: "hour", Needs: need(time.Hour, true)}, {Name: "day", Needs: need(24*time.Hour, true)},
	})
	require.NoError(t, err)
	assert.True(t, g.Across())
	input := map[string]any{"x": "v"}
	f, err := g.Facts("a", input, nil)
	require.NoError(t, err)
	hour, day, plain := `^3600000000^a@x="v"`, `^86400000000^a@x="v"`, `a@x="v"`
	assert.Equal(t, []string{hour, day, plain}, f.Keys)
	d, ok := statespace.Lasting(hour)
	assert.True(t, ok)
	assert.Equal(t, time.Hour, d)
	_, ok = statespace.Lasting(plain)
	assert.False(t, ok)
	for key, want := range map[string][]string{hour: {"hour"}, day: {"day"}, plain: {"here", "brief"}} {
		s := g.NewSet()
		require.True(t, s.Put(key, 1))
		for _, name := range []string{"here", "brief", "hour", "day"} {
			_, unmet, err := s.Check(name, input, 1)
			require.NoError(t, err)
			if len(unmet) == 0 {
				assert.Contains(t, want, name, key)
			} else {
				assert.NotContains(t, want, name, key)
			}
		}
	}
	for _, n := range []statespace.Need{{Action: "a", Across: true}, {Action: "a", Across: true, Within: time.Hour, Consumed: true}} {
		_, err := statespace.Compile([]statespace.Node{{Name: "a"}, {Name: "b", Needs: []statespace.Need{n}}})
		assert.ErrorContains(t, err, "across tasks")
	}
}
