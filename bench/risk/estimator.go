package riskbench

import "slices"

// Estimator is a way to tell how likely the next execution of an action is to end in Err. It is used by one goroutine.
type Estimator interface {
	// Predict returns the probability of Err and an interval that is meant to hold the rate of Err with 90 %. It
	// changes nothing that a later call could tell.
	Predict(Action) (p, lo, hi float64)
	// Observe learns from one executed outcome.
	Observe(a Action, err bool)
}

// Kind is an estimator by name.
type Kind struct {
	Name string
	What string // one line
	New  func() Estimator
}

// Delta is the name of the product's own estimator.
const Delta = "delta"

// Estimators returns the product's estimator and the baselines, in the order in which they are shown.
func Estimators() []Kind { return slices.Clone(kinds) }

var kinds = []Kind{
	{Delta, "the product's: hierarchical Kalman filter in log-odds", newProduct},
	{"declared", "what was declared, for ever", func() Estimator { return perAction(newDeclared) }},
	{"reference", "the reference implementation's rule: a moving average of friction, surprise and failure", func() Estimator { return perAction(newReference) }},
	{"ewma", "exponentially weighted moving average of outcomes", func() Estimator { return perAction(tuned.ewma.start) }},
	{"window", "share of Err among the last outcomes, with a Beta prior", func() Estimator { return perAction(tuned.window.start) }},
	{"beta", "Beta distribution with forgetting", func() Estimator { return perAction(tuned.beta.start) }},
	{"linear", "Kalman filter on the outcomes 0 and 1", func() Estimator { return perAction(tuned.linear.start) }},
	{"ekf", "extended Kalman filter in log-odds", func() Estimator { return perAction(tuned.ekf.start) }},
}

// filter is an estimator of one action.
type filter interface {
	predict() (p, lo, hi float64)
	observe(y float64)
}

// each keeps a filter for every action: what is learned of one says nothing of another.
type each struct {
	start func(Action) filter
	by    []filter
}

func perAction(start func(Action) filter) *each { return &each{start: start} }

func (e *each) of(a Action) filter {
	for len(e.by) <= a.ID {
		e.by = append(e.by, nil)
	}
	if e.by[a.ID] == nil {
		e.by[a.ID] = e.start(a)
	}
	return e.by[a.ID]
}

// Predict returns what the action's own filter predicts.
func (e *each) Predict(a Action) (p, lo, hi float64) { return e.of(a).predict() }

// Observe teaches the action's own filter.
func (e *each) Observe(a Action, err bool) {
	y := 0.
	if err {
		y = 1
	}
	e.of(a).observe(y)
}
