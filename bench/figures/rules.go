package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/policy"
)

// perAgent is how many policies are about each agent, alone or as part of its team, however many agents there are.
const perAgent = 4

// ruleSet returns so many policies: two for everybody, and the others for agents, teams, actions and tools of their own.
func ruleSet(n int) (*policy.Bundle, error) {
	var text strings.Builder
	text.WriteString(`@id("risky") forbid (principal, action, resource) when { context.risk.effective.greaterThan(decimal("4.5")) };
@id("shaky") forbid (principal, action, resource) when { context.trust.lessThan(decimal("0.1")) };
`)
	teams := map[string][]string{}
	for i := range n - 2 {
		agent, act := i/perAgent, i%perAgent
		switch act {
		case 0:
			fmt.Fprintf(&text, `@id("p%d") permit (principal == Agent::"agent-%d", action == Action::"act-0", resource) when { context.input.amount <= 100 };`, i, agent)
		case 1:
			teams[fmt.Sprintf("team-%d", agent)] = []string{fmt.Sprintf("agent-%d", agent)}
			fmt.Fprintf(&text, `@id("p%d") permit (principal in Team::"team-%d", action in [Action::"act-0", Action::"act-1"], resource is Tool);`, i, agent)
		case 2:
			fmt.Fprintf(&text, `@id("p%d") forbid (principal == Agent::"agent-%d", action, resource == Tool::"tool-%d") unless { context.input has amount };`, i, agent, agent)
		default:
			fmt.Fprintf(&text, `@id("p%d") permit (principal == Agent::"agent-%d", action == Action::"act-%d", resource) when { context.input.order like "ORD-*" };`, i, agent, act)
		}
		text.WriteByte('\n')
	}
	return policy.Sources{Policies: []policy.File{{Name: "bench.cedar", Text: []byte(text.String())}}, Teams: teams}.Compile()
}

// decisions asks a policy about calls of every agent in turn. All of them are permitted.
func decisions(p policy.Policy, agents int) work {
	calls := make([]policy.Request, agents)
	for i := range calls {
		calls[i] = policy.Request{
			Agent: fmt.Sprintf("agent-%d", i), Action: "act-0", Version: "1", Declared: 3, Effective: 3.2, Trust: 0.6, Tool: fmt.Sprintf("tool-%d", i),
			Input: map[string]any{"order": "ORD-1", "amount": json.Number("42")},
		}
	}
	at := 0
	return timed(func() error {
		d := policy.Evaluate(p, calls[at])
		if at++; at == len(calls) {
			at = 0
		}
		if !d.Permit {
			return fmt.Errorf("denied: %s", d.Reason)
		}
		return nil
	})
}

// fewRules and manyRules are 10 and 1,000, of which each agent meets the same number.
const (
	fewRules  = 10
	manyRules = 1000
)

// indexed is a decision by many policies beside one by few.
func indexed(context.Context) (pair, error) {
	return rules(func(b *policy.Bundle) policy.Policy { return b })
}

// linear is the same where every policy is evaluated.
func linear(context.Context) (pair, error) { return rules((*policy.Bundle).Linear) }

func rules(as func(*policy.Bundle) policy.Policy) (pair, error) {
	few, err := ruleSet(fewRules)
	if err != nil {
		return pair{}, err
	}
	many, err := ruleSet(manyRules)
	if err != nil {
		return pair{}, err
	}
	return pair{decisions(as(many), (manyRules-2)/perAgent), decisions(as(few), (fewRules-2)/perAgent), func() {}}, nil
}
