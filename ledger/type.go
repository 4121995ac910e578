package ledger

import "slices"

// Type says what an event records.
type Type string

// The types, in the order in which they first appear in the life of a task.
const (
	// TaskStarted opens a task: State holds its configuration, Text its goal.
	TaskStarted Type = "task_started"
	// TaskChanged replaces the configuration (threshold, limit, approvers, …): State, Identity, Reason. Of a child also its
	// status, when its parent is paused or goes on: Text says so.
	TaskChanged Type = "task_changed"
	// PhaseChanged moves the task into another phase: State, Text names it, Reason, Intent where a function did.
	PhaseChanged Type = "phase_changed"
	// TaskConcluded is a person's verdict on the goal of a task that has ended: Verdict, Reason, Identity, Text says whose
	// word it is, State.
	TaskConcluded Type = "task_concluded"
	// TaskCancelled ends a task on request: Identity, Reason. It absorbs: nothing begins afterwards.
	TaskCancelled Type = "task_cancelled"
	// TaskClosed ends a task that is done, or whose deadline has passed: Reason; Verdict on its goal where somebody gave one,
	// Text says who (the planner, the program, a person, the function of Intent), Identity.
	TaskClosed Type = "task_closed"

	// EscalationRaised brings the task before a person: Escalation, Text is the concern (see action.Concern), Reason, and
	// State where the task is paused with it: nothing begins until it is resolved. Without State nobody could be asked, and
	// the task goes on.
	EscalationRaised Type = "escalation_raised"
	// EscalationResolved is a person's word on it: Escalation, Identity, Reason, and State where the task goes on. Without
	// State the task ends: TaskCancelled follows.
	EscalationResolved Type = "escalation_resolved"

	// Refused is a call that a gate turned away: Code, Failure, and what was known about it. Nothing ran. ToSeq is since when
	// refusals of the task are counted together, store time in µs, FromSeq how many there were before.
	Refused Type = "refused"
	// RefusalsCounted stands for refusals that are not recorded one by one, because there were so many: ToSeq is how many, State
	// by which codes, Owner who counted them.
	RefusalsCounted Type = "refusals_counted"

	// ApprovalRequested asks a person: Approval, Intent, Digest, Risk, Policy, Expires.
	ApprovalRequested Type = "approval_requested"
	// ApprovalVoted is a consent to a call that needs more than have been given: Approval, Identity, Reason, State holds
	// the votes.
	ApprovalVoted Type = "approval_voted"
	// ApprovalWithdrawn takes back a consent while others are awaited: Approval, Identity, Reason, State.
	ApprovalWithdrawn Type = "approval_withdrawn"
	// ApprovalApproved is a person's consent, the last that was needed: Approval, Identity, Reason, State where there were
	// others, Text where among the calls approved last it is remembered, and a digest of the tenant and the subject.
	ApprovalApproved Type = "approval_approved"
	// ApprovalRejected is a person's refusal: Approval, Identity, Reason.
	ApprovalRejected Type = "approval_rejected"
	// ApprovalRevoked takes back a consent that was not used yet: Approval, Identity, Reason.
	ApprovalRevoked Type = "approval_revoked"
	// ApprovalExpired is a request that nobody answered, or a consent that nobody used, in time.
	ApprovalExpired Type = "approval_expired"
	// ApprovalWaived is a demand for approval that earned trust answered: no person was involved. Risk, Reason.
	ApprovalWaived Type = "approval_waived"

	// GlassBroken is an operator's override of the need for approvals: Text is its id, Identity, Reason, Expires, State.
	GlassBroken Type = "glass_broken"
	// GlassUsed marks a call that the override let through: Text is its id, Identity who opened it, Reason, Intent, Risk.
	GlassUsed Type = "glass_used"
	// GlassClosed ends the override: Text is its id, Identity and Reason, no identity where it expired.
	GlassClosed Type = "glass_closed"

	// Begun is written before any effect: the intent holds Reserved, Claimed and Approval under Fence and Owner.
	// Text is the id of the override that let it through, Priced what of Reserved its input said that it costs.
	Begun Type = "begun"
	// Attempt is written before a repeated attempt of an intent: Attempt, and Failure and Charged of the one before; what
	// that used is counted with the end of the intent.
	Attempt Type = "attempt"
	// Settled ends an intent that had begun: Code, Charged, Facts, Output; Returned where it never started.
	Settled Type = "settled"
	// Late is a result that arrived after its intent's end had been written. It changes no outcome.
	Late Type = "late"
	// Resolved is an operator's word on an intent of unknown outcome: Code, Charged, Identity, Reason.
	Resolved Type = "resolved"

	// ChildQueued asks for a child task that waits until fewer are active: Child, Input is the child's configuration,
	// Reserved its budget, State how it stands.
	ChildQueued Type = "child_queued"
	// ChildGranted lets a child task start, with Reserved as its budget: as ChildQueued, or after it.
	ChildGranted Type = "child_granted"
	// ChildEnded is the end of a child: State, Charged what it has spent so far, Reserved what its calls under way hold.
	ChildEnded Type = "child_ended"
	// ChildCharged is what calls of a child that had ended used and held since: Charged and Reserved are totals.
	ChildCharged Type = "child_charged"
	// ChildRefused is a child task that was asked for in vain: Code, Failure.
	ChildRefused Type = "child_refused"

	// PoolLeased lets an agent spend from a shared pool: Pools, Reserved is the slice, State the account of the agent.
	PoolLeased Type = "pool_leased"
	// PoolReceived is the slice as it arrives at the agent: Pools, Reserved, State.
	PoolReceived Type = "pool_received"
	// PoolReturned is a slice that the agent gives back: Pools, Reserved, State.
	PoolReturned Type = "pool_returned"
	// PoolRestored is what was given back as it arrives at the pool: Pools, Reserved, State.
	PoolRestored Type = "pool_restored"

	// BeliefsFolded moves the beliefs by the pending Outcomes FromSeq to ToSeq: Changes, Version names the estimator's
	// configuration where it is not the default.
	BeliefsFolded Type = "beliefs_folded"
	// BeliefReset is an operator's correction of a belief: Changes, Version as of BeliefsFolded, Identity, Reason.
	BeliefReset Type = "belief_reset"
	// AgentDeclared is an agent that declares its actions otherwise than before: State is its card, in the agent's own ledger.
	AgentDeclared Type = "agent_declared"
	// AgentConfigured is an engine that decides by another configuration than was recorded last, in the agent's own ledger:
	// State is the configuration, Policy the version of the policy in force, Text how it differs, Owner the engine.
	AgentConfigured Type = "agent_configured"
	// TaskPruned says, in the agent's own ledger, that a task's ledger was verified and is dropped: Child is the task, Digest
	// the link of its last record, ToSeq how many records it had, Identity, Reason.
	TaskPruned Type = "task_pruned"
	// LedgerPruned says, in the agent's own ledger, that its records up to ToSeq were verified and are dropped: Digest is the
	// link of the last of them, State what they came to and the Merkle tree over them, Text the checkpoint as a signed note
	// where it was signed, Identity, Reason.
	LedgerPruned Type = "ledger_pruned"
	// AgentHalted keeps an agent from beginning anything, in the agent's own ledger: State holds the halts that stand, Text is
	// "everything" where all agents are meant, Action where one action of the agent is, Identity, Reason.
	AgentHalted Type = "agent_halted"
	// AgentResumed lifts such a halt: State holds those that still stand, Text, Action, Identity, Reason.
	AgentResumed Type = "agent_resumed"
	// CallCancelled marks one call as cancelled: Intent, Identity, Reason. How it ended is said by its end.
	CallCancelled Type = "call_cancelled"
	// KeyMade is a data key that was made: Text is its name. Of a data subject that a goal names it stands in the agent's own
	// ledger, and Child is the subject.
	KeyMade Type = "key_made"
	// SubjectErased is a data key that was destroyed, and with it what was sealed under it: as KeyMade, Identity, Reason.
	SubjectErased Type = "subject_erased"
	// Those of a workflow that the task runs; package workflow says when. All have Flow.

	// WorkflowStart opens an instance of a workflow: Flow.Event holds what it begins with, Flow.Spec its definition.
	WorkflowStart Type = "workflow_start"
	// WorkflowMigrated is an instance that goes on by another definition: Flow.Spec is that, Text says from which version.
	WorkflowMigrated Type = "workflow_migrated"
	// WorkflowEvent is an event of the machine that left no trail: Flow.Event.
	WorkflowEvent Type = "workflow_event"
	// WorkflowEnd ends an instance: Text is its status, Failure why.
	WorkflowEnd Type = "workflow_end"
	// PhaseStart begins a phase of a workflow.
	PhaseStart Type = "phase_start"
	// PhaseEnd ends one.
	PhaseEnd Type = "phase_end"
	// StepStart begins a step: Flow says which.
	StepStart Type = "step_start"
	// StepComplete commits the artifact of a step: Digest.
	StepComplete Type = "step_complete"
	// StepFailed is a step that failed for good: Failure.
	StepFailed Type = "step_failed"
	// StepSkipped is a step that is not taken.
	StepSkipped Type = "step_skipped"
	// HitlEscalation asks a person something: Text.
	HitlEscalation Type = "hitl_escalation"
	// HitlPark says that nothing goes on without what Text says.
	HitlPark Type = "hitl_park"
	// HitlIntake is the answer of a person, consumed: Identity.
	HitlIntake Type = "hitl_intake"
	// FlowVerdict is what a verifier said: Text.
	FlowVerdict Type = "verdict"
	// PolicyEval is what policy said of a step's call: Code.
	PolicyEval Type = "policy_eval"
	// ToolCall is how a step's call ended: Code, Charged, Call.
	ToolCall Type = "tool_call"
	// FlowClimb enters a rung of a step's ladder: Text.
	FlowClimb Type = "escalation"
	// Supervision is what a phase does about a step that failed: Text.
	Supervision Type = "supervision"
	// FlowChild is a nested instance that was started, or ended: Child, Text.
	FlowChild Type = "child"
	// BreakerCount counts a failed child against its workflow, for all instances of the agent: Text, Child, and Expires when it
	// counts no more.
	BreakerCount Type = "breaker_count"
	// BreakerTrip stops the regeneration of a nested workflow: Text.
	BreakerTrip Type = "breaker_trip"
	// UndoStart begins to undo Call, or Child.
	UndoStart Type = "compensation"
	// UndoEnd is how that ended: Code.
	UndoEnd Type = "compensated"
	// UndoLeft is a completed call that nothing undoes: Call, Text.
	UndoLeft Type = "not_compensated"
	// Checkpoint stands after a step that was committed.
	Checkpoint Type = "checkpoint"
	// FlowControl pauses, resumes or cancels an instance: Text, Identity.
	FlowControl Type = "control"

	// FlowDone says that a workflow completed that the task's actions may need: Action is its name, Version, Facts, Bulk; Child
	// is the child of the task that ran it, "" where the task did, for later tasks.
	FlowDone Type = "workflow_done"
	// FlowUndone takes that back, before the workflow is undone: as FlowDone. Without Facts, what was not yet written never will be.
	FlowUndone Type = "workflow_undone"

	// HookFailed is a hook that returned an error, panicked or took too long: Failure, Text names the hook.
	HookFailed Type = "hook_failed"
	// Note is anything an operator or the engine wants remembered: Text.
	Note Type = "note"
)

var types = []Type{
	TaskStarted, TaskChanged, PhaseChanged, TaskConcluded, TaskCancelled, TaskClosed,
	EscalationRaised, EscalationResolved, Refused, RefusalsCounted,
	ApprovalRequested, ApprovalVoted, ApprovalWithdrawn, ApprovalApproved, ApprovalRejected, ApprovalRevoked, ApprovalExpired, ApprovalWaived,
	GlassBroken, GlassUsed, GlassClosed,
	Begun, Attempt, Settled, Late, Resolved, ChildQueued, ChildGranted, ChildEnded, ChildCharged, ChildRefused,
	PoolLeased, PoolReceived, PoolReturned, PoolRestored, BeliefsFolded, BeliefReset,
	AgentDeclared, AgentConfigured, TaskPruned, LedgerPruned, AgentHalted, AgentResumed, CallCancelled, KeyMade, SubjectErased, HookFailed, Note,
	WorkflowStart, WorkflowMigrated, WorkflowEvent, WorkflowEnd, PhaseStart, PhaseEnd, StepStart, StepComplete, StepFailed, StepSkipped, HitlEscalation, HitlPark, HitlIntake, FlowVerdict, PolicyEval, ToolCall, FlowClimb, Supervision, FlowChild, BreakerCount, BreakerTrip, UndoStart, UndoEnd, UndoLeft, Checkpoint, FlowControl, FlowDone, FlowUndone,
}

// Types returns every type, in the order of their declaration.
func Types() []Type { return slices.Clone(types) }

// Valid reports whether t is one of the types.
func (t Type) Valid() bool { return slices.Contains(types, t) }
