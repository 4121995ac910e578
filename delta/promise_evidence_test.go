package delta_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

// Every event of a call says which tool executes it: one that was refused too.
func TestEventsNameTheTool(t *testing.T) {
	r := registered(t, tool.Tool{Contract: contract("oracle"), Invoke: func(context.Context, tool.Call) (json.RawMessage, error) {
		return json.RawMessage(`"yes"`), nil
	}})
	task := tooled(t, r, nil)
	ask(t, task, "ask", `{"q":"a"}`)
	ask(t, task, "hush", `{"q":"a"}`)
	events, err := task.Events(t.Context())
	require.NoError(t, err)
	named := map[ledger.Type]string{}
	for _, e := range events {
		named[e.Type] = e.Tool
	}
	assert.Equal(t, map[ledger.Type]string{ledger.TaskStarted: "", ledger.Begun: "oracle", ledger.Settled: "oracle", ledger.Refused: "oracle"}, named)
}
