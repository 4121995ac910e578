package memory

import "fmt"

// Shower is implemented by stores that people look into with the store's own tools, and that keep what Show clauses say.
type Shower interface{ Shows() bool }

// Shows reports whether the store keeps what Show clauses say.
func Shows(s Store) bool {
	v, ok := s.(Shower)
	return ok && v.Shows()
}

// PrunedError says that a task which this process knew had ended and was dropped on purpose, see [Forgetter]. It is returned
// once; afterwards there is no such task, or another of that name.
type PrunedError struct{ Agent, Task string }

func (e *PrunedError) Error() string {
	return fmt.Sprintf("task %q of agent %q had ended and was pruned: the checkpoint in its agent's own ledger is all that is left of it", e.Task, e.Agent)
}

// LostError says that a store has lost writes which it had acknowledged: it knows an older revision of a task, or of the
// agent itself where Task is "", than this process was told of, or others have gone on from an older one since. It is
// returned once for each loss.
type LostError struct {
	Agent, Task string
	Had, Has    int64 // revisions: what had been acknowledged, and what is left
}

func (e *LostError) Error() string {
	what := fmt.Sprintf("agent %q", e.Agent)
	if e.Task != "" {
		what = fmt.Sprintf("task %q of %s", e.Task, what)
	}
	left := fmt.Sprintf("and %d is left", e.Has)
	if e.Has >= e.Had {
		left = fmt.Sprintf("and is not in what others have brought to revision %d since", e.Has)
	}
	return fmt.Sprintf("the store lost acknowledged writes of %s: revision %d was acknowledged %s, as after a restore from an older copy or a fail-over to a replica that lagged", what, e.Had, left)
}
