package schema

import (
	"slices"
	"strings"
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
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if d <= max(1, max(len(name), len(k))/3) && (bestDistance < 0 || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance is the Damerau-Levenshtein distance, transpositions of neighbours counting once.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row := make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}
