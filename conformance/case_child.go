package conformance

import (
	"context"
	"encoding/json"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func childCases() []Case {
	return []Case{
		{"C05", "resuming a run inside another repeats the steps that had finished", "a child is found again by its name; recorded outcomes are reused; an unknown outcome stops", []Variant{
			{"a child parks; its parent is resumed", resumed(false, false)},
			{"after a restart", resumed(true, false)},
			{"the child of a child", resumed(true, true)},
			{"the finished step's outcome is unknown", unknownBelow(false)},
			{"unknown, after a restart", unknownBelow(true)},
		}},
	}
}

// delegate gives part of a task to the clerk, always by the same name.
func (t *T) delegate(task string) string {
	child, err := need[Delegator](t).Delegate(t.Context, task, "part", Goal{Agent: clerk})
	if err != nil {
		t.Fatalf("delegate: %v", err)
	}
	return child
}

// resumed runs a parent twice: its child charges and then waits for a person; what resumes starts from the top.
func resumed(restart, deep bool) func(*T) {
	return func(t *T) {
		pay, refund := &spy{}, &spy{}
		task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: pay.do}, Action{Name: "refund", Schema: payment, Gated: true, Do: refund.do})
		below := func() string {
			child := t.delegate(task)
			if deep {
				child = t.delegate(child)
			}
			return child
		}
		child := below()
		t.want("the charge", t.propose(child, "pay", `{"amount":10}`, "step-1"), action.OK)
		ask := t.asks(child, "refund", `{"amount":5}`, "step-2")
		if restart {
			t.restart()
		}
		if again := below(); again != child {
			t.Errorf("resuming found %q, not the child %q", again, child)
		}
		t.want("the charge, resumed", t.propose(below(), "pay", `{"amount":10}`, "step-1"), action.OK)
		t.approve(ask)
		for range 2 {
			t.want("the approved step, resumed", t.propose(below(), "refund", `{"amount":5}`, "step-2"), action.OK)
		}
		t.ran("pay", pay, 1)
		t.ran("refund", refund, 1)
	}
}

// unknownBelow: nobody knows whether the child's charge took effect, so nobody repeats it.
func unknownBelow(restart bool) func(*T) {
	return func(t *T) {
		pay := &spy{then: func(context.Context, Execution) (json.RawMessage, error) { return nil, ErrUnknown }}
		task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: pay.do})
		t.want("the charge", t.propose(t.delegate(task), "pay", `{"amount":10}`, "step-1"), action.StartedUnknown)
		if restart {
			t.restart()
		}
		t.want("resumed", t.propose(t.delegate(task), "pay", `{"amount":10}`, "step-1"), action.StartedUnknown)
		t.want("proposed anew", t.propose(t.delegate(task), "pay", `{"amount":10}`), action.NotLegal)
		t.ran("pay", pay, 1)
	}
}
