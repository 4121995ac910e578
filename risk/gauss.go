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

// rule is a quadrature rule for the standard normal density, which is symmetric: the integral of f is middle·f(0) plus the
// sum of weight times f(node)+f(−node).
type rule struct {
	middle float64
	node   [nodes / 2]float64
	log    [nodes / 2]float64 // log weight + node²/2: the weight over the density at the node, both up to a constant
}

// newRule turns gonum's rule for exp(−x²) into one for the standard normal (x → √2·x, weights over √π).
func newRule() (r rule) {
	var x, w [nodes]float64
	quad.Hermite{}.FixedLocations(x[:], w[:], math.Inf(-1), math.Inf(1))
	for i := range r.node {
		at := nodes - 1 - i // the positive half
		r.node[i] = x[at] * math.Sqrt2
		r.log[i] = math.Log(w[at]/math.Sqrt(math.Pi)) + r.node[i]*r.node[i]/2
	}
	r.middle = w[nodes/2] / math.Sqrt(math.Pi)
	return r
}

// match returns the Gaussian with the first two moments of N(eta; g)·P(y|eta) and the evidence P(y), by quadrature about
// the mode of the product (Minka 2001; Graepel et al. 2010). The likelihood is log-concave: the variance never grows, an
// Err never lowers the mean and an Ok never raises it, which is enforced against the last digit of the quadrature. Where
// the quadrature is not finite the Laplace approximation stands in.
//
// An Ok is the mirror image of an Err. With s the distance of a node from the mode, δ that of the mode from the mean and
// v the variance, the product at ±s is, up to a constant, G·H/(1+z·E) and G/H/(1+z/E), where G = exp(log − s²/2v),
// H = exp(−δs/v), E = exp(−s) and z = exp(−mode).
func (r *rule) match(g gauss, err bool) (gauss, float64) {
	mean := g.mean
	if !err {
		mean = -mean
	}
	at, laplace, z := gauss{mean, g.variance}.mode()
	sd := math.Sqrt(laplace)
	half, tilt := 1/(2*g.variance), (at-mean)/g.variance
	z0 := r.middle / (1 + z)
	var z1, z2 float64
	for i, n := range r.node {
		s := sd * n
		w, h, e := exp(r.log[i]-s*s*half), exp(-tilt*s), exp(-s)
		up, down := w*h/(1+z*e), w*e/(h*(e+z))
		z0 += up + down
		z1 += (up - down) * s
		z2 += (up + down) * s * s
	}
	shift := z1 / z0
	post := gauss{at + shift, z2/z0 - shift*shift}
	evidence := r.evidence(z0, at-mean, sd, g.variance)
	if !finite(post.mean) || !finite(post.variance) || !finite(evidence) || post.variance <= 0 {
		post = gauss{at, laplace}
		evidence = sigma(at)
	}
	post.variance = clamp(post.variance, minVariance, g.variance)
	post.mean = clamp(post.mean, mean, maxLogOdds)
	if !err {
		post.mean = -post.mean
	}
	return post, evidence
}

func (r *rule) evidence(z0, shift, sd, variance float64) float64 {
	return z0 * exp(-shift*shift/(2*variance)) * sd / math.Sqrt(variance)
}

// mode returns the maximum of N(eta; g)·sigma(eta), the inverse curvature there and exp(−maximum). Newton's method on a
// concave function, its step bounded because the prior may lie far out on the flat side.
func (g gauss) mode() (at, variance, z float64) {
	at = g.mean
	z = exp(-at)
	precision := 1 / g.variance
	for range 60 {
		p := 1 / (1 + z)
		step := clamp((z*p-(at-g.mean)*precision)/(z*p*p+precision), -3, 3)
		at += step
		z = exp(-at)
		if math.Abs(step) < 1e-5 { // squared by the step that was just taken: one more or less changes no digit that counts
			break
		}
	}
	p := 1 / (1 + z)
	return at, 1 / (z*p*p + precision), z
}

// expect returns E[sigma(eta)], the probability of Err: the evidence of an Err.
func (r *rule) expect(g gauss) float64 {
	at, laplace, z := g.mode()
	sd := math.Sqrt(laplace)
	half, tilt := 1/(2*g.variance), (at-g.mean)/g.variance
	z0 := r.middle / (1 + z)
	for i, n := range r.node {
		s := sd * n
		w, h, e := exp(r.log[i]-s*s*half), exp(-tilt*s), exp(-s)
		z0 += w*h/(1+z*e) + w*e/(h*(e+z))
	}
	p := r.evidence(z0, at-g.mean, sd, g.variance)
	if !finite(p) {
		p = sigma(at)
	}
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

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// clamp bounds x; what is not a number stays so.
func clamp(x, lo, hi float64) float64 {
	switch {
	case x < lo:
		return lo
	case x > hi:
		return hi
	}
	return x
}
