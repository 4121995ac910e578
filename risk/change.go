package risk

import "math"

// Event says what the change detector found.
type Event string

// The events of a change detector.
const (
	NoChange  Event = ""
	GotWorse  Event = "worse"  // the action fails more often than the belief explains
	GotBetter Event = "better" // it fails less often
)

// maxSum bounds what a sum may hold between observations.
const maxSum = 100

// sums is the state of the two-sided Bernoulli CUSUM: how strongly the recent outcomes speak for a shift up or down in
// log-odds against what was predicted (Page 1954).
type sums struct{ worse, better float64 }

// step adds one outcome, predicted with probability p of Err, and returns the variance to add to the belief before it is
// corrected. Both sums start again after an event: what follows is judged against a belief that is free to move.
func (s sums) step(c *Config, p float64, err bool) (sums, Event, float64) {
	p = clamp(p, minProbability, 1-minProbability)
	eta := logit(p)
	base := logLikelihood(eta, err)
	s.worse = math.Max(0, s.worse+logLikelihood(eta+c.Worse.Shift, err)-base)
	s.better = math.Max(0, s.better+logLikelihood(eta-c.Better.Shift, err)-base)
	switch {
	case s.worse > c.Worse.Threshold:
		return sums{}, GotWorse, c.Worse.Inflation
	case s.better > c.Better.Threshold:
		return sums{}, GotBetter, c.Better.Inflation
	}
	return s, NoChange, 0
}
