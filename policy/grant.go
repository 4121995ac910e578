package policy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Grant permits one agent to call some actions, as long as it stands and under its condition. It is compiled into Cedar
// policies and means nothing that they could not.
type Grant struct {
	// Name is what reasons call it; "" is "grant N" by its place, from 1.
	Name string `json:"name"`
	// Agent is whom it permits.
	Agent string `json:"agent"`
	// Actions are the names of the actions, or of groups of [Sources.Actions]. There are no patterns, and none is none.
	Actions []string `json:"actions"`
	// Tools restricts the grant to calls that these tools execute; nil is any tool, an empty list is none.
	Tools []string `json:"tools"`
	// Until is when it ends: a call at that very moment is not permitted. Zero: it stands.
	Until time.Time `json:"until"`
	// When is a Cedar expression that must hold, as in context.input.amount <= 100; "" is always.
	When string `json:"when"`
}

// policies compiles the grant.
func (g *Grant) policies() ([]*cedar.Policy, error) {
	var faults []error
	if err := action.CheckName(g.Agent); err != nil {
		faults = append(faults, fmt.Errorf("agent: %w", err))
	}
	for _, a := range g.Actions {
		if err := action.CheckName(a); err != nil {
			faults = append(faults, fmt.Errorf("actions: %w", err))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if len(g.Actions) == 0 || g.Tools != nil && len(g.Tools) == 0 {
		return nil, nil
	}
	tools := []string{""}
	if g.Tools != nil {
		tools = g.Tools
	}
	var out []*cedar.Policy
	for _, tool := range tools {
		list, err := parse(g.Name, []byte(g.text(tool)))
		switch {
		case err != nil:
			return nil, fmt.Errorf("when: %w", err)
		case len(list) != 1 || len(list[0].AST().Conditions) != g.conditions(): // what was put into the text ended it
			return nil, errors.New("when: it is not one expression")
		}
		out = append(out, list[0])
	}
	return out, nil
}

func (g *Grant) conditions() (n int) {
	if !g.Until.IsZero() {
		n++
	}
	if g.When != "" {
		n++
	}
	return n
}

func (g *Grant) text(tool string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "permit (principal == Agent::%s, action in [", quote(g.Agent))
	for i, a := range g.Actions {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("Action::" + quote(a))
	}
	b.WriteString("], resource")
	if tool != "" {
		b.WriteString(" == Tool::" + quote(tool))
	}
	b.WriteString(")")
	if !g.Until.IsZero() {
		fmt.Fprintf(&b, "\nwhen { context.now < datetime(%q) }", types.NewDatetime(g.Until).String())
	}
	if g.When != "" {
		fmt.Fprintf(&b, "\nwhen {\n%s\n}", g.When)
	}
	return b.String() + ";"
}
