package tool_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/tool"
)

// A registry makes tools resolvable; duplicates are refused.
func ExampleRegistry() {
	lookup := tool.Tool{
		Contract: tool.Contract{
			ID: "crm.lookup", Description: "Find a customer by number",
			Input: json.RawMessage(`{"type":"object","properties":{"customer":{"type":"string"}},"required":["customer"]}`),
		},
		Invoke: func(ctx context.Context, c tool.Call) (json.RawMessage, error) {
			return json.RawMessage(`{"name":"Ana"}`), nil
		},
	}
	r := tool.NewRegistry()
	fmt.Println(r.Register(lookup))
	fmt.Println(r.Register(lookup))
	fmt.Println(r.List()[0].ID)
	// Output:
	// <nil>
	// tool "crm.lookup" is registered already: remove it first, or give this one another id
	// crm.lookup
}
