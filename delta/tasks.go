package delta

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// MaxTasks is how many tasks a page may have, and defaultTasks how many it has where the query does not say.
const (
	MaxTasks     = 1000
	defaultTasks = 100
)

// TaskQuery says which tasks to list. Its zero value is the tasks of every registered or adopted agent that have not ended.
type TaskQuery struct {
	Agent string // "" is every one that this engine knows
	Ended bool   // those that ended instead, until they are pruned
	Limit int    // tasks in a page, at most MaxTasks; 0 is 100
	After string // Next of the page before
}

// TaskStanding is how a task stands.
type TaskStanding struct {
	ID, Agent string
	// Status is running, paused, cancelled or closed; "ended" where the store keeps no more than its ledger.
	Status, Reason string
	Goal           string
	// Workflow and Version name the workflow that the task runs, "" where it runs none; see [Engine.OpenWorkflow].
	Workflow, Version string
	Parent            string // of a nested instance: the instance that it works for
	Requester         string
	Approvers         []string
	Threshold         float64
	Deadline          time.Time // zero is none
	Ended             time.Time // by the store's clock; zero where it has not, or that was not asked for
	Runs              int64     // executed attempts
	Unknown           int       // intents of unknown outcome
	Waiting           int       // requests for approval that are pending
	Budget            budget.Snapshot
}

// TaskPage is a page of tasks: agent after agent by name, of each those first that are due first, or ended first.
type TaskPage struct {
	Tasks []TaskStanding
	Next  string // where the next page begins, "" where there is none
}

// Tasks lists tasks, page by page.
func (e *Engine) Tasks(ctx context.Context, q TaskQuery) (page TaskPage, err error) {
	if err := alive(ctx); err != nil {
		return page, err
	}
	if q.Limit < 0 || q.Limit > MaxTasks {
		return page, fmt.Errorf("list tasks: limit is %d, want 1 to %d, or 0 for %d", q.Limit, MaxTasks, defaultTasks)
	}
	q.Limit = cmp.Or(q.Limit, defaultTasks)
	var at place
	if q.After != "" {
		raw, err := base64.RawURLEncoding.DecodeString(q.After)
		if err != nil || json.Unmarshal(raw, &at) != nil || at.Agent == "" {
			return page, errors.New("list tasks: after is no place in a list of tasks; pass the Next of a page of the same query")
		}
	}
	for _, s := range e.inOrder() {
		name := s.agent.name
		if q.Agent != "" && name != q.Agent || name < at.Agent {
			continue
		}
		if name > at.Agent {
			at = place{Agent: name}
		}
		if full, err := e.tasksOf(ctx, s, q, &at, &page); err != nil || full {
			return page, err
		}
	}
	return page, nil
}

// inOrder is the agents that this engine knows, by name.
func (e *Engine) inOrder() []*agentState {
	all := e.known()
	slices.SortFunc(all, func(a, b *agentState) int { return strings.Compare(a.agent.name, b.agent.name) })
	return all
}

// tasksOf adds the tasks of one agent from the place on; full says that there are more than the page takes.
func (e *Engine) tasksOf(ctx context.Context, s *agentState, q TaskQuery, at *place, page *TaskPage) (full bool, err error) {
	queue := engine.QueueTasks
	if q.Ended {
		queue = engine.QueueEnded
	}
	for {
		members, err := e.store.Queued(ctx, s.agent.name, queue, at.Task, false, recordPage)
		if err != nil {
			return false, fmt.Errorf("list tasks of agent %q: %w", s.agent.name, err)
		}
		for _, m := range members {
			if len(page.Tasks) == q.Limit {
				raw, _ := json.Marshal(at) // plain fields: cannot fail
				page.Next = base64.RawURLEncoding.EncodeToString(raw)
				return true, nil
			}
			t, err := e.standing(ctx, s, m.Member)
			if astray(err) { // it must not hide the others
				t, err = TaskStanding{ID: s.agent.name + idSeparator + m.Member, Agent: s.agent.name, Status: "unreadable", Reason: action.TextOf(err)}, nil
			}
			if err != nil {
				return false, fmt.Errorf("list tasks of agent %q: %w", s.agent.name, err)
			}
			if q.Ended {
				t.Ended = time.UnixMicro(m.Due).UTC()
			}
			page.Tasks = append(page.Tasks, t)
			at.Task = m
		}
		if len(members) < recordPage {
			return false, nil
		}
	}
}

// Unended returns how many tasks of an agent have not ended. It reads their names alone.
func (e *Engine) Unended(ctx context.Context, agent string) (n int, err error) {
	if err := alive(ctx); err != nil {
		return 0, err
	}
	for after := (txn.Queued{}); ; {
		page, err := e.store.Queued(ctx, agent, engine.QueueTasks, after, false, MaxTasks)
		if err != nil {
			return n, fmt.Errorf("count tasks of agent %q: %w", agent, failedStore(err))
		}
		n += len(page)
		if len(page) < MaxTasks {
			return n, nil
		}
		after = page[len(page)-1]
	}
}

// tasksIn is the first members of a queue of tasks.
func (e *Engine) tasksIn(ctx context.Context, agent, queue string, limit int) ([]txn.Queued, error) {
	return e.store.Queued(ctx, agent, queue, txn.Queued{}, false, limit)
}

func (e *Engine) standing(ctx context.Context, s *agentState, local string) (TaskStanding, error) {
	t := &Task{engine: e, agent: s.agent, state: s, local: local, space: txn.NewSpace()}
	v, err := t.peek(ctx)
	if err != nil {
		return TaskStanding{}, err
	}
	out := TaskStanding{ID: t.ID(), Agent: s.agent.name, Status: "ended"}
	if !v.Exists() {
		return out, nil
	}
	x := &v.Task
	out.Status, out.Reason, out.Goal, out.Requester, out.Approvers, out.Threshold = string(x.Status), x.Reason, x.Goal, x.Requester, x.Approvers, x.Threshold
	if x.Paused != nil {
		out.Reason = string(x.Paused.Concern) + ": " + x.Paused.Reason
	}
	if x.Flow != nil {
		out.Workflow, out.Version = x.Flow.Workflow, x.Flow.Version
		if x.Flow.Parent != "" && x.Parent != nil {
			out.Parent = x.Parent.Agent + idSeparator + x.Parent.Task
		}
	}
	if x.Deadline > 0 {
		out.Deadline = time.UnixMicro(x.Deadline).UTC()
	}
	out.Runs, out.Unknown, out.Waiting = v.Runs(), len(engine.Unknown(v)), engine.Waiting(v)
	out.Budget = v.Account().Snapshot()
	return out, nil
}

// Standing says how a task stands.
func (t *Task) Standing(ctx context.Context) (TaskStanding, error) {
	if err := t.opened(); err != nil {
		return TaskStanding{}, err
	}
	s, err := t.engine.standing(ctx, t.state, t.local)
	if err != nil {
		return s, fmt.Errorf("standing of %s: %w", t, err)
	}
	return s, nil
}

// Unresolved is an intent of unknown outcome.
type Unresolved struct {
	Task   string // full id
	Intent string
	Since  time.Time // by the store's clock
	Begun  ledger.Event
}

// Unresolved returns intents of unknown outcome of the agents that this engine knows, at most limit of each agent, those
// first that became so first: [Task.Resolve] says what became of them.
func (e *Engine) Unresolved(ctx context.Context, limit int) ([]Unresolved, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var out []Unresolved
	for _, s := range e.inOrder() {
		members, err := e.tasksIn(ctx, s.agent.name, engine.QueueUnknown, limit)
		if err != nil {
			return nil, fmt.Errorf("list intents of unknown outcome: %w", err)
		}
		for _, m := range members {
			task, intent, _ := strings.Cut(m.Member, "\n")
			t := &Task{engine: e, agent: s.agent, state: s, local: task, space: txn.NewSpace()}
			own := newSight()
			if err := t.readRecord(ctx, intent, own); err != nil {
				return nil, fmt.Errorf("list intents of unknown outcome: %w", err)
			}
			begun, err := engine.Held(&own.record, intent)
			if err != nil { // of this one alone
				e.stray(ctx, s.agent.name, engine.QueueUnknown, m.Member, err)
				continue
			}
			out = append(out, Unresolved{t.ID(), intent, time.UnixMicro(m.Due).UTC(), begun})
		}
	}
	return out, nil
}

// Ledger returns the records of a task, "agent~task", or of an agent itself, "agent", and what verifying their chain found,
// of tasks too of which the store keeps no more than that.
func (e *Engine) Ledger(ctx context.Context, id string) ([]txn.Stored, ledger.Report, error) {
	if err := alive(ctx); err != nil {
		return nil, ledger.Report{}, err
	}
	agent, task, qualified := strings.Cut(id, idSeparator)
	if action.CheckName(agent) != nil || qualified && action.CheckName(task) != nil {
		return nil, ledger.Report{}, fmt.Errorf("ledger: %q names no agent and no task; want agent, or agent%stask", action.CutTo(id, 2*action.MaxName), idSeparator)
	}
	return e.records(ctx, agent, task)
}

// CancelBy is Cancel by somebody whom the engine knows, who is recorded. Anybody may stop a task.
func (t *Task) CancelBy(ctx context.Context, by Identity, reason string) error {
	if err := t.opened(); err != nil {
		return err
	}
	if err := t.engine.mine(by); err != nil {
		return fmt.Errorf("cancel %s: %w", t, err)
	}
	return t.cancel(ctx, t.engine.whoIs(by, reason))
}

// Kill cancels every task of an agent that has not ended, and returns how many that were. Tasks that start while it runs are
// not counted in and may be missed: it does not keep anybody from starting others. Where it fails half-way it is simply
// repeated.
func (e *Engine) Kill(ctx context.Context, agent string, by Identity, reason string) (n int, err error) {
	if err := e.mine(by); err != nil {
		return 0, fmt.Errorf("kill: %w", err)
	}
	e.mu.Lock()
	s := e.agents[agent]
	e.mu.Unlock()
	if s == nil {
		return 0, fmt.Errorf("kill: %w", notKnown(agent))
	}
	var faults []error
	for after := (txn.Queued{}); ; {
		page, err := e.store.Queued(ctx, agent, engine.QueueTasks, after, false, workPage)
		if err != nil {
			return n, errors.Join(append(faults, fmt.Errorf("kill: %w", failedStore(err)))...)
		}
		for _, q := range page {
			after = q
			switch err := e.adopt(s, q.Member).CancelBy(ctx, by, reason); {
			case err == nil:
				n++
			case action.FailureOf(err) == nil || action.FailureOf(err).Code != action.TaskClosed: // else it ended by itself
				faults = append(faults, err)
			}
		}
		if len(page) < workPage || len(faults) > workPage {
			return n, errors.Join(faults...)
		}
	}
}
