package engine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func TestGuidanceSaysWhatBeganToFail(t *testing.T) {
	s := plain()
	s.Threshold = 6
	d := open(t, s)
	lines := func(names ...string) string {
		var offered []action.Offered
		for _, n := range names {
			offered = append(offered, action.Offered{Name: n})
		}
		return strings.Join(RiskGuidance(d.rules, d.agent, d.look(), offered), "\n")
	}
	for range 20 {
		d.ok("list", `{}`, `{"open":["A"]}`)
	}
	require.Empty(t, lines("list", "confirm"))
	for range 4 {
		d.fail("list", `{}`, action.Failed)
	}
	require.Contains(t, lines("list", "confirm"), "list fails more often than it used to")
	require.NotContains(t, lines("confirm"), "list", "what is not offered is not named")
	require.Empty(t, lines("confirm"), "one action alone fails: nothing is known of the others")
	require.NotContains(t, lines("list", "confirm"), "whichever action")
	for range recentRuns {
		d.ok("list", `{}`, `{"open":["A"]}`)
	}
	require.Empty(t, lines("list"), "old news")
}

func TestGuidanceSaysWhenSeveralActionsBeganToFail(t *testing.T) {
	s := plain()
	s.Threshold = 6
	d := open(t, s)
	for range 20 {
		d.ok("list", `{}`, `{"open":["A"]}`)
		d.ok("confirm", `{"order":"A"}`, `{"state":"confirmed"}`)
	}
	for range 3 {
		d.fail("list", `{}`, action.Failed)
		d.fail("confirm", `{"order":"A"}`, action.Failed)
	}
	lines := RiskGuidance(d.rules, d.agent, d.look(), []action.Offered{{Name: "list"}, {Name: "charge"}})
	require.NotEmpty(t, lines)
	require.Equal(t, "Calls fail more often than they used to, whichever action: find out why before going on.", lines[len(lines)-1])
	for _, l := range lines {
		require.Regexp(t, `^[A-Z].*[^ ]\.$`, l, "a sentence")
	}
}
