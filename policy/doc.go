// Package policy says who may do what. Nothing is permitted unless something permits it: no policy, no grant, an error, a
// panic and a missing attribute all deny, and the reason says which. Registering an action, or offering it, permits
// nothing.
//
// A [Policy] is a pure function and may be asked in every round of every decision. Ask it through [Evaluate] only, which
// is where the promises above are kept.
package policy
