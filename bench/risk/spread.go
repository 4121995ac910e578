package riskbench

import (
	"math"
	"math/rand/v2"
)

const (
	resamples    = 1000
	resampleSeed = 11
)

// spread tells how far log losses would differ had other runs been recorded: runs are drawn with replacement (Efron 1979),
// the same ones for every estimator, since calls of one run belong together and calls of two do not.
func (r *Recorded) spread(s Stream) {
	var rows []float64
	for _, x := range s.Steps {
		for len(rows) <= x.Run {
			rows = append(rows, 0)
		}
		rows[x.Run]++
	}
	for k := range r.Scores {
		r.Scores[k].Above = r.Scores[k].LogLoss - r.Scores[0].LogLoss
	}
	if len(rows) < 2 || len(r.Scores) == 0 {
		return
	}
	n := len(r.Scores)
	means, aboves := make([]moments, n), make([]moments, n)
	random := rand.New(rand.NewPCG(resampleSeed, uint64(len(rows))))
	sums := make([]float64, n)
	for range resamples {
		clear(sums)
		var drawn float64
		for range rows {
			i := random.IntN(len(rows))
			drawn += rows[i]
			for k := range sums {
				sums[k] += r.Scores[k].losses[i]
			}
		}
		for k := range sums {
			means[k].add(sums[k] / drawn)
			aboves[k].add((sums[k] - sums[0]) / drawn)
		}
	}
	for k := range r.Scores {
		r.Scores[k].SE, r.Scores[k].AboveSE = means[k].sd(), aboves[k].sd()
	}
}

// moments gathers a mean and a standard deviation (Welford 1962).
type moments struct{ n, mean, squares float64 }

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.squares += d * (x - m.mean)
}

func (m *moments) sd() float64 { return math.Sqrt(m.squares / (m.n - 1)) }
