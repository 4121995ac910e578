// Package anthropic carries the prompts of planner/chat to Anthropic's messages, and to servers that speak the same.
//
//	model, err := anthropic.New(anthropic.Options{})   // ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, ANTHROPIC_MODEL
//	planner, err := chat.New(model, chat.Config{})
//
// Replies are streamed, and the tools, the system prompt and the conversation so far are marked for the prompt cache. 429,
// 5xx and connections that fail are retried a bounded number of times, after what Retry-After says where that is short
// enough, and never beyond the deadline of the context. A stream that breaks off is [chat.ErrCut], a prompt that is too
// long [chat.ErrTooLong]. No error and no log holds the key.
//
// It is a module of its own because the provider's library is heavy to compile.
package anthropic
