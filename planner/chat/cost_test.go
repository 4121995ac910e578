package chat

import (
	"errors"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func TestPriceIsExactAndRoundedUp(t *testing.T) {
	p := Price{Input: 2_500_000, CachedRead: 250_000, CachedWrite: 3_125_000, Output: 10_000_000, Currency: "USD"}
	got := p.cost(Usage{Input: 1000, CachedRead: 9001, CachedWrite: 8, Output: 300})
	assert.Equal(t, action.Cost{Tokens: 10_309, Money: 7776, Currency: "USD"}, got, "2500 + 2250.25 + 25 + 3000, rounded up")
	assert.Equal(t, action.Cost{Tokens: 5}, Price{}.cost(Usage{Input: 5}), "no price, no money")
	n, price := rapid.Int64Range(0, mostTokens), rapid.Int64Range(0, maxPrice)
	rapid.Check(t, func(rt *rapid.T) {
		u := Usage{Input: n.Draw(rt, "in"), CachedRead: n.Draw(rt, "read"), CachedWrite: n.Draw(rt, "write"), Output: n.Draw(rt, "out")}
		p := Price{Input: price.Draw(rt, "a"), CachedRead: price.Draw(rt, "b"), CachedWrite: price.Draw(rt, "c"), Output: price.Draw(rt, "d"), Currency: "EUR"}
		sum := new(big.Int)
		for _, x := range [][2]int64{{u.Input, p.Input}, {u.CachedRead, p.CachedRead}, {u.CachedWrite, p.CachedWrite}, {u.Output, p.Output}} {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(x[0]), big.NewInt(x[1])))
		}
		sum.Add(sum, big.NewInt(999_999)).Div(sum, big.NewInt(1_000_000))
		if sum.Cmp(big.NewInt(action.MaxAmount)) > 0 {
			sum.SetInt64(action.MaxAmount)
		}
		got := p.cost(u)
		require.NoError(rt, got.Check())
		require.Equal(rt, sum.Int64(), got.Money)
	})
}

func TestImpossibleUsageIsEstimated(t *testing.T) {
	k := &talk{rate: firstRate}
	tests := []struct {
		name      string
		u         Usage
		err       error
		want      Usage
		estimated bool
	}{
		{"known", Usage{Known: true, Input: 7, Output: 2}, nil, Usage{Input: 7, Output: 2}, false},
		{"omitted", Usage{}, nil, Usage{Input: 30, Output: 1}, true},
		{"nothing", Usage{Known: true}, nil, Usage{Input: 30, Output: 1}, true},
		{"negative", Usage{Known: true, Input: -5, Output: 9}, nil, Usage{Input: 30, Output: 1}, true},
		{"absurd", Usage{Known: true, Input: 1 << 60}, nil, Usage{Input: 30, Output: 1}, true},
		{"refused before it was read", Usage{}, errors.New("429"), Usage{}, false},
		{"broken off", Usage{}, ErrCut, Usage{Input: 30, Output: 1}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s spending
			s.add(k, 90, Reply{Text: "abc", Usage: tt.u}, tt.err, false)
			assert.Equal(t, tt.want, s.Usage)
			assert.Equal(t, tt.estimated, s.estimated)
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	tests := []struct {
		name string
		c    Config
		want string
	}{
		{"output", Config{Window: 1000, MaxOutput: 600}, "MaxOutput is 600"},
		{"window", Config{Window: -1}, "half of Window"},
		{"results", Config{ResultBytes: 10}, "ResultBytes is 10"},
		{"tools", Config{MaxTools: 1}, "MaxTools is 1"},
		{"timeout", Config{Timeout: -1}, "Timeout is -1ns"},
		{"first", Config{FirstPrompt: -3}, "FirstPrompt is -3"},
		{"price", Config{Price: Price{Input: -1, Currency: "EUR"}}, "a price is -1"},
		{"currency", Config{Price: Price{Input: 1}}, "needs a Currency"},
		{"no currency", Config{Price: Price{Input: 1, Currency: "euro"}}, `currency "euro"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(&mouth{}, tt.c)
			assert.ErrorContains(t, err, tt.want)
		})
	}
	_, err := New(nil, Config{})
	assert.EqualError(t, err, "chat: the model is nil")
	_, err = New(&mouth{}, Config{})
	assert.NoError(t, err)
}
