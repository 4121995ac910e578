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
	const era = 63                   // the first id, no tags before it
	floats := era + 8*int(shared[6]) // weights 3, then mean 2 and covariance 3 of each member
	steps := len(shared) - 3*4*8     // of the current era
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
		{"shared version", set(shared, 0, 9), block, "encoding version is 9, want 3"},
		{"written by the scalar filter", set(shared, 0, 1), block, "encoding version is 1, want 3; reset the belief"},
		{"written before the own record was kept", set(shared, 0, 2), block, "encoding version is 2, want 3; reset the belief"},
		{"shared short", shared[:20], block, "20 bytes long"},
		{"shared cut", shared[:len(shared)-1], block, "bytes follow the tags"},
		{"shared long", append(shared[:len(shared):len(shared)], 0), block, "bytes follow the tags"},
		{"no members", set(shared, 1, 0), block, "0 members"},
		{"members too many", set(shared, 1, 9), block, "9 members"},
		{"agent's event", set(shared, 2, 3), block, "last change is 3"},
		{"tags too many", set(shared, 3, 9), block, "tags"},
		{"tag cut", set(shared, 4, 9), block, "tag"},
		{"no era", set(shared, 6, 0), block, "no era"},
		{"trust NaN", putF(shared, 7, math.NaN()), block, "trust is not proper"},
		{"trust variance negative", putF(shared, 15, -1), block, "trust is not proper"},
		{"agent's sum", putF(shared, 23, -1), block, "sums"},
		{"count too large", put(shared, 39, 1<<60), block, "at most"},
		{"change without event", put(set(shared, 2, 0), 55, 3), block, "counts do not agree"},
		{"era 0", put(shared, era, 0), block, "era 0 has id 0"},
		{"weight NaN", putF(shared, floats, math.NaN()), block, "weight"},
		{"weights", putF(shared, floats, .9), block, "weights add up"},
		{"mean", putF(shared, floats+3*8, math.Inf(1)), block, "mean of member 0"},
		{"covariance", putF(shared, floats+5*8, 0), block, "covariance of member 0 is not positive definite"},
		{"correlation", putF(shared, floats+6*8, 5), block, "covariance of member 0 is not positive definite"},
		{"covariance NaN", putF(shared, floats+7*8, math.NaN()), block, "covariance of member 0 is not positive definite"},
		{"step keeps too much", putF(shared, steps, 1.1), block, "step of era"},
		{"step keeps too little", putF(shared, steps, .1), block, "step of era"},
		{"step NaN", putF(shared, steps+8, math.NaN()), block, "step of era"},
		{"block empty", shared, nil, "block is empty"},
		{"version", shared, set(block, 0, 0), "encoding version is 0"},
		{"written by the scalar filter", shared, set(block, 0, 1), "encoding version is 1, want 3"},
		{"other members", shared, set(block, 1, 2), "2 members, the shared block has 3"},
		{"event", shared, set(block, 2, 3), "last change is 3"},
		{"axes", shared, set(block, 3, 0xff), "axes"},
		{"currency", shared, set(block, 4, 'e'), "currency"},
		{"currency missing", shared, set(set(set(block, 4, 0), 5, 0), 6, 0), "currency"},
		{"too few parts", shared, set(block, 8, 1), "1 parts"},
		{"too many parts", shared, set(block, 8, 3), "3 parts"},
		{"era unknown", shared, put(block, 9, 77), "era 77 is not in the shared block"},
		{"no runs", shared, put(block, 17, 0), "counts do not agree"},
		{"more errs than runs", shared, put(block, 25, 99), "counts do not agree"},
		{"held back NaN", shared, putF(block, 41, math.NaN()), "held back"},
		{"sum negative", shared, putF(block, 49, -1), "sums"},
		{"own record NaN", shared, putF(block, 65, math.NaN()), "own record is not proper"},
		{"own record certain", shared, putF(block, 73, 0), "own record is not proper"},
		{"variance infinite", shared, putF(block, 81, math.Inf(1)), "log-odds are not proper"},
		{"axis NaN", shared, putF(block, 81+12*8+8, math.NaN()), "axis tokens is not proper"},
		{"leaves cut", shared, block[:86], "ends within the members"},
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
	f.Add(fresh.Prior().Shared(), block[:81+12*8])
	rich := model(f)
	grown := rich.Prior()
	for i := range 90 { // eras, tags, changes
		d := risk.Declaration{Name: "a", Risk: 1 + i%5, Tags: []string{"x", "y"}[:i/30%3]}
		if i%3 == 0 {
			d.Name = "b"
		}
		grown, _, _ = rich.Update(grown, d, risk.Observation{Err: i > 40 && i < 60})
	}
	block, _ = grown.Action("a")
	f.Add(grown.Shared(), block)
	f.Add([]byte{3}, []byte{3, 3, 0})
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
