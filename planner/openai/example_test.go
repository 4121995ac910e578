package openai_test

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/planner/chat"
	"github.com/seed-ab2cfece/delta-agents/planner/openai"
)

// A model on a server of one's own plans for a task: engine.Run(ctx, task, planner).
func Example() {
	model, err := openai.New(openai.Options{BaseURL: "http://localhost:8000/v1", Model: "qwen3"})
	if err != nil {
		fmt.Println(err)
		return
	}
	planner, err := chat.New(model, chat.Config{Window: 32_000, Rules: []string{"Answer in German."}})
	fmt.Println(model, planner.EstimatePlan().Tokens, err)
	// Output: qwen3 at http://localhost:8000/v1 6096 <nil>
}
