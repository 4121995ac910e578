package engine

import "github.com/seed-ab2cfece/delta-agents/action"

// Because adds to a failure why the task ended, and whether a person said so: a function, a planner or a program may have
// said anything.
func (p *TaskState) Because(f *action.Failure) *action.Failure {
	if p.Vouched {
		return f.With(action.DetailReason, p.Reason)
	}
	return f.Quoting(p.Reason)
}

// end makes the state that of a task that ended on somebody's word.
func (p *TaskState) end(as Status, who Who) {
	p.Status, p.Reason, p.Vouched = as, who.Reason, who.mover() == ByPerson
}
