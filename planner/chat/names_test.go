package chat

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
)

var allowed = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestWireNames(t *testing.T) {
	n := newNames()
	n.add([]string{"a.b", "a/b", "a_b", "finish", "plain", strings.Repeat("x", 100)})
	tests := []struct{ name, want, reason string }{
		{"plain", "plain", "it is allowed as it is"},
		{"a_b", "a_b", "it is allowed, so no made-up name takes it"},
		{"a.b", "a_b-2e7336dc", "a piece of its hash keeps it apart"},
		{"a/b", "a_b-c14cddc0", "from this one too"},
		{"finish", "finish-42af43e3", "the tool that ends a run has the name"},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, n.of(tt.name), tt.reason)
	}
	assert.Len(t, n.of(strings.Repeat("x", 100)), 64)
	assert.Equal(t, "never-offered", n.actionOf("never-offered"), "the engine says that it does not exist")
}

// A made-up name that an action has already moves on.
func TestWireNamesThatAreTaken(t *testing.T) {
	n := newNames()
	first := n.of("a.b")
	taken := newNames()
	taken.add([]string{"a.b", first})
	assert.Equal(t, first, taken.of(first), "the action's own name")
	assert.NotEqual(t, first, taken.of("a.b"))
	assert.Equal(t, "a.b", taken.actionOf(taken.of("a.b")))
	later := newNames()
	later.add([]string{"a.b"})
	later.add([]string{first})
	assert.NotEqual(t, first, later.of(first), "offered later, when the name had a meaning")
	assert.Equal(t, first, later.actionOf(later.of(first)))
}

// Whatever is offered in whatever order: names are allowed, different, and lead back.
func TestWireNamesLeadBack(t *testing.T) {
	name := rapid.StringMatching(`[a-z_][a-z_./-]{0,5}|finish|[a-z./]{60,128}`)
	rapid.Check(t, func(rt *rapid.T) {
		n, seen := newNames(), map[string]string{}
		for range rapid.IntRange(1, 4).Draw(rt, "offers") {
			offer := rapid.SliceOf(name).Draw(rt, "offer")
			n.add(offer)
			for _, a := range offer {
				w := n.of(a)
				require.Regexp(rt, allowed, w)
				require.NotEqual(rt, finishTool, w)
				require.Equal(rt, a, n.actionOf(w))
				require.Contains(rt, []string{"", a}, seen[w])
				seen[w] = a
			}
		}
		for w, a := range seen {
			require.Equal(rt, a, n.actionOf(w), "a name keeps its meaning")
		}
	})
}

func TestEveryActionNameHasAWireName(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}`).Draw(rt, "name")
		require.NoError(rt, action.CheckName(a))
		require.Regexp(rt, allowed, newNames().of(a))
		require.Regexp(rt, allowed, newNames().echo(a))
	})
	for _, odd := range []string{"", "ü", "a b", "<tool>", strings.Repeat("é", 90)} {
		assert.Regexp(t, allowed, newNames().echo(odd), "a model may call anything")
	}
}
