package delta_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

type Invoice struct {
	Number string `json:"number"`
	Cents  int64  `json:"cents"`
}

// badges vouches for whoever shows a badge "name/role". Elsewhere a login stands here.
func badges(_ context.Context, credential any) (delta.Vouched, error) {
	name, role, _ := strings.Cut(credential.(string), "/")
	return delta.Vouched{Name: name, Roles: []string{role}}, nil
}

// bookkeeping is an engine with a task whose payments need two people from finance.
func bookkeeping() (*delta.Engine, *delta.Task) {
	pay := delta.Define("pay", func(_ *delta.Context, in Invoice) mo.Result[string] {
		return mo.Ok("paid " + in.Number)
	}).Describe("Pay an invoice").Risk(2).RequireApproval().Quorum(2, "role:finance").MustBuild()
	engine, err := delta.New(delta.Config{Authenticator: delta.VoucherFunc(badges), Operators: []string{"role:oncall"}})
	if err != nil {
		panic(err)
	}
	books := delta.NewAgent("books").Grant(pay).MustBuild()
	task, err := engine.Start(context.Background(), delta.Goal{ID: "march", Agent: books, Text: "pay", Approvers: []string{"role:finance"}, Requester: "bo"})
	if err != nil {
		panic(err)
	}
	return engine, task
}

func Example_quorum() {
	ctx := context.Background()
	engine, task := bookkeeping()
	defer engine.Close(ctx)
	call := delta.Call{Action: "pay", Input: json.RawMessage(`{"number":"R-1","cents":900}`)}
	out := task.Do(ctx, call).MustGet()
	for _, badge := range []string{"ana/legal", "ana/finance", "Ana/finance", "bob/finance"} {
		who, _ := engine.Authenticate(ctx, badge)
		err := engine.Approve(ctx, out.Failure.Approval(), who, "checked")
		fmt.Println(badge, err == nil, task.Do(ctx, call).MustGet().Code)
	}
	// Output:
	// ana/legal false APPROVAL_REQUIRED
	// ana/finance true APPROVAL_REQUIRED
	// Ana/finance false APPROVAL_REQUIRED
	// bob/finance true OK
}

func ExampleEngine_ApproveBatch() {
	ctx := context.Background()
	engine, task := bookkeeping()
	defer engine.Close(ctx)
	var ids []string
	for _, number := range []string{"R-1", "R-2", "R-3"} {
		in, _ := json.Marshal(Invoice{number, 900})
		ids = append(ids, task.Do(ctx, delta.Call{Action: "pay", Input: in}).MustGet().Failure.Approval())
	}
	for _, badge := range []string{"ana/finance", "bob/finance"} {
		who, _ := engine.Authenticate(ctx, badge)
		decided, err := engine.ApproveBatch(ctx, ids, who, []string{"number"}, "the rent, as every month")
		fmt.Println(len(decided), err)
	}
	fmt.Println(task.Do(ctx, delta.Call{Action: "pay", Input: json.RawMessage(`{"number":"R-2","cents":900}`)}).MustGet().OK())
	// Output:
	// 3 <nil>
	// 3 <nil>
	// true
}

func ExampleTask_BreakGlass() {
	ctx := context.Background()
	engine, task := bookkeeping()
	defer engine.Close(ctx)
	oncall, _ := engine.Authenticate(ctx, "olga/oncall")
	_, err := task.BreakGlass(ctx, oncall, delta.Glass{Actions: []string{"pay"}, For: 10 * time.Minute}, "the power is cut at noon")
	fmt.Println(err)
	fmt.Println(task.Do(ctx, delta.Call{Action: "pay", Input: json.RawMessage(`{"number":"R-9","cents":900}`)}).MustGet().Code)
	events, _ := task.Events(ctx)
	for _, e := range events[1:4] {
		fmt.Println(e.Type, e.Identity, e.Reason)
	}
	// Output:
	// <nil>
	// OK
	// glass_broken olga the power is cut at noon
	// glass_used olga the power is cut at noon
	// begun
}

func ExampleTask_TopUp() {
	ctx := context.Background()
	engine, task := bookkeeping()
	defer engine.Close(ctx)
	oncall, _ := engine.Authenticate(ctx, "olga/oncall")
	fmt.Println(task.TopUp(ctx, oncall, action.Cost{Tokens: 1000}, "a long month"))
	// Output:
	// top up of task books~march: tokens is not limited in this task: there is nothing to top up
}

func ExampleApproval_Explain() {
	ctx := context.Background()
	engine, task := bookkeeping()
	defer engine.Close(ctx)
	out := task.Do(ctx, delta.Call{Action: "pay", Input: json.RawMessage(`{"number":"R-1\u202e","cents":900}`)}).MustGet()
	a, _ := engine.Approval(ctx, out.Failure.Approval())
	for i, line := range strings.Split(a.Explain(), "\n")[:6] {
		fmt.Println(i, strings.TrimSpace(line))
	}
	// Output:
	// 0 books asks to run pay v1: Pay an invoice
	// 1 task      books~march, requested by bo
	// 2 input     cents = 900
	// 3 number = "R-1\u{202E}"
	// 4 changed   no call of this action was approved before
	// 5 why       the action asks for an approval
}
