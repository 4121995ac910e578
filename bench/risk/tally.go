package riskbench

import "math"

// tally is what one estimator did on one stream.
type tally struct {
	own, best           float64 // mean log loss, and that of the oracle
	brier, nis, covered float64
	gated               float64 // share of executions with p̂ ≥ gateAt
	regret, early       float64 // per thousand; early: right after a change half-way
	native, matched     float64 // executions from the jump to the first gate
	bins                bins
	stated              []float64 // kept on the quiet stream only
}

// watch says where to look on a stream.
type watch struct {
	jump   int     // the step at which the rate jumps, −1 for none
	change int     // the step after which early is counted, −1 for none
	match  float64 // the threshold with matched false alarms
	keep   bool
}

// walk takes an estimator along a stream. best is the log loss of the oracle.
func walk(e Estimator, s Stream, w watch) (t tally) {
	n := float64(len(s.Steps))
	t.native, t.matched = n-float64(w.jump), n-float64(w.jump)
	for i, x := range s.Steps {
		a := s.Actions[x.Action]
		q, lo, hi := e.Predict(a)
		t.step(i, x, q, lo, hi, w)
		e.Observe(a, x.Err)
	}
	for _, f := range []*float64{&t.own, &t.brier, &t.nis, &t.covered, &t.gated, &t.regret} {
		*f /= n
	}
	t.early /= early
	return t
}

func (t *tally) step(i int, x Step, q, lo, hi float64, w watch) {
	y := 0.
	if x.Err {
		y = 1
	}
	t.own += loss(x.P, q)
	t.brier += (q - y) * (q - y)
	t.nis += (q - y) * (q - y) / math.Max(q*(1-q), 1e-9)
	t.bins.add(q, x.P)
	r := regret(x.P, q)
	t.regret += r
	if w.change >= 0 && i >= w.change && i < w.change+early {
		t.early += r
	}
	if x.P >= lo-1e-9 && x.P <= hi+1e-9 {
		t.covered++
	}
	if q >= gateAt {
		t.gated++
	}
	if since := float64(i - w.jump); w.jump >= 0 && since >= 0 {
		if q >= gateAt {
			t.native = math.Min(t.native, since)
		}
		if q > w.match {
			t.matched = math.Min(t.matched, since)
		}
	}
	if w.keep {
		t.stated = append(t.stated, q)
	}
}

// known is the loss of knowing the rate itself.
func known(s Stream) (l float64) {
	for _, x := range s.Steps {
		l += loss(x.P, x.P)
	}
	return l / float64(len(s.Steps))
}

// Score is how an estimator did on all streams of a scenario.
type Score struct {
	Name    string  `json:"name"`
	LogLoss float64 `json:"logloss"` // expected, nats per execution
	Gap     float64 `json:"gap"`     // over the oracle's, a fraction
	Brier   float64 `json:"brier"`
	ECE     float64 `json:"ece"`
	Cover   float64 `json:"cover"`  // of the 90 % interval
	NIS     float64 `json:"nis"`    // mean
	Gated   float64 `json:"gated"`  // share of executions with p̂ ≥ 0.2
	Regret  float64 `json:"regret"` // per thousand, of gating at 1/11: mean
	Median  float64 `json:"regret_median"`
	Early   float64 `json:"regret_early,omitempty"` // in the hundred executions after the agent or an action changed
	Delay   *Delays `json:"delay,omitempty"`
	Bins    []Bin   `json:"bins"`
	// SE holds the standard errors of the metrics over the seeds, by name; nil of fewer than twenty seeds.
	SE map[string]float64 `json:"se,omitempty"`
}

// Delays of detection, in executions after a jump.
type Delays struct {
	Median        float64 `json:"median"` // to the first p̂ ≥ 0.2
	P90           float64 `json:"p90"`
	MatchedMedian float64 `json:"matched_median"` // to the first p̂ above the threshold with one false alarm in a thousand
	MatchedP90    float64 `json:"matched_p90"`
	Threshold     float64 `json:"threshold"` // that threshold
}

// blocks is into how many parts the seeds are split to tell the spread of a metric.
const blocks = 10

// gather sums up the tallies of all seeds. The spread comes from batch means: every metric, quantiles and calibration
// error included, is told of each tenth of the seeds by itself.
func gather(name string, all []tally, w watch, perSeed bool) Score {
	s := sum(name, all, w, perSeed)
	if len(all) < 2*blocks {
		return s
	}
	var parts []Score
	for i := range blocks {
		parts = append(parts, sum(name, all[i*len(all)/blocks:(i+1)*len(all)/blocks], w, perSeed))
	}
	s.SE = map[string]float64{}
	for _, m := range metrics {
		v := make([]float64, 0, blocks)
		for _, p := range parts {
			if x, ok := p.metric(m); ok {
				v = append(v, x)
			}
		}
		if len(v) == blocks {
			s.SE[m] = standardError(v)
		}
	}
	return s
}

func sum(name string, all []tally, w watch, perSeed bool) Score {
	col := func(f func(*tally) float64) []float64 {
		out := make([]float64, len(all))
		for i := range all {
			out[i] = f(&all[i])
		}
		return out
	}
	own, best := col(func(t *tally) float64 { return t.own }), col(func(t *tally) float64 { return t.best })
	regrets := col(func(t *tally) float64 { return t.regret })
	s := Score{
		Name: name, LogLoss: mean(own), Gap: mean(own)/mean(best) - 1,
		Brier: mean(col(func(t *tally) float64 { return t.brier })), NIS: mean(col(func(t *tally) float64 { return t.nis })),
		Cover: mean(col(func(t *tally) float64 { return t.covered })), Gated: mean(col(func(t *tally) float64 { return t.gated })),
		Regret: mean(regrets), Median: quantile(sorted(regrets), .5), Early: mean(col(func(t *tally) float64 { return t.early })),
	}
	if perSeed { // streams of one family differ: each counts alike
		s.Gap = mean(col(func(t *tally) float64 { return t.own/t.best - 1 }))
	}
	var b bins
	for i := range all {
		b.merge(&all[i].bins)
	}
	s.ECE, s.Bins = b.ece(), b.filled()
	if w.jump >= 0 {
		native, matched := sorted(col(func(t *tally) float64 { return t.native })), sorted(col(func(t *tally) float64 { return t.matched }))
		s.Delay = &Delays{quantile(native, .5), quantile(native, .9), quantile(matched, .5), quantile(matched, .9), w.match}
	}
	return s
}
