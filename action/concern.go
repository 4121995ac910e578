package action

import "slices"

// Concern says why a task is brought before a person: the kinds of escalation.
type Concern string

// The concerns.
const (
	ConcernRisk     Concern = "risk"     // calls are refused for their risk again and again, or people are asked too often
	ConcernSurprise Concern = "surprise" // calls fail more often than was known: what was learned no longer holds
	ConcernBudget   Concern = "budget"   // much is spent for little
	ConcernLoop     Concern = "loop"     // the same call is made again and again to no effect
	ConcernPolicy   Concern = "policy"   // what the agent may not do is tried again and again
	ConcernFailure  Concern = "failure"  // calls fail one after the other
)

var concerns = []Concern{ConcernRisk, ConcernSurprise, ConcernBudget, ConcernLoop, ConcernPolicy, ConcernFailure}

// Concerns returns all of them.
func Concerns() []Concern { return slices.Clone(concerns) }

// Valid reports whether c is one of them.
func (c Concern) Valid() bool { return slices.Contains(concerns, c) }
