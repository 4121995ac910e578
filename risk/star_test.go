package risk

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

// town is a made-up agent: many actions, tags of its own, outcomes that drift and jump.
type town struct {
	r    *rand.Rand
	acts []Declaration
	eta  []float64
}

func newTown(seed uint64, actions, tags int) *town {
	t := &town{r: rand.New(rand.NewPCG(seed, 7))}
	for i := range actions {
		d := Declaration{Name: fmt.Sprintf("a%d", i), Risk: 1 + t.r.IntN(maxRisk)}
		for j := range tags {
			if t.r.IntN(3) == 0 {
				d.Tags = append(d.Tags, fmt.Sprintf("t%d", j))
			}
		}
		t.acts = append(t.acts, d)
		t.eta = append(t.eta, float64(d.Risk)-5+t.r.NormFloat64())
	}
	return t
}

// next returns an action, some often and some rarely, and its outcome.
func (t *town) next() (Declaration, Observation) {
	n := len(t.acts)
	i := min(int(float64(n)*math.Pow(t.r.Float64(), 3)), n-1)
	if t.r.IntN(2000) == 0 {
		t.eta[t.r.IntN(n)] += 3 * t.r.NormFloat64()
	}
	return t.acts[i], Observation{Err: t.r.Float64() < sigma(t.eta[i])}
}

// projected is the dense filter that forgets, when the agent's part drifts, what the star form cannot hold: actions that are
// tied to where the agent's part was, and not to where it is, have that in common. Everything else, the agent and each
// action with it, is exact.
type projected struct{ *Dense }

func (p projected) age(member int, agent, own float64) {
	j := p.joints[member]
	shared := []int{iAgent, iSlope}
	var actions []int
	for part, at := range p.parts {
		if part.action {
			actions = append(actions, at)
		} else {
			shared = append(shared, at)
		}
	}
	at := func(i, k int) float64 { return j.p.Data[min(i, k)*j.p.Stride+max(i, k)] }
	if agent > 0 {
		g := mat.NewSymDense(len(shared), nil)
		for a, i := range shared {
			for b, k := range shared {
				g.SetSym(a, b, at(i, k))
			}
		}
		var before, after mat.Cholesky
		if !before.Factorize(g) {
			panic("not positive definite")
		}
		g.SetSym(0, 0, g.At(0, 0)+agent)
		after.Factorize(g)
		var r mat.VecDense
		_ = after.SolveVecTo(&r, mat.NewVecDense(len(shared), append([]float64{1}, make([]float64, len(shared)-1)...)))
		left := agent - agent*agent*r.AtVec(0)
		b := map[int]float64{}
		for _, i := range actions {
			c := mat.NewVecDense(len(shared), nil)
			for a, k := range shared {
				c.SetVec(a, at(i, k))
			}
			var sol mat.VecDense
			_ = before.SolveVecTo(&sol, c)
			b[i] = sol.AtVec(0)
		}
		for _, i := range actions {
			for _, k := range actions {
				if i < k {
					j.p.Data[i*j.p.Stride+k] -= b[i] * b[k] * left
				}
			}
		}
	}
	p.Dense.age(member, agent, own)
}

func (p projected) Observe(decl Declaration, o Observation) (Innovation, error) {
	r, base := p.open(decl)
	in, _ := p.m.learn(p, base, p.m.look(p, base), &p.agent, p.runs, r, decl.Risk, o.Err)
	p.runs++
	return in, nil
}

type observer interface {
	Observe(Declaration, Observation) (Innovation, error)
	Risk(Declaration) Estimate
}

// differ feeds both forms the same outcomes and returns the largest differences of the log-odds, and the log loss of each.
func differ(t *testing.T, c Config, form func(*Model) observer, w *town, steps, every int) (mean, variance float64, loss [2]float64) {
	m, err := New(c)
	require.NoError(t, err)
	for _, side := range []*Change{&m.cfg.Worse, &m.cfg.Better} {
		if side.AgentInflation == minVariance { // the least that can be configured; here it means none
			side.AgentInflation = 0
		}
	}
	star, err := m.Track(m.Prior())
	require.NoError(t, err)
	dense := form(m)
	for i := range steps {
		d, o := w.next()
		in, err := star.Observe(d, o)
		require.NoError(t, err)
		ref, err := dense.Observe(d, o)
		require.NoError(t, err)
		loss[0] += in.Bits / float64(steps)
		loss[1] += ref.Bits / float64(steps)
		if i%every != 0 && i != steps-1 {
			continue
		}
		for _, d := range w.acts {
			if star.states[d.Name] == nil {
				continue
			}
			a, b := star.Risk(d), dense.Risk(d)
			mean = math.Max(mean, math.Abs(a.Mean-b.Mean))
			variance = math.Max(variance, math.Abs(a.Variance-b.Variance))
		}
		require.LessOrEqual(t, len(star.shared.eras), len(star.states)+1)
	}
	return mean, variance, loss
}

// steadyAgent is the bank without drift of the agent's part: all that remains of the model is exact in star form.
func steadyAgent() Config {
	c := Config{Members: Bank(), Worse: Change{AgentInflation: minVariance}, Better: Change{AgentInflation: minVariance}}
	for i := range c.Members {
		c.Members[i].AgentDrift = 0
	}
	return c
}

func exactly(m *Model) observer     { return NewDense(m) }
func asProjected(m *Model) observer { return projected{NewDense(m)} }

func TestStarEqualsDense(t *testing.T) {
	for _, c := range []struct {
		name                 string
		cfg                  Config
		form                 func(*Model) observer
		actions, tags, steps int
	}{
		{"one action", Config{}, exactly, 1, 0, 300},
		{"no drift of the agent", steadyAgent(), exactly, 12, 0, 800},
		{"no drift of the agent, tags", steadyAgent(), exactly, 12, 4, 800},
		{"drift", Config{}, asProjected, 12, 0, 250},
		{"drift, tags", Config{}, asProjected, 12, 3, 250},
		{"drift, many actions", Config{}, asProjected, 60, 3, 100},
	} {
		mean, variance, _ := differ(t, c.cfg, c.form, newTown(1, c.actions, c.tags), c.steps, 50)
		require.Less(t, math.Max(mean, variance), 1e-9, "%s: mean %v, variance %v", c.name, mean, variance)
	}
}

// What the star form forgets when the agent's part drifts.
func TestStarStaysNearDenseUnderDrift(t *testing.T) {
	mean, variance, loss := differ(t, Config{}, exactly, newTown(2, 12, 3), 1500, 20)
	require.Less(t, mean, .1)
	require.Less(t, variance, .2)
	require.InEpsilon(t, loss[1], loss[0], 2e-3)
	t.Logf("mean %.2g, variance %.2g, bits %.6f and %.6f", mean, variance, loss[0], loss[1])
}
