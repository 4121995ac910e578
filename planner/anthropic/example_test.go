package anthropic_test

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/planner/anthropic"
	"github.com/seed-ab2cfece/delta-agents/planner/chat"
)

// A model on a server of one's own plans for a task: engine.Run(ctx, task, planner).
func Example() {
	model, err := anthropic.New(anthropic.Options{BaseURL: "http://localhost:8000", Model: "claude"})
	if err != nil {
		fmt.Println(err)
		return
	}
	planner, err := chat.New(model, chat.Config{Window: 32_000, Rules: []string{"Answer in German."}})
	fmt.Println(model, planner.EstimatePlan().Tokens, err)
	// Output: claude at http://localhost:8000 6096 <nil>
}
