package delta

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
)

// DefaultThreshold is the effective risk from which on a call needs an approval where a goal does not say.
const DefaultThreshold = 4

// Goal is what Start gives to an agent.
type Goal struct {
	// ID names the task within its agent; "" makes one up. An id is taken also by a task that
	// ended, until that was pruned, see [Engine.Prune].
	ID    string
	Agent *Agent
	Text  string
	// Limit bounds what the task may spend, planning included.
	Limit action.Limit
	// Threshold is the effective risk, 1 to 5, from which on a call waits for a person; 0 is DefaultThreshold. More than
	// 5 is refused: nobody would ever be asked.
	Threshold float64
	// Ceiling is the effective risk above which nothing runs at all; 0 is none.
	Ceiling float64
	// Deadline ends the task; zero is none.
	Deadline time.Time
	// Approvers are the identities that may decide this task's approvals; "*" is any identity the Authenticator vouches
	// for. Empty: nobody, and what needs an approval is not offered.
	Approvers []string
	// Requester is the identity on whose behalf the task runs: it never approves, nor does a name that reads like it.
	Requester string
	// Tenant says for whom the task works, where a policy makes a difference between them; children have their parent's.
	// "" is nobody in particular, else a name by [action.CheckName].
	Tenant string
	// Subject names the person whose data the task works on, so that it can be erased, see [Engine.Erase]: nothing of its
	// inputs and outputs is then readable in the ledger, whatever their schemas say. Children have their parent's. "" is
	// nobody, else a name by [action.CheckName] that does not itself say who it is: it stands in the ledger.
	Subject string
	// ApprovalTTL is how long a request for approval waits; 0 is the engine's.
	ApprovalTTL time.Duration
	// Context names what the task brings along, for actions that require it. Ids of attachments are added to it.
	Context []string

	// Delegation bounds the children of the task, see [Task.Delegate].
	Delegation Delegation

	// Phase says where in a longer work the task is; see [Task.SetPhase]. "" is none, else a name by [action.CheckName].
	Phase string
	// Storylines tell what has happened before and what it is about, for planners and functions; at most MaxStorylines.
	Storylines []string
	// Attachments are images, audio and files that the task brings along.
	Attachments []Attachment
	// Skills names those of Config.Skills that planners and functions may read in this task, beside those of the agent.
	Skills []string
	// Channels names those of Config.Channels that messages of this task may go to, see [Communicate].
	Channels []string

	flow *engine.FlowOf // the workflow that the task runs, nil for none
	// elsewhere is what is secret in the input of a workflow that others have, nil where it is run here
	elsewhere *flowPlaces
	took      engine.Bound // the rejected and unknown calls of those in whose place the task is
}

// taskState checks a goal.
func (e *Engine) taskState(g Goal) (engine.TaskState, error) {
	var faults []error
	if g.Agent == nil || g.Agent.compiled == nil {
		return engine.TaskState{}, errors.New("goal has no agent; make one with NewAgent and Build")
	}
	if g.Agent.card != nil && g.elsewhere == nil {
		return engine.TaskState{}, fmt.Errorf("goal: agent %q: %w", g.Agent.name, ErrNoCalls)
	}
	if g.ID == "" {
		g.ID = e.cfg.ID()
	}
	if err := action.CheckName(g.ID); err != nil {
		faults = append(faults, fmt.Errorf("goal id: %w", err))
	}
	if g.Threshold == 0 {
		g.Threshold = DefaultThreshold
	}
	if !(g.Threshold >= 1 && g.Threshold <= 5) {
		faults = append(faults, fmt.Errorf("goal threshold is %v, want 1 to 5 (0 is the default of %d)", g.Threshold, DefaultThreshold))
	}
	if g.Ceiling != 0 && !(g.Ceiling >= 1 && g.Ceiling <= 5) {
		faults = append(faults, fmt.Errorf("goal ceiling is %v, want 1 to 5, or 0 for none", g.Ceiling))
	}
	if err := g.Limit.Check(); err != nil {
		faults = append(faults, fmt.Errorf("goal: %w", err))
	}
	if c := g.Agent.currency; c != "" && g.Limit.Currency != "" && c != g.Limit.Currency {
		faults = append(faults, fmt.Errorf("goal limit: %w: limit in %s, actions cost %s", action.ErrCurrency, g.Limit.Currency, c))
	}
	set(&g.Limit.Currency, g.Agent.currency)
	faults = append(faults, e.foreignPools(g)...)
	set(&g.ApprovalTTL, e.cfg.ApprovalTTL)
	if g.ApprovalTTL < time.Millisecond {
		faults = append(faults, fmt.Errorf("goal approval ttl is %v, want at least a millisecond", g.ApprovalTTL))
	}
	if g.Requester != "" {
		if err := action.CheckIdentity(g.Requester); err != nil {
			faults = append(faults, fmt.Errorf("goal requester: %w", err))
		}
	}
	if g.Tenant != "" {
		if err := action.CheckName(g.Tenant); err != nil {
			faults = append(faults, fmt.Errorf("goal tenant: %w", err))
		}
	}
	if g.Subject != "" {
		if err := action.CheckName(g.Subject); err != nil {
			faults = append(faults, fmt.Errorf("goal subject: %w", err))
		}
	}
	faults = append(faults, approval.CheckList("goal approvers", g.Approvers))
	if len(g.Approvers) > 0 && !slices.ContainsFunc(g.Approvers, func(a string) bool { return a == approval.Anybody || !action.SameIdentity(a, g.Requester) }) {
		faults = append(faults, fmt.Errorf("goal approvers: nobody but the requester %q, who never approves; name somebody else, or nobody", g.Requester))
	}
	faults = append(faults, unreachable(g)...)
	if !g.Deadline.IsZero() && !g.Deadline.After(e.cfg.Now()) {
		faults = append(faults, fmt.Errorf("goal deadline %s has passed", g.Deadline.Format(time.RFC3339)))
	}
	brought, more := e.bring(&g)
	faults = append(faults, more...)
	return engine.TaskState{
		Family: g.Delegation.family(), Brought: brought, ID: g.ID, Agent: g.Agent.name, Goal: g.Text, Limit: g.Limit, Threshold: g.Threshold, Ceiling: g.Ceiling,
		Approvers: slices.Clone(g.Approvers), Requester: g.Requester, Tenant: g.Tenant, Subject: g.Subject, AskTTL: g.ApprovalTTL.Microseconds(), Context: slices.Clone(g.Context), Status: engine.Running,
		Flow: g.flow,
	}, errors.Join(faults...)
}
