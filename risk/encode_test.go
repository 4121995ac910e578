package risk_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

func seen(t require.TestingT) risk.Belief {
	m := model(t)
	b := m.Prior()
	d := risk.Declaration{Name: "a", Risk: 2, Estimate: action.Cost{Tokens: 10}}
	for i := range 20 {
		var err error
		b, _, err = m.Update(b, d, risk.Observation{Err: i > 16, Cost: action.Cost{Tokens: 7, Calls: 1, Money: 3, Currency: "EUR"}})
		require.NoError(t, err)
	}
	return b
}

func TestNothingKnownIsNoBytes(t *testing.T) {
	var b risk.Belief
	assert.Nil(t, b.Shared())
	assert.Empty(t, b.Names())
	_, ok := b.Action("a")
	assert.False(t, ok)
	got, err := risk.Decode(nil, nil)
	require.NoError(t, err)
	assert.Equal(t, b, got)
}

func TestDecodeRefusesWhatItCouldNotHaveWritten(t *testing.T) {
	b := seen(t)
	shared := b.Shared()
	block, _ := b.Action("a")
	put := func(src []byte, at int, v uint64) []byte {
		c := append([]byte(nil), src...)
		binary.BigEndian.PutUint64(c[at:], v)
		return c
	}
	putF := func(src []byte, at int, f float64) []byte { return put(src, at, math.Float64bits(f)) }
	set := func(src []byte, at int, v byte) []byte {
		c := append([]byte(nil), src...)
		c[at] = v
		return c
	}
	for _, c := range []struct {
		name          string
		shared, block []byte
		says          string
	}{
		{"shared missing", nil, block, "shared block is missing"},
		{"shared version", set(shared, 0, 9), block, "encoding version is 9, want 1"},
		{"shared short", shared[:20], block, "20 bytes long"},
		{"shared long", append(shared[:len(shared):len(shared)], 0), block, "too many"},
		{"trust NaN", putF(shared, 1, math.NaN()), block, "trust is not proper"},
		{"trust variance negative", putF(shared, 9, -1), block, "trust is not proper"},
		{"trust variance zero", putF(shared, 9, 0), block, "trust is not proper"},
		{"count too large", put(shared, 17, 1<<60), block, "at most"},
		{"block empty", shared, nil, "block is empty"},
		{"version", shared, set(block, 0, 0), "encoding version is 0"},
		{"declared 0", shared, set(block, 1, 0), "declared risk is 0"},
		{"declared 6", shared, set(block, 1, 6), "declared risk is 6"},
		{"event", shared, set(block, 2, 3), "last change is 3"},
		{"axes", shared, set(block, 3, 0xff), "axes"},
		{"currency", shared, set(block, 4, 'e'), "currency"},
		{"currency missing", shared, set(set(set(block, 4, 0), 5, 0), 6, 0), "currency"},
		{"no runs", shared, put(block, 7, 0), "counts do not agree"},
		{"more errs than runs", shared, put(block, 15, 99), "counts do not agree"},
		{"variance infinite", shared, putF(block, 39, math.Inf(1)), "log-odds are not proper"},
		{"published 0", shared, putF(block, 47, 0), "published"},
		{"published NaN", shared, putF(block, 47, math.NaN()), "published"},
		{"sum negative", shared, putF(block, 55, -1), "sums"},
		{"axis NaN", shared, putF(block, 71+8, math.NaN()), "axis tokens is not proper"},
		{"axis cut", shared, block[:len(block)-1], "ends within axis money"},
		{"too long", shared, append(block[:len(block):len(block)], 0), "1 bytes too many"},
	} {
		_, err := risk.Decode(c.shared, map[string][]byte{"a": c.block})
		assert.ErrorContains(t, err, c.says, c.name)
	}
	_, err := risk.Decode(shared, map[string][]byte{"": block})
	assert.ErrorContains(t, err, "name is empty")
}

// Whatever is accepted encodes to the same bytes and goes on to learn properly.
func FuzzDecode(f *testing.F) {
	b := seen(f)
	block, _ := b.Action("a")
	f.Add(b.Shared(), block)
	fresh, _ := risk.New(risk.Config{})
	f.Add(fresh.Prior().Shared(), block[:71])
	f.Add([]byte{1}, []byte{1, 2, 0})
	f.Fuzz(func(t *testing.T, shared, block []byte) {
		b, err := risk.Decode(shared, map[string][]byte{"a": block})
		if err != nil {
			return
		}
		require.Equal(t, shared, b.Shared())
		again, ok := b.Action("a")
		require.True(t, ok)
		require.Equal(t, block, again)
		m := model(t)
		for _, e := range []bool{true, false} {
			d := risk.Declaration{Name: "a", Risk: 3}
			next, in, err := m.Update(b, d, risk.Observation{Err: e, Cost: action.Cost{Tokens: 1, Calls: action.MaxAmount}})
			require.NoError(t, err)
			require.False(t, math.IsNaN(in.PAfter) || math.IsNaN(in.Surprise) || math.IsInf(in.Surprise, 0))
			_, err = risk.Decode(next.Shared(), blocks(next))
			require.NoError(t, err)
			for _, a := range m.Forecast(next, d).Axes {
				require.True(t, a.P95 >= 0 && a.P95 <= action.MaxAmount)
			}
		}
	})
}
