package engine

import (
	"github.com/seed-ab2cfece/delta-agents/statespace"
)

// hint tells a planner what a call still needs, where the prerequisite is something it can see: an action that exists for
// it now. Of one that is hidden from it nothing is said.
func (r *round) hint(need *statespace.Requirement) string {
	if need.Workflow { // a planner is told of no workflow, and starts none
		return ": a workflow has to complete first, which it cannot run itself"
	}
	if !r.visible(need.Action) {
		return ""
	}
	set := FactsOf(r.agent, r.view.Snap)
	if v := r.call.Veil; v != nil {
		set = set.Under(v.Hash)
	}
	_, unmet, err := set.Check(r.act.Name, r.call.Intent.Input.Tree(), r.call.Now)
	if err != nil {
		return ""
	}
	for _, u := range unmet {
		if u.Need == need.Need {
			u.Values = nil // the input may be long, and the planner has it
			return ": it " + u.String()
		}
	}
	return ""
}
