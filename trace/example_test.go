package trace_test

import (
	"fmt"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/trace"
)

func ExampleTell() {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	why := action.Provenance{Decision: "d-1", Reason: "the customer confirmed"}
	story, _ := trace.Tell("d-1", []trace.Record{
		{1, at, ledger.Event{Type: ledger.TaskStarted, Agent: "desk", Task: "t1", Text: "charge ORD-1"}},
		{2, at, ledger.Event{Type: ledger.Begun, Agent: "desk", Task: "t1", Intent: "i1", Action: "charge", Version: "1", Provenance: why, Attempt: 1}},
		{3, at, ledger.Event{Type: ledger.Settled, Agent: "desk", Task: "t1", Intent: "i1", Action: "charge", Version: "1", Code: action.OK, Output: []byte(`"done"`)}},
	})
	fmt.Print(story)
	// Output:
	// d-1 is decision
	//
	// task desk~t1, since 2026-01-02T03:04:05Z
	//   goal       charge ORD-1
	//
	//   call of charge 1
	//     reasoning  the customer confirmed
	//     decision   d-1
	//     intent     i1
	//     result     OK: "done"
	//     #2    03:04:05.000 begun: attempt 1
	//     #3    03:04:05.000 settled: OK
}
