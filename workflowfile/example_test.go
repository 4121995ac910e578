package workflowfile_test

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/workflow"
	"github.com/seed-ab2cfece/delta-agents/workflowfile"
)

const refund = `workflow: refund
version: "1"
owners: [ana]
steps:
  - name: ask
    type: HUMAN
    hitl: {prompt: "How much?", intake: {type: object, required: [amount], properties: {amount: {type: integer}}}}
  - name: triage
    type: REASONING
    planner: small
    needs: [ask]
    output: {type: object, required: [verdict], properties: {verdict: {enum: [pay, refuse]}}}
  - name: pay
    type: EXECUTION
    action: charge-back
    effect: compensatable
    needs: [triage]
    guard: worth-it
    map:
      amount: steps.ask.output.amount
      why: steps.triage.output.verdict
  - name: sorry
    type: EXECUTION
    action: send-mail
    effect: idempotent
    needs: [{step: pay, when: err}]
  - name: tell
    type: SUB_SOP
    workflow: notification
    needs: [pay, ask]
`

func ExampleText() {
	def, err := workflowfile.Parse([]byte(refund))
	if err != nil {
		panic(err)
	}
	fmt.Print(workflowfile.Text(def))
	// Output:
	// refund 1
	//
	// ── refund
	//
	//                     ┌───────────┐
	//                     │ ask       │
	//                     │ HUMAN ana │
	//                     └───────────┘
	//                         ┌─┴──────────┐
	//                         │            │
	//                         ▼            │
	//                ┌─────────────────┐   │
	//                │ triage          │   │
	//                │ REASONING small │   │
	//                └─────────────────┘   │
	//                         │            │
	//                         │            └──┐
	//                         │               │
	//                         ▼               │
	//             ┌───────────────────────┐   │
	//             │ pay                   │   │
	//             │ EXECUTION charge-back │   │
	//             │ if worth-it           │   │
	//             └───────────────────────┘   │
	//              ┌──────────┴───────────────┤
	//              │                          │
	//              │                          │
	//              ▼ err                      ▼
	//   ┌─────────────────────┐   ┌──────────────────────┐
	//   │ sorry               │   │ tell                 │
	//   │ EXECUTION send-mail │   │ SUB_SOP notification │
	//   └─────────────────────┘   └──────────────────────┘
}

// An instance on its graph: a person was asked and has answered, and the payment waits for an approval.
func ExampleTextOf() {
	d := workflow.New("refund", "2").
		Step(workflow.AskPerson("ask").Hitl(workflow.Hitl{Who: []string{"desk"}, Intake: []byte(`{"type":"object"}`)})).
		Step(workflow.Execute("pay", "charge-back").Needs("ask").Map(".", "steps.ask.output")).
		Step(workflow.Execute("tell", "send-mail").Needs("pay").Map(".", "steps.pay.output")).
		MustBuild()
	s := workflow.State{Steps: []workflow.StepState{
		{Name: "ask", Stage: workflow.StageDone},
		{Name: "pay", Stage: workflow.StageParked, Wait: &workflow.Wait{For: workflow.WaitApproval}},
		{Name: "tell"},
	}}
	fmt.Print(workflowfile.TextOf(d, &s))
	// Output:
	// refund 2
	//
	// ── refund
	//
	//        ┌────────────┐
	//        │ ask        │
	//        │ HUMAN desk │
	//        │ ✓ done     │
	//        └────────────┘
	//               │
	//               │
	//               ▼
	//   ┌───────────────────────┐
	//   │ pay                   │
	//   │ EXECUTION charge-back │
	//   │ ◷ waits: approval     │
	//   └───────────────────────┘
	//               │
	//               │
	//               ▼
	//    ┌─────────────────────┐
	//    │ tell                │
	//    │ EXECUTION send-mail │
	//    │ · pending           │
	//    └─────────────────────┘
}
