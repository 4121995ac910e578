// Package risk learns from executed outcomes how likely an action is to end in Err, how far an agent may be trusted and
// what a call will cost.
//
// A [Model] holds the constants and never changes. A [Belief] is everything known of one agent, an immutable value:
// [Model.Update] takes one and returns another. [Model.Risk], [Model.Trust] and [Model.Forecast] read it.
//
//	eta = base(declared) + x          log-odds that an execution ends in Err
//	y ~ Bernoulli(sigma(eta))         y = 1 for Err
//	x is Gaussian, drifts by Q per execution, and is corrected by the first two moments of its posterior
//
// This is the dynamic generalised linear model of West, Harrison and Migon (1985) with the moment-matched step of assumed
// density filtering (Minka 2001) along one linear predictor (Graepel et al. 2010). The declared risk is its prior: with no
// evidence the estimate reproduces the declaration, and evidence moves it either way. That the declared level is a floor is
// the gate's business ([Effective]), never the estimate's.
//
// Today x is one number per action; evidence on one action does not yet move its relatives. The encoding is nevertheless
// split as a shared block and one block per action, and one observation changes the shared block and one action's block
// only.
//
// Ordering: outcomes are folded in the order in which they were settled. Only executed outcomes may be folded: a refused
// call neither ages nor teaches, or a planner could ungate an action by asking for it.
//
// The same belief and observations give the same bytes on one architecture (the compiler may fuse multiply and add on
// others) and one [Estimator].
package risk
