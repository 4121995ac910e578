// Package riskbench measures estimators of the risk of an action against each other: on streams whose failure rate is
// known at every step, beside an exact Bayes filter that knows how the rate moves, and on recorded calls, where only
// outcomes are known.
//
// An [Estimator] predicts the probability that an action ends in Err and is told the outcome afterwards. [Estimators]
// lists the product's own, called delta, and seven simple rules that are in use elsewhere. A [Scenario] makes a [Stream]
// of one action from a seed, a [Family] one of many related actions of one agent. [Run] walks every estimator along every
// stream and reports, per scenario:
//
//	gap       expected log loss over that of the oracle, minus one; families: over the loss of knowing the rate itself
//	ECE       expected calibration error, in bins that are fine where rates are small
//	cover     how often the stated 90 % interval holds the true rate
//	delay     executions from a jump to the first p̂ ≥ 0.2; and at the threshold with one false alarm in a thousand
//	regret    cost of gating at p̂ > 1/11 above that of gating with knowledge of the rate, per thousand executions, where a
//	          needless gate costs 1 and a failure let through 10
//	NIS       mean squared standardised innovation, 1 where the stated probability is right on average
//
// Everything is reproducible to the last digit: a stream depends on its scenario and its seed alone, and sums are taken in
// the order of the seeds whatever the number of goroutines. Baselines have one setting for everything, found on seeds that
// are not used for judging (TestTrain).
package riskbench
