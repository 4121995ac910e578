package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

// Money spent in a currency that is no longer the declared one is not known in this one: it must neither teach that the
// action costs nothing nor keep the rest from being learned.
func TestOutcomesInAnotherCurrencyTeachNothingOfMoney(t *testing.T) {
	pay := &Action{Name: "pay", Risk: 2, Estimate: action.Cost{Money: 5000, Currency: "EUR"}}
	agent := &Agent{Name: "desk", Actions: map[string]*Action{"pay": pay}}
	rules := &Rules{Model: model}
	spent := func(money int64, currency string) ledger.Observed {
		return ledger.Observed{Action: "pay", Declared: 2, Cost: action.Cost{Tokens: 70, Money: money, Currency: currency}}
	}
	b, err := risk.Belief{}, error(nil)
	for range 10 {
		b, _, err = learnOne(rules, agent, b, spent(5000, "EUR"))
		require.NoError(t, err)
	}
	known := model.Forecast(b, pay.Declaration())
	for range 10 {
		b, _, err = learnOne(rules, agent, b, spent(9, "USD"))
		require.NoError(t, err)
	}
	now := model.Forecast(b, pay.Declaration())
	assert.Equal(t, known.On(action.Money), now.On(action.Money))
	assert.Equal(t, "EUR", now.Currency)
	assert.Equal(t, 20, now.On(action.Tokens).N)
	assert.EqualValues(t, 20, model.Risk(b, pay.Declaration()).N)

	// What is refused for its tags is learned without them, money included.
	odd := spent(5000, "EUR")
	odd.Tags = []string{"x", "x"}
	b, _, err = learnOne(rules, agent, b, odd)
	require.NoError(t, err)
	assert.Equal(t, 11, model.Forecast(b, pay.Declaration()).On(action.Money).N)
}
