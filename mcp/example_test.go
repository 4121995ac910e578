package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/mcp"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

// notes is a server of this process; most are programs, see mcp.Stdio, or elsewhere, see mcp.HTTP.
func notes() mcp.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	type note struct {
		Text string `json:"text"`
	}
	answer := func(text string) sdk.ToolHandlerFor[note, note] {
		return func(context.Context, *sdk.CallToolRequest, note) (*sdk.CallToolResult, note, error) {
			return nil, note{text}, nil
		}
	}
	yes := true
	sdk.AddTool(s, &sdk.Tool{Name: "find", Description: "Find a note", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, answer("milk"))
	sdk.AddTool(s, &sdk.Tool{Name: "purge", Description: "Delete all notes", Annotations: &sdk.ToolAnnotations{DestructiveHint: &yes}}, answer("gone"))
	return within(s)
}

// The tools of a server become actions. What it says of them is a guess of their risk; what an agent may do is what it is
// granted, and what is risky waits for a person.
func Example() {
	ctx := context.Background()
	client, err := mcp.Open(mcp.Config{
		Name: "notes", Server: notes(), Log: slog.New(slog.DiscardHandler),
		Shape: func(i mcp.Info, b delta.Builder[action.Input, action.Output]) delta.Builder[action.Input, action.Output] {
			return b.Tags("notes")
		},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = client.Close() }()
	tools := tool.NewRegistry()
	imported, err := mcp.Actions(ctx, client, tools)
	if err != nil {
		panic(err)
	}
	engine, err := delta.New(delta.Config{Tools: tools})
	if err != nil {
		panic(err)
	}
	defer func() { _ = engine.Close(ctx) }()
	clerk := delta.NewAgent("clerk").Grant(imported.Actions...).MustBuild()
	task, err := engine.Start(ctx, delta.Goal{Agent: clerk, Text: "tidy up"})
	if err != nil {
		panic(err)
	}
	for i, name := range clerk.Actions() {
		out := task.Do(ctx, delta.Call{Action: name, Input: json.RawMessage(`{"text":"m"}`)}).MustGet()
		fmt.Println(name, imported.Tools[i].Class.Risk, imported.Tools[i].Class.Effect, out.Code, string(out.Output))
	}
	// Output:
	// notes.find 2 none OK {"text":"milk"}
	// notes.purge 4 irreversible NO_APPROVER
}
