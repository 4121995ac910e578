package conformance_test

import (
	"fmt"
	"os"

	"github.com/seed-ab2cfece/delta-agents/conformance"
	"github.com/seed-ab2cfece/delta-agents/conformance/subject"
)

// The engine of this module, over the in-process store, in front of three of the cases.
func ExampleTable() {
	var some []conformance.Case
	for _, c := range conformance.Cases() {
		switch c.ID {
		case "C04", "C14", "C22":
			some = append(some, c)
		}
	}
	verdicts := conformance.Check(subject.Open(subject.InProcess), some)
	if err := conformance.Table(os.Stdout, verdicts); err != nil {
		fmt.Println(err)
	}
	// Output:
	// case  verdict  variants  guards, or the symptom
	// C04   pass     6/6       one request per call, answers keyed by it
	// C14   pass     4/4       a collision is an error; calls and grants reach the agent's own action
	// C22   pass     3/3       unset and empty differ; empty is none
}
