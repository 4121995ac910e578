package workflow

// DefaultLadder is what a step does about a try that failed where it declares no ladder of its own:
//
//	HUMAN, REASONING        retry → people, where somebody can be asked → parent → park
//	EXECUTION               retry, where a planner can propose another input → the step fails
//	SUB_SOP                 retry (a new child) → people, where somebody can be asked → parent → park
func (d *Definition) DefaultLadder(step string) []Rung { return nil }
