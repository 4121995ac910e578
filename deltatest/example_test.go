package deltatest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/deltatest"
	"github.com/seed-ab2cfece/delta-agents/memory/faulty"
)

// printed stands in for the *testing.T of a test: an example has none.
type printed struct {
	testing.TB
	after []func()
}

func (p *printed) Helper()                           {}
func (p *printed) Cleanup(f func())                  { p.after = append(p.after, f) }
func (p *printed) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (p *printed) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (p *printed) end() {
	for _, f := range p.after {
		f()
	}
}

// A test of what an agent may do, and when.
func Example() {
	ctx, t := context.Background(), &printed{}
	defer t.end()
	d := deltatest.Open(t, delta.Config{})
	task := d.Start(delta.Goal{ID: "orders", Agent: clerk, Approvers: []string{"ana"}})

	deltatest.NotOffered(t, task, "charge-order")
	deltatest.RefusedWith(t, action.NotLegal, charge.Do(ctx, task, Order{"ORD-1"}))
	deltatest.Ok(t, confirm.Do(ctx, task, Order{"ORD-1"}))
	fmt.Println(deltatest.Ok(t, charge.Do(ctx, task, Order{"ORD-1"})))

	ask := deltatest.RefusedWith(t, action.ApprovalRequired, refund.Do(ctx, task, Order{"ORD-1"}))
	_ = d.Approve(ctx, ask.Approval(), d.As("ana"), "the customer called")
	fmt.Println(deltatest.Ok(t, refund.Do(ctx, task, Order{"ORD-1"})))
	deltatest.ApprovedOnce(t, task, "refund-order")
	deltatest.Spent(t, task, action.Calls, 5)
	// Output:
	// charged ORD-1
	// refunded ORD-1
	// deltatest: task clerk~orders has spent 3 calls, want 5 calls
}

// A model that goes wrong at first, and what becomes of its calls.
func ExampleScript() {
	t := &printed{}
	defer t.end()
	d := deltatest.Open(t, delta.Config{})
	task := d.Start(delta.Goal{Agent: clerk})
	script := deltatest.NewScript(t).
		Call("charge-order", Order{"ORD-1"}, action.NotLegal).
		Call("confirm-order", Order{"ORD-1"}, action.OK).
		Call("charge-order", Order{"ORD-1"}, action.OK)
	report := d.Run(context.Background(), task, script).MustGet()
	script.Played()
	fmt.Println(report.Why)
	// Output: the script has ended
}

// An approval that nobody gave in time.
func ExampleClock() {
	ctx, t := context.Background(), &printed{}
	defer t.end()
	d := deltatest.Open(t, delta.Config{})
	task := d.Start(delta.Goal{Agent: clerk, Approvers: []string{"ana"}, ApprovalTTL: time.Hour})
	ask := deltatest.RefusedWith(t, action.ApprovalRequired, refund.Do(ctx, task, Order{"ORD-1"}))
	d.Clock.Advance(61 * time.Minute)
	fmt.Println(d.Approve(ctx, ask.Approval(), d.As("ana"), "late") != nil)
	// Output: true
}

// Nothing runs while the store cannot be reached.
func ExampleDesk_Lose() {
	ctx, t := context.Background(), &printed{}
	defer t.end()
	d := deltatest.Open(t, delta.Config{})
	task := d.Start(delta.Goal{Agent: clerk})
	d.Lose(faulty.FailFrom(faulty.LostRequest, 1))
	deltatest.RefusedWith(t, action.StoreUnavailable, confirm.Do(ctx, task, Order{"ORD-1"}))
	d.Lose(nil)
	fmt.Println(deltatest.Ok(t, confirm.Do(ctx, task, Order{"ORD-1"})))
	// Output: confirmed ORD-1
}
