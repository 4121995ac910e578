package workflow_test

import (
	"encoding/json"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

var refund = workflow.New("refund", "1").
	Describe("Give a customer money back").
	Input(`{"type":"object","required":["orderId"],"properties":{"orderId":{"type":"string"}}}`).
	Owners("ana").
	Step(workflow.AskPerson("ask").Map("order", "input.orderId").
		Hitl(workflow.Hitl{Prompt: "How much?", Intake: json.RawMessage(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"integer"}}}`)})).
	Step(workflow.Execute("pay", "charge-back").Needs("ask").Effect(action.Compensatable).
		Map("orderId", "input.orderId").Map("amount", "steps.ask.output.amount")).
	Step(workflow.Run("tell", "notification").Needs("pay").MapOr("receipt", "steps.pay.output.receipt", `"none"`)).
	MustBuild()

func Example() {
	fmt.Print(refund)

	// A driver performs commands and hands in events; it writes each event, and the trail, before it performs anything.
	turn, err := refund.Start(workflow.Begin{Instance: "refund-1", Input: json.RawMessage(`{"orderId":"ORD-1"}`)})
	if err != nil {
		panic(err)
	}
	for _, e := range []workflow.Event{
		{Kind: workflow.Intake, Of: "refund-1/ask/ask.1", By: "ana", Output: json.RawMessage(`{"amount":12}`)},
		{Kind: workflow.Verified, Of: "refund-1/ask/verify.2", OK: true},
		{Kind: workflow.Verified, Of: "refund-1/ask/verify.2", OK: true}, // twice
		{Kind: workflow.Called, Of: "refund-1/pay/call.1", Outcome: &action.Outcome{Code: action.ApprovalRequired}},
	} {
		if turn, err = refund.Step(turn.State, e); err != nil {
			panic(err)
		}
		fmt.Print(e.Kind)
		for _, c := range turn.Commands {
			fmt.Printf(" → %s %s %s%s", c.Kind, c.ID, c.Document, c.Input)
		}
		if turn.Absorbed != "" {
			fmt.Print(": ", turn.Absorbed)
		}
		fmt.Println()
	}
	for _, w := range turn.State.Waits() {
		fmt.Printf("%s waits for %s\n", w.Step, w.For)
	}
	// Output:
	// workflow refund 1
	// phase refund
	//   HUMAN ask
	//   EXECUTION pay calls charge-back after ask
	//   SUB_SOP tell runs notification after pay
	// intake → verify refund-1/ask/verify.2 {"amount":12}
	// verified → call refund-1/pay/call.1 {"amount":12,"orderId":"ORD-1"}
	// verified: nobody waits for it
	// called
	// pay waits for approval
}

func ExampleCompile() {
	_, err := workflow.Compile(workflow.Spec{Name: "broken", Version: "1", Phases: []workflow.Phase{{Name: "all", Steps: []workflow.Step{
		{Name: "a", Type: workflow.Execution, Action: "a", Needs: []workflow.Need{{Step: "b"}}},
		{Name: "b", Type: workflow.Reasoning, Needs: []workflow.Need{{Step: "a"}, {Step: "bb"}}},
	}}}})
	fmt.Println(err)
	// Output:
	// step "b" is REASONING and names no planner
	// step "b" is REASONING and nothing verifies its proposal: declare an output contract or a verifier
	// step "b" needs step "bb", which there is not; did you mean b?
	// steps need each other: a → b → a
}

func ExampleCompatible() {
	one := workflow.New("mail", "1").Step(workflow.Execute("send", "send-mail")).Step(workflow.Execute("file", "archive").Needs("send")).MustBuild()
	two := workflow.New("mail", "2").Step(workflow.Execute("send", "send-letter")).Step(workflow.Execute("file", "archive").Needs("send")).MustBuild()
	three := workflow.New("mail", "3").Step(workflow.Execute("send", "send-mail")).Step(workflow.Execute("file", "shelve").Needs("send")).MustBuild()

	turn, err := one.Start(workflow.Begin{Instance: "mail-1"})
	if err != nil {
		panic(err)
	}
	fmt.Println(workflow.Compatible(one, two, turn.State))
	fmt.Println(workflow.Compatible(one, three, turn.State))
	// Output:
	// step "send" has begun, and is another one in version 2
	// <nil>
}

// A driver that keeps the state of an instance writes it after each event. What an event does not touch is not written anew.
func ExampleWriter() {
	turn, err := refund.Start(workflow.Begin{Instance: "refund-1", Input: json.RawMessage(`{"orderId":"ORD-1"}`)})
	if err != nil {
		panic(err)
	}
	var w workflow.Writer
	kept, err := w.Write(&turn.State)
	if err != nil {
		panic(err)
	}
	var s workflow.State
	if err := json.Unmarshal([]byte(kept), &s); err != nil {
		panic(err)
	}
	fmt.Println(s.Instance, s.Status, s.Outstanding[0].ID)
	// Output:
	// refund-1 running refund-1/ask/ask.1
}

// What is started is checked beforehand: who is to call the actions that the steps name.
func ExampleDefinition_Calls() {
	for step, action := range refund.Calls() {
		fmt.Println(step, "calls", action)
	}
	// Output:
	// pay calls charge-back
}
