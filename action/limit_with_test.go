package action_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func TestWithBoundsOneAxisAndNoOther(t *testing.T) {
	for a := range action.AxisCount {
		l := action.Limit{Currency: "EUR"}.With(a, 7)
		for b := range action.AxisCount {
			n, bounded := l.On(b).Get()
			assert.Equal(t, a == b, bounded, "%s of a limit on %s", b, a)
			if a == b {
				assert.Equal(t, int64(7), n)
			}
		}
		assert.Equal(t, "EUR", l.Currency)
	}
}
