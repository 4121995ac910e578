// Package txn holds the transaction: a flat list of clauses that a store applies all or nothing, and the pure semantics
// of those clauses over a state. The engine computes transactions, every store applies them, the shell advances its
// snapshot by them and a replay folds them; all four use this one meaning. No clause knows a rule of the product.
//
//	condition   Expect a cell's version · Count within bounds · Have or Take a token in a state · Time within bounds
//	write       Put a cell · Count · Take or Set a token · Queue and Unqueue a member
//	append      Event to a ledger · Pend an outcome · Trim what was folded · Link the hash chain
//	retention   Expire says what need not be kept: the keys of an intent, or of a task, that ended
//
// All conditions look at the state before the transaction; then all writes happen in order. One transaction writes a key
// at most once.
package txn
