// Package workflowfile reads workflows from YAML, writes them back, and draws them.
//
// [Load] and [Parse] return a definition that was checked; faults are named, with their lines. [Format] is the way back: what
// it writes reads as the same definition. [Text] draws the graph for a terminal, [SVG] as a picture.
//
//	workflow: refund
//	version: "1"
//	input: {type: object, required: [orderId], properties: {orderId: {type: string}}}
//	owners: [ana]
//	steps:
//	  - name: ask
//	    type: HUMAN
//	    hitl: {prompt: "How much?", intake: {type: object, required: [amount], properties: {amount: {type: integer}}}}
//	  - name: pay
//	    type: EXECUTION
//	    needs: [ask]
//	    action: charge-back
//	    effect: compensatable
//	    map:
//	      orderId: input.orderId
//	      amount: steps.ask.output.amount
//
// A workflow has steps, or phases that have them. See doc/workflows.md for every key.
package workflowfile
