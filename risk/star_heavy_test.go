//go:build heavy

package risk

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStarEqualsDenseOverTwentyThousandUpdates(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		form func(*Model) observer
	}{{"no drift of the agent", steadyAgent(), exactly}, {"drift", Config{}, asProjected}} {
		mean, variance, _ := differ(t, c.cfg, c.form, newTown(5, 30, 5), 20_000, 500)
		t.Logf("%s: mean %.2g, variance %.2g", c.name, mean, variance)
		require.Less(t, math.Max(mean, variance), 1e-9, c.name)
	}
	_, _, loss := differ(t, Config{}, exactly, newTown(5, 30, 5), 20_000, 20_000)
	t.Logf("bits per outcome: star %.6f, dense %.6f", loss[0], loss[1])
	require.InEpsilon(t, loss[1], loss[0], 1e-3)
}

func TestAMillionUpdatesStayPositiveDefinite(t *testing.T) {
	m, err := New(Config{})
	require.NoError(t, err)
	for _, c := range []struct{ actions, tags int }{{1, 0}, {50, 8}, {1000, 4}} {
		tr, err := m.Track(m.Prior())
		require.NoError(t, err)
		w, least := newTown(9, c.actions, c.tags), math.Inf(1)
		scratch := make([]float64, packed(fixed+c.tags))
		for i := range 1_000_000 {
			d, o := w.next()
			in, err := tr.Observe(d, o)
			require.NoError(t, err)
			if !(in.PAfter > 0 && in.PAfter < 1) {
				t.Fatalf("published %v at %d", in.PAfter, i)
			}
			if i%1000 == 0 {
				for k := range m.cfg.Members {
					least = min(least, factor(scratch, tr.shared.cov(k), tr.shared.k()))
				}
			}
		}
		b := tr.Belief()
		got, err := Decode(b.Shared(), encoded(b))
		require.NoError(t, err)
		require.Equal(t, encoded(b), encoded(got))
		require.Positive(t, least)
		t.Logf("%d actions, %d tags: least pivot %.3g, %d eras, %d bytes", c.actions, c.tags, least, len(b.shared.eras), size(b))
	}
}
