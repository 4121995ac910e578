package riskbench

import (
	"math"
	"slices"
	"sort"
)

const (
	gateAt   = .2      // the p̂ from which a gate holds a call for a person
	bayesAt  = 1. / 11 // the p̂ from which it pays where a needless gate costs 1 and a failure 10
	farAlarm = 1e-3    // false alarms per execution at the matched threshold
	early    = 100     // executions after a change that are looked at by themselves
)

// loss is the expected log loss, in nats, of stating q where the rate is p.
func loss(p, q float64) float64 {
	q = clamp(q, 1e-6, 1-1e-6)
	return -p*math.Log(q) - (1-p)*math.Log1p(-q)
}

// regret per thousand executions of gating on q where the rate is p.
func regret(p, q float64) float64 {
	c := 10 * p
	if q > bayesAt {
		c = 1 - p
	}
	return 1000 * (c - min(1-p, 10*p))
}

// edges between the bins of the calibration error: equal in the logarithm up to one half, then tenths.
var edges = func() (e []float64) {
	lo, hi := -3.5, math.Log10(.5)
	for i := range 14 {
		e = append(e, math.Pow(10, lo+(hi-lo)*float64(i)/13))
	}
	return append(e, .6, .7, .8, .9)
}()

// Bin is the executions whose p̂ fell between two edges.
type Bin struct {
	N           float64 `json:"n"`
	Stated      float64 `json:"stated"`   // mean p̂
	Happened    float64 `json:"happened"` // mean true rate; on recorded calls the share of Err
	sumP, sumTo float64
}

type bins [20]Bin

func (b *bins) add(q, truth float64) {
	i := sort.Search(len(edges), func(i int) bool { return q < edges[i] })
	b[i].N++
	b[i].sumP += q
	b[i].sumTo += truth
}

func (b *bins) merge(o *bins) {
	for i := range b {
		b[i].N += o[i].N
		b[i].sumP += o[i].sumP
		b[i].sumTo += o[i].sumTo
	}
}

// ece is the mean distance between what was stated and what happened.
func (b *bins) ece() (sum float64) {
	var n float64
	for _, x := range b {
		n += x.N
		sum += math.Abs(x.sumP - x.sumTo)
	}
	return sum / math.Max(n, 1)
}

// filled returns the bins that hold something.
func (b *bins) filled() (out []Bin) {
	for _, x := range b {
		if x.N > 0 {
			x.Stated, x.Happened = x.sumP/x.N, x.sumTo/x.N
			out = append(out, x)
		}
	}
	return out
}

// quantile interpolates between the sorted values.
func quantile(sorted []float64, at float64) float64 {
	x := at * float64(len(sorted)-1)
	i := min(int(x), max(0, len(sorted)-2))
	if len(sorted) == 1 {
		return sorted[0]
	}
	return sorted[i] + (x-float64(i))*(sorted[i+1]-sorted[i])
}

// alarm is the threshold that one value in a thousand exceeds.
func alarm(values []float64) float64 {
	slices.Sort(values)
	n := float64(len(values))
	return values[max(0, int(math.Ceil(n*(1-farAlarm)))-1)]
}

// standardError is that of the mean of v.
func standardError(v []float64) float64 {
	m, n, sum := mean(v), float64(len(v)), 0.
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / (n - 1) / n)
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x
	}
	return m / float64(len(v))
}

func sorted(v []float64) []float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v
}
