package action

// Code says how an intent ended. Codes are stable API: they appear in outcomes, events, metrics and what a planner is
// told, and mean the same in each.
type Code string

// The codes, in the order of the gates that give them.
const (
	OK Code = "OK"

	Cancelled        Code = "CANCELLED"
	TaskClosed       Code = "TASK_CLOSED"
	TaskPaused       Code = "TASK_PAUSED"
	ActionUnknown    Code = "ACTION_UNKNOWN"
	ToolUnknown      Code = "TOOL_UNKNOWN"
	ChannelUnknown   Code = "CHANNEL_UNKNOWN"
	Unavailable      Code = "UNAVAILABLE"
	ContextMissing   Code = "CONTEXT_MISSING"
	KeyUnavailable   Code = "KEY_UNAVAILABLE"
	InputMalformed   Code = "INPUT_MALFORMED"
	InputInvalid     Code = "INPUT_INVALID"
	NotLegal         Code = "NOT_LEGAL"
	Denied           Code = "DENIED"
	RiskCeiling      Code = "RISK_CEILING"
	CostInvalid      Code = "COST_INVALID"
	BudgetExhausted  Code = "BUDGET_EXHAUSTED"
	RateLimited      Code = "RATE_LIMITED"
	ApprovalRequired Code = "APPROVAL_REQUIRED"
	ApprovalRejected Code = "APPROVAL_REJECTED"
	ApprovalExpired  Code = "APPROVAL_EXPIRED"
	NoApprover       Code = "NO_APPROVER"
	Stale            Code = "STALE"
	InFlight         Code = "IN_FLIGHT"
	StoreUnavailable Code = "STORE_UNAVAILABLE"
	HookFailed       Code = "HOOK_FAILED"
	NotStarted       Code = "NOT_STARTED"
	Failed           Code = "FAILED"
	Panicked         Code = "PANICKED"
	Timeout          Code = "TIMEOUT"
	Interrupted      Code = "INTERRUPTED"
	OutputInvalid    Code = "OUTPUT_INVALID"
	StartedUnknown   Code = "STARTED_UNKNOWN"
	Late             Code = "LATE"
)

// Layer says where a failure comes from.
type Layer string

// The layers.
const (
	LayerReasoning      Layer = "reasoning"
	LayerStateSpace     Layer = "state-space"
	LayerAuthority      Layer = "authority"
	LayerRisk           Layer = "risk"
	LayerBudget         Layer = "budget"
	LayerOversight      Layer = "oversight"
	LayerTool           Layer = "tool"
	LayerInfrastructure Layer = "infrastructure"
)

// Executed says whether the function of an intent ran.
type Executed string

// Whether it ran.
const (
	No    Executed = "no"
	Yes   Executed = "yes"
	Maybe Executed = "maybe"
)

// Learns says what an end teaches the risk estimator.
type Learns string

// What is learned.
const (
	LearnsNothing Learns = "nothing"
	LearnsOk      Learns = "Ok"
	LearnsErr     Learns = "Err"
)

// Charge says what becomes of the reservation of an intent.
type Charge string

// What is charged.
const (
	ChargeNothing  Charge = "nothing"  // nothing was reserved
	ChargeActual   Charge = "actual"   // what was used is spent, the rest is released
	ChargeReleased Charge = "released" // all of it is released
	ChargeReserved Charge = "reserved" // it stays reserved until an operator resolves it
)

// Info is what a code means, once and for all: doc/outcomes.md is this table, walked by a test.
type Info struct {
	Code      Code
	Gate      int // the gate that gives it, 0 for OK
	Layer     Layer
	Executed  Executed
	Learns    Learns
	Satisfies bool // whether dependents of the action become legal
	Charge    Charge
	Retryable bool // whether the same call may succeed later without anybody changing anything
	Violation bool // whether the planner broke a rule it could have known
	Tells     string
}

var infos = []Info{
	{OK, 0, LayerTool, Yes, LearnsOk, true, ChargeActual, false, false, "the call succeeded; its output follows"},
	{Cancelled, 1, LayerOversight, No, LearnsNothing, false, ChargeNothing, false, false, "the task was cancelled"},
	{TaskClosed, 1, LayerStateSpace, No, LearnsNothing, false, ChargeNothing, false, false, "the task has ended or its deadline has passed"},
	{TaskPaused, 1, LayerOversight, No, LearnsNothing, false, ChargeNothing, true, false, "the task is paused until a person has looked at it"},
	{ActionUnknown, 2, LayerStateSpace, No, LearnsNothing, false, ChargeNothing, false, true, "there is no such action"},
	{ToolUnknown, 2, LayerStateSpace, No, LearnsNothing, false, ChargeNothing, false, false, "the function of a call may not call this action"},
	{ChannelUnknown, 2, LayerReasoning, No, LearnsNothing, false, ChargeNothing, false, true, "the task has no such channel to send messages over"},
	{Unavailable, 2, LayerTool, No, LearnsNothing, false, ChargeNothing, true, false, "what the action needs is not available now; try again later"},
	{ContextMissing, 2, LayerReasoning, No, LearnsNothing, false, ChargeNothing, false, true, "the call lacks context that the action requires"},
	{KeyUnavailable, 2, LayerInfrastructure, No, LearnsNothing, false, ChargeNothing, true, false, "the key for the secrets of this call cannot be had; nothing was run"},
	{InputMalformed, 3, LayerReasoning, No, LearnsNothing, false, ChargeNothing, false, true, "the input is not acceptable JSON"},
	{InputInvalid, 3, LayerReasoning, No, LearnsNothing, false, ChargeNothing, false, true, "the input does not satisfy the schema"},
	{NotLegal, 4, LayerStateSpace, No, LearnsNothing, false, ChargeNothing, false, true, "the action is not available now"},
	{Denied, 5, LayerAuthority, No, LearnsNothing, false, ChargeNothing, false, true, "the agent has no permission for this call"},
	{RiskCeiling, 6, LayerRisk, No, LearnsNothing, false, ChargeNothing, false, true, "the action is too risky for this task"},
	{CostInvalid, 7, LayerBudget, No, LearnsNothing, false, ChargeNothing, false, false, "what this call would cost is not known, or more than a call of the action may cost"},
	{BudgetExhausted, 7, LayerBudget, No, LearnsNothing, false, ChargeNothing, true, false, "the budget does not allow this call"},
	{RateLimited, 7, LayerBudget, No, LearnsNothing, false, ChargeNothing, true, false, "the action was called too often, or too often at a time; try again later"},
	{ApprovalRequired, 8, LayerOversight, No, LearnsNothing, false, ChargeNothing, true, false, "a person has been asked to approve this call"},
	{ApprovalRejected, 8, LayerOversight, No, LearnsNothing, false, ChargeNothing, false, false, "a person rejected this call; the reason follows"},
	{ApprovalExpired, 8, LayerOversight, No, LearnsNothing, false, ChargeNothing, true, false, "the approval was not given, or not used, in time"},
	{NoApprover, 8, LayerOversight, No, LearnsNothing, false, ChargeNothing, false, true, "the call needs an approval and nobody can give it"},
	{Stale, 9, LayerInfrastructure, No, LearnsNothing, false, ChargeNothing, true, false, "the state changed while deciding; try again"},
	{InFlight, 9, LayerInfrastructure, No, LearnsNothing, false, ChargeNothing, true, false, "a call with this id is still running"},
	{StoreUnavailable, 9, LayerInfrastructure, No, LearnsNothing, false, ChargeNothing, true, false, "the engine cannot record calls now; nothing was run"},
	{HookFailed, 10, LayerTool, No, LearnsNothing, false, ChargeReleased, true, false, "a check before the call failed; nothing was run"},
	{NotStarted, 10, LayerInfrastructure, No, LearnsNothing, false, ChargeReleased, true, false, "the call was stopped before it started"},
	{Failed, 11, LayerTool, Yes, LearnsErr, false, ChargeActual, false, false, "the call failed; the reason follows"},
	{Panicked, 11, LayerTool, Yes, LearnsErr, false, ChargeActual, false, false, "the call failed inside the tool"},
	{Timeout, 11, LayerTool, Yes, LearnsErr, false, ChargeActual, true, false, "the call took too long and was given up"},
	{Interrupted, 11, LayerOversight, Yes, LearnsNothing, false, ChargeActual, false, false, "the call was cancelled while it ran"},
	{OutputInvalid, 12, LayerTool, Yes, LearnsErr, false, ChargeActual, false, false, "the call returned something that does not satisfy its contract"},
	{StartedUnknown, 13, LayerInfrastructure, Maybe, LearnsNothing, false, ChargeReserved, false, false, "it is not known whether the call took effect; a person must resolve it"},
	{Late, 13, LayerInfrastructure, Yes, LearnsNothing, false, ChargeActual, false, false, "the call ended after its end had been recorded"},
}

var infoOf = func() map[Code]*Info {
	m := make(map[Code]*Info, len(infos))
	for i := range infos {
		m[infos[i].Code] = &infos[i]
	}
	return m
}()

// Infos returns the table of all codes, in the order of the gates.
func Infos() []Info { return append([]Info(nil), infos...) }

// Info returns what the code means. An unknown code never executed, teaches nothing and is not retryable.
func (c Code) Info() Info {
	if i := infoOf[c]; i != nil {
		return *i
	}
	return Info{Code: c, Layer: LayerInfrastructure, Executed: No, Learns: LearnsNothing, Charge: ChargeNothing}
}
