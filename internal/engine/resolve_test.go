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
	fold := func(untimed bool, cost action.Cost) risk.AxisForecast {
		tr, err := d.rules.Model.Track(risk.Belief{})
		require.NoError(t, err)
		for range 8 {
			_, err := learn(d.rules, d.agent, tr, ledger.Observed{Action: "charge", Declared: 2, Cost: cost, Untimed: untimed})
			require.NoError(t, err)
		}
		b := tr.End()
		return d.rules.Model.Forecast(b, risk.Declaration{Name: "charge", Risk: 2}).On(action.Duration)
	}
	assert.Equal(t, 8, fold(false, action.Cost{Calls: 1, Duration: time.Second}).N)
	assert.Zero(t, fold(true, action.Cost{Calls: 1}).N)
}
