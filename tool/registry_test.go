package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/tool"
)

func echo(_ context.Context, c tool.Call) (json.RawMessage, error) { return c.Input, nil }

func sound(id string) tool.Tool {
	return tool.Tool{Contract: tool.Contract{
		ID: id, Description: "says it again",
		Input:  json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}`),
		Output: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}`),
	}, Invoke: echo}
}

func TestRegisterRefuses(t *testing.T) {
	for _, c := range []struct {
		name, says string
		change     func(*tool.Tool)
	}{
		{"no identity", "name is empty", func(t *tool.Tool) { t.ID = "" }},
		{"an id that is no name", "not allowed", func(t *tool.Tool) { t.ID = "a b" }},
		{"a name of several lines", "one line", func(t *tool.Tool) { t.Name = "a\nb" }},
		{"no description", "description is missing", func(t *tool.Tool) { t.Description = " " }},
		{"nothing to invoke", "Invoke is nil", func(t *tool.Tool) { t.Invoke = nil }},
		{"no input contract", "input:", func(t *tool.Tool) { t.Input = nil }},
		{"an input that is no object", "input:", func(t *tool.Tool) { t.Input = json.RawMessage(`{"type":"string"}`) }},
		{"an output that is no schema", "output:", func(t *tool.Tool) { t.Output = json.RawMessage(`{"typ":"object"}`) }},
		{"a breaker that never closes", "breaker", func(t *tool.Tool) { t.Breaker.Failures = -1 }},
		{"health asked all the time", "HealthEvery", func(t *tool.Tool) { t.HealthEvery = -1 }},
		{"context that is no name", "context:", func(t *tool.Tool) { t.Context = []string{"a b"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := sound("crm.lookup")
			c.change(&x)
			r := tool.NewRegistry()
			err := r.Register(sound("other"), x)
			require.ErrorContains(t, err, c.says)
			assert.Empty(t, r.List(), "all or none")
		})
	}
}

func TestRegisterRefusesDuplicates(t *testing.T) {
	r := tool.NewRegistry()
	require.NoError(t, r.Register(sound("crm.lookup")))
	require.ErrorContains(t, r.Register(sound("crm.lookup")), "registered already")
	require.ErrorContains(t, r.Register(sound("CRM-lookup")), "taken for each other")
	require.ErrorContains(t, r.Register(sound("a"), sound("a")), "registered already")
	assert.Len(t, r.List(), 1)
	assert.True(t, r.Remove("crm.lookup"))
	assert.False(t, r.Remove("crm.lookup"))
	require.NoError(t, r.Register(sound("CRM-lookup")), "the name is free again")
	assert.Nil(t, r.Find("crm.lookup"))
	assert.NotNil(t, r.Find("CRM-lookup"))
	assert.Nil(t, (*tool.Registry)(nil).Find("x"), "no registry has no tools")
}

func TestContractIsHeld(t *testing.T) {
	r := tool.NewRegistry()
	require.NoError(t, r.Register(sound("echo")))
	x := r.Find("echo")
	assert.Nil(t, x.CheckInput([]byte(`{"q":"a"}`)))
	assert.Equal(t, action.InputInvalid, x.CheckInput([]byte(`{}`)).Code)
	assert.Equal(t, action.InputMalformed, x.CheckInput([]byte(`{"q":"a","q":"b"}`)).Code)
	assert.Nil(t, x.CheckOutput([]byte(`{"q":"a"}`)))
	assert.Equal(t, action.OutputInvalid, x.CheckOutput([]byte(`{"q":1}`)).Code)
	assert.Equal(t, action.OutputInvalid, x.CheckOutput([]byte(`{`)).Code)
	assert.Equal(t, x.Hash, x.Contract.Hash())
	other := sound("echo").Contract
	other.Version = "2"
	assert.NotEqual(t, x.Hash, other.Hash())
}
