package risk_test

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

func model(t require.TestingT) *risk.Model {
	m, err := risk.New(risk.Config{})
	require.NoError(t, err)
	return m
}

func fold(t require.TestingT, m *risk.Model, b risk.Belief, d risk.Declaration, err bool, n int) risk.Belief {
	for range n {
		var e error
		b, _, e = m.Update(b, d, risk.Observation{Err: err})
		require.NoError(t, e)
	}
	return b
}

func TestAnActionNeverSeenIsWhatWasDeclared(t *testing.T) {
	m := model(t)
	for d, p := range map[int]float64{1: .018, 2: .047, 3: .119, 4: .269, 5: .5} {
		e := m.Risk(m.Prior(), risk.Declaration{Name: "a", Risk: d})
		assert.InDelta(t, p, e.P, 5e-4, "declared %d", d)
		assert.Equal(t, float64(d), e.Score, "the declaration is reproduced exactly")
		assert.Equal(t, d, risk.Level(e.Score))
		assert.Zero(t, e.N)
		assert.Less(t, e.Lo, e.P)
		assert.Greater(t, e.Hi, e.P)
	}
}

func TestEvidenceMovesTheEstimateBothWays(t *testing.T) {
	m := model(t)
	d := risk.Declaration{Name: "a", Risk: 3}
	bad := m.Risk(fold(t, m, m.Prior(), d, true, 5), d)
	good := m.Risk(fold(t, m, m.Prior(), d, false, 50), d)
	assert.Greater(t, bad.P, .5)
	assert.Less(t, good.P, .02)
	assert.EqualValues(t, 5, bad.Errs)
	assert.EqualValues(t, 50, good.N)
	assert.Equal(t, 3.0, good.Effective(3, 0), "the declared level is a floor on the gate")
	assert.Equal(t, 5.0, good.Effective(3, 5), "and a rule raises it")
	assert.Equal(t, 5.0, risk.Estimate{Score: math.NaN()}.Effective(3, 0))
}

func TestAChangeIsFoundAndSaid(t *testing.T) {
	m := model(t)
	d := risk.Declaration{Name: "a", Risk: 1}
	b := fold(t, m, m.Prior(), d, false, 200)
	var in risk.Innovation
	steps := 0
	for in.Change == risk.NoChange {
		var err error
		b, in, err = m.Update(b, d, risk.Observation{Err: true})
		require.NoError(t, err)
		steps++
		require.Less(t, steps, 10)
	}
	assert.Equal(t, risk.GotWorse, in.Change)
	assert.True(t, in.Flag)
	e := m.Risk(b, d)
	assert.Equal(t, risk.GotWorse, e.LastChange)
	assert.EqualValues(t, 200+steps, e.ChangedAt)

	// The flood of Err ends: the other side of the detector finds that.
	b = fold(t, m, b, d, true, 60)
	for range 30 {
		if b, in, _ = m.Update(b, d, risk.Observation{}); in.Change == risk.GotBetter {
			return
		}
	}
	t.Fatal("an action that got better was not noticed in 30 executions")
}

func TestSurprise(t *testing.T) {
	m := model(t)
	d := risk.Declaration{Name: "a", Risk: 2}
	b := fold(t, m, m.Prior(), d, false, 100)
	_, ok, err := m.Update(b, d, risk.Observation{})
	require.NoError(t, err)
	assert.False(t, ok.Flag)
	assert.Less(t, ok.Surprise, .01)
	_, bad, err := m.Update(b, d, risk.Observation{Err: true})
	require.NoError(t, err)
	assert.InDelta(t, -math.Log2(bad.PBefore), bad.Bits, 1e-9)
	assert.Greater(t, bad.Bits, 5.0)
	assert.True(t, bad.Flag, "the first Err after a hundred Ok: %v nats", bad.Surprise)
}

// The figures that the trust filter was specified with.
func TestI13_TrustFigures(t *testing.T) {
	m := model(t)
	d := risk.Declaration{Name: "a", Risk: 3}
	assert.InDelta(t, .385, m.Trust(m.Prior()).Score, 5e-4)
	assert.Equal(t, m.Trust(m.Prior()), m.Trust(risk.Belief{}), "the zero belief is the prior")
	b, n := m.Prior(), 0
	for _, c := range []struct {
		ok    int
		trust float64
	}{{1, .52}, {5, .76}, {10, .84}, {20, .90}, {50, .95}, {100, .97}} {
		b = fold(t, m, b, d, false, c.ok-n)
		n = c.ok
		assert.InDelta(t, c.trust, m.Trust(b).Score, .006, "after %d Ok", c.ok)
	}

	b = fold(t, m, m.Prior(), d, false, 50)
	before := m.Trust(b).Score
	assert.InDelta(t, .948, before, 1e-3)
	b = fold(t, m, b, d, true, 1)
	assert.InDelta(t, .879, m.Trust(b).Score, 1e-3)
	regained := 0
	for m.Trust(b).Score < before {
		b = fold(t, m, b, d, false, 1)
		regained++
	}
	assert.InDelta(t, 57, regained, 1)
	tr := m.Trust(b)
	assert.EqualValues(t, 50+regained, tr.Ok)
	assert.EqualValues(t, 1, tr.Err)
}

func TestI13_AFailureCostsMoreThanASuccessEarns(t *testing.T) {
	m := model(t)
	start := m.Trust(m.Prior()).Score
	d := risk.Declaration{Name: "a", Risk: 3}
	rapid.Check(t, func(t *rapid.T) {
		b := m.Prior()
		for _, err := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 60).Draw(t, "outcomes") {
			b = fold(t, m, b, d, err == 0, 1)
		}
		now := m.Trust(b).Score
		if now < start {
			t.Skip("below the starting trust")
		}
		up := m.Trust(fold(t, m, b, d, false, 1)).Score - now
		down := now - m.Trust(fold(t, m, b, d, true, 1)).Score
		require.Greater(t, down, up, "at trust %v", now)
		require.Positive(t, down)
	})
}

func cost(t *rapid.T) action.Cost {
	amount := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 5000), rapid.Int64Range(0, action.MaxAmount))
	c := action.Cost{Tokens: amount.Draw(t, "tokens"), Calls: 1, Money: amount.Draw(t, "money")}
	if c.Money > 0 {
		c.Currency = rapid.SampledFrom([]string{"EUR", "USD"}).Draw(t, "currency")
	}
	return c
}

// Whatever is executed, in whatever order, every belief stays finite and proper (Decode accepts nothing else), published
// probabilities never move the wrong way, and an encoding holds all of it to the last bit.
func TestI13_AnySequenceLeavesEveryBeliefProper(t *testing.T) {
	m := model(t)
	rapid.Check(t, func(t *rapid.T) {
		b := m.Prior()
		for range rapid.IntRange(1, 12).Draw(t, "runs") {
			d := risk.Declaration{
				Name: rapid.SampledFrom([]string{"a", "b", "c/d"}).Draw(t, "name"),
				Risk: rapid.IntRange(1, 5).Draw(t, "risk"),
			}
			d.Tags = rapid.SampledFrom([][]string{nil, nil, {"x"}, {"y", "x"}, {"z"}}).Draw(t, "tags")
			if rapid.IntRange(0, 9).Draw(t, "reset") == 0 {
				b = m.Reset(b, d.Name)
			}
			if rapid.Bool().Draw(t, "estimated") {
				d.Estimate = cost(t)
			}
			o := risk.Observation{Err: rapid.Bool().Draw(t, "err")}
			for range rapid.SampledFrom([]int{1, 1, 2, 25}).Draw(t, "times") {
				o.Cost = cost(t)
				if d.Estimate.Money > 0 && o.Cost.Money > 0 {
					o.Cost.Currency = d.Estimate.Currency
				}
				before, old := m.Risk(b, d), blocks(b)
				next, in, err := m.Update(b, d, o)
				require.NoError(t, err)
				require.Equal(t, old, blocks(b), "the belief passed in never changes")
				after := m.Risk(next, d)
				require.Equal(t, before.P, in.PBefore)
				require.Equal(t, after.P, in.PAfter)
				if o.Err {
					require.GreaterOrEqual(t, after.P, before.P, "an Err never lowers what is published")
					require.GreaterOrEqual(t, after.Score, before.Score)
				} else {
					require.LessOrEqual(t, after.P, before.P, "an Ok never raises what is published")
					require.LessOrEqual(t, after.Score, before.Score)
				}
				require.True(t, in.Surprise >= 0 && !math.IsInf(in.Surprise, 0) && in.Bits >= 0 && !math.IsInf(in.Bits, 0))
				require.True(t, 0 < after.Lo && after.Lo <= after.P && after.P <= after.Hi && after.Hi < 1)
				b = next
			}
		}
		got := blocks(b)
		again, err := risk.Decode(b.Shared(), got)
		require.NoError(t, err)
		require.Equal(t, got, blocks(again))
		require.Equal(t, b.Shared(), again.Shared())
		require.Equal(t, b.Names(), again.Names())
		d := risk.Declaration{Name: "a", Risk: 2}
		require.Equal(t, m.Risk(b, d), m.Risk(again, d))
		require.Equal(t, m.Forecast(b, d), m.Forecast(again, d))
		require.Equal(t, m.Trust(b), m.Trust(again))
	})
}

func blocks(b risk.Belief) map[string][]byte {
	out := map[string][]byte{}
	for _, n := range b.Names() {
		out[n], _ = b.Action(n)
	}
	return out
}

func TestOneObservationChangesOneActionsBlock(t *testing.T) {
	m := model(t)
	b := m.Prior()
	for _, n := range []string{"a", "b", "c"} {
		b = fold(t, m, b, risk.Declaration{Name: n, Risk: 2}, false, 3)
	}
	old, shared := blocks(b), b.Shared()
	b = fold(t, m, b, risk.Declaration{Name: "b", Risk: 2}, true, 1)
	now := blocks(b)
	assert.Equal(t, old["a"], now["a"])
	assert.Equal(t, old["c"], now["c"])
	assert.NotEqual(t, old["b"], now["b"])
	assert.NotEqual(t, shared, b.Shared())
}

func TestReset(t *testing.T) {
	m := model(t)
	d := risk.Declaration{Name: "a", Risk: 2}
	b := fold(t, m, m.Prior(), d, true, 8)
	b = fold(t, m, b, risk.Declaration{Name: "b", Risk: 2}, false, 1)
	r := m.Reset(b, "a")
	assert.Equal(t, []string{"b"}, r.Names())
	now := m.Risk(r, d)
	assert.Zero(t, now.N)
	assert.Less(t, now.P, m.Risk(b, d).P, "what was its own is forgotten")
	assert.Greater(t, now.P, m.Risk(m.Prior(), d).P, "what it taught of the agent is not")
	assert.Equal(t, m.Trust(b), m.Trust(r), "trust stays")
	assert.Equal(t, []string{"a", "b"}, b.Names(), "the old belief stays as it was")
	assert.Equal(t, m.Trust(m.Prior()), m.Trust(m.ResetTrust(b)))
	assert.Equal(t, r, m.Reset(r, "never seen"))
}

func TestADeclarationThatChangesMovesTheEstimate(t *testing.T) {
	m := model(t)
	b := fold(t, m, m.Prior(), risk.Declaration{Name: "a", Risk: 2}, false, 10)
	low := m.Risk(b, risk.Declaration{Name: "a", Risk: 2})
	high := m.Risk(b, risk.Declaration{Name: "a", Risk: 4})
	assert.Greater(t, high.P, low.P)
	assert.Equal(t, low.N, high.N)
	_, in, err := m.Update(b, risk.Declaration{Name: "a", Risk: 4}, risk.Observation{})
	require.NoError(t, err)
	assert.Equal(t, high.P, in.PBefore)
}

func TestBadInputIsNamedAndChangesNothing(t *testing.T) {
	m := model(t)
	b := fold(t, m, m.Prior(), risk.Declaration{Name: "a", Risk: 2}, false, 2)
	eur := action.Cost{Money: 5, Currency: "EUR"}
	for _, c := range []struct {
		name string
		d    risk.Declaration
		o    risk.Observation
		says string
	}{
		{"no name", risk.Declaration{Risk: 2}, risk.Observation{}, "name is empty"},
		{"declared 0", risk.Declaration{Name: "a"}, risk.Observation{}, "declared risk is 0"},
		{"declared 6", risk.Declaration{Name: "a", Risk: 6}, risk.Observation{}, "declared risk is 6"},
		{"bad tag", risk.Declaration{Name: "a", Risk: 2, Tags: []string{"é"}}, risk.Observation{}, "tag"},
		{"negative estimate", risk.Declaration{Name: "a", Risk: 2, Estimate: action.Cost{Tokens: -1}}, risk.Observation{}, "estimated cost tokens is -1"},
		{"negative cost", risk.Declaration{Name: "a", Risk: 2}, risk.Observation{Cost: action.Cost{Bytes: -3}}, "observed cost bytes is -3"},
		{"overflowing cost", risk.Declaration{Name: "a", Risk: 2}, risk.Observation{Cost: action.Cost{Tokens: math.MaxInt64}}, "observed cost tokens"},
		{"no currency", risk.Declaration{Name: "a", Risk: 2}, risk.Observation{Cost: action.Cost{Money: 1}}, "needs a currency"},
		{"other currency", risk.Declaration{Name: "a", Risk: 2, Estimate: eur}, risk.Observation{Cost: action.Cost{Money: 1, Currency: "USD"}}, "declared EUR, used USD"},
	} {
		got, _, err := m.Update(b, c.d, c.o)
		if assert.Error(t, err, c.name) {
			assert.Contains(t, err.Error(), c.says, c.name)
			assert.True(t, strings.HasPrefix(err.Error(), "risk: action"), c.name)
		}
		assert.Equal(t, blocks(b), blocks(got), c.name)
		assert.Equal(t, b.Shared(), got.Shared(), c.name)
	}
	assert.Equal(t, 5.0, m.Risk(b, risk.Declaration{Name: "a", Risk: 9}).Score, "what cannot be estimated stops at the gate")
}

func TestConfig(t *testing.T) {
	m := model(t)
	assert.Equal(t, risk.Config{}.WithDefaults(), m.Config())
	for _, c := range []struct {
		name string
		cfg  risk.Config
	}{
		{"Members[0].Agent", risk.Config{Members: []risk.Member{{Agent: 11}}}},
		{"Members[0].AgentDrift", risk.Config{Members: []risk.Member{{Agent: 1, Tag: 1, Action: 1, AgentDrift: -1}}}},
		{"len(Members)", risk.Config{Members: make([]risk.Member, 9)}},
		{"Slope", risk.Config{Slope: -1}},
		{"Tags", risk.Config{Tags: []string{"é"}}},
		{"Worse.Shift", risk.Config{Worse: risk.Change{Shift: math.NaN()}}},
		{"Trust.ErrCount", risk.Config{Trust: risk.TrustConfig{ErrCount: -1}}},
		{"Cost.Discount", risk.Config{Cost: risk.CostConfig{Discount: 1.5}}},
	} {
		_, err := risk.New(c.cfg)
		assert.ErrorContains(t, err, c.name)
	}
}

func TestConcurrentReadersAndWritersOfOneBelief(t *testing.T) {
	m := model(t)
	b := seen(t)
	d := risk.Declaration{Name: "a", Risk: 2}
	want, _, err := m.Update(b, d, risk.Observation{Err: true})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				got, _, err := m.Update(b, d, risk.Observation{Err: true})
				if assert.NoError(t, err) {
					assert.Equal(t, m.Risk(want, d), m.Risk(got, d))
				}
				_ = m.Forecast(b, d)
				_ = m.Reset(b, "a").Names()
				_, _ = b.Action("a")
			}
		})
	}
	wg.Wait()
}

func TestLevelAgreesWithTheGate(t *testing.T) {
	for s := 1.0; s <= 5; s += .01 {
		for threshold := 1; threshold <= 5; threshold++ {
			assert.Equal(t, s >= float64(threshold), risk.Level(s) >= threshold, "score %v", s)
		}
	}
}
