package workflow_test

import (
	"encoding/json"
	"testing"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// What the machine adds to a call: one turn of a workflow of ten steps, each of which makes one.
func BenchmarkStep(b *testing.B) {
	w := workflow.New("w", "1")
	for _, n := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		s := workflow.Execute(n, "act").Effect(action.Idempotent).Map("n", "input.n")
		if n != "a" {
			s = s.Needs(string(n[0] - 1))
		}
		w = w.Step(s)
	}
	def := w.MustBuild()
	begin := workflow.Begin{Instance: "i", Input: json.RawMessage(`{"n":12}`)}
	turn, err := def.Start(begin)
	if err != nil {
		b.Fatal(err)
	}
	e := workflow.Event{Kind: workflow.Called, Outcome: &action.Outcome{Code: action.OK, Output: json.RawMessage(`{"done":true}`)}, Effect: action.Idempotent}
	b.ReportAllocs()
	for b.Loop() {
		if len(turn.Commands) == 0 {
			if turn, err = def.Start(begin); err != nil {
				b.Fatal(err)
			}
		}
		e.Of = turn.Commands[0].ID
		if turn, err = def.Step(turn.State, e); err != nil {
			b.Fatal(err)
		}
	}
}
