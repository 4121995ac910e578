//go:build heavy

package risk

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// costs are log costs with the true 0.95 quantile of each.
func costs(r *rand.Rand, kind string) (x, q []float64) {
	const n, sd = 500, .6
	walk := map[string]float64{"drift": .05, "jump": .01, "heavy": .03}[kind]
	mu := math.Log(100) + .5*r.NormFloat64()
	above := 1.6449 * sd
	if kind == "heavy" { // three in a hundred cost eight times as much: the quantile of that mixture, by search
		above = 0
		for cdf := 0.; cdf < .95; above += 1e-4 {
			cdf = .97*normal(above/sd) + .03*normal((above-math.Log(8))/sd)
		}
	}
	for i := range n {
		mu += walk * r.NormFloat64()
		if kind == "jump" && i == n/2 {
			mu += 1.2
		}
		v := mu + sd*r.NormFloat64()
		if kind == "heavy" && r.Float64() < .03 {
			v += math.Log(8)
		}
		x, q = append(x, v), append(q, mu+above)
	}
	return x, q
}

func normal(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

func pinball(x, q float64) float64 { return math.Max(.95*(x-q), .05*(q-x)) }

func TestCostScenarios(t *testing.T) {
	m, err := New(Config{})
	require.NoError(t, err)
	c := &m.cfg.Cost
	for i, s := range []struct {
		kind string
		most float64
	}{
		{"drift", .06},
		{"jump", .065}, // the outcomes before a jump can be known to have happened cost some 4 % alone
		{"stationary", .022},
		{"heavy", .022},
	} {
		kind, most := s.kind, s.most
		r := rand.New(rand.NewPCG(3, uint64(i)))
		var own, best, covered, n float64
		for range 240 {
			x, q := costs(r, kind)
			l := c.begin(100, c.LevelVariance)
			for i := range x {
				p := l.mean + student95(l.weight)*math.Sqrt(l.variance+c.Drift+l.noise())
				if i >= 20 {
					own, best, n = own+pinball(x[i], p), best+pinball(x[i], q[i]), n+1
					if x[i] <= p {
						covered++
					}
				}
				l = c.filter(l, x[i])
			}
		}
		t.Logf("%-10s pinball gap %.2f %%, coverage %.3f", kind, 100*(own/best-1), covered/n)
		assert.LessOrEqual(t, own/best-1, most, kind)
		assert.InDelta(t, .95, covered/n, .005, kind)
	}
}

func TestAMillionUpdatesStayProper(t *testing.T) {
	m, err := New(Config{})
	require.NoError(t, err)
	b, d := m.Prior(), Declaration{Name: "a", Risk: 2, Estimate: action.Cost{Tokens: 100}}
	r := rand.New(rand.NewPCG(1, 1))
	p := .02
	for i := range 1_000_000 {
		if r.IntN(5000) == 0 {
			p = r.Float64() * r.Float64()
		}
		b, _, err = m.Update(b, d, Observation{Err: r.Float64() < p, Cost: action.Cost{Tokens: r.Int64N(1000)}})
		require.NoError(t, err)
		if i%1000 == 0 {
			block, _ := b.Action("a")
			_, err = Decode(b.Shared(), map[string][]byte{"a": block})
			require.NoError(t, err)
		}
	}
}
