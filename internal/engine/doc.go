// Package engine decides. Gates 1 to 8 are one pure function of a snapshot ([Decide]); begin, settle and every other
// transition are transactions computed here and applied by a store. It reads no clock, no randomness and no context: time,
// ids and the verdicts of user code come in as values, so that a decision can be made again from its record.
//
// State is the fold of the ledger by construction: a transaction is pins (what the decision rests on), events, and the
// [Changes] those events imply. Replaying the events through Changes gives the state again.
package engine
