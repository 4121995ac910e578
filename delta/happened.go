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
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// Bounds of History.
const (
	MaxHistory     = 1000 // outcomes in one page
	defaultHistory = 100
	historyScan    = 5000 // records that one page reads at most
)

// HistoryQuery says which outcomes to return. Its zero value is all of every agent registered with the engine.
type HistoryQuery struct {
	Agent  string        // "" is every one registered with this engine
	Task   string        // its id within the agent, or "agent~task"; "" is all, those that ended included
	Action string        // "" is every one but the built-in delta.plan
	Codes  []action.Code // empty is all
	// Since and Until bound when the outcome was recorded, by the store's clock: at Since or later, before Until. The zero
	// time is no bound.
	Since, Until time.Time
	Limit        int    // outcomes in a page, at most MaxHistory; 0 is 100
	After        string // Next of the page before
}

// Happened is one recorded end of a call. One call has several where its end was not known at first: STARTED_UNKNOWN, then
// what an operator found.
type Happened struct {
	Agent, Task     string // the task's id within the agent
	Seq             int64  // of the record in the task's ledger
	At              time.Time
	Event           ledger.Type // settled, refused, resolved or late
	Intent, Call    string
	Within          string // the intent whose function made the call, "" for none
	Action, Version string
	Code            action.Code
	Failure         *action.Failure // nil where Code is OK
	Output          json.RawMessage
	Cost            action.Cost
	Identity        string // of the person who resolved it
	Reason          string
}

// HistoryPage is a page of outcomes: task after task as they were started, each in the order of its ledger.
type HistoryPage struct {
	Outcomes []Happened
	// Next is where the next page begins, "" where there is none. It may be set though the page is short: one page reads a
	// bounded number of records.
	Next string
}

// History returns outcomes from the ledgers, page by page. It is for operators: what failed says everything that is known.
// It reads the records as they are; Task.Ledger also verifies them.
func (e *Engine) History(ctx context.Context, q HistoryQuery) (HistoryPage, error) {
	if ctx == nil {
		return HistoryPage{}, fmt.Errorf("history: %w", errNoContext)
	}
	if err := e.enter(); err != nil {
		return HistoryPage{}, err
	}
	defer e.inside.Done()
	r, err := e.reader(q)
	if err == nil {
		err = r.read(ctx)
	}
	if err != nil {
		return HistoryPage{}, fmt.Errorf("history: %w", err)
	}
	return r.page, nil
}

// place is where a reader is: in the ledger of a task, among the tasks of an agent.
type place struct {
	Agent string     `json:"a"`
	Task  txn.Queued `json:"t"`
	Seq   int64      `json:"s"` // of the next record
}

// reader reads one page.
type reader struct {
	e    *Engine
	q    HistoryQuery
	at   place
	left int // records that may still be read
	page HistoryPage
}

func (e *Engine) reader(q HistoryQuery) (*reader, error) {
	if agent, task, qualified := strings.Cut(q.Task, idSeparator); qualified {
		if q.Agent != "" && q.Agent != agent {
			return nil, fmt.Errorf("task %q is not of agent %q", q.Task, q.Agent)
		}
		q.Agent, q.Task = agent, task
	}
	if q.Limit < 0 || q.Limit > MaxHistory {
		return nil, fmt.Errorf("limit is %d, want 1 to %d, or 0 for %d", q.Limit, MaxHistory, defaultHistory)
	}
	q.Limit = cmp.Or(q.Limit, defaultHistory)
	if q.Agent != "" && action.CheckName(q.Agent) != nil || q.Task != "" && action.CheckName(q.Task) != nil {
		return nil, fmt.Errorf("there can be no agent %q with a task %q", action.CutTo(q.Agent, action.MaxName), action.CutTo(q.Task, action.MaxName))
	}
	for _, c := range q.Codes {
		if !slices.ContainsFunc(action.Infos(), func(i action.Info) bool { return i.Code == c }) {
			return nil, fmt.Errorf("%q is no code; doc/outcomes.md lists them", action.CutTo(string(c), action.MaxName))
		}
	}
	r := &reader{e: e, q: q, left: historyScan}
	if q.After != "" {
		raw, err := base64.RawURLEncoding.DecodeString(q.After)
		if err != nil || json.Unmarshal(raw, &r.at) != nil || r.at.Seq < 1 {
			return nil, errors.New("after is no place in a history; pass the Next of a page of the same query")
		}
	}
	return r, nil
}

// next is the place where the page after this one begins.
func (r *reader) next() {
	raw, _ := json.Marshal(r.at) // plain fields: cannot fail
	r.page.Next = base64.RawURLEncoding.EncodeToString(raw)
}

func (r *reader) read(ctx context.Context) error {
	for _, agent := range r.agents() {
		if agent < r.at.Agent {
			continue
		}
		if agent > r.at.Agent {
			r.at = place{Agent: agent, Seq: 1}
		}
		if more, err := r.agent(ctx); err != nil || more {
			return err
		}
	}
	return nil
}

func (r *reader) agents() []string {
	if r.q.Agent != "" {
		return []string{r.q.Agent}
	}
	var names []string
	for _, s := range r.e.known() {
		names = append(names, s.agent.name)
	}
	slices.Sort(names)
	return names
}

// agent reads the tasks of one agent, from the place on; more says that the page is full.
func (r *reader) agent(ctx context.Context) (more bool, err error) {
	if r.q.Task != "" {
		r.at.Task.Member = r.q.Task
		return r.task(ctx)
	}
	if r.at.Task != (txn.Queued{}) { // in the middle of one
		if more, err := r.task(ctx); err != nil || more {
			return more, err
		}
	}
	for {
		tasks, err := r.e.store.Queued(ctx, r.at.Agent, engine.QueueHistory, r.at.Task, false, recordPage)
		if err != nil {
			return false, err
		}
		for _, t := range tasks {
			if !r.q.Until.IsZero() && t.Due >= r.q.Until.UnixMicro() {
				return false, nil // it and all behind it were started later
			}
			r.at.Task, r.at.Seq = t, 1
			if more, err := r.task(ctx); err != nil || more {
				return more, err
			}
		}
		if len(tasks) < recordPage {
			return false, nil
		}
	}
}

// task reads the ledger of a task from the place on.
func (r *reader) task(ctx context.Context) (more bool, err error) {
	for {
		n := min(recordPage, r.left)
		if n == 0 || len(r.page.Outcomes) == r.q.Limit {
			r.next()
			return true, nil
		}
		records, err := r.e.store.Records(ctx, r.at.Agent, r.at.Task.Member, r.at.Seq, n)
		if err != nil {
			return false, err
		}
		for _, rec := range records {
			if len(r.page.Outcomes) == r.q.Limit {
				r.next()
				return true, nil
			}
			if err := r.take(rec); err != nil {
				return false, fmt.Errorf("record %d of task %s%s%s: %w", rec.Seq, r.at.Agent, idSeparator, r.at.Task.Member, err)
			}
			r.at.Seq, r.left = rec.Seq+1, r.left-1
		}
		if len(records) < n {
			return false, nil
		}
	}
}

// take adds what a record says, where it was asked for.
func (r *reader) take(rec txn.Stored) error {
	at := time.UnixMicro(rec.At).UTC()
	if at.Before(r.q.Since) || !r.q.Until.IsZero() && !at.Before(r.q.Until) {
		return nil
	}
	e, err := ledger.Decode(rec.Val)
	if err != nil {
		return err
	}
	switch e.Type {
	case ledger.Settled, ledger.Refused, ledger.Resolved, ledger.Late:
	default:
		return nil
	}
	if r.q.Action != "" && e.Action != r.q.Action || r.q.Action == "" && e.Action == engine.PlanAction {
		return nil
	}
	if len(r.q.Codes) > 0 && !slices.Contains(r.q.Codes, e.Code) {
		return nil
	}
	r.page.Outcomes = append(r.page.Outcomes, Happened{
		Agent: e.Agent, Task: e.Task, Seq: rec.Seq, At: at, Event: e.Type, Intent: e.Intent, Call: e.Call, Within: e.Within,
		Action: e.Action, Version: e.Version, Code: e.Code, Failure: e.Failure, Output: e.Output, Cost: e.Charged,
		Identity: e.Identity, Reason: e.Reason,
	})
	return nil
}
