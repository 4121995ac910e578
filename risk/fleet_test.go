package risk_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/risk"
)

func TestToolsSharedAcrossAgents(t *testing.T) {
	f, err := risk.NewFleet(risk.Config{})
	require.NoError(t, err)
	broken := risk.Declaration{Name: "broken", Risk: 2}
	sound := risk.Declaration{Name: "sound", Risk: 2}
	for i := range 40 {
		agent := []string{"a", "b", "c"}[i%3]
		_, err := f.Observe(agent, broken, risk.Observation{Err: i%4 > 0})
		require.NoError(t, err)
		_, err = f.Observe(agent, sound, risk.Observation{})
		require.NoError(t, err)
	}
	assert.Greater(t, f.Risk("new", broken).P, 2*f.Risk("new", sound).P, "a tool is known before an agent used it")
	assert.Zero(t, f.Risk("new", broken).N)
	assert.InDelta(t, .385, f.Trust("new").Score, 5e-4, "trust is its own")
	assert.EqualValues(t, 20, f.Trust("a").Ok+f.Trust("a").Err-8)

	before := f.Risk("a", sound)
	_, err = f.Observe("a", risk.Declaration{Name: "sound"}, risk.Observation{})
	assert.ErrorContains(t, err, `action "sound": declared risk is 0`)
	_, err = f.Observe("", sound, risk.Observation{})
	assert.ErrorContains(t, err, "agent: name is empty")
	assert.Equal(t, before, f.Risk("a", sound))
	assert.Equal(t, 1., f.Risk("a b", sound).P)
	long := strings.Repeat("x", 128)
	_, err = f.Observe(long, risk.Declaration{Name: long, Risk: 2}, risk.Observation{})
	assert.NoError(t, err)
	_, err = risk.NewFleet(risk.Config{Tags: []string{"x"}})
	assert.ErrorContains(t, err, "Tags")
}
