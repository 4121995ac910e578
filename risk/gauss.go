package risk

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	minVariance = 1e-9 // floor: keeps every belief proper and able to move
	maxVariance = 10   // ceiling of the predicted variance; beyond it the quadrature loses its footing
	maxLogOdds  = 30   // |log-odds| beyond which sigma and one minus sigma are no longer told apart from 0
	z95         = 1.645

	// nodes of the Gauss–Hermite rule. About the mode, on the scale of the curvature there, 15 give evidence to 3e-4, the
	// mean to 6e-4 standard deviations and the variance to 0.2 % over the whole admitted range; a wider scale was worse.
	nodes = 15
)

// gauss is a Gaussian belief about one log-odds.
type gauss struct{ mean, variance float64 }

// proper reports whether g is one that this package could have made.
func (g gauss) proper(reach float64) bool {
	return math.Abs(g.mean) <= reach && g.variance >= minVariance && g.variance <= maxVariance
}

// age lets the truth have moved by q.
func (g gauss) age(q float64) gauss {
	return gauss{g.mean, math.Min(g.variance+q, maxVariance)}
}

// interval returns the central 90 % of the probability.
func (g gauss) interval() (lo, hi float64) {
	w := z95 * math.Sqrt(g.variance)
	return sigma(g.mean - w), sigma(g.mean + w)
}

// divergence returns KL(g‖prior) in nats: how far one observation moved a belief.
func (g gauss) divergence(prior gauss) float64 {
	return math.Max(0, distuv.KullbackLeibler{}.DistNormal(g.normal(), prior.normal()))
}

func (g gauss) normal() distuv.Normal {
	return distuv.Normal{Mu: g.mean, Sigma: math.Sqrt(g.variance)}
}

// rule is a quadrature rule for the standard normal density: the integral of f is the sum of weight times f(node).
type rule struct {
	node, weight [nodes]float64
	log          [nodes]float64 // log weight + node²/2: the weight over the density at the node, both up to a constant
}

// newRule turns gonum's rule for exp(−x²) into one for the standard normal (x → √2·x, weights over √π).
func newRule() (r rule) {
	quad.Hermite{}.FixedLocations(r.node[:], r.weight[:], math.Inf(-1), math.Inf(1))
	for i := range r.node {
		r.node[i] *= math.Sqrt2
		r.weight[i] /= math.Sqrt(math.Pi)
		r.log[i] = math.Log(r.weight[i]) + r.node[i]*r.node[i]/2
	}
	return r
}

// match returns the Gaussian with the first two moments of N(eta; g)·P(y|eta) and the evidence P(y), by quadrature about
// the mode of the product (Minka 2001; Graepel et al. 2010). The likelihood is log-concave: the variance never grows, an
// Err never lowers the mean and an Ok never raises it, which is enforced against the last digit of the quadrature. Where
// the quadrature is not finite the Laplace approximation stands in.
func (r *rule) match(g gauss, err bool) (gauss, float64) {
	mode, laplace := g.mode(err)
	sd := math.Sqrt(laplace)
	precision := 1 / (2 * g.variance)
	var z0, z1, z2 float64 // moments about the mode
	for i, n := range r.node {
		dx := sd * n
		d := mode + dx - g.mean
		w := math.Exp(r.log[i]-d*d*precision) * likelihood(mode+dx, err)
		z0 += w
		z1 += w * dx
		z2 += w * dx * dx
	}
	shift := z1 / z0
	post := gauss{mode + shift, z2/z0 - shift*shift}
	evidence := z0 * sd / math.Sqrt(g.variance)
	if !finite(post.mean) || !finite(post.variance) || !finite(evidence) || post.variance <= 0 {
		post = gauss{mode, laplace}
		evidence = likelihood(mode, err)
	}
	post.variance = clamp(post.variance, minVariance, g.variance)
	if err {
		post.mean = clamp(post.mean, g.mean, maxLogOdds)
	} else {
		post.mean = clamp(post.mean, -maxLogOdds, g.mean)
	}
	return post, evidence
}

// mode returns the maximum of N(eta; g)·P(y|eta) and the inverse curvature there. Newton's method on a concave function,
// its step bounded because the prior may lie far out on the flat side.
func (g gauss) mode(err bool) (at, variance float64) {
	y := 0.0
	if err {
		y = 1
	}
	at = g.mean
	for range 60 {
		p := sigma(at)
		step := clamp(((y-p)-(at-g.mean)/g.variance)/(p*(1-p)+1/g.variance), -3, 3)
		at += step
		if math.Abs(step) < 1e-5 { // squared by the step that was just taken; the quadrature needs no better centre
			break
		}
	}
	p := sigma(at)
	return at, 1 / (p*(1-p) + 1/g.variance)
}

// expect returns E[sigma(eta)], the probability of Err: the evidence of an Err.
func (r *rule) expect(g gauss) float64 {
	_, p := r.match(g, true)
	return clamp(p, minProbability, 1-minProbability)
}

// preserve returns the mean with which a Gaussian of that variance has E[sigma] = p, by bisection. A wide prior about
// logit(p) itself would promise another probability than was declared.
func (r *rule) preserve(p, variance float64) float64 {
	lo, hi := -float64(maxLogOdds), float64(maxLogOdds)
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid == lo || mid == hi {
			break
		}
		if r.expect(gauss{mid, variance}) < p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + (hi-lo)/2
}

// minProbability keeps logarithms of probabilities finite.
const minProbability = 1e-13

func sigma(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

func logit(p float64) float64 { return math.Log(p) - math.Log1p(-p) }

// logLikelihood is the logarithm of P(y|eta), without cancellation on either side.
func logLikelihood(eta float64, err bool) float64 {
	if !err {
		eta = -eta
	}
	if eta >= 0 {
		return -math.Log1p(math.Exp(-eta))
	}
	return eta - math.Log1p(math.Exp(eta))
}

// likelihood is P(y|eta).
func likelihood(eta float64, err bool) float64 {
	if !err {
		eta = -eta
	}
	return sigma(eta)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func clamp(x, lo, hi float64) float64 { return math.Min(math.Max(x, lo), hi) }
