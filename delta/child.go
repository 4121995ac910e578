package delta

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
)

// Delegation bounds the children of a task. The zero value is the defaults, a negative number is none.
type Delegation struct {
	Active int // children at a time; default 8
	Queued int // children that wait behind them; default 64. More are refused with BUDGET_EXHAUSTED
	Depth  int // generations below the task; default 4, and always less than the parent's own
}

func (d Delegation) family() engine.Family {
	set(&d.Active, 8)
	set(&d.Queued, 64)
	set(&d.Depth, 4)
	f := engine.Family{Active: max(d.Active, 0), Queued: max(d.Queued, 0), Depth: max(d.Depth, 0)}
	if f.Active == 0 { // nobody would ever be next
		f = engine.Family{}
	}
	return f
}

// Child is a task that another task has given to an agent.
type Child struct {
	parent *Task
	name   string
	agent  string
	local  string
}

// Name returns the child's name in its parent.
func (c *Child) Name() string { return c.name }

// ID returns the id of the child's task, unique over all agents.
func (c *Child) ID() string { return c.agent + idSeparator + c.local }

// String names the child.
func (c *Child) String() string { return "child " + c.name + " of " + c.parent.String() }

// How a child stands, see [ChildStanding].
const (
	ChildQueued = string(engine.ChildQueued) // it waits until fewer are active
	ChildActive = string(engine.ChildActive) // it was granted its budget, and works as soon as somebody runs it
	ChildEnded  = string(engine.ChildEnded)
)

// ChildStanding is what a task knows of one of its children. Of one that is active the child's own task knows more.
type ChildStanding struct {
	Name  string
	ID    string // of its task
	Agent string
	State string // ChildQueued, ChildActive or ChildEnded
	Limit action.Limit
	// Held is reserved in the parent: all the child may spend while it works, afterwards what its calls under way or of
	// unknown outcome hold. Spent is what it has spent, once it has ended.
	Held, Spent action.Cost
	// Ended is the status in which its task ended, Reason why, and Conclusion what was said of its goal, if anything.
	Ended, Reason string
	Conclusion    *action.Conclusion
}

// Reached reports whether the child ended with the verdict that its goal was reached. Nothing else is success: not that
// its calls were Ok, nor that it was closed.
func (s ChildStanding) Reached() bool {
	return s.Conclusion != nil && s.Conclusion.Verdict == action.Reached
}

func standing(c engine.Child) ChildStanding {
	return ChildStanding{
		Name: c.Name, ID: c.Agent + idSeparator + c.Task, Agent: c.Agent, State: string(c.Status), Limit: c.Grant,
		Held: c.Held, Spent: c.Spent, Ended: string(c.End), Reason: c.Reason, Conclusion: c.Conclusion,
	}
}

// Delegate gives part of the task to an agent: a child task whose authority, budget and deadline lie within the task's
// own. Its limit is reserved in the task's budget until it has ended; on every axis that the task limits the child needs a
// limit. Threshold, ceiling, approvers, requester and deadline are the parent's where the goal leaves them open, and
// never go beyond them. Of what its agent holds the child may call what the parent's agent may call or pass on, see
// [AgentBuilder.MayDelegate], each call as if every ancestor made it.
//
// The goal's ID names the child within the task: delegating the same goal under the same name again returns the same
// child, so that whoever is resumed starts nothing twice. "" is a child of its own each time.
//
// Where as many children are active as the task may have, the child waits in a queue, at no cost but its budget; where
// that is full too, the refusal is BUDGET_EXHAUSTED. A refusal is an *action.Failure. Nothing runs by itself: see
// [Child.Task] and [Engine.Run].
func (t *Task) Delegate(ctx context.Context, g Goal) (*Child, error) {
	if err := errors.Join(t.callable(), alive(ctx)); err != nil {
		return nil, err
	}
	if err := t.engine.enter(); err != nil {
		return nil, err
	}
	defer t.engine.inside.Done()
	if err := t.ofNoFlow(ctx, "delegates to nobody else"); err != nil {
		return nil, fmt.Errorf("delegate: %w", err)
	}
	c, err := t.delegate(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("delegate: %w", err)
	}
	return c, nil
}

// Delegate is [Task.Delegate] of the call's task. A child without an ID is named after the call and its place among those
// that the function delegates, so that a further attempt finds the children of the one before; where a function delegates
// from several goroutines, it must name them.
func (c *Context) Delegate(g Goal) (*Child, error) {
	if err := c.mayAct(); err != nil {
		return nil, fmt.Errorf("delegate: %w", err)
	}
	if g.ID == "" {
		c.mu.Lock()
		c.children++
		g.ID = fmt.Sprintf("%s.%d", c.begun.Intent, c.children)
		c.mu.Unlock()
	}
	child, err := c.flight.t.delegate(c, g)
	if err != nil {
		return nil, fmt.Errorf("delegate: %w", err)
	}
	return child, nil
}

// Children returns what the task knows of its children, in the order in which they were delegated.
func (t *Task) Children(ctx context.Context) ([]ChildStanding, error) {
	v, err := t.peek(ctx)
	if err != nil {
		return nil, err
	}
	all, err := v.Children()
	if err != nil {
		return nil, err
	}
	return standings(all), nil
}

func standings(all []engine.Child) []ChildStanding {
	if len(all) == 0 {
		return nil
	}
	out := make([]ChildStanding, len(all))
	for i, c := range all {
		out[i] = standing(c)
	}
	return out
}

// Child finds a child of the task by its name.
func (t *Task) Child(ctx context.Context, name string) (*Child, error) {
	v, err := t.peek(ctx)
	if err != nil {
		return nil, err
	}
	c, ver, err := v.Child(name)
	if err != nil {
		return nil, err
	}
	if ver == 0 {
		return nil, fmt.Errorf("%s has no child %q", t, name)
	}
	return &Child{t, c.Name, c.Agent, c.Task}, nil
}

// Standing returns what the parent knows of the child.
func (c *Child) Standing(ctx context.Context) (ChildStanding, error) {
	v, err := c.parent.peek(ctx)
	if err != nil {
		return ChildStanding{}, err
	}
	known, _, err := v.Child(c.name)
	return standing(known), err
}

// Task returns the child's task, to run it. It waits while the child is queued; a child that has ended has a task too, if
// it was ever started. The child's agent must be registered with this engine.
func (c *Child) Task(ctx context.Context) (*Task, error) {
	var out *Task
	_, err := c.await(ctx, func(s engine.Child) (bool, error) {
		if s.Status == engine.ChildQueued {
			return false, nil
		}
		t, err := c.parent.engine.Open(ctx, c.ID())
		if errors.Is(err, ErrNoTask) && s.Status == engine.ChildActive {
			return false, nil // it is being started
		}
		out = t
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("task of %s: %w", c, err)
	}
	return out, nil
}

// Wait waits until the child has ended and its parent knows, and returns how. It holds no place among the workers: a call
// that [Engine.Work] runs gives its place back while it waits. An error says that ctx ended or the engine closes first.
func (c *Child) Wait(ctx context.Context) (ChildStanding, error) {
	s, err := c.await(ctx, func(s engine.Child) (bool, error) { return s.Status == engine.ChildEnded, nil })
	if err != nil {
		return standing(s), fmt.Errorf("wait for %s: %w", c, err)
	}
	return standing(s), nil
}

// Cancel ends the child, and its own children, queued or not. Its parent goes on.
func (c *Child) Cancel(ctx context.Context, reason string) error {
	t := c.parent
	if err := errors.Join(t.opened(), alive(ctx)); err != nil {
		return err
	}
	if err := t.engine.endChild(ctx, t.agent.name, t.local, c.name, action.Cut(reason)); err != nil {
		return fmt.Errorf("cancel %s: %w", c, err)
	}
	return nil
}

// BudgetOf is the sum of what children hold and have spent: part of their parent's own figures.
func BudgetOf(children []ChildStanding) budget.Snapshot {
	var s budget.Snapshot
	for _, c := range children {
		s.Spent, s.Reserved = added(s.Spent, c.Spent), added(s.Reserved, c.Held)
	}
	return s
}

func added(a, b action.Cost) action.Cost {
	sum, err := a.Add(b)
	if err != nil {
		return a
	}
	return sum
}
