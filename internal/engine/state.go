package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/risk"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Keys of cells, counters, tokens and queues. The scope is named behind each. Those of the budget are named by package
// budget.
const (
	cellTask     = "task"       // Task: TaskState
	tokenBulk    = "F/"         // Task: + field set; held:INTENT, the newest values of a fact too numerous for tokens of their own
	tokenFact    = "f/"         // Task: + fact key; held, or claimed:INTENT
	tokenAsk     = "a/"         // Task: + digest; an approval, see approval.Mark
	tokenUnknown = "u/"         // Task: + intent; its outcome is not known, its value names the counters, a line each
	tokenVotes   = "v/"         // Task: + digest; the number of the last change of its votes, its value the votes
	tokenGlass   = "glass"      // Task: open:ID; an operator's override, its value a Glass
	tokenPruning = "pruning"    // Agent: who prunes, for a while
	tokenLast    = "last/"      // Agent: + action, and @NUMBER; TASK and digest of a call that was approved, its value for whom and about whom
	tokenNo      = "n/"         // Task: + action, version and value; the mark of the request that a person rejected
	countUnknown = "unknown/"   // Task: + action and input; intents of unknown outcome
	countUnsure  = "unsure/"    // Task: + action; all its intents of unknown outcome
	countFacts   = "facts"      // Task: how often facts were established, the same again included
	countRuns    = "runs"       // Task: executed attempts
	cellRow      = "row"        // Task: what went wrong in a row, see ledger.Row
	countBreach  = "violations" // Agent: refusals of rules the planner could have known
	cellTrust    = "belief"     // Agent: shared block of the belief
	cellBelief   = "belief/"    // Agent: + action; its block of the belief
	cellLevel    = "level/"     // Agent: + action; quantised risk, pinned by decisions
	cellCard     = "card"       // Agent: Card; a task's "key" is its data key, see KeyCell
	cellConfig   = "config"     // Agent: Configuration
	cellCall     = "call/"      // Record: + call id; INTENT and digest
	cellInner    = "inner/"     // Record: + intent and call id, a line each; the same of a call that the intent's function made
	cellIntent   = "intent/"    // Record: + intent; the event that began or parked it
	cellOutcome  = "out/"       // Record: + intent; its outcome
	cellRequest  = "ask/"       // Record: + approval id; digest

	// QueueAsks holds pending approvals, due when they expire; QueueReady parked calls that were approved; QueueTasks
	// running tasks, due at their deadline.
	QueueAsks = "asks"
	// QueueDesk holds them in the order in which they were asked for, QueueGlass overrides, due when they expire.
	QueueReady = "ready"
	QueueDesk  = "desk"
	QueueGlass = "glass"
	QueueTasks = "tasks"
	// QueueHistory holds every task that was ever started, due when it was.
	QueueHistory = "history"
	// QueueEnded holds tasks that ended, due when they did, until they are pruned; QueuePruned those of which a checkpoint is
	// written and the ledger is about to be dropped.
	QueueEnded  = "ended"
	QueuePruned = "pruned"
	// QueueLasting holds facts that later tasks may rest on, due when they do not count any more: TENANT and key, a line each.
	QueueLasting = "lasting"
	// QueueFailures holds children that failed and whose workflow has a breaker, due when that counts no more: WORKFLOW, for how
	// long it counts, and CHILD, a line each.
	QueueFailures = "failures"
	// QueueBeyond holds periods of pools of which the agent used more than had been reserved, due at once: a shared pool may not
	// know.
	QueueBeyond = "beyond"
	// QueueFolds holds intents whose outcome an operator told, due at once, until a worker has learned from it.
	QueueFolds = "folds"
	// QueueUnknown holds intents of unknown outcome, due when that became known.
	QueueUnknown = "unknown"
	// QueueEscalations holds paused tasks.
	QueueEscalations = "escalations"
)

// States of tokens.
const (
	held       = "held"
	unresolved = "unresolved"
)

// TaskState is the configuration and status of a task, one cell that every decision pins.
type TaskState struct {
	ID        string       `json:"id"`
	Agent     string       `json:"agent"`
	Born      string       `json:"born,omitempty"` // tells it from others that had its id, of which the ledger was dropped; a child's id does
	Goal      string       `json:"goal,omitempty"`
	Told      string       `json:"told,omitempty"` // of a task about somebody: goal and storylines, sealed; digests are in their places
	Limit     action.Limit `json:"limit,omitzero"`
	Threshold float64      `json:"threshold"`         // effective risk from which an approval is needed, 1 to 5
	Ceiling   float64      `json:"ceiling,omitempty"` // effective risk above which nothing runs, 0 for none
	Deadline  int64        `json:"deadline,omitempty"`
	Approvers []string     `json:"approvers,omitempty"`
	Requester string       `json:"requester,omitempty"`
	Tenant    string       `json:"tenant,omitempty"`  // for whom it works, for policies
	Subject   string       `json:"subject,omitempty"` // whom its data is about, "" for nobody in particular
	Vault     string       `json:"vault,omitempty"`   // of a child: "agent~space", where the data key of its family is
	AskTTL    int64        `json:"ask_ttl"`           // µs an approval request waits
	Context   []string     `json:"context,omitempty"`
	Status    Status       `json:"status"`
	Reason    string       `json:"reason,omitempty"`
	Vouched   bool         `json:"vouched,omitempty"` // Reason is a person's
	Paused    *Pause       `json:"paused,omitempty"`  // nil where it is not paused
	Held      *Hold        `json:"held,omitempty"`    // nil where its parent was never paused
	Eased     int64        `json:"eased,omitempty"`   // executed attempts when a person last let it go on in spite of its friction
	Brought   *Brought     `json:"brought,omitempty"` // nil where nothing was

	// Conclusion is the latest verdict on the goal, nil where nobody gave one.
	Conclusion *action.Conclusion `json:"conclusion,omitempty"`

	// Earlier is what earlier tasks of the agent established and this one may rest on, as of when it started.
	Earlier []Earlier `json:"earlier,omitempty"`

	Family Family  `json:"family,omitzero"`  // what children it may have
	Parent *Parent `json:"parent,omitempty"` // whose child it is
	Bounds []Bound `json:"bounds,omitempty"` // what its ancestors let through, the first of them first

	Flow *FlowOf `json:"flow,omitempty"` // the workflow that it runs, nil for none
}

// Status is where a task is in its life. Cancelled and Closed are terminal.
type Status string

// The statuses of a task.
const (
	Running   Status = "running"
	Paused    Status = "paused" // nothing begins until a person has resolved its escalation
	Cancelled Status = "cancelled"
	Closed    Status = "closed"
)

// View is a snapshot with its cells decoded.
type View struct {
	Snap    *txn.Snapshot
	Task    TaskState
	Beliefs risk.Belief // pending outcomes included

	pools    []*budget.Pool // that calls of the agent count in
	taskVer  int64
	trustVer int64
	haltVer  int64
	halt     *Halt // that stands for the agent, nil for none
	halts    Halts // of which it is one
	lastPend int64
	looked   bool
	stored   risk.Belief // as in the cells
	folded   *Folded
	known    *known // kept of Beliefs
	gen      int64  // of Beliefs
}

// Look decodes the snapshot, reusing what prev already decoded. The snapshot is not copied and must not change while the
// view is used.
func Look(rules *Rules, agent *Agent, snap *txn.Snapshot, prev *View) (*View, error) {
	return look(rules, agent, snap, prev, false)
}

// Glance is Look for a decision: outcomes that may wait to be folded are left out, see [TailKept].
func Glance(rules *Rules, agent *Agent, snap *txn.Snapshot, prev *View) (*View, error) {
	return look(rules, agent, snap, prev, true)
}

func look(rules *Rules, agent *Agent, snap *txn.Snapshot, prev *View, glance bool) (*View, error) {
	v := &View{}
	if err := v.look(rules, agent, snap, prev, glance); err != nil {
		return nil, err
	}
	return v, nil
}

// GlanceInto is Glance into memory of the caller's. It reports whether the view knows more than prev, which then is to be
// replaced by a copy of it.
func (v *View) GlanceInto(rules *Rules, agent *Agent, snap *txn.Snapshot, prev *View) (more bool, err error) {
	err = v.look(rules, agent, snap, prev, true)
	return prev == nil || v.gen != prev.gen || v.taskVer != prev.taskVer || v.haltVer != prev.haltVer, err
}

func (v *View) look(rules *Rules, agent *Agent, snap *txn.Snapshot, prev *View, glance bool) error {
	if prev != nil {
		*v = *prev
	} else if len(rules.Pools) > 0 {
		v.pools = rules.poolsOf(agent.Name)
	}
	v.Snap = snap
	if c := snap.Task.Cells[cellTask]; c.Ver != v.taskVer {
		v.Task, v.taskVer = TaskState{}, 0
		if c.Ver > 0 { // else it has ended and expired
			if err := json.Unmarshal([]byte(c.Val), &v.Task); err != nil {
				return fmt.Errorf("task cell of %s: %w", agent.Name, err)
			}
		}
		v.taskVer = c.Ver
	}
	if c := snap.Agent.Cells[cellHalt]; c.Ver != v.haltVer {
		v.halts, v.haltVer = HaltsOf(&snap.Agent), c.Ver
		v.halt = v.halts.Standing()
	}
	return v.lookAtBeliefs(rules, agent, glance)
}

func (v *View) lookAtBeliefs(rules *Rules, agent *Agent, glance bool) error {
	shared := v.Snap.Agent.Cells[cellTrust]
	last := lastSeq(v.Snap.Pending)
	if !v.looked || shared.Ver != v.trustVer {
		b, err := v.folded.beliefs(rules, &v.Snap.Agent)
		if err != nil {
			return err
		}
		v.stored, v.trustVer, v.lastPend, v.looked = b, shared.Ver, 0, true
		v.believe(b)
	}
	tail := after(v.Snap.Pending, v.lastPend)
	if len(tail) == 0 || glance && mayWait(tail) {
		return nil
	}
	b, _, err := foldPending(rules, agent, v.Beliefs, tail)
	v.believe(b)
	v.lastPend = max(v.lastPend, last)
	return err
}

// after returns the outcomes behind a sequence number.
func after(pending []txn.Pending, seq int64) []txn.Pending {
	for i, p := range pending {
		if p.Seq > seq {
			return pending[i:]
		}
	}
	return nil
}

func lastSeq(p []txn.Pending) int64 {
	if len(p) == 0 {
		return 0
	}
	return p[len(p)-1].Seq
}

func storedBeliefs(rules *Rules, sp *txn.Space) (risk.Belief, error) {
	shared, ok := sp.Cells[cellTrust]
	if !ok {
		return rules.Model.Prior(), nil
	}
	blocks := map[string][]byte{}
	for k, c := range sp.Cells {
		if name, ok := strings.CutPrefix(k, cellBelief); ok && c.Val != "" { // "" was reset
			blocks[name] = []byte(c.Val)
		}
	}
	b, err := risk.Decode([]byte(shared.Val), blocks)
	if err != nil {
		return b, fmt.Errorf("beliefs in store: %w", err)
	}
	return b, nil
}

// Account is the budget of the task.
func (v *View) Account() budget.Account {
	return budget.FromCounters(v.Task.Limit, v.Snap.Task.Counters, "")
}

// Unknown returns the intents of the task whose outcome is unknown, in order.
func Unknown(v *View) (intents []string) {
	for k, t := range v.Snap.Task.Tokens {
		if intent, ok := strings.CutPrefix(k, tokenUnknown); ok && t.State == unresolved {
			intents = append(intents, intent)
		}
	}
	slices.Sort(intents)
	return intents
}

// Waiting returns how many requests for approval of the task are pending.
func Waiting(v *View) (n int) {
	for k, t := range v.Snap.Task.Tokens {
		if !strings.HasPrefix(k, tokenAsk) {
			continue
		}
		if state, _, _, err := approval.ParseMark(t.State); err == nil && state.At(t.Exp, v.Snap.Now) == approval.Pending {
			n++
		}
	}
	return n
}

// Describes reports whether the view has decoded the task as it is in that space.
func (v *View) Describes(task *txn.Space) bool {
	return v != nil && task.Cells[cellTask].Ver == v.taskVer
}

// Behind reports whether the space holds the task as it became after the view.
func (v *View) Behind(task *txn.Space) bool { return task.Cells[cellTask].Ver > v.taskVer }

// MakesTask reports whether the clause writes what a task is.
func MakesTask(c *txn.Clause) bool {
	return c.Op == txn.Put && c.Scope == txn.Task && c.Key == cellTask
}

// Exists reports whether the task was ever started.
func (v *View) Exists() bool { return v.taskVer > 0 }

// Ended reports whether the status is terminal.
func (s Status) Ended() bool { return s == Cancelled || s == Closed }

// OpenAt reports whether calls may start at store time now, or once the task is no longer paused.
func (v *View) OpenAt(now int64) bool {
	return !v.Task.Status.Ended() && (v.Task.Deadline == 0 || now < v.Task.Deadline)
}

// Runs is the number of executed attempts of the task.
func (v *View) Runs() int64 { return v.Snap.Task.Counters[countRuns] }

// Violations is the number of refusals of the agent's calls whose rule its planner could have known.
func (v *View) Violations() int64 { return v.Snap.Agent.Counters[countBreach] }

// Facts is the number of distinct facts satisfied.
func (v *View) Facts() int {
	n := 0
	for k := range v.Snap.Task.Tokens {
		if strings.HasPrefix(k, tokenFact) {
			n++
		}
	}
	return n
}

// unknownKeys names the counters of calls of this action with this input whose outcome is unknown: two of them may have
// been under way at once. One counts by the input's text and one by its value, since what a function cannot tell apart has
// the same effect. The version of the action does not count: a new release does not make the old effect known.
func unknownKeys(name, input, value string) []string {
	h := sha256.Sum256([]byte(input))
	keys := []string{countUnknown + name + "/" + hex.EncodeToString(h[:16])}
	if value != "" {
		keys = append(keys, countUnknown+name+"/="+value)
	}
	return keys
}

// noKey names the token of what a person rejected, "" where the text of the input alone tells it.
func noKey(name, version, value string) string {
	if value == "" {
		return ""
	}
	return tokenNo + name + "/" + version + "/" + value
}

// event returns an event of this task with the fields every event has.
func (v *View) event(t ledger.Type, at int64) (e ledger.Event) {
	v.eventInto(&e, t, at)
	return e
}

// eventInto is event into one that is empty: it is large.
func (v *View) eventInto(e *ledger.Event, t ledger.Type, at int64) {
	e.V, e.Type, e.At, e.Agent, e.Task = ledger.Version, t, at, v.Task.Agent, v.Task.ID
	e.Wakes = v.Task.Flow != nil && wakesFlow(t)
}

// ReadIntent reads the cold cells of an intent and its lease; it changes nothing.
func ReadIntent(agent, task, intent string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain, Intent: intent}
	t.Add(txn.Clause{Op: txn.Read, Scope: txn.Record, Key: cellIntent + intent}, txn.Clause{Op: txn.Read, Scope: txn.Record, Key: cellOutcome + intent})
	return t
}

// ReadRequest reads which call an approval is about; it changes nothing.
func ReadRequest(agent, task, id string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Read, Scope: txn.Record, Key: cellRequest + id})
	return t
}

// Stray takes a member out of a queue that names a task which is gone, where it still is.
func Stray(agent, task, queue, member string) *txn.Txn {
	t := &txn.Txn{Agent: agent, Task: task, Phase: txn.Plain}
	t.Add(txn.Clause{Op: txn.Expect, Scope: txn.Task, Key: cellTask, N: 0},
		txn.Clause{Op: txn.Unqueue, Scope: txn.Agent, Key: queue, Val: member})
	return t
}

// ErrNoIntent says that nothing is recorded of an intent.
var ErrNoIntent = errors.New("it is not recorded")

// Held returns the event under which an intent began or was parked, from the cells that ReadIntent brought.
func Held(record *txn.Space, intent string) (ledger.Event, error) {
	c, ok := record.Cells[cellIntent+intent]
	if !ok {
		return ledger.Event{}, fmt.Errorf("intent %s: %w", intent, ErrNoIntent)
	}
	return ledger.Decode(c.Val)
}

// Ended returns the outcome of an intent, from the cells that ReadIntent brought, and whether there is one.
func Ended(record *txn.Space, intent string) (action.Outcome, bool) {
	o, err := ReadOutcome(record.Cells[cellOutcome+intent].Val)
	return o, err == nil
}

// RequestDigest returns the digest of the call an approval is about, from what ReadRequest brought.
func RequestDigest(record *txn.Space, id string) (string, bool) {
	c, ok := record.Cells[cellRequest+id]
	return c.Val, ok
}
