package replay

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Whatever a recording calls its tools, every one gets a name of its own that an agent's Build takes.
func TestNamesAreTakenAndComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.StringN(1, 8, -1), rapid.StringOfN(rapid.RuneFrom([]rune("aA0oO1lIm-_./x")), 1, 6, -1), rapid.StringN(100, 200, -1))
		originals := rapid.SliceOfNDistinct(word, 1, 12, func(s string) string { return s }).Draw(t, "names")
		originals = append(originals, escape(originals[0]))
		n := newNames(originals)
		alike := map[string]string{}
		for _, s := range originals {
			name := n.to[s]
			require.NoError(t, action.CheckName(name), s)
			require.False(t, strings.HasPrefix(name, "delta."), s)
			require.Equal(t, s, n.from[name])
			k := action.Skeleton(name)
			if other, taken := alike[k]; taken {
				require.Equal(t, other, s, "two names read alike")
			}
			alike[k] = s
		}
	})
}

func TestNames(t *testing.T) {
	long := strings.Repeat("é", 40)
	n := newNames([]string{"get_user", "get-user", "a b", "delta.plan", "ok", long, "escaped-6f6b"})
	assert.Equal(t, "ok", n.to["ok"], "kept where it can be")
	assert.Equal(t, "get-user", n.to["get-user"], "the first of those that read alike")
	assert.Equal(t, "escaped-6765745f75736572", n.to["get_user"])
	assert.Equal(t, "escaped-612062", n.to["a b"])
	assert.Equal(t, "escaped-64656c74612e706c616e", n.to["delta.plan"], "reserved")
	assert.Regexp(t, "^escaped-z[0-9a-f]{64}$", n.to[long])
	assert.NotEqual(t, "escaped-6f6b", n.to["escaped-6f6b"], "it would read as ok")
}
