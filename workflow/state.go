package workflow

import (
	"encoding/json"
	"slices"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// Format is the version of the layout of a [State].
const Format = 1

// Status says how an instance stands.
type Status string

// The statuses. The last three are terminal and absorb, but for [Unwound] of an instance that completed.
const (
	Running   Status = "running"
	Unwinding Status = "unwinding" // it undoes what it completed, and then fails or is cancelled
	Completed Status = "completed"
	Failed    Status = "failed"
	Stopped   Status = "cancelled"
)

// Terminal reports whether nothing happens any more.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Stopped }

// State is how far an instance has come: all of it, and plain data. It is a value; a turn never changes the state it was
// given. What is in its slices and documents is shared with other states and must not be changed.
type State struct {
	Format   int             `json:"format"`
	Workflow string          `json:"workflow"`
	Version  string          `json:"version"`
	Digest   string          `json:"digest"` // of the definition it runs by
	Instance string          `json:"instance"`
	Parent   string          `json:"parent,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Status   Status          `json:"status"`
	Held     bool            `json:"held,omitempty"`  // paused: commands are held back
	Above    bool            `json:"above,omitempty"` // its parent's pause holds it
	Own      bool            `json:"own,omitempty"`   // with Above: a person paused it besides
	Begun    int64           `json:"begun"`           // µs since 1970
	At       int64           `json:"at"`              // the latest time it knows
	Phases   []PhaseState    `json:"phases"`          // as in the definition
	Steps    []StepState     `json:"steps"`           // as in the definition, phase by phase
	// Deeds are the effects that completed, in the order of their completion. Unwinding takes them from the end.
	Deeds []Deed `json:"deeds,omitempty"`
	// Left are effects that completed, or may have, and that nothing undoes: found while unwinding, or left by a child that
	// did not complete.
	Left   []Deed   `json:"left,omitempty"`
	Unwind *Undoing `json:"unwind,omitempty"`
	// Outstanding are the commands that were issued and not answered, in the order of their issue: what a driver has to
	// perform, again where it does not know, after it replayed the events. While Held only the timers among them.
	Outstanding []Command       `json:"outstanding,omitempty"`
	Breakers    []BreakerState  `json:"breakers,omitempty"`
	Issued      int             `json:"issued,omitempty"` // commands that belong to no step
	Cost        action.Cost     `json:"cost,omitzero"`    // all of it
	Used        action.Cost     `json:"used,omitzero"`    // what counts against the limit: since an operator last granted more
	Stop        *Stop           `json:"stop,omitempty"`   // no further step is started
	Output      json.RawMessage `json:"output,omitempty"` // of a completed one
	Failure     *action.Failure `json:"failure,omitempty"`
	Tree        bool            `json:"tree,omitempty"` // of a failed one: ancestors are to abort too
}

// Stop is why an instance starts no further step, and what becomes of it once what runs has ended.
type Stop struct {
	Status  Status          `json:"status"`           // in which it ends: Failed or Stopped
	Keep    bool            `json:"keep,omitempty"`   // what completed is not undone
	Gentle  bool            `json:"gentle,omitempty"` // what runs may go on to its end
	Failure *action.Failure `json:"failure,omitempty"`
	By      string          `json:"by,omitempty"`
}

// PhaseStage says how a phase stands.
type PhaseStage string

// The stages of a phase.
const (
	PhasePending PhaseStage = ""
	PhaseGuard   PhaseStage = "guard" // its guard is being evaluated
	PhaseRunning PhaseStage = "running"
	PhaseUndoing PhaseStage = "undoing" // it is undone to be run again
	PhaseBackoff PhaseStage = "backoff" // it was undone, and pauses before it is run again
	PhaseEnded   PhaseStage = "ended"
	PhaseSkipped PhaseStage = "skipped"
)

// PhaseState is how far a phase has come.
type PhaseState struct {
	Name  string     `json:"name"`
	Stage PhaseStage `json:"stage,omitempty"`
	Used  int        `json:"used,omitempty"`  // retries and restarts by its supervision
	Deeds int        `json:"deeds,omitempty"` // how many there were when it began
	Left  int        `json:"left,omitempty"`  // how many were left when it began
}

// Stage says where in the pipeline a step is.
type Stage string

// The stages of a step. The last three are its ends.
const (
	StagePending  Stage = ""         // its needs have not all ended
	StageGuard    Stage = "guard"    // its guard is being evaluated
	StageIntake   Stage = "intake"   // it is parked: a person is asked
	StageCheck    Stage = "check"    // an intake is being verified
	StagePlan     Stage = "plan"     // a planner works
	StageVerify   Stage = "verify"   // what was planned is being verified
	StageExecute  Stage = "execute"  // a call, or a child, is under way
	StageBackoff  Stage = "backoff"  // it pauses before another try
	StageParked   Stage = "parked"   // it waits, see Wait
	StageParent   Stage = "parent"   // its parent is asked
	StageValidate Stage = "validate" // what was executed gave an output, which is being verified
	StageDone     Stage = "done"     // committed
	StageFailed   Stage = "failed"
	StageSkipped  Stage = "skipped"
)

// What follows a backoff that is no stage of its own.
const (
	stagePoll  Stage = "poll"  // a call that is under way elsewhere is asked about
	stageAgain Stage = "again" // the step is run again
)

// Ended reports whether the stage is an end.
func (s Stage) Ended() bool { return s == StageDone || s == StageFailed || s == StageSkipped }

// WaitKind says what a parked step waits for.
type WaitKind string

// What is waited for, each with the event that ends the wait.
const (
	WaitIntake     WaitKind = "intake"     // → [Intake], of the command [Ask]
	WaitApproval   WaitKind = "approval"   // → [Approval]
	WaitPolicy     WaitKind = "policy"     // → [PolicyChanged] or [Amended]; no person overrides a forbid
	WaitResolution WaitKind = "resolution" // → [Resolved]
	WaitOperator   WaitKind = "operator"   // → [Resumed] or, of what is to be executed or undone, [Amended]
)

// Wait is what a step, or the unwinding of an instance, waits for.
type Wait struct {
	ID       string      `json:"id"` // what the event that ends it bears in Of
	For      WaitKind    `json:"for"`
	Step     string      `json:"step,omitempty"`
	Since    int64       `json:"since"` // µs since 1970
	Code     action.Code `json:"code,omitempty"`
	Reason   string      `json:"reason,omitempty"`
	Approval string      `json:"approval,omitempty"` // the id of the engine's approval
	Intent   string      `json:"intent,omitempty"`   // the engine's id of the call of unknown outcome
	Who      []string    `json:"who,omitempty"`      // who can help; of an approval those who may give it, whom the machine does not know
	Policy   string      `json:"policy,omitempty"`   // the version of the rules that were tried last
}

// StepState is how far a step has come.
type StepState struct {
	Name      string `json:"name"`
	Stage     Stage  `json:"stage,omitempty"`
	Run       int    `json:"run,omitempty"`       // 1, and one more each time its phase runs it again
	Iteration int    `json:"iteration,omitempty"` // of planning, over all runs
	Attempt   int    `json:"attempt,omitempty"`   // of calling, over all runs
	Issued    int    `json:"issued,omitempty"`    // commands and waits, over all runs
	Started   int64  `json:"started,omitempty"`   // µs since 1970, of this run
	Ended     int64  `json:"ended,omitempty"`

	Input    json.RawMessage `json:"input,omitempty"`    // as hydrated, or amended
	Amended  bool            `json:"amended,omitempty"`  // Input is a person's word, no planner changes it
	Proposal json.RawMessage `json:"proposal,omitempty"` // as planned, no artifact
	Result   json.RawMessage `json:"result,omitempty"`   // as executed, not yet validated
	Output   json.RawMessage `json:"output,omitempty"`   // the artifact, once the step is done
	Critique string          `json:"critique,omitempty"` // of the last try
	Pending  *Given          `json:"pending,omitempty"`  // an intake that is being verified
	Intakes  []Given         `json:"intakes,omitempty"`  // those that were consumed, in their order

	Call      string          `json:"call,omitempty"`      // the call id of the try under way
	Calls     int             `json:"calls,omitempty"`     // attempts of the try under way
	Children  int             `json:"children,omitempty"`  // of this run
	Reprompts int             `json:"reprompts,omitempty"` // since the question was first asked
	Rung      int             `json:"rung,omitempty"`      // of the ladder
	Tries     int             `json:"tries,omitempty"`     // on that rung
	RungCost  action.Cost     `json:"rung_cost,omitzero"`  // on that rung
	Cost      action.Cost     `json:"cost,omitzero"`       // of this run
	Then      Stage           `json:"then,omitempty"`      // what follows the backoff
	Effect    action.Effect   `json:"effect,omitempty"`    // as recorded with its last call
	Effected  bool            `json:"effected,omitempty"`  // an effect completed that may not be repeated, in this run
	Undone    bool            `json:"undone,omitempty"`    // what it effected was taken back, and nothing of it stands that is known of
	Touched   bool            `json:"touched,omitempty"`   // an irreversible call ran and failed, in this run
	Policy    string          `json:"policy,omitempty"`    // the version of the rules that were waited for last
	Asked     []string        `json:"asked,omitempty"`     // escalations of its children that were taken up
	Referred  bool            `json:"referred,omitempty"`  // its failure was brought before people by the phase's supervision
	Closing   *action.Failure `json:"closing,omitempty"`   // why it ends as soon as its call or child has ended
	Wait      *Wait           `json:"wait,omitempty"`      // of a parked step
	Failure   *action.Failure `json:"failure,omitempty"`   // of the last try; of a failed step, why
}

// Deed is an effect that completed or, with Maybe, may have.
type Deed struct {
	Step   string          `json:"step"`
	Call   string          `json:"call,omitempty"`   // its call id
	Intent string          `json:"intent,omitempty"` // the engine's id
	Action string          `json:"action,omitempty"`
	Effect action.Effect   `json:"effect"`
	Input  json.RawMessage `json:"input,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	Child  string          `json:"child,omitempty"` // instead of a call: an instance that completed; of one that is left, whose it is
	Maybe  bool            `json:"maybe,omitempty"` // the call did not come to its end: nobody knows whether it took effect
	Why    string          `json:"why,omitempty"`   // of one that is left: why
}

// Undoing is how far the undoing of deeds has come.
type Undoing struct {
	Down    int             `json:"down"`              // until so many deeds are left
	Phase   int             `json:"phase"`             // of an instance that goes on: the phase that is run again; else -1
	Attempt int             `json:"attempt,omitempty"` // of undoing the last deed
	Call    string          `json:"call,omitempty"`    // the call id of the attempt under way
	Pausing bool            `json:"pausing,omitempty"` // before another attempt
	Policy  string          `json:"policy,omitempty"`  // the version of the rules that was waited for last
	Input   json.RawMessage `json:"input,omitempty"`   // a person's, for undoing the last deed
	Wait    *Wait           `json:"wait,omitempty"`
}

// Artifact returns the output of a step that is done.
func (s *State) Artifact(step string) (json.RawMessage, bool) {
	for i := range s.Steps {
		if s.Steps[i].Name == step && s.Steps[i].Stage == StageDone {
			return s.Steps[i].Output, true
		}
	}
	return nil, false
}

// Waits returns what the instance waits for that a person or a change of the rules ends: first the questions that [Ask]
// brought before somebody, then the others in the order of the steps.
func (s *State) Waits() (out []Wait) {
	for _, c := range s.Outstanding {
		if c.Kind == Ask {
			out = append(out, Wait{ID: c.ID, For: WaitIntake, Step: c.Step, Since: c.At, Reason: c.Prompt, Who: c.Who})
		}
	}
	for i := range s.Steps {
		if w := s.Steps[i].Wait; w != nil {
			out = append(out, *w)
		}
	}
	if s.Unwind != nil && s.Unwind.Wait != nil {
		out = append(out, *s.Unwind.Wait)
	}
	return out
}

// Parked reports whether nothing goes on, deadlines apart, unless a person or a change of the rules makes it.
func (s *State) Parked() bool {
	if s.Status.Terminal() {
		return false
	}
	return s.Held || !slices.ContainsFunc(s.Outstanding, func(c Command) bool {
		return c.Kind != Ask && c.Kind != Withdraw && (c.Kind != Timer || c.Subject == SubjectBackoff)
	})
}
