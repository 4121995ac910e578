// Package trace tells the story behind an id: which goal led to which reasoning and decision, which call was intended, who
// decided about it and on what grounds, what executed it, and how it ended. It reads ledger events and nothing else: no
// model is asked, and nothing is guessed.
//
// The id may be that of an intent, a call, an approval, an escalation, a decision or a plan step, an override, or a task.
// The words of goal, decision and reason are a planner's: recorded, and not trusted.
package trace
