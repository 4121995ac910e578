//go:build heavy

package engine

import (
	"testing"

	"pgregory.net/rapid"
)

// The random runs of the unit tests, longer.

func TestHeavyI14_StateIsTheFoldOfTheLedger(t *testing.T) { heavy(t, foldOfTheLedger, 200) }

func TestHeavyDecisionsAreTrueAtTheirPlace(t *testing.T) { heavy(t, decisionsAreTrueAtTheirPlace, 60) }

func TestHeavyI06_Approvals(t *testing.T) { heavy(t, approvalsRunWhatTheyShowedOnce, 200) }

func TestHeavyI06_Quorum(t *testing.T) { heavy(t, quorumUnderAnyOrder, 200) }

func TestHeavyI07_NoGrantExceedsALimit(t *testing.T) { heavy(t, noGrantExceedsALimit, 200) }

func TestHeavyI03_OfferIsTheLegalSet(t *testing.T) { heavy(t, offerIsTheLegalSet, 80) }

// heavy runs a property on twenty times as many runs as the unit tests do, each of n steps.
func heavy(t *testing.T, property func(*rapid.T, int), n int) {
	for range 20 {
		rapid.Check(t, func(r *rapid.T) { property(r, n) })
	}
}
