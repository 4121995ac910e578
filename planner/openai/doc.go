// Package openai carries the prompts of planner/chat to servers that speak OpenAI's chat completions: OpenAI itself, and
// the many that do as it does (vLLM, llama.cpp, Ollama, LM Studio, gateways).
//
//	model, err := openai.New(openai.Options{})   // OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL
//	planner, err := chat.New(model, chat.Config{})
//
// Replies are streamed. 429, 5xx and connections that fail are retried a bounded number of times, after what Retry-After
// says where that is short enough, and never beyond the deadline of the context. A stream that breaks off is
// [chat.ErrCut], a prompt that is too long [chat.ErrTooLong]. No error and no log holds the key.
//
// It is a module of its own because the provider's library is heavy to compile.
package openai
