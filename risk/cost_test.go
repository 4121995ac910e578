package risk_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

func observe(t *testing.T, m *risk.Model, b risk.Belief, d risk.Declaration, c action.Cost) risk.Belief {
	b, _, err := m.Update(b, d, risk.Observation{Cost: c})
	require.NoError(t, err)
	return b
}

func TestForecastBeforeAnything(t *testing.T) {
	m := model(t)
	f := m.Forecast(m.Prior(), risk.Declaration{Name: "a", Risk: 2, Estimate: action.Cost{Tokens: 1000}})
	assert.True(t, f.On(action.Tokens).Known)
	assert.InDelta(t, 3.94, float64(f.On(action.Tokens).P95)/1000, .01, "wide until costs have settled")
	assert.Zero(t, f.On(action.Tokens).N)
	assert.False(t, f.On(action.Bytes).Known, "neither estimate nor history")
	assert.Equal(t, action.Cost{Tokens: f.On(action.Tokens).P95}, f.Cost())
}

// About 95 of 100 costs stay within the forecast made before each, whether they stand still or drift.
func TestForecastCovers(t *testing.T) {
	m := model(t)
	d := risk.Declaration{Name: "a", Risk: 2, Estimate: action.Cost{Tokens: 100}}
	for _, drift := range []float64{0, .05} {
		r := rand.New(rand.NewPCG(1, 2))
		covered, n := 0, 0
		for range 8 {
			b, mu := m.Prior(), math.Log(100)+.5*r.NormFloat64()
			for i := range 400 {
				mu += drift * r.NormFloat64()
				c := int64(math.Exp(mu + .6*r.NormFloat64()))
				if i >= 20 {
					n++
					if c <= m.Forecast(b, d).On(action.Tokens).P95 {
						covered++
					}
				}
				b = observe(t, m, b, d, action.Cost{Tokens: c})
			}
		}
		assert.InDelta(t, .95, float64(covered)/float64(n), .012, "drift %v", drift)
	}
}

func TestForecastFollowsAJump(t *testing.T) {
	m := model(t)
	d := risk.Declaration{Name: "a", Risk: 2, Estimate: action.Cost{Duration: time.Second}}
	b := m.Prior()
	for range 100 {
		b = observe(t, m, b, d, action.Cost{Duration: time.Second})
	}
	tight := m.Forecast(b, d).On(action.Duration).P95
	assert.Less(t, time.Duration(tight), 3*time.Second)
	for range 8 {
		b = observe(t, m, b, d, action.Cost{Duration: 10 * time.Second})
	}
	assert.Greater(t, time.Duration(m.Forecast(b, d).On(action.Duration).P95), 10*time.Second)
}

func TestAnAxisWithoutEstimateStartsAtItsFirstAmount(t *testing.T) {
	m := model(t)
	d := risk.Declaration{Name: "a", Risk: 2}
	b := observe(t, m, m.Prior(), d, action.Cost{Calls: 1})
	f := m.Forecast(b, d)
	assert.Equal(t, risk.AxisForecast{N: 1, Known: true}, f.On(action.Tokens), "zero is an observation")
	b = observe(t, m, b, d, action.Cost{Calls: 1, Tokens: 1000})
	f = m.Forecast(b, d)
	assert.Equal(t, 1, f.On(action.Tokens).N)
	assert.Greater(t, f.On(action.Tokens).P95, int64(1000))
	assert.Equal(t, 2, f.On(action.Calls).N)
}

func TestMoneyStartsAgainInAnotherCurrency(t *testing.T) {
	m := model(t)
	d := risk.Declaration{Name: "a", Risk: 2}
	b := m.Prior()
	for range 10 {
		b = observe(t, m, b, d, action.Cost{Money: 1_000_000, Currency: "EUR"})
	}
	b = observe(t, m, b, d, action.Cost{})
	f := m.Forecast(b, d)
	assert.Equal(t, "EUR", f.Currency)
	assert.Equal(t, 11, f.On(action.Money).N)
	require.NoError(t, f.Cost().Check())
	b = observe(t, m, b, d, action.Cost{Money: 9, Currency: "USD"})
	f = m.Forecast(b, d)
	assert.Equal(t, "USD", f.Currency)
	assert.Equal(t, 1, f.On(action.Money).N)
	d.Estimate = action.Cost{Money: 70, Currency: "GBP"}
	f = m.Forecast(b, d)
	assert.Equal(t, "GBP", f.Currency)
	assert.Zero(t, f.On(action.Money).N)
}

func TestAmountsAtTheEdgeStayInRange(t *testing.T) {
	m := model(t)
	d := risk.Declaration{Name: "a", Risk: 2, Estimate: action.Cost{Tokens: 1}}
	b := m.Prior()
	for i := range 300 {
		b = observe(t, m, b, d, action.Cost{Tokens: int64(i%2) * action.MaxAmount, Bytes: action.MaxAmount})
		_, err := risk.Decode(b.Shared(), blocks(b))
		require.NoError(t, err)
	}
	require.NoError(t, m.Forecast(b, d).Cost().Check())
}
