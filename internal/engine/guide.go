package engine

import (
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/risk"
)

// recentRuns is for how many executions a change for the worse is worth telling a planner.
const recentRuns = 10

// RiskGuidance tells a planner which of the actions it is offered have begun to fail more often than they used to, and
// whether the calls of several actions have. It names nothing that is not offered.
func RiskGuidance(rules *Rules, agent *Agent, v *View, offered []action.Offered) []string {
	var out []string
	for _, o := range offered {
		a := agent.Actions[o.Name]
		if a == nil {
			continue
		}
		e := v.Risk(rules, a)
		if e.LastChange == risk.GotWorse && e.N-e.ChangedAt < recentRuns {
			out = append(out, fmt.Sprintf("The action %s fails more often than it used to: expect %.0f %% of its calls to fail.", o.Name, 100*e.P))
		}
	}
	t := rules.Model.Trust(v.Beliefs)
	if event, at := v.Beliefs.AgentChange(); event == risk.GotWorse && t.Ok+t.Err-at < recentRuns &&
		len(v.Beliefs.Changing(event, recentRuns)) > 1 {
		out = append(out, "Calls fail more often than they used to, whichever action: find out why before going on.")
	}
	return out
}
