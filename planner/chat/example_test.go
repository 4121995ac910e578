package chat_test

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/planner/chat"
)

// script is a model that says its lines in turn.
type script []chat.Reply

func (s *script) Ask(_ context.Context, p chat.Prompt) (chat.Reply, error) {
	last := p.Messages[len(p.Messages)-1]
	for _, r := range last.Results {
		fmt.Println(r.ID, fence.ReplaceAllString(r.Text, ""))
	}
	next := (*s)[0]
	*s = (*s)[1:]
	return next, nil
}

var fence = regexp.MustCompile("\n</untrusted.*|<untrusted.*\n")

type order struct {
	OrderID string `json:"orderId"`
}

// A model charges an order before it was confirmed, is told so, and does better.
func Example() {
	same := func(_ *delta.Context, in order) mo.Result[order] { return mo.Ok(in) }
	confirm := delta.Define("orders/confirm", same).Describe("Confirm an order").Risk(1).MustBuild()
	charge := delta.Define("orders/charge", same).Describe("Charge an order").Risk(2).Needs(confirm.On("orderId")).MustBuild()
	desk := delta.NewAgent("desk").Role("You serve a shop.").Grant(confirm, charge).MustBuild()
	engine, err := delta.New(delta.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer engine.Close(ctx)
	task, err := engine.Start(ctx, delta.Goal{Agent: desk, Text: "charge ORD-1", Limit: action.Limit{Tokens: action.Max(100_000)}})
	if err != nil {
		fmt.Println(err)
		return
	}

	known := chat.Usage{Known: true, Input: 900, Output: 40}
	model := &script{ // a real one has learned the wire names from its tools
		{Calls: []chat.ToolCall{{ID: "a", Name: "orders/charge", Arguments: `{"orderId":"ORD-1"}`}}, Usage: known},
		{Calls: []chat.ToolCall{{ID: "b", Name: "orders/confirm", Arguments: `{"orderId":"ORD-1"}`}}, Usage: known},
		{Calls: []chat.ToolCall{{ID: "c", Name: "orders/charge", Arguments: `{"orderId":"ORD-1"}`}}, Usage: known},
		{Calls: []chat.ToolCall{{ID: "d", Name: "finish", Arguments: `{"verdict":"reached","why":"ORD-1 is charged"}`}}, Usage: known},
	}
	p, err := chat.New(model, chat.Config{Now: func() time.Time { return time.Unix(0, 0) }})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := engine.Run(ctx, task, p).Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	spent, err := task.Budget(ctx)
	fmt.Println(report.Ended, report.Verdict, "-", report.Why)
	fmt.Println(spent.Spent.Tokens, "tokens", err)
	// Output:
	// a NOT_LEGAL: the action is not available now. Repeating it brings the same, until what is named here has changed.
	// The engine says: "action \"orders/charge\" is not available for this input now: it needs orders/confirm on orderId"
	// b OK: the call succeeded; its output follows.
	// {"orderId":"ORD-1"}
	// c OK: the call succeeded; its output follows.
	// {"orderId":"ORD-1"}
	// done reached - the model says that the goal is reached: ORD-1 is charged
	// 3760 tokens <nil>
}
