package delta

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/internal/course"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
)

// Context is what an action function is given: the call's context, who it is, and what it may do besides its effect. It
// ends with the attempt and its timeout, the task, and the engine. It is safe for concurrent use; after it has ended it only
// refuses, whoever kept it.
type Context struct {
	context.Context
	flight     *flight
	attempt    int
	goal       string
	brought    *engine.Brought
	storylines []string
	begun      origin
	budget     budget.Snapshot

	mu    sync.Mutex
	spent action.Cost
	over  bool

	children int            // how many were delegated without a name
	own      course.Context // it ends with the attempt
}

// origin is what a function may ask about the call that it executes, and remember as long as it likes.
type origin struct {
	Agent, Task, Action, Intent, Call, Within string

	Provenance action.Provenance
}

func originOf(b *ledger.Event) origin {
	return origin{b.Agent, b.Task, b.Action, b.Intent, b.Call, b.Within, b.Provenance}
}

// newContext is the context of an attempt, which ends then at the latest, if that is not the zero time.
func newContext(f *flight, attempt int, end time.Time) *Context {
	t := f.t
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	c := &f.first
	if attempt > 1 || c.own.Started() {
		c = new(Context)
	}
	c.own.Start(course.Options{Parent: &f.course, End: end, Late: errTimeout, Clock: &t.engine.clocks, Lane: t.state.lane})
	c.Context, c.flight, c.attempt, c.begun = &c.own, f, attempt, originOf(f.run.Begun)
	v := t.view
	if !v.Describes(&t.space) {
		var err error
		if v, err = t.look(t.snapshot(nil)); err != nil {
			return c
		}
	}
	c.budget = budget.FromCounters(v.Task.Limit, t.space.Counters, "").Snapshot()
	c.goal, c.brought = v.Task.Goal, v.Task.Brought
	if c.brought != nil {
		c.storylines = c.brought.Storylines
	}
	if v.Task.Told != "" && f.veil != nil {
		words := toldOf(&v.Task, f.veil.data)
		c.goal, c.storylines = words.Goal, words.Storylines
	}
	return c
}

// AfterFunc calls f, in a goroutine of its own, once the context has ended, unless stop is called first; see
// [context.AfterFunc]. The contexts that the standard library makes from this one use it.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	if a, ok := c.Context.(interface{ AfterFunc(func()) func() bool }); ok {
		return a.AfterFunc(f)
	}
	return context.AfterFunc(c.Context, f)
}

// TaskID returns the id of the task.
func (c *Context) TaskID() string { return c.flight.t.ID() }

// ExecutionID returns the id of the intent: one for all attempts of the call.
func (c *Context) ExecutionID() string { return c.begun.Intent }

// CallID returns the id that the caller gave the call, or "".
func (c *Context) CallID() string { return c.begun.Call }

// AgentName returns the name of the agent that proposed the call.
func (c *Context) AgentName() string { return c.flight.t.agent.name }

// Goal returns the text of the task's goal.
func (c *Context) Goal() string { return c.goal }

// Provenance relates the call to the reasoning behind it: the planner's words, recorded and not trusted.
func (c *Context) Provenance() action.Provenance { return c.begun.Provenance }

// Attempt returns the number of the attempt, 1 for the first.
func (c *Context) Attempt() int { return c.attempt }

// IdempotencyKey returns the key that the action declared for this input, the same for all attempts; "" where it declared
// none.
func (c *Context) IdempotencyKey() string { return c.flight.key }

// Repeatable reports whether the effect of the call may be repeated, by its class or its key. Where it may not, a function
// that cannot tell whether its effect happened returns an error made by [action.Unknown].
func (c *Context) Repeatable() bool { return c.flight.def.compiled.Repeatable() }

// Budget returns what the task had spent and had left, axis by axis, when the attempt started. The call's own reservation
// counts as reserved.
func (c *Context) Budget() budget.Snapshot { return c.budget }

// Spend reports what the function has used: tokens, bytes, money. Duration and calls are measured. It is refused, and
// nothing counted, where the cost is negative, out of range or in another currency than the task's budget.
func (c *Context) Spend(cost action.Cost) error {
	if cost.Duration != 0 || cost.Calls != 0 {
		return fmt.Errorf("spend: duration and calls are measured, report the other axes only")
	}
	if err := cost.Check(); err != nil {
		return fmt.Errorf("spend: %w", err)
	}
	if cost.Money == 0 {
		cost.Currency = "" // of nothing; it must not name the currency of what comes after
	}
	if cost.Money > 0 && cost.Currency != c.budget.Limit.Currency {
		return fmt.Errorf("spend: %w: used %s, the task counts in %q", action.ErrCurrency, cost.Currency, c.budget.Limit.Currency)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return fmt.Errorf("spend: the call has ended")
	}
	sum, err := c.spent.Add(cost)
	if err != nil {
		return fmt.Errorf("spend: %w", err)
	}
	c.spent = sum
	return nil
}

// used is the cost of the attempt so far; with last, of all of it: the attempt is over, and its context has ended.
func (c *Context) used(d time.Duration, last bool) action.Cost {
	if last {
		defer c.own.Cancel(errLanded)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = c.over || last
	cost := c.spent
	cost.Duration = max(d, 0)
	cost.Calls = 1
	return cost
}

// Remember adds a note to the agent's memory, for later calls and tasks of the agent. In a task about somebody, see
// [Goal].Subject, the note can be read in tasks about the same alone, until they are erased; its kind is as it is.
func (c *Context) Remember(content, kind string) error {
	if err := c.mayAct(); err != nil {
		return fmt.Errorf("remember: %w", err)
	}
	b := &c.begun
	return c.flight.t.remember(c, memory.Note{Task: b.Task, Intent: b.Intent, Kind: kind, Content: content})
}

// Recall returns the agent's notes most relevant to the query, best first; an empty query returns the newest.
func (c *Context) Recall(query string) ([]memory.Note, error) {
	if err := c.mayAct(); err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	return c.flight.t.recall(c, query)
}
