package memory

import "fmt"

// LostError says that a store has lost writes which it had acknowledged: it knows an older revision of a task, or of the
// agent itself where Task is "", than this process was told of. It is returned once for each loss.
type LostError struct {
	Agent, Task string
	Had, Has    int64 // revisions: what had been acknowledged, and what is left
}

func (e *LostError) Error() string {
	what := fmt.Sprintf("agent %q", e.Agent)
	if e.Task != "" {
		what = fmt.Sprintf("task %q of %s", e.Task, what)
	}
	return fmt.Sprintf("the store lost acknowledged writes of %s: revision %d was acknowledged and %d is left, as after a fail-over to a replica that lagged", what, e.Had, e.Has)
}
