package riskbench

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A stream depends on its scenario and its seed alone. The digits guard the definition: whoever changes it changes every
// published number.
func TestStreamsAreReproducible(t *testing.T) {
	errs := func(s Stream) (n int) {
		for _, x := range s.Steps {
			if x.Err {
				n++
			}
		}
		return n
	}
	got := map[string]int{}
	for _, s := range scenarios {
		assert.Equal(t, s.Stream(7), s.Stream(7), s.Name)
		assert.NotEqual(t, s.Stream(7).Steps, s.Stream(8).Steps, s.Name)
		got[s.Name] = errs(s.Stream(7))
	}
	for _, f := range families {
		assert.Equal(t, f.Stream(7), f.Stream(7), f.Name)
		got[f.Name] = errs(f.Stream(7))
	}
	text, err := json.Marshal(got)
	require.NoError(t, err)
	assert.JSONEq(t, `{"H1":144, "H2":260, "H3":177, "bursty":145, "ramp":155, "rare":1, "recovery":92, "sleeper":628, "slow":61,
		"stationary-01":13, "stationary-05":46, "stationary-20":205, "stationary-35":346, "step":345}`, string(text))
}

func TestStreamsAreWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		name       string
		at         int
		want       float64
		declared   int
		everywhere bool
	}{
		{"stationary-01", 0, .01, 1, true},
		{"stationary-05", 0, .05, 1, true},
		{"stationary-20", 0, .20, 3, true},
		{"stationary-35", 0, .35, 2, true},
		{"rare", 0, .002, 1, true},
		{"step", 199, .02, 1, false},
		{"step", 200, .4, 1, false},
		{"sleeper", 199, .002, 1, false},
		{"sleeper", 200, .8, 1, false},
		{"recovery", 199, .4, 1, false},
		{"recovery", 200, .02, 1, false},
		{"ramp", 200, sigma(-4), 1, false},
		{"ramp", 500, sigma(-2.25), 1, false},
		{"ramp", 999, sigma(-.5), 1, false},
	} {
		s := scenarioOf(t, c.name)
		x := s.Stream(3)
		require.Len(t, x.Steps, horizon)
		assert.Equal(t, c.declared, x.Actions[0].Declared, c.name)
		assert.InDelta(t, c.want, x.Steps[c.at].P, 1e-12, "%s at %d", c.name, c.at)
		if c.everywhere {
			assert.InDelta(t, c.want, x.Steps[horizon-1].P, 1e-12, c.name)
		}
	}
}

func scenarioOf(t require.TestingT, name string) Scenario {
	for _, s := range scenarios {
		if s.Name == name {
			return s
		}
	}
	require.Fail(t, "no scenario "+name)
	return Scenario{}
}

// Every action of a family runs once a round, and what changes half-way changes then.
func TestFamilies(t *testing.T) {
	for _, f := range families {
		s := f.Stream(1)
		require.Len(t, s.Actions, familyActions)
		rates := map[int][2]float64{}
		for i, x := range s.Steps {
			v := rates[x.Action]
			v[i*2/len(s.Steps)] = x.P
			rates[x.Action] = v
		}
		moved := 0
		for id, v := range rates {
			assert.Equal(t, f.rounds, s.Actions[id].Runs)
			if math.Abs(v[0]-v[1]) > 1e-12 {
				moved++
			}
		}
		assert.Equal(t, map[string]int{"H1": 0, "H2": familyActions, "H3": 1}[f.Name], moved, f.Name)
	}
}
