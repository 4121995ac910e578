// Package chattest is a provider of language models for tests: a local server that speaks the documented wire formats of
// OpenAI-compatible servers (POST …/chat/completions) and of Anthropic (POST …/v1/messages), streamed as server-sent
// events, says what it is told to say, and fails as real ones do.
//
// It is strict where they are: a request that a provider would refuse is refused with 400, and why is in the answer. So a
// test that passes has sent conversations in which every call is answered, with names and schemas that are allowed.
package chattest
