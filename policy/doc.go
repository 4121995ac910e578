// Package policy says who may do what. Nothing is permitted unless something permits it: no policy, no grant, an error, a
// panic and a missing attribute all deny, and the reason says which. Registering an action, or offering it, permits
// nothing.
//
// A [Policy] is a pure function and may be asked in every round of every decision. Ask it through [Evaluate] only, which
// is where the promises above are kept.
//
// [Grants] permit agents actions by name. A [Bundle] is compiled from [Sources]: policies in Cedar, grants with ends and
// conditions, the declarations they are checked against, and levels of autonomy. In a bundle the principal is the agent,
// Agent::"support"; the action is the action, Action::"charge"; the resource is the tool that executes it or the data
// source it reads, Tool::"charge" where nothing else is said. The context of a request has:
//
//	input       record    the fields of the input; null is absent
//	risk        record    declared: Long, effective: decimal, rounded upwards
//	trust       decimal   in the agent, 0 to 1, rounded downwards
//	effect      String    none, idempotent, compensatable, irreversible
//	version     String    of the action; absent where there is none
//	left        record    of the task's budget, what has a limit: tokens, duration (ms), calls, bytes, money (micro-units), currency
//	provenance  record    goal, decision, planStep, reason: the planner's words, absent where there are none
//	tenant      String    absent where nobody said
//	now         datetime
//
// Numbers in an input are Long where they are written, and decimal where they are fractions or declared as "number". What
// Cedar cannot hold, beyond 64 bits or four decimal places, fails every comparison: whichever policy looks at it denies.
package policy
