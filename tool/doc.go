// Package tool holds what can be invoked from outside the program: tools, each with an id, a contract for what goes in and
// out, and its health; and the registry that finds them.
//
// A tool is an executor and no more. Registering one makes its id resolvable and grants nothing: it runs only through an
// action that names it (delta.DefineTool), which an agent must hold, and whose calls pass every gate.
//
//	r := tool.NewRegistry()
//	err := r.Register(tool.Tool{
//		Contract: tool.Contract{ID: "crm.lookup", Description: "Find a customer", Input: schema},
//		Invoke:   func(ctx context.Context, c tool.Call) (json.RawMessage, error) { … },
//	})
package tool
