// Package chat makes a planner of a language model. It holds everything that does not depend on a provider's wire: what
// the model is shown, how its answer becomes a proposal, and how what became of the proposal is told to it. A [Model]
// carries one prompt over one wire; planner/openai and planner/anthropic are such, in modules of their own.
//
//	p, err := chat.New(model, chat.Config{Rules: []string{"Write to customers in their language."}})
//	report := engine.Run(ctx, task, p)
//
// # What the model is shown
//
// The tools are the offer: the narrowed schemas, in an order that depends on the names alone, so that a provider's prompt
// cache holds as long as the offer does. One more tool, finish, ends the run. The system prompt is the agent's role, how
// to act, the rules and the goal; what changes (the time, the budget, guidance) comes last, in the newest message.
//
// # What is trusted
//
// Nothing a model says. Its calls go to the engine as they came: malformed arguments are refused there, by the strict
// edge, and told to it. Nothing a tool says either: every output, and every message of a failure, stands between fences
// with a random number of its own, in a form in which it cannot hold a fence; see [Fence].
//
// # Ordering and ownership
//
// A [Planner] holds one conversation, so it serves one run at a time; the next run starts a new one. A call of the model
// gets an id of the conversation's own, since models repeat theirs; results are told under the model's id.
package chat
