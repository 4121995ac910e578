// Package statespace says which actions exist for an agent at one moment, because what they need has happened.
//
// An agent's actions and their prerequisites are compiled once into a [Graph]: a DAG over dense indices. Only an explicit
// Ok of an action satisfies anything. What such an Ok establishes is a set of facts, and a fact is a key: "confirm-order"
// where a dependent needs the action as such, `confirm-order@orderId="ORD-1"` where a dependent needs it bound on a field,
// so that confirming one order unlocks no other.
//
//	compile:  []Node           → Graph          every fault of the declaration at once
//	settle:   Graph.Facts      → keys           what an Ok establishes
//	begin:    Graph.Required   → keys           what a call rests on
//	offer:    Set.Names        → action names   kept up to date fact by fact; touching a fact visits its dependents only
//	          Set.Allowed      → value tuples   to narrow the schemas that are offered
//	why not:  Graph.Explain, Graph.Path
//
// The legal set answers for an action, a requirement for one call of it: an action bound on orderId is in the set as soon
// as any order is confirmed, and a call of it is legal when that order is.
//
// Nothing here reads a clock: times are store times in microseconds, passed in. A Graph is immutable and may be shared by
// goroutines; a [Set] belongs to one at a time.
package statespace
