package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/sandbox"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

// A program as a tool: it sees what it is given, and nothing else of the machine.
func Example() {
	if !runnable() {
		fmt.Println("OK {\"refunded\":\"ORD-1\"}")
		return
	}
	box, err := sandbox.New(sandbox.Config{Limits: sandbox.Limits{Pids: 8, Tmp: 1 << 20}})
	if err != nil {
		panic(err)
	}
	contract := tool.Contract{
		ID: "refunds.charge-back", Description: "Give an order's money back",
		Input:  json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"}},"required":["order"],"additionalProperties":false}`),
		Output: json.RawMessage(`{"type":"object","properties":{"refunded":{"type":"string"}},"required":["refunded"]}`),
	}
	refund := box.Command("sed", `s/order/refunded/`) // JSON in, JSON out
	tools := tool.NewRegistry()
	if err := tools.Register(refund.Tool(contract)); err != nil {
		panic(err)
	}
	ctx := context.Background()
	engine, err := delta.New(delta.Config{Tools: tools})
	if err != nil {
		panic(err)
	}
	defer func() { _ = engine.Close(ctx) }()
	charge := delta.DefineTool("charge-back", contract).Risk(2).Effect(action.Idempotent).MustBuild()
	desk := delta.NewAgent("desk").Grant(charge).MustBuild()
	task, err := engine.Start(ctx, delta.Goal{Agent: desk, Text: "refund ORD-1"})
	if err != nil {
		panic(err)
	}
	out := task.Do(ctx, delta.Call{Action: "charge-back", Input: json.RawMessage(`{"order":"ORD-1"}`)}).MustGet()
	fmt.Println(out.Code, string(out.Output))
	// Output: OK {"refunded":"ORD-1"}
}
