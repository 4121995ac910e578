package engine

import "github.com/seed-ab2cfece/delta-agents/action"

// Because adds to a failure why the task ended, and whether a person said so: a function, a planner or a program may have
// said anything.
func (s *TaskState) Because(f *action.Failure) *action.Failure {
	if s.Vouched {
		return f.With(action.DetailReason, s.Reason)
	}
	return f.Quoting(s.Reason)
}

// end makes the state that of a task that ended on somebody's word.
func (s *TaskState) end(as Status, who Who) {
	s.Status, s.Reason, s.Vouched = as, who.Reason, who.mover() == ByPerson
}
