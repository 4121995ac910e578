package schema

import (
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// didYouMean returns `, did you mean "x"?` for the known name closest to name, or "" where none is close.
func didYouMean(name string, known []string) string {
	if best := closest(name, known); best != "" {
		return ", did you mean " + quote(best) + "?"
	}
	return ""
}

// closest returns the known name with the smallest edit distance that is at most a third of the longer of the two names
// (at least one), case apart; the first in order where several are as close.
func closest(name string, known []string) string {
	if len(name) > maxShown {
		return ""
	}
	best, bestDistance := "", -1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if len(k) > maxShown {
			continue
		}
		d := action.Distance(strings.ToLower(name), strings.ToLower(k))
		if d <= max(1, max(len(name), len(k))/3) && (bestDistance < 0 || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best
}
