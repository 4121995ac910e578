package chat

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Price is what a million tokens cost, in micro-units of a currency: 2.50 EUR are 2_500_000.
type Price struct {
	Input, CachedRead, CachedWrite, Output int64
	Currency                               string // ISO 4217
}

// maxPrice is a million units for a million tokens.
const maxPrice = 1_000_000_000_000

func (p Price) check() error {
	for _, n := range []int64{p.Input, p.CachedRead, p.CachedWrite, p.Output} {
		if n < 0 || n > maxPrice {
			return fmt.Errorf("chat: a price is %d, want 0 to %d micro-units for a million tokens", n, int64(maxPrice))
		}
	}
	if p == (Price{Currency: p.Currency}) {
		return nil
	}
	if p.Currency == "" {
		return errors.New("chat: Price needs a Currency")
	}
	return action.Cost{Money: 1, Currency: p.Currency}.Check()
}

// cost is what a usage costs: its tokens, and their price rounded up.
func (p Price) cost(u Usage) action.Cost {
	c := action.Cost{Tokens: min(u.Tokens(), action.MaxAmount)}
	var hi, lo uint64
	for _, part := range [][2]int64{{u.Input, p.Input}, {u.CachedRead, p.CachedRead}, {u.CachedWrite, p.CachedWrite}, {u.Output, p.Output}} {
		h, l := bits.Mul64(uint64(part[0]), uint64(part[1]))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
	}
	const million = 1_000_000
	if hi >= million { // beyond any account
		c.Money, c.Currency = action.MaxAmount, p.Currency
		return c
	}
	q, rest := bits.Div64(hi, lo, million)
	if rest > 0 {
		q++
	}
	if q > 0 {
		c.Money, c.Currency = int64(min(q, uint64(action.MaxAmount))), p.Currency
	}
	return c
}

// spending adds up what the attempts of one proposal used.
type spending struct {
	Usage
	estimated bool
	reserved  action.Cost // for them all
}

// mostTokens is more than any provider counts for one reply.
const mostTokens = 1 << 31

// add counts one attempt. What a provider says counts where it can be; else what was sent and what arrived is estimated.
// An attempt that was refused before it was read costs nothing.
func (s *spending) add(t *talk, sent int, r Reply, err error, stopped bool) {
	u := r.Usage
	possible := u.Known && u.Tokens() > 0
	for _, n := range []int64{u.Input, u.CachedRead, u.CachedWrite, u.Output} {
		possible = possible && 0 <= n && n < mostTokens
	}
	if !possible {
		if err != nil && !errors.Is(err, ErrCut) && !stopped {
			return
		}
		u = Usage{Input: int64(t.tokens(sent)), Output: int64(t.tokens(r.size()))}
		s.estimated = true
	}
	s.Input += u.Input
	s.CachedRead += u.CachedRead
	s.CachedWrite += u.CachedWrite
	s.Output += u.Output
}
