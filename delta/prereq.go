package delta

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-ab2cfece/delta-agents/statespace"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// Prereq is what an action may need: another action, or a [Pre] that says on which fields, or that a workflow completed. It
// is sealed.
type Prereq interface{ prerequisite() Pre }

// Pre is a prerequisite: an Ok of an action, or a workflow that completed, perhaps only for the same values of some fields. It is a value; methods
// return changed copies. Several bindings bind jointly: all of them to one and the same Ok.
type Pre struct {
	name     string
	action   *declaration // nil where only the name is known
	flow     bool         // name is that of a workflow
	version  string       // of the workflow, "" for any
	def      *workflow.Definition
	binds    []statespace.Bind
	consumed bool
	within   time.Duration
	across   bool
	faults   []error
}

func (p Pre) prerequisite() Pre {
	if p.name == "" && len(p.faults) == 0 {
		p.faults = []error{errors.New("the prerequisite names no action; use an action's On, or Named")}
	}
	return p
}

var errNotBuilt = errors.New("action is nil, or was not built; make it with Define and Build")

// Named refers to an action by name, where its value is not at hand. The agent's Build resolves it.
func Named(name string) Pre { return Pre{name: name} }

// Completed makes that a workflow completed a prerequisite, in whatever version: one that [Task.StartWorkflow] or a SUB_SOP ran
// as a child of the task or, with [Pre.Across], one that an earlier task of the agent ran. On and OnAs bind on what it was
// started with, OnOutput on what it gave. What completed and is undone counts no more.
func Completed(d *workflow.Definition) Pre {
	if d == nil {
		return Pre{faults: []error{errors.New("the workflow is nil")}}
	}
	return Pre{name: d.Name(), flow: true, def: d}
}

// CompletedNamed is [Completed] where the definition is not at hand.
func CompletedNamed(name string) Pre { return Pre{name: name, flow: true} }

// Version makes it a prerequisite that the workflow completed in that version.
func (p Pre) Version(v string) Pre {
	switch {
	case !p.flow:
		p.faults = append(slices.Clip(p.faults), errors.New("only of a workflow a version can be asked for"))
	case v == "":
		p.faults = append(slices.Clip(p.faults), errors.New("the version is empty; leave it out for any"))
	}
	p.version = v
	return p
}

func (a *Action[In, Out]) prerequisite() Pre {
	if a.definition() == nil {
		return Pre{faults: []error{errNotBuilt}}
	}
	return Pre{name: a.d.name, action: a.d}
}

// On binds the prerequisite on a field that both inputs have under the same name: confirming ORD-1 does not unlock ORD-2.
// Nested fields are written "customer.id".
func (a *Action[In, Out]) On(field string) Pre { return a.prerequisite().On(field) }

// OnAs binds a field of the dependent's input to a differently named field of the prerequisite's input.
func (a *Action[In, Out]) OnAs(mine, theirs string) Pre { return a.prerequisite().OnAs(mine, theirs) }

// OnOutput binds a field of the dependent's input to what the prerequisite returned: "entries.*.path" stands for every
// element's path.
func (a *Action[In, Out]) OnOutput(mine, path string) Pre {
	return a.prerequisite().OnOutput(mine, path)
}

// Consumed makes a call use the prerequisite up.
func (a *Action[In, Out]) Consumed() Pre { return a.prerequisite().Consumed() }

// Within makes the prerequisite expire.
func (a *Action[In, Out]) Within(d time.Duration) Pre { return a.prerequisite().Within(d) }

// Across makes an Ok of an earlier task of the same agent count as well, for as long as the duration from that Ok on; in the
// task's own calls it does what Within does. A task knows the newest 256 such facts, of all its actions, as of when it
// started, and of tasks of its own tenant only; a child task begins with none. An agent keeps the newest 1,024 of them. What
// too many values at once established (more than 256) is not kept for later tasks. With Consumed it is refused: what is used
// up is of one task.
func (a *Action[In, Out]) Across(d time.Duration) Pre { return a.prerequisite().Across(d) }

// On is like [Action.On].
func (p Pre) On(field string) Pre { return p.OnAs(field, field) }

// OnAs is like [Action.OnAs].
func (p Pre) OnAs(mine, theirs string) Pre {
	p.binds = append(slices.Clip(p.binds), statespace.Bind{Mine: mine, Theirs: theirs})
	return p
}

// OnOutput is like [Action.OnOutput].
func (p Pre) OnOutput(mine, path string) Pre {
	p.binds = append(slices.Clip(p.binds), statespace.Bind{Mine: mine, Theirs: path, Output: true})
	return p
}

// Consumed is like [Action.Consumed].
func (p Pre) Consumed() Pre {
	p.consumed = true
	return p
}

// Within is like [Action.Within]. The shortest duration is a microsecond.
func (p Pre) Within(d time.Duration) Pre {
	if p.across && p.within != d {
		p.faults = append(slices.Clip(p.faults), fmt.Errorf("across %v and within %v: say one of them", p.within, d))
	}
	p.within = d
	if d < time.Microsecond {
		p.faults = append(slices.Clip(p.faults), fmt.Errorf("within %v: want at least a microsecond", d))
	}
	return p
}

// Across is like [Action.Across].
func (p Pre) Across(d time.Duration) Pre {
	if p.within > 0 && p.within != d {
		p.faults = append(slices.Clip(p.faults), fmt.Errorf("within %v and across %v: say one of them", p.within, d))
	}
	p = p.Within(d)
	p.across = true
	return p
}
