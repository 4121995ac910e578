// Orders-llm is the order desk of examples/orders with a language model at work: it sees what is offered, is told why it is
// refused, and a person decides what is risky.
//
//	OPENAI_MODEL=gpt-5-mini OPENAI_API_KEY=… go run .
//	OPENAI_MODEL=qwen3 OPENAI_BASE_URL=http://localhost:8000/v1 go run .     a local server
//	ANTHROPIC_MODEL=claude-sonnet-5 ANTHROPIC_API_KEY=… go run . "Refund ORD-1 if it was charged."
//
// The database is in memory and new each time; the payment provider is a stand-in.
package main
