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
	require.Contains(t, lines("confirm"), "whichever action")
	for range recentRuns {
		d.ok("list", `{}`, `{"open":["A"]}`)
	}
	require.Empty(t, lines("list"), "old news")
}
