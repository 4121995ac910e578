package conformance

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func changeCases() []Case {
	return []Case{
		{"C19", "grants, policy or prerequisites change between approval and run", "everything is evaluated again at begin", []Variant{
			{"the prerequisite is consumed by another call", prerequisiteGone},
			{"the prerequisite is too old by then", prerequisiteOld},
			{"the policy turned", policyTurned},
			{"the grant was withdrawn", grantWithdrawn},
			{"the budget was spent", budgetGone},
			{"the task was cancelled", cancelledApproved},
			{"the threshold was lowered under an ungated call", thresholdLowered},
			{"the threshold was raised: it runs once all the same", thresholdRaised},
			{"workers meet every such end once", workersMeet},
		}},
	}
}

// confirmed is pay after an unused confirmation, and a rival that uses confirmations up too.
func confirmed(pay, rival *spy, within time.Duration) []Action {
	need := []Need{{Action: "confirm", Field: "amount", Consumed: true, Within: within}}
	return []Action{
		{Name: "confirm", Schema: payment, Effect: Idempotent, Do: answerBody},
		{Name: "pay", Schema: payment, Gated: true, Needs: need, Do: pay.do},
		{Name: "rival", Schema: payment, Needs: need, Do: rival.do},
	}
}

func prerequisiteGone(t *T) {
	pay, rival := &spy{}, &spy{}
	task := t.open(Goal{}, confirmed(pay, rival, 0)...)
	t.want("confirm", t.propose(task, "confirm", `{"amount":10}`), action.OK)
	t.approve(t.asks(task, "pay", `{"amount":10}`))
	t.want("rival", t.propose(task, "rival", `{"amount":10}`), action.OK)
	t.want("the approved call without its prerequisite", t.propose(task, "pay", `{"amount":10}`), action.NotLegal)
	if w, ok := t.Subject.(Worker); ok {
		_ = w.Work(t.Context, func() bool { return true })
	}
	t.ran("pay", pay, 0)
}

func prerequisiteOld(t *T) {
	pay, rival, clock := &spy{}, &spy{}, need[Clocked](t)
	task := t.open(Goal{}, confirmed(pay, rival, time.Minute)...)
	t.want("confirm", t.propose(task, "confirm", `{"amount":10}`), action.OK)
	t.approve(t.asks(task, "pay", `{"amount":10}`))
	clock.Advance(time.Minute + time.Second)
	t.want("the approved call on an old confirmation", t.propose(task, "pay", `{"amount":10}`), action.NotLegal)
	t.ran("pay", pay, 0)
}

func policyTurned(t *T) {
	pay, p := &spy{}, need[Policed](t)
	task := t.open(Goal{}, gatedPay(pay))
	t.approve(t.asks(task, "pay", `{"amount":10}`))
	p.SetPolicy(func(string, string, json.RawMessage) (bool, error) { return false, nil })
	t.want("the approved call under the new policy", t.propose(task, "pay", `{"amount":10}`), action.Denied)
	t.ran("pay", pay, 0)
}

func grantWithdrawn(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, gatedPay(pay))
	t.approve(t.asks(task, "pay", `{"amount":10}`))
	if err := t.Declare(Agent{Name: clerk, Actions: []Action{gatedPay(pay)}}); err != nil {
		t.Fatalf("declare: %v", err)
	}
	t.want("the approved call without a grant", t.propose(task, "pay", `{"amount":10}`), action.Denied)
	t.ran("pay", pay, 0)
}

func budgetGone(t *T) {
	pay, eat := &spy{}, &spy{then: func(_ context.Context, x Execution) (json.RawMessage, error) {
		return json.RawMessage(`{}`), x.Spend(Cost{Tokens: 80})
	}}
	act := gatedPay(pay)
	act.Cost = Cost{Tokens: 50}
	task := t.open(Goal{Limit: Limit{Tokens: UpTo(100)}}, act, Action{Name: "eat", Effect: Idempotent, Cost: Cost{Tokens: 80}, Do: eat.do})
	t.approve(t.asks(task, "pay", `{"amount":10}`))
	t.want("eat", t.propose(task, "eat", `{}`), action.OK)
	t.want("the approved call that can no longer be paid", t.propose(task, "pay", `{"amount":10}`), action.BudgetExhausted)
	t.ran("pay", pay, 0)
}

func cancelledApproved(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, gatedPay(pay))
	id := t.asks(task, "pay", `{"amount":10}`)
	t.approve(id)
	if err := t.Cancel(t.Context, task, "enough"); err != nil {
		t.Fatalf("cancel: %v", err)
	}
	if w, ok := t.Subject.(Worker); ok {
		_ = w.Work(t.Context, func() bool { return true })
	}
	t.want("the approved call of a cancelled task", t.propose(task, "pay", `{"amount":10}`), action.Cancelled)
	t.ran("pay", pay, 0)
}

func thresholdLowered(t *T) {
	pay, th := &spy{}, need[Thresholder](t)
	task := t.open(Goal{Threshold: 5}, Action{Name: "pay", Schema: payment, Risk: 4, Do: pay.do})
	t.want("below the threshold", t.propose(task, "pay", `{"amount":10}`), action.OK)
	if err := th.SetThreshold(t.Context, task, 3); err != nil {
		t.Fatalf("set threshold: %v", err)
	}
	t.want("at the new threshold", t.propose(task, "pay", `{"amount":11}`), action.ApprovalRequired)
	t.ran("pay", pay, 1)
}

// thresholdRaised makes an approval that stands unneeded: the call that waited for it runs once, by whichever way.
func thresholdRaised(t *T) {
	pay, th := &spy{}, need[Thresholder](t)
	task := t.open(Goal{Threshold: 3}, Action{Name: "pay", Schema: payment, Risk: 3, Do: pay.do})
	t.approve(t.asks(task, "pay", `{"amount":10}`, "x"))
	if err := th.SetThreshold(t.Context, task, 5); err != nil {
		t.Fatalf("set threshold: %v", err)
	}
	t.want("the call by its id", t.propose(task, "pay", `{"amount":10}`, "x"), action.OK)
	t.works(task)
	t.ran("pay", pay, 1)
	if err := th.SetThreshold(t.Context, task, 3); err != nil {
		t.Fatalf("set threshold: %v", err)
	}
	t.works(task)
	t.want("the call by its id", t.propose(task, "pay", `{"amount":10}`, "x"), action.OK)
	t.ran("pay, asked for once and approved once,", pay, 1)
}

// works lets workers look around for a while: they must come to rest.
func (t *T) works(task string) {
	w := need[Worker](t)
	sweeps := 0
	if err := w.Work(t.Context, func() bool { sweeps++; return sweeps > 20 }); err != nil {
		t.Errorf("work: %v", err)
	}
	before := len(t.ledger(task))
	sweeps = 0
	if err := w.Work(t.Context, func() bool { sweeps++; return sweeps > 20 }); err != nil {
		t.Errorf("work: %v", err)
	}
	if after := t.ledger(task); len(after) > before {
		t.Errorf("workers do not come to rest: %d records more, the last %s %s", len(after)-before, after[len(after)-1].Kind, after[len(after)-1].Code)
	}
}

// workersMeet approves calls that can no longer run and lets workers find out.
func workersMeet(t *T) {
	pay, rival, p := &spy{}, &spy{}, need[Policed](t)
	task := t.open(Goal{}, confirmed(pay, rival, 0)...)
	t.want("confirm", t.propose(task, "confirm", `{"amount":1}`), action.OK)
	t.approve(t.asks(task, "pay", `{"amount":1}`, "consumed"))
	t.want("rival", t.propose(task, "rival", `{"amount":1}`), action.OK)
	t.works(task)
	t.want("without its prerequisite", t.propose(task, "pay", `{"amount":1}`, "consumed"), action.NotLegal)

	t.want("confirm", t.propose(task, "confirm", `{"amount":2}`), action.OK)
	t.approve(t.asks(task, "pay", `{"amount":2}`, "denied"))
	p.SetPolicy(func(string, string, json.RawMessage) (bool, error) { return false, nil })
	t.works(task)
	t.want("under another policy", t.propose(task, "pay", `{"amount":2}`, "denied"), action.Denied)
	p.SetPolicy(nil)

	t.want("confirm", t.propose(task, "confirm", `{"amount":3}`), action.OK)
	t.approve(t.asks(task, "pay", `{"amount":3}`, "cancelled"))
	t.cancel(task)
	t.works(task)
	t.want("in a cancelled task", t.propose(task, "pay", `{"amount":3}`, "cancelled"), action.Cancelled)
	t.ran("pay", pay, 0)
}
