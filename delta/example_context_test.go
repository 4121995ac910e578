package delta_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing/fstest"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/skills"
)

// A task brings along skills and attachments. Planners and functions name them, and never a path.
func ExampleGoal() {
	library := skills.New(fstest.MapFS{"refunds/SKILL.md": {Data: []byte(
		"---\nname: refunds\ndescription: How refunds are decided here.\n---\nRefund what the receipt shows, and no more.\n")}})

	refund := delta.Define("refund-order", func(ctx *delta.Context, in Order) mo.Result[string] {
		receipt, err := ctx.Attachment("receipt")
		if err != nil {
			return mo.Err[string](err)
		}
		return mo.Ok(fmt.Sprintf("refunded %s by a receipt of %d bytes", in.OrderID, len(receipt.Data)))
	}).Describe("Refund an order").Risk(2).Skills("refunds").Context("receipt").MustBuild()

	engine, err := delta.New(delta.Config{Skills: library})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer engine.Close(ctx)
	task, err := engine.Start(ctx, delta.Goal{
		Agent: delta.NewAgent("desk").Grant(refund).MustBuild(), Text: "refund ORD-1",
		Phase: "intake", Storylines: []string{"The customer has written twice."},
		Attachments: []delta.Attachment{{ID: "receipt", Type: "application/pdf", Data: []byte("%PDF-1.7 …")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := engine.Run(ctx, task, delta.PlannerFunc(func(_ context.Context, r delta.Request) (delta.Proposal, error) {
		if r.Step > 1 {
			return delta.Proposal{Done: true, Verdict: action.Reached, Why: "it is refunded"}, nil
		}
		fmt.Println(r.Phase, r.Storylines, r.Attachments[0].ID, r.Attachments[0].Type, r.Skills)
		skill, err := r.Skill("refunds")
		fmt.Println(skill.Body, err)
		_, err = r.Skill("../secrets")
		fmt.Println(err)
		return delta.Proposal{Calls: []delta.Call{{Action: "refund-order", Input: []byte(`{"orderId":"ORD-1"}`)}}}, nil
	})).Get()
	fmt.Println(string(report.Results[0].Outcome.Output), report.Verdict, err)

	_, err = engine.Start(ctx, delta.Goal{Agent: task.Agent(), Attachments: []delta.Attachment{{ID: "photo", Type: "image/png", Data: []byte("GIF89a\x01\x00")}}})
	fmt.Println(err)
	// Output:
	// intake [The customer has written twice.] receipt application/pdf [refunds: How refunds are decided here.]
	// Refund what the receipt shows, and no more. <nil>
	// skill "../secrets" is not given here; there are ["refunds"]
	// "refunded ORD-1 by a receipt of 12 bytes" reached <nil>
	// start: goal attachment 1 ("photo"): its type is declared as image/png: it looks like image/gif; declare that, or application/octet-stream
}

// Sending a message is a governed call: the agent is granted it, and it may have to be approved.
func ExampleCommunicate() {
	plain := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "id" || a.Key == "task" {
			return slog.Attr{}
		}
		return a
	}}))
	engine, err := delta.New(delta.Config{Channels: map[string]delta.Channel{"ops": delta.LogChannel(plain), "customers": delta.LogChannel(plain)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer engine.Close(ctx)
	desk := delta.NewAgent("desk").Grant(delta.Communicate().MustBuild()).MustBuild()
	task, err := engine.Start(ctx, delta.Goal{Agent: desk, Text: "keep ops informed", Channels: []string{"ops"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(task.Communicate(ctx, "ops", "the provider is down").MustGet().Code)
	fmt.Println(task.Communicate(ctx, "customers", "everything is free").MustGet().Failure)
	// Output:
	// level=INFO msg=message channel=ops subject="" text="the provider is down"
	// OK
	// CHANNEL_UNKNOWN: this task has no channel "customers"; it has ["ops"]
}

// A function may call other actions of its agent. Each such call passes all gates for itself.
func ExampleContext_Tool() {
	lookUp := delta.Define("look-up", func(_ *delta.Context, in Order) mo.Result[int] {
		return mo.Ok(42)
	}).Describe("Look an order up").Risk(1).Effect(action.None).MustBuild()
	report := delta.Define("report", func(ctx *delta.Context, in Order) mo.Result[string] {
		cents, err := lookUp.CallWithin(ctx, in).Get() // typed; ctx.Tool("look-up").Call(in) says the same by name
		if err != nil {
			return mo.Err[string](err)
		}
		other := ctx.Tool("report").Call(in).MustGet()
		return mo.Ok(fmt.Sprintf("%s costs %d; report: %s", in.OrderID, cents, other.Code))
	}).Describe("Report on an order").Risk(1).Effect(action.None).Tools("look-up").MustBuild()

	engine, err := delta.New(delta.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer engine.Close(ctx)
	task, err := engine.Start(ctx, delta.Goal{Agent: delta.NewAgent("desk").Grant(lookUp, report).MustBuild(), Text: "report"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Do(ctx, task, Order{"ORD-1"}).MustGet())
	b, err := task.Budget(ctx)
	fmt.Println(b.Spent.Calls, err)
	// Output:
	// ORD-1 costs 42; report: TOOL_UNKNOWN
	// 2 <nil>
}

// Calls that were Ok do not say that the goal was reached. Somebody does, and a person has the last word.
func ExampleTask_Conclude() {
	engine, err := delta.New(delta.Config{
		Operators:     []string{"ana"},
		Authenticator: delta.AuthenticatorFunc(func(_ context.Context, credential any) (string, error) { return credential.(string), nil }),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer engine.Close(ctx)
	task, err := engine.Start(ctx, delta.Goal{ID: "TASK", Agent: delta.NewAgent("desk").MustBuild(), Text: "calm the customer"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(task.Conclude(ctx, action.Reached, "two mails were sent"))
	ana, _ := engine.Authenticate(ctx, "ana")
	fmt.Println(task.ConcludeBy(ctx, ana, action.NotReached, "they called again"))

	status, reason, _ := task.Status(ctx)
	c, _, err := task.Conclusion(ctx)
	fmt.Println(status, "|", reason, "|", c.Verdict, "by", c.By, c.Identity, "|", c.Reason, err)
	fmt.Println(task.Conclude(ctx, action.Reached, "but they did"))
	// Output:
	// <nil>
	// <nil>
	// closed | two mails were sent | not_reached by person ana | they called again <nil>
	// conclude task desk~TASK: TASK_CLOSED: the task is closed and stays so; a person may still judge it (two mails were sent)
}

// What became of calls is asked for across tasks, those that ended included.
func ExampleEngine_History() {
	charge := delta.Define("charge-order", func(_ *delta.Context, in Order) mo.Result[string] {
		if in.OrderID == "ORD-2" {
			return mo.Err[string](fmt.Errorf("the card of %s was declined", in.OrderID))
		}
		return mo.Ok("charged")
	}).Describe("Charge an order").Risk(1).Effect(action.Idempotent).MustBuild()
	engine, err := delta.New(delta.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer engine.Close(ctx)
	desk := delta.NewAgent("desk").Grant(charge).MustBuild()
	for _, id := range []string{"ORD-1", "ORD-2", "ORD-3"} {
		task, err := engine.Start(ctx, delta.Goal{ID: "of-" + id, Agent: desk, Text: "charge " + id})
		if err != nil {
			fmt.Println(err)
			return
		}
		charge.Do(ctx, task, Order{id})
		if err := task.Done(ctx, "charged or not"); err != nil {
			fmt.Println(err)
		}
	}
	for q := (delta.HistoryQuery{Agent: "desk", Limit: 2}); ; {
		page, err := engine.History(ctx, q)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, h := range page.Outcomes {
			fmt.Println(h.Task, h.Action, h.Code)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	page, err := engine.History(ctx, delta.HistoryQuery{Codes: []action.Code{action.Failed}})
	fmt.Println(page.Outcomes[0].Failure, err)
	// Output:
	// of-ORD-1 charge-order OK
	// of-ORD-2 charge-order FAILED
	// of-ORD-3 charge-order OK
	// FAILED: the card of ORD-2 was declined <nil>
}

// Engines in several processes share a store, and a folder for what is attached.
func ExampleOpenAttachmentFolder() {
	folder, err := os.MkdirTemp("", "attachments-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	kept, err := delta.OpenAttachmentFolder(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	read := delta.Define("read", func(ctx *delta.Context, _ struct{}) mo.Result[string] {
		letter, err := ctx.Attachment("letter")
		if err != nil {
			return mo.Err[string](err)
		}
		return mo.Ok(letter.Type + ": " + string(letter.Data))
	}).Describe("Read the letter").Risk(1).Effect(action.None).MustBuild()
	desk := delta.NewAgent("desk").Grant(read).MustBuild()
	ctx := context.Background()
	store := memory.New(memory.Config{})

	here, err := delta.New(delta.Config{Store: store, Attachments: kept})
	if err != nil {
		fmt.Println(err)
		return
	}
	task, err := here.Start(ctx, delta.Goal{Agent: desk, Attachments: []delta.Attachment{{ID: "letter", Data: []byte("Dear desk, …")}}})
	fmt.Println(err, here.Close(ctx))

	there, err := delta.New(delta.Config{Store: store, Attachments: kept})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer there.Close(ctx)
	if err := there.Register(desk); err != nil {
		fmt.Println(err)
		return
	}
	again, err := there.Open(ctx, task.ID())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read.Do(ctx, again, struct{}{}).MustGet())
	// Output:
	// <nil> <nil>
	// text/plain: Dear desk, …
}

// The phase of a longer work is told to planners and functions.
func ExampleTask_SetPhase() {
	engine, err := delta.New(delta.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer engine.Close(ctx)
	task, err := engine.Start(ctx, delta.Goal{Agent: delta.NewAgent("desk").MustBuild(), Text: "sort the mail", Phase: "collect"})
	if err != nil {
		fmt.Println(err)
		return
	}
	planner := delta.PlannerFunc(func(_ context.Context, r delta.Request) (delta.Proposal, error) {
		fmt.Println(r.Phase)
		return delta.Proposal{Done: true}, nil
	})
	engine.Run(ctx, task, planner)
	fmt.Println(task.SetPhase(ctx, "sort", "all of it is here"))
	engine.Run(ctx, task, planner)
	// Output:
	// collect
	// <nil>
	// sort
}
