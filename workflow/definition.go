package workflow

import (
	"encoding/json"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Type says what a step executes.
type Type string

// The types of steps.
const (
	Human     Type = "HUMAN"     // a person's intake; nothing is executed
	Reasoning Type = "REASONING" // a planner's proposal, verified; nothing is executed
	Execution Type = "EXECUTION" // one governed call
	SubSOP    Type = "SUB_SOP"   // a nested workflow
)

// Spec is a workflow as it was written, before it was checked: see [Compile]. It is plain data, in JSON as in Go.
type Spec struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	// Input is the JSON Schema of what an instance is started with; the driver checks it before [Definition.Start].
	Input json.RawMessage `json:"input,omitempty"`
	// Output maps artifacts to what the instance gives to whoever started it. None: an object of the outputs of the steps
	// that no other step needs, by name.
	Output Mapping `json:"output,omitempty"`
	// Limits bound the whole instance: Time and Cost only.
	Limits Limits `json:"limits,omitzero"`
	// Owners are asked where a step has nobody of its own to ask.
	Owners []string `json:"owners,omitempty"`
	Phases []Phase  `json:"phases"`
}

// Phase is a part of a workflow. Phases run one after the other: the steps of one begin when all steps of those before have
// ended.
type Phase struct {
	Name string `json:"name"`
	// Storyline tells what the phase is about; every planner and every person in it is given those of the phases up to it.
	Storyline string `json:"storyline,omitempty"`
	// Guard is evaluated when the phase would begin; where it does not hold, all of the phase's steps are skipped.
	Guard *Guard `json:"guard,omitempty"`
	// Ordered makes each step need the end of the one written before it.
	Ordered     bool        `json:"ordered,omitempty"`
	Supervision Supervision `json:"supervision,omitzero"`
	Hints       Hints       `json:"hints,omitzero"`
	Steps       []Step      `json:"steps"`
}

// Hints are names that the machine passes on with its commands and does not interpret. Those of a step are added to those of
// its phase.
type Hints struct {
	Tools  []string `json:"tools,omitempty"`  // that a planner may want to use
	Skills []string `json:"skills,omitempty"` // that a planner may read
	Hooks  []string `json:"hooks,omitempty"`  // that watch the step
}

// Step is one step.
type Step struct {
	Name        string `json:"name"` // letters, digits, '-' and '_'; unique in the workflow
	Type        Type   `json:"type"`
	Description string `json:"description,omitempty"`
	// Needs are the steps that must have ended before this one, and how. A step whose needs have all ended, and not all of
	// them as it wants, is skipped.
	Needs []Need `json:"needs,omitempty"`
	Guard *Guard `json:"guard,omitempty"` // where it does not hold the step is skipped
	// Map hydrates the step's input from earlier artifacts.
	Map Mapping `json:"map,omitempty"`
	// Input is the JSON Schema that the hydrated or planned input of an EXECUTION or SUB_SOP has to satisfy before anything
	// is executed; the action's own schema is checked by the engine in any case.
	Input json.RawMessage `json:"input,omitempty"`
	// Output is the JSON Schema of the artifact. A REASONING step needs it, or a Verifier; a HUMAN step's is its intake's.
	Output json.RawMessage `json:"output,omitempty"`
	Limits Limits          `json:"limits,omitzero"`
	Hitl   *Hitl           `json:"hitl,omitempty"`
	// Ladder says what is done about a try that failed, rung by rung. None is [DefaultLadder]. A ladder that does not end
	// in a rung park ends in the failure of the step.
	Ladder  []Rung  `json:"ladder,omitempty"`
	Backoff Backoff `json:"backoff,omitzero"` // between tries
	// Planner proposes the output of a REASONING step, where it is needed, or the input of an EXECUTION or SUB_SOP, which
	// without one is what Map gives.
	Planner string `json:"planner,omitempty"`
	// Verifier judges a proposal, beside the contract.
	Verifier string `json:"verifier,omitempty"`
	Action   string `json:"action,omitempty"` // of an EXECUTION
	// Effect is that of the action as the author knows it; what the engine records with the call goes before it.
	Effect action.Effect `json:"effect,omitempty"`
	// Undo says how an EXECUTION is compensated. None: as the action itself declares, where its effect is compensatable.
	Undo     *Undo    `json:"undo,omitempty"`
	Workflow string   `json:"workflow,omitempty"` // of a SUB_SOP: the name of the child's definition
	Breaker  *Breaker `json:"breaker,omitempty"`  // of a SUB_SOP: of that definition
	Hints    Hints    `json:"hints,omitzero"`
}

// When says how a needed step must have ended.
type When string

// The ways.
const (
	OnOk  When = "ok"  // it was committed; this is the default
	OnErr When = "err" // it failed: whoever needs that handles the failure, and the phase's supervision does not
	OnEnd When = "end" // anyhow, skipped included
)

// Need is an edge of the graph.
type Need struct {
	Step string `json:"step"`
	When When   `json:"when,omitempty"` // "" is OnOk
}

// Guard is a condition on what is known: a predicate registered with the driver under Name, or a JSON Schema that the view
// of the state satisfies, an object of input and steps (see [Mapping]). Exactly one is set.
type Guard struct {
	Name   string          `json:"name,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// Limits bound a step. Zero is the default of each.
type Limits struct {
	// Iterations is how often a planner may propose on the first rung; default 3.
	Iterations int `json:"iterations,omitempty"`
	// Attempts is how often one try may call or, of a SUB_SOP, how many children it may have; default 3.
	Attempts int `json:"attempts,omitempty"`
	// Time is how long the step may take from its start, waiting included; zero is as long as it takes.
	Time time.Duration `json:"time,omitempty"`
	// Cost bounds what the step may spend. Nothing more is planned or called once an axis is used up.
	Cost action.Limit `json:"cost,omitzero"`
}

// Hitl is the human in the loop.
type Hitl struct {
	Who    []string        `json:"who,omitempty"` // none: the workflow's Owners
	Prompt string          `json:"prompt,omitempty"`
	Intake json.RawMessage `json:"intake,omitempty"` // the JSON Schema of the answer
	// Reprompts is how often a person is asked again after an intake that failed its schema, or came too late; default 2,
	// negative is never. Then the step parks.
	Reprompts int `json:"reprompts,omitempty"`
	// Within is how long one question waits; zero is as long as it takes.
	Within time.Duration `json:"within,omitempty"`
	// First makes a step that is not HUMAN ask before it plans, as HUMAN always does.
	First bool `json:"first,omitempty"`
}

// RungKind is a way to go on after a try that failed.
type RungKind string

// The kinds of rungs, as a ladder usually has them.
const (
	RungRetry   RungKind = "retry"   // another try, given the critique
	RungPlanner RungKind = "planner" // another try by another planner or model
	RungPeople  RungKind = "people"  // a try with what the step's people say
	RungParent  RungKind = "parent"  // a try with what the parent's people say; passed over where there is no parent
	RungPark    RungKind = "park"    // wait until an operator resumes
)

// Rung is one rung of a ladder. It is left when its tries are used up, or its cost.
type Rung struct {
	Kind     RungKind     `json:"kind"`
	Planner  string       `json:"planner,omitempty"`  // of RungPlanner
	Attempts int          `json:"attempts,omitempty"` // tries; default 1, of RungRetry Limits.Iterations, or of a SUB_SOP Limits.Attempts
	Cost     action.Limit `json:"cost,omitzero"`      // of what is spent on this rung
}

// Backoff is a pause that doubles: Base after the first failure, never more than Max. Up to Jitter percent of it are taken
// off, by what waits, so that many that failed together do not return together.
type Backoff struct {
	Base   time.Duration `json:"base,omitempty"`   // default 1s
	Max    time.Duration `json:"max,omitempty"`    // default 1m
	Jitter int           `json:"jitter,omitempty"` // percent, default 50; negative is none
}

// Undo is the call that compensates a step.
type Undo struct {
	Action string `json:"action"`
	// Map makes its input: beside the usual paths there are call.input and call.output, of the call to undo.
	Map Mapping `json:"map,omitempty"`
}

// Breaker stops regenerating children of a definition that keeps failing, for all steps of an instance.
type Breaker struct {
	Failures int           `json:"failures"` // that trip it
	Window   time.Duration `json:"window"`   // in which they fall
	Cooldown time.Duration `json:"cooldown"` // for which it is tripped
}

// Strategy says what a phase does about a step that failed and whose failure no step handles.
type Strategy string

// The strategies.
const (
	SuperviseRetry    Strategy = "retry"         // run the step again
	SuperviseRestart  Strategy = "restart"       // undo what the phase completed, run the phase again
	SuperviseResume   Strategy = "resume"        // leave the step failed and go on with those that do not need it
	SuperviseEscalate Strategy = "escalate"      // park before people, who decide
	AbortSubtree      Strategy = "abort-subtree" // undo this instance; its parent sees a failed child. The default
	AbortTree         Strategy = "abort-tree"    // as AbortSubtree, and so does every ancestor
)

// Supervision of a phase.
type Supervision struct {
	Strategy Strategy `json:"strategy,omitempty"`
	Max      int      `json:"max,omitempty"`  // how often SuperviseRetry and SuperviseRestart are done; default 1
	Then     Strategy `json:"then,omitempty"` // once that is used up: any of the others; default AbortSubtree
	Backoff  Backoff  `json:"backoff,omitzero"`
}
