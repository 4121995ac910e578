package workflowfile_test

import (
	"fmt"

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
