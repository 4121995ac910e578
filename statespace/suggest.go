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
			d := action.Distance(name, c)
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
