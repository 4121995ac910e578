package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func TestAdapt(t *testing.T) {
	tests := []struct{ name, in, want, rest string }{
		{"as it is", `{"type":"object","properties":{"a":{"enum":["x"]}}}`, `{"properties":{"a":{"enum":["x"]}},"type":"object"}`, ""},
		{"tuples at the root", `{"type":"object","properties":{"a":{}},"oneOf":[{"properties":{"a":{"const":1}}}]}`,
			`{"properties":{"a":{}},"type":"object"}`, `{"oneOf":[{"properties":{"a":{"const":1}}}]}`},
		{"a reference at the root", `{"$schema":"s","$id":"i","$ref":"#/$defs/In","$defs":{"In":{"type":"object","properties":{"n":{"maximum":12345678901234567890}}}}}`,
			`{"$defs":{"In":{"properties":{"n":{"maximum":12345678901234567890}},"type":"object"}},"properties":{"n":{"maximum":12345678901234567890}},"type":"object"}`, ""},
		{"a reference to itself", `{"$ref":"#/$defs/In","$defs":{"In":{"$ref":"#/$defs/In"}}}`,
			`{"$defs":{"In":{"$ref":"#/$defs/In"}},"properties":{},"type":"object"}`, `{"$ref":"#/$defs/In"}`},
		{"a reference elsewhere", `{"$ref":"https://example.com/x"}`, `{"properties":{},"type":"object"}`, `{"$ref":"https://example.com/x"}`},
		{"without a type", `{}`, `{"properties":{},"type":"object"}`, ""},
		{"anything", `true`, `{"type":"object"}`, "true"},
		{"nothing", ``, `{"type":"object"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			schema, rest := adapt(json.RawMessage(tt.in))
			assert.Equal(t, tt.want, string(schema))
			assert.Equal(t, tt.rest, rest)
		})
	}
}

func TestToolSaysWhatAModelNeeds(t *testing.T) {
	got := toolOf(action.Offered{
		Name: "files/delete", Description: "Delete a file", Status: action.Gated, Why: "it cannot be undone", Risk: 4.2,
		Schema: json.RawMessage(`{"type":"object","oneOf":[{}]}`),
	}, newNames())
	assert.Regexp(t, allowed, got.Name)
	assert.Equal(t, "Delete a file\nThis is the action files/delete.\nA person has to approve each call first. Why: it cannot be undone\n"+
		`The input must also satisfy this JSON Schema: {"oneOf":[{}]}`, got.Description)
}

// The order of an offer does not reach the prompt, nor do numbers that move: else no prompt cache would hold.
func TestToolsAreStable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var a, b action.Offer
		for i := range rapid.IntRange(0, 9).Draw(rt, "n") {
			a.Actions = append(a.Actions, action.Offered{Name: fmt.Sprintf("a/%d", i), Schema: json.RawMessage(`{"b":1,"a":2}`), Risk: 1})
		}
		b.Actions = rapid.Permutation(a.Actions).Draw(rt, "order")
		b.Actions = slices.Clone(b.Actions)
		for i := range b.Actions {
			b.Actions[i].Risk, b.Actions[i].Forecast = 3.5, action.Cost{Tokens: 5}
		}
		x, _ := toolsOf(a, newNames(), 128, finishing)
		y, _ := toolsOf(b, newNames(), 128, finishing)
		require.Equal(rt, x, y)
	})
}

func TestToolsAreBounded(t *testing.T) {
	var o action.Offer
	for i := range 10 {
		status := action.Legal
		if i < 5 {
			status = action.Gated
		}
		o.Actions = append(o.Actions, action.Offered{Name: fmt.Sprintf("a%d", i), Status: status})
	}
	tools, left := toolsOf(o, newNames(), 7, finishing)
	var got []string
	for _, tool := range tools {
		got = append(got, tool.Name)
	}
	assert.Equal(t, []string{"finish", "a0", "a5", "a6", "a7", "a8", "a9"}, got, "what runs now comes first")
	assert.Equal(t, 4, left)
}

// Whatever an imported tool declares, what providers get is an object without alternatives at its root, the same each time.
func FuzzAdapt(f *testing.F) {
	for _, s := range []string{`{}`, `true`, `{"$ref":"#/$defs/a","$defs":{"a":{"oneOf":[{}]}}}`, `{"type":["object","null"]}`, `{"properties":null}`, `{"a":1e400}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		schema, rest := adapt(json.RawMessage(in))
		again, same := adapt(json.RawMessage(in))
		require.Equal(t, string(schema), string(again))
		require.Equal(t, rest, same)
		var root map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(schema, &root), "%s", schema)
		require.Equal(t, `"object"`, string(root["type"]))
		for _, k := range notAtRoot {
			require.NotContains(t, root, k)
		}
		if p, ok := root["properties"]; ok {
			require.Equal(t, byte('{'), p[0], "%s", schema)
		}
	})
}
