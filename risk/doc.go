// Package risk learns from executed outcomes how likely an action is to end in Err, how far an agent may be trusted and
// what a call will cost.
//
// A [Model] holds the constants and never changes. A [Belief] is everything known of one agent, an immutable value:
// [Model.Update] takes one and returns another. [Model.Risk], [Model.Trust] and [Model.Forecast] read it.
//
//	eta = base(declared) + s·(declared−3) + x_agent + Σ x_tag + x_action      log-odds that an execution ends in Err
//	y ~ Bernoulli(sigma(eta))                                                 y = 1 for Err
//
// All x of an agent, and s, are one Gaussian with full covariance: evidence on one action moves its relatives. It drifts
// with every execution and is corrected by the first two moments of its posterior along eta. This is the dynamic
// generalised linear model of West, Harrison and Migon (1985) with the moment-matched step of assumed density filtering
// (Minka 2001) along one linear predictor (Graepel et al. 2010). The declared risk is its prior: with no evidence the
// estimate reproduces the declaration, and evidence moves it either way. That the declared level is a floor on the gate is
// the gate's business ([Estimate.Effective]), never the estimate's. So is the floor that an action's own outcomes set, which
// no relative can talk away ([Estimate.Floor]).
//
// How much actions have in common is not known beforehand: a few settings of the variances run side by side and are
// averaged by how well they predict ([Member]). A change detector per action and per agent widens the belief when outcomes
// speak against it.
//
// The joint Gaussian is kept in a form whose cost does not grow with the number of actions. It is exact but for one thing:
// where the agent's part drifts, what two actions have in common beyond what the agent, the slope and the tags are now is
// forgotten. [Dense] forgets nothing, to check against and to compare with. A [Tracker] is a belief updated in place. The
// encoding is split as a shared block and one block per action; one observation changes the shared block and one action's
// block only.
//
// Ordering: outcomes are folded in the order in which they were settled. Only executed outcomes may be folded: a refused
// call neither ages nor teaches, or a planner could ungate an action by asking for it.
//
// The same belief and observations give the same bytes on one architecture (the compiler may fuse multiply and add on
// others) and one [Estimator].
package risk
