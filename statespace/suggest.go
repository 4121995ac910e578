package statespace

import (
	"errors"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// ErrUnknown is found in every error about a name that is no action of the agent.
var ErrUnknown = errors.New("there is no such action")

// unknown says that a name is unknown and which one may have been meant.
func unknown(name string, held, others []string) error {
	best, at := "", max(2, len(name)/3)+1
	for _, list := range [][]string{held, others} {
		for _, c := range list {
			d := distance(name, c)
			if action.Skeleton(c) == action.Skeleton(name) {
				d = 0
			}
			if d < at && c != name {
				best, at = c, d
			}
		}
	}
	if best == "" {
		return ErrUnknown
	}
	return fmt.Errorf("%w; did you mean %s?", ErrUnknown, best)
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost = 1 + min(diag, row[j], row[j+1])
			}
			diag, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
