package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

// How long a call took that nobody timed is not known, which is not to say that it took no time.
func TestUntimedIsNotLearned(t *testing.T) {
	d := open(t, plain())
	fold := func(more ...ledger.Observed) risk.AxisForecast {
		tr, err := d.rules.Model.Track(risk.Belief{})
		require.NoError(t, err)
		timed := ledger.Observed{Action: "charge", Declared: 2, Cost: action.Cost{Calls: 1, Duration: time.Second}}
		for _, o := range append([]ledger.Observed{timed, timed, timed, timed, timed, timed}, more...) {
			_, err := learn(d.rules, d.agent, tr, o)
			require.NoError(t, err)
		}
		return d.rules.Model.Forecast(tr.End(), risk.Declaration{Name: "charge", Risk: 2}).On(action.Duration)
	}
	unsaid := ledger.Observed{Action: "charge", Declared: 2, Cost: action.Cost{Calls: 1}}
	untimed := unsaid
	untimed.Untimed = true
	assert.Equal(t, fold(), fold(untimed, untimed))
	assert.NotEqual(t, fold(), fold(unsaid, unsaid))
}
