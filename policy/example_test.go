package policy_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/policy"
)

// Rules in Cedar stand beside grants and levels of autonomy. What they decide on is the call as it is.
func ExampleSources_Compile() {
	rules, err := policy.Sources{
		Label: "november",
		Actions: map[string]policy.ActionType{
			"refund": {Tool: "stripe", Input: json.RawMessage(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"integer"}}}`)},
		},
		Policies: []policy.File{{Name: "desk.cedar", Text: []byte(`
			@id("small-refunds")
			permit (principal in Team::"desk", action == Action::"refund", resource == Tool::"stripe")
			when { context.input.amount <= 100 };

			@id("shaky") @reason("it has been wrong too often")
			forbid (principal, action, resource)
			when { context.trust.lessThan(decimal("0.3")) };`)}},
		Teams:    map[string][]string{"desk": {"mia"}},
		Autonomy: map[string]policy.Autonomy{"mia": policy.ProposeOnly},
	}.Compile()
	if err != nil {
		panic(err)
	}
	call := policy.Request{Agent: "mia", Action: "refund", Declared: 2, Effective: 2.5, Trust: 0.8}
	for _, amount := range []json.Number{"40", "400"} {
		call.Input = map[string]any{"amount": amount}
		d := policy.Evaluate(rules, call)
		fmt.Println(d.Permit, d.Reason)
	}
	call.Trust = 0.2
	d := policy.Evaluate(rules, call)
	fmt.Println(d.Permit, d.Reason)
	fmt.Println(d.Ask)
	// Output:
	// true permitted by small-refunds
	// false no policy permits mia to call refund
	// false forbidden by shaky (it has been wrong too often)
	// agent mia may only propose
}

// A grant ends, and may have a condition.
func ExampleGrant() {
	rules := policy.Sources{Grants: []policy.Grant{{
		Name: "holiday cover", Agent: "mia", Actions: []string{"refund"},
		Until: time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC), When: "context.input.amount <= 50",
	}}}.MustCompile()
	call := policy.Request{
		Agent: "mia", Action: "refund", Declared: 2, Effective: 2, Trust: 0.5, Effect: action.Compensatable,
		Input: map[string]any{"amount": json.Number("20")},
	}
	for _, day := range []int{1, 2} {
		call.Now = time.Date(2027, 1, day, 0, 0, 0, 0, time.UTC).UnixMicro()
		d := policy.Evaluate(rules, call)
		fmt.Println(d.Permit, d.Reason)
	}
	// Output:
	// true permitted by holiday cover
	// false no policy permits mia to call refund
}

// What depends on the input is decided at the call; what does not is decided before it is offered.
func ExampleBundle_Decide() {
	rules := policy.Sources{Policies: []policy.File{{Name: "desk.cedar", Text: []byte(`
		@id("small") permit (principal, action == Action::"refund", resource) when { context.input.amount <= 100 };
		@id("reckless") forbid (principal, action, resource) when { context.risk.declared > 4 };`)}}}.MustCompile()
	for _, risk := range []int{3, 5} {
		d := policy.Evaluate(rules, policy.Request{Agent: "mia", Action: "refund", AnyInput: true, Declared: risk, Effective: float64(risk), Trust: 0.5})
		fmt.Println(d.Permit, d.Reason)
	}
	// Output:
	// true permitted by small
	// false forbidden by reckless
}
