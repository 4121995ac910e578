package riskbench

import "math"

// Grid is an exact Bayes filter: the whole density over a grid of rates, moved by known dynamics. It is the best that any
// estimator could do on average, and costs some thousand times as much. It serves one action.
type Grid struct {
	p, w []float64
	move [][]float64 // by source, over the targets from source−band to source+band; nil where nothing moves
	band int
	next []float64
}

const gridBand = 12

// around has a Gaussian prior on log-odds and, where sd is positive, a Gaussian walk.
func around(mean, prior, drift, sd float64) func() *Grid {
	const points = 281 // −9 to 5 in steps of 0.05
	return func() *Grid {
		g := &Grid{band: gridBand}
		x := make([]float64, points)
		for i := range x {
			x[i] = -9 + float64(i)*.05
			z := (x[i] - mean) / prior
			g.p = append(g.p, sigma(x[i]))
			g.w = append(g.w, math.Exp(-.5*z*z))
		}
		normalise(g.w)
		if sd > 0 {
			row := make([]float64, points)
			for i := range x {
				for j := range x {
					z := (x[j] - x[i] - drift) / sd
					row[j] = math.Exp(-.5 * z * z)
				}
				normalise(row)
				lo, hi := g.reach(i)
				g.move = append(g.move, append([]float64(nil), row[lo:hi]...))
			}
		}
		return g
	}
}

// states has two rates, begins in the first and moves forth and back with the probabilities given.
func states(a, b, forth, back float64) func() *Grid {
	return func() *Grid {
		return &Grid{p: []float64{a, b}, w: []float64{1, 0}, band: 1, move: [][]float64{{1 - forth, forth}, {back, 1 - back}}}
	}
}

func (g *Grid) reach(i int) (lo, hi int) { return max(0, i-g.band), min(len(g.p), i+g.band+1) }

// Predict returns the mean of the rate and its central 90 %.
func (g *Grid) Predict(Action) (p, lo, hi float64) {
	lo, hi = g.p[0], g.p[len(g.p)-1]
	below, sum := true, 0.0
	for i, w := range g.w {
		p += w * g.p[i]
	}
	for i, w := range g.w {
		sum += w
		if below && sum >= .05 {
			lo, below = g.p[i], false
		}
		if sum >= .95 {
			return p, lo, g.p[i]
		}
	}
	return p, lo, hi
}

// Observe weighs every rate by how well it explains the outcome, and lets it move.
func (g *Grid) Observe(_ Action, err bool) {
	for i, p := range g.p {
		if err {
			g.w[i] *= p
		} else {
			g.w[i] *= 1 - p
		}
	}
	normalise(g.w)
	if g.move == nil {
		return
	}
	if g.next == nil {
		g.next = make([]float64, len(g.w))
	}
	clear(g.next)
	for i, w := range g.w {
		if w > 1e-14 {
			lo, _ := g.reach(i)
			for k, m := range g.move[i] {
				g.next[lo+k] += w * m
			}
		}
	}
	g.w, g.next = g.next, g.w
}

func normalise(w []float64) {
	var s float64
	for _, v := range w {
		s += v
	}
	for i := range w {
		w[i] /= s
	}
}
