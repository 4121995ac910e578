package workflow_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Arbitrary events, one a line, never make the machine panic or fail, and never change the state that it was given.
func FuzzStep(f *testing.F) {
	f.Add([]byte(`{"kind":"intake","of":"i/ask/ask.1","output":{"amount":1}}
{"kind":"verified","of":"i/ask/verify.2","ok":true}
{"kind":"called","of":"i/pay/call.1","outcome":{"intent":"x","action":"a","code":"OK","output":{}}}
{"kind":"child_ended","of":"i/tell/spawn.1","ok":false}
{"kind":"called","of":"i/pay/compensate.2","outcome":{"intent":"x","action":"a","code":"FAILED"}}
{"kind":"resumed","of":"i/pay/wait.3"}`))
	f.Add([]byte(`{"kind":"paused"}
{"kind":"intake","of":"i/ask/ask.1","at":-1,"output":0}
{"kind":"cancelled","after":true}
{"kind":"resumed"}
{"kind":"unwound"}`))
	f.Add([]byte(`{"kind":"called","of":"i/ask/ask.1"}
{"kind":"fired","at":9223372036854775807}
{"kind":"intake","of":"i/ask/ask.1","output":"x","cost":{"tokens":-5,"money":9007199254740992}}`))
	f.Fuzz(func(t *testing.T, lines []byte) {
		if len(lines) > 1<<14 {
			return
		}
		turn, err := refund.Start(workflow.Begin{Instance: "i", Input: json.RawMessage(`{"orderId":"ORD-1"}`)})
		require.NoError(t, err)
		for line := range bytes.Lines(lines) {
			var e workflow.Event
			if json.Unmarshal(line, &e) != nil {
				continue
			}
			before := encode(t, turn.State)
			next, err := refund.Step(turn.State, e)
			require.NoError(t, err)
			require.Equal(t, before, encode(t, turn.State))
			turn = next
		}
	})
}
