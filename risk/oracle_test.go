package risk

import "math"

// gridMoments is the dumb reference of rule.match: the product of prior and likelihood summed over a fine grid.
func gridMoments(mean, variance float64, err bool) (m, v, evidence float64) {
	const n = 3000
	sd := math.Sqrt(variance)
	lo, hi := mean-13*sd, mean+13*sd
	step := (hi - lo) / n
	var s0, s1, s2 float64
	for i := range n + 1 {
		x := lo + step*float64(i)
		w := math.Exp(-(x-mean)*(x-mean)/(2*variance)) / math.Sqrt(2*math.Pi*variance) * step
		if err {
			w /= 1 + math.Exp(-x)
		} else {
			w /= 1 + math.Exp(x)
		}
		s0 += w
		s1 += w * (x - mean)
		s2 += w * (x - mean) * (x - mean)
	}
	shift := s1 / s0
	return mean + shift, s2/s0 - shift*shift, s0
}

// gridFilter is the dumb reference of the filter without change detection: the whole density on a grid of log-odds, never
// projected on a Gaussian.
type gridFilter struct{ x, w []float64 }

func newGridFilter(mean, variance float64) *gridFilter {
	f := &gridFilter{}
	for x := -22.0; x <= 12; x += 0.05 {
		f.x = append(f.x, x)
		f.w = append(f.w, math.Exp(-(x-mean)*(x-mean)/(2*variance)))
	}
	f.normalise()
	return f
}

func (f *gridFilter) normalise() {
	var s float64
	for _, w := range f.w {
		s += w
	}
	for i := range f.w {
		f.w[i] /= s
	}
}

// age diffuses the density: a step to either neighbour has the variance q.
func (f *gridFilter) age(q float64) {
	side := q / (2 * 0.05 * 0.05)
	next := make([]float64, len(f.w))
	for i, w := range f.w {
		next[max(i-1, 0)] += side * w
		next[i] += (1 - 2*side) * w
		next[min(i+1, len(f.w)-1)] += side * w
	}
	f.w = next
}

func (f *gridFilter) observe(err bool) {
	for i, x := range f.x {
		if err {
			f.w[i] /= 1 + math.Exp(-x)
		} else {
			f.w[i] /= 1 + math.Exp(x)
		}
	}
	f.normalise()
}

func (f *gridFilter) p() (p float64) {
	for i, x := range f.x {
		p += f.w[i] / (1 + math.Exp(-x))
	}
	return p
}
