package statespace

import (
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Node declares one action of an agent.
type Node struct {
	Name  string
	Needs []Need // all of them must be met
	Cost  action.Cost

	// Fetches says that the action is there to find out what is not known. What binds on its output cannot be planned
	// before it ran: see [Graph.Path].
	Fetches bool

	// Secret lists paths, of the input or the output, whose values must not appear in a key. A path covers everything
	// below it, and a binding on something above it.
	Secret []string
}

// Need is one prerequisite: an Ok of Action, for the values that the binds relate.
type Need struct {
	Action   string        // a workflow, with Workflow
	Bind     []Bind        // all relate to one and the same Ok; none: any Ok will do
	Consumed bool          // a call uses the fact up
	Within   time.Duration // the Ok must not be older; 0 is no limit, else at least a microsecond

	// Across says that an Ok of an earlier task answers the need too. It has a Within, and is not Consumed: what is used up
	// is of one task.
	Across bool

	// Workflow says that Action names a workflow, and that it must have completed. Its input and its output are bound on like
	// those of an action.
	Workflow bool `json:",omitempty"`
	// Version is the version of the workflow that must have completed, "" for any.
	Version string `json:",omitempty"`
}

// Bind relates a field of the dependent's input to a field of the prerequisite. Paths are member names joined by dots. In
// Theirs the segment "*" stands for every element of an array and every member of an object, so that one Ok may establish
// many values. A field that is absent or null binds nothing.
type Bind struct {
	Mine   string // in the input of the action that has the need
	Theirs string // in the input of the prerequisite or, with Output, in what it returned
	Output bool
}
