package risk

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// spend folds amounts about a level, as log-normal as the noise that is expected.
func spend(t *testing.T, tr *Tracker, r *rand.Rand, d Declaration, about float64, n int) int64 {
	for range n {
		x := int64(about * math.Exp(.6*r.NormFloat64()))
		_, err := tr.Observe(d, Observation{Cost: action.Cost{Tokens: x}})
		assert.NoError(t, err)
	}
	return tr.Forecast(d).On(action.Tokens).P95
}

// One absurd amount, at whatever time but the very first without an estimate, leaves a forecast that a budget can pay.
func TestOneAbsurdAmountDoesNotShutAnActionOut(t *testing.T) {
	for _, estimate := range []int64{0, 100} {
		for _, before := range []int{1, 3, 5, 20, 200, 2000} {
			_, tr := fresh(t, Config{})
			r := rand.New(rand.NewPCG(1, 1))
			d := Declaration{Name: "a", Risk: 1, Estimate: action.Cost{Tokens: estimate}}
			was := spend(t, tr, r, d, 100, before)
			_, err := tr.Observe(d, Observation{Cost: action.Cost{Tokens: action.MaxAmount}})
			assert.NoError(t, err)
			now := tr.Forecast(d).On(action.Tokens).P95
			assert.LessOrEqual(t, now, 8*was, "estimate %d, after %d", estimate, before)
			if before >= 20 {
				assert.LessOrEqual(t, now, 2*was, "estimate %d, after %d", estimate, before)
			}
		}
	}
	// The first of all places the level; some twenty others take it back.
	_, tr := fresh(t, Config{})
	d := Declaration{Name: "a", Risk: 1}
	_, err := tr.Observe(d, Observation{Cost: action.Cost{Tokens: action.MaxAmount}})
	assert.NoError(t, err)
	assert.Less(t, spend(t, tr, rand.New(rand.NewPCG(1, 1)), d, 100, 20), int64(5000))
}

// What really jumps is learned within ten outcomes, however far.
func TestAJumpOfCostIsLearnedWithinTen(t *testing.T) {
	for _, factor := range []float64{.01, .1, 3.3, 10, 100, 1000} {
		t.Run(fmt.Sprint(factor), func(t *testing.T) {
			_, tr := fresh(t, Config{})
			r := rand.New(rand.NewPCG(2, 2))
			d := Declaration{Name: "a", Risk: 1}
			spend(t, tr, r, d, 1e4, 200)
			spend(t, tr, r, d, 1e4*factor, 10)
			l := tr.states["a"].costs[action.Tokens]
			assert.InDelta(t, math.Log(1e4*factor), l.mean, .8)
			assert.Less(t, l.noise(), .6)
		})
	}
}

// An axis that is skipped is as if it had not been there, the currency of money included.
func TestSkippedAxesTeachNothing(t *testing.T) {
	_, tr := fresh(t, Config{})
	d := Declaration{Name: "a", Risk: 1, Estimate: action.Cost{Tokens: 10}}
	_, err := tr.Observe(d, Observation{Cost: action.Cost{Tokens: 7, Money: 3, Currency: "EUR"}})
	assert.NoError(t, err)
	was := tr.Forecast(d)
	o := Observation{Skip: [action.AxisCount]bool{action.Tokens: true, action.Money: true}}
	for range 9 {
		_, err = tr.Observe(d, o)
		assert.NoError(t, err)
	}
	now := tr.Forecast(d)
	assert.Equal(t, was.On(action.Tokens), now.On(action.Tokens))
	assert.Equal(t, was.On(action.Money), now.On(action.Money))
	assert.Equal(t, "EUR", now.Currency)
	b := tr.Belief()
	_, err = Decode(b.Shared(), encoded(b))
	assert.NoError(t, err)
}
