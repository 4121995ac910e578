package delta_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
	"github.com/seed-ab2cfece/delta-agents/policy"
)

// team is a lead that may pass on to a worker what it never does itself.
type team struct {
	*testing.T
	engine       *delta.Engine
	find, write  *delta.Action[In, Out]
	erase        *delta.Action[In, Out]
	lead, worker *delta.Agent
	task         *delta.Task
	ran          map[string]int
}

func spends(name string, risk int) delta.Builder[In, Out] {
	return delta.Define(name, func(ctx *delta.Context, in In) mo.Result[Out] {
		if err := ctx.Spend(action.Cost{Tokens: in.N}); err != nil {
			return mo.Err[Out](err)
		}
		if in.ID == "err" {
			return mo.Err[Out](errors.New("no"))
		}
		return mo.Ok(Out{in.ID})
	}).Describe(name).Risk(risk).Cost(action.Cost{Tokens: 1})
}

func newTeam(t *testing.T, cfg delta.Config, goal delta.Goal) *team {
	w := &team{T: t, ran: map[string]int{}}
	w.find, w.write, w.erase = spends("find", 1).MustBuild(), spends("write", 2).MustBuild(), spends("erase", 2).MustBuild()
	w.lead = delta.NewAgent("lead").Grant(w.find).MayDelegate(w.write).MustBuild()
	w.worker = delta.NewAgent("worker").Grant(w.find, w.write, w.erase).MustBuild()
	w.engine = engineFor(t, cfg)
	goal.Agent, goal.Text = w.lead, "a report"
	var err error
	w.task, err = w.engine.Start(t.Context(), goal)
	require.NoError(t, err)
	return w
}

func engineFor(t *testing.T, cfg delta.Config) *delta.Engine {
	e, err := delta.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close(context.Background())) })
	return e
}

func (w *team) child(name string, tokens int64) *delta.Child {
	c, err := w.task.Delegate(w.Context(), delta.Goal{ID: name, Agent: w.worker, Text: name, Limit: action.Limit{Tokens: action.Max(tokens)}})
	require.NoError(w, err)
	return c
}

func (w *team) taskOf(c *delta.Child) *delta.Task {
	t, err := c.Task(w.Context())
	require.NoError(w, err)
	return t
}

func (w *team) tokens() (spent, reserved int64) {
	b, err := w.task.Budget(w.Context())
	require.NoError(w, err)
	return b.Spent.Tokens, b.Reserved.Tokens
}

func (w *team) spend(c *delta.Child, n int64) {
	require.NoError(w, w.write.Do(w.Context(), w.taskOf(c), In{ID: "x", N: n}).Error())
}

func hundred() delta.Goal { return delta.Goal{Limit: action.Limit{Tokens: action.Max(100)}} }

func ExampleTask_Delegate() {
	ctx := context.Background()
	find := delta.Define("find", func(ctx *delta.Context, in In) mo.Result[string] {
		return mo.Ok("3 hits for " + in.ID)
	}).Describe("Search the archive").Risk(1).MustBuild()
	lead := delta.NewAgent("lead").MayDelegate(find).MustBuild() // it lets others search
	worker := delta.NewAgent("worker").Grant(find).MustBuild()

	engine, _ := delta.New(delta.Config{})
	defer engine.Close(ctx)
	report, _ := engine.Start(ctx, delta.Goal{Agent: lead, Text: "write a report", Limit: action.Limit{Calls: action.Max(10)}})

	child, err := report.Delegate(ctx, delta.Goal{ID: "search", Agent: worker, Text: "find the contract", Limit: action.Limit{Calls: action.Max(3)}})
	fmt.Println(child.Name(), err)
	task, _ := child.Task(ctx)
	fmt.Println(find.Do(ctx, task, In{ID: "contract"}).MustGet())
	_ = task.Conclude(ctx, action.Reached, "found it")

	end, _ := child.Wait(ctx)
	fmt.Println(end.State, end.Reached(), end.Spent.Calls)
	b, _ := report.Budget(ctx)
	fmt.Println(b.Spent.Calls, b.Left.Calls)
	// Output:
	// search <nil>
	// 3 hits for contract
	// ended true 1
	// 1 {true 9}
}

func TestDelegateGrantsAndRefunds(t *testing.T) {
	w := newTeam(t, delta.Config{}, hundred())
	c := w.child("a", 40)
	spent, reserved := w.tokens()
	assert.Equal(t, [2]int64{0, 40}, [2]int64{spent, reserved}, "in flight counts as reserved")
	w.spend(c, 7)
	require.NoError(t, w.taskOf(c).Done(t.Context(), "done"))
	end, err := c.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, delta.ChildEnded, end.State)
	assert.Equal(t, "closed", end.Ended)
	assert.EqualValues(t, 7, end.Spent.Tokens)
	assert.False(t, end.Reached(), "that a task was closed is no verdict")
	spent, reserved = w.tokens()
	assert.Equal(t, [2]int64{7, 0}, [2]int64{spent, reserved}, "what is left was given back")
	events, err := w.task.Events(t.Context())
	require.NoError(t, err)
	last := events[len(events)-1]
	assert.Equal(t, ledger.ChildEnded, last.Type, "the end of a child stands in the ledger of its parent")
	assert.Equal(t, "a", last.Child)
}

func TestI16_AChildsBudgetLiesWithinItsParents(t *testing.T) {
	w := newTeam(t, delta.Config{}, hundred())
	w.child("a", 60)
	for reason, limit := range map[string]action.Limit{
		"more than is left": {Tokens: action.Max(41)},
		"no limit at all":   {},
		"another axis":      {Calls: action.Max(1)},
	} {
		_, err := w.task.Delegate(t.Context(), delta.Goal{Agent: w.worker, Limit: limit})
		f := action.FailureOf(err)
		require.NotNil(t, f, reason)
		assert.Equal(t, action.BudgetExhausted, f.Code, reason)
	}
	c := w.child("b", 40)
	assert.EqualError(t, w.find.Do(t.Context(), w.task, In{ID: "x"}).Error(), "BUDGET_EXHAUSTED: the budget does not allow \"find\": the call may need 1 token, 0 tokens left")
	require.NoError(t, c.Cancel(t.Context(), "not needed"))
	assert.NoError(t, w.find.Do(t.Context(), w.task, In{ID: "x"}).Error(), "what the child did not use is there again")
}

func TestI16_AChildsAuthorityLiesWithinItsParents(t *testing.T) {
	w := newTeam(t, delta.Config{}, hundred())
	task := w.taskOf(w.child("a", 50))
	offer, err := task.Offer(t.Context())
	require.NoError(t, err)
	var names []string
	for _, o := range offer.Actions {
		names = append(names, o.Name)
	}
	assert.Equal(t, []string{"find", "write"}, names, "what the parent may not pass on does not exist for the child")
	f := action.FailureOf(w.erase.Do(t.Context(), task, In{ID: "x"}).Error())
	require.NotNil(t, f)
	assert.Equal(t, action.Denied, f.Code)
	assert.Contains(t, f.Details[action.DetailRule]+f.Details[action.DetailReason], `agent lead, for which it works: it does not pass erase on`)
	assert.Equal(t, action.ActionUnknown, action.FailureOf(w.write.Do(t.Context(), w.task, In{ID: "x"}).Error()).Code, "what may be passed on is not held")

	own, err := w.engine.Start(t.Context(), delta.Goal{Agent: w.worker})
	require.NoError(t, err)
	assert.NoError(t, w.erase.Do(t.Context(), own, In{ID: "x"}).Error(), "a task of its own is bound by nobody")
}

func TestI16_ForbiddingAParentForbidsItsChildren(t *testing.T) {
	forbid := policy.Func(func(r policy.Request) (policy.Decision, error) {
		return policy.Decision{Forbid: r.Agent == "lead" && r.Action == "write", Permit: true, Reason: "lead must not write"}, nil
	})
	w := newTeam(t, delta.Config{Policy: forbid}, hundred())
	task := w.taskOf(w.child("a", 50))
	f := action.FailureOf(w.write.Do(t.Context(), task, In{ID: "x"}).Error())
	require.NotNil(t, f)
	assert.Equal(t, action.Denied, f.Code)
	assert.NoError(t, w.find.Do(t.Context(), task, In{ID: "x"}).Error())
}

func TestI16_AGrandchildIsBoundByAll(t *testing.T) {
	w := newTeam(t, delta.Config{}, hundred())
	wide := delta.NewAgent("wide").Grant(w.find, w.erase).MustBuild()
	mid := w.taskOf(w.child("a", 50))
	c, err := mid.Delegate(t.Context(), delta.Goal{Agent: wide, Limit: action.Limit{Tokens: action.Max(10)}})
	require.NoError(t, err)
	task := w.taskOf(c)
	assert.NoError(t, w.find.Do(t.Context(), task, In{ID: "x", N: 3}).Error())
	assert.Equal(t, action.Denied, action.FailureOf(w.erase.Do(t.Context(), task, In{ID: "x"}).Error()).Code, "the worker holds it, the lead above does not")
	require.NoError(t, task.Done(t.Context(), ""))
	require.NoError(t, mid.Done(t.Context(), ""))
	spent, reserved := w.tokens()
	assert.Equal(t, [2]int64{3, 0}, [2]int64{spent, reserved}, "what grandchildren spend their grandparents have spent")
}

func TestI16_WishesBeyondTheParentAreRefused(t *testing.T) {
	g := hundred()
	g.Threshold, g.Ceiling, g.Approvers, g.Requester = 3, 4, []string{"ana"}, "bo"
	w := newTeam(t, delta.Config{}, g)
	nothing := delta.NewAgent("nothing").Grant(w.erase).MustBuild()
	limit := action.Limit{Tokens: action.Max(1)}
	for reason, g := range map[string]delta.Goal{
		"threshold": {Agent: w.worker, Limit: limit, Threshold: 4},
		"ceiling":   {Agent: w.worker, Limit: limit, Ceiling: 5},
		"approver":  {Agent: w.worker, Limit: limit, Approvers: []string{"eve"}},
		"anybody":   {Agent: w.worker, Limit: limit, Approvers: []string{"*"}},
		"requester": {Agent: w.worker, Limit: limit, Requester: "eve"},
		"agent":     {Agent: nothing, Limit: limit},
	} {
		_, err := w.task.Delegate(t.Context(), g)
		require.NotNil(t, action.FailureOf(err), reason)
		assert.Equal(t, action.Denied, action.FailureOf(err).Code, reason)
	}
	c, err := w.task.Delegate(t.Context(), delta.Goal{Agent: w.worker, Limit: limit, Threshold: 2, Ceiling: 3})
	require.NoError(t, err)
	assert.Error(t, w.taskOf(c).SetThreshold(t.Context(), delta.Identity{}, 5, ""))
	events, err := w.task.Events(t.Context())
	require.NoError(t, err)
	refused := 0
	for _, e := range events {
		if e.Type == ledger.ChildRefused {
			refused++
		}
	}
	assert.Equal(t, 6, refused, "every refusal is recorded")
}

func TestI16_NobodyDelegatesDeeperThanAllowed(t *testing.T) {
	g := hundred()
	g.Delegation.Depth = 2
	w := newTeam(t, delta.Config{}, g)
	task := w.task
	for depth := 2; ; depth-- {
		c, err := task.Delegate(t.Context(), delta.Goal{Agent: w.worker, Limit: action.Limit{Tokens: action.Max(int64(10 * depth))}, Delegation: delta.Delegation{Depth: 99}})
		if depth == 0 {
			require.NotNil(t, action.FailureOf(err))
			assert.Equal(t, action.Denied, action.FailureOf(err).Code)
			break
		}
		require.NoError(t, err)
		task = w.taskOf(c)
	}
}

func TestI16_CancellingAParentCancelsTheSubtree(t *testing.T) {
	for reason, end := range map[string]func(*delta.Task) error{
		"cancel":   func(p *delta.Task) error { return p.Cancel(context.Background(), "enough") },
		"done":     func(p *delta.Task) error { return p.Done(context.Background(), "enough") },
		"conclude": func(p *delta.Task) error { return p.Conclude(context.Background(), action.Abandoned, "enough") },
	} {
		g := hundred()
		g.Delegation.Active = 2
		w := newTeam(t, delta.Config{}, g)
		a, b, queued := w.child("a", 20), w.child("b", 20), w.child("c", 20)
		w.spend(a, 5)
		deep, err := w.taskOf(b).Delegate(t.Context(), delta.Goal{Agent: w.worker, Limit: action.Limit{Tokens: action.Max(10)}})
		require.NoError(t, err)
		below := w.taskOf(deep)
		require.NoError(t, w.find.Do(t.Context(), below, In{ID: "x", N: 2}).Error())
		require.NoError(t, end(w.task))

		for _, c := range []*delta.Child{a, b, queued} {
			s, err := c.Standing(t.Context())
			require.NoError(t, err)
			assert.Equal(t, delta.ChildEnded, s.State, "%s: %s", reason, c)
			assert.Equal(t, "cancelled", s.Ended, "%s: %s", reason, c)
		}
		f := action.FailureOf(w.find.Do(t.Context(), below, In{ID: "x"}).Error())
		require.NotNil(t, f, reason)
		assert.Equal(t, action.Cancelled, f.Code, reason)
		spent, reserved := w.tokens()
		assert.Equal(t, [2]int64{7, 0}, [2]int64{spent, reserved}, reason)
		_, err = w.task.Delegate(t.Context(), delta.Goal{Agent: w.worker, Limit: action.Limit{Tokens: action.Max(1)}})
		require.NotNil(t, action.FailureOf(err))
	}
}

func TestChildrenBeyondTheBoundsWaitAndAreRefused(t *testing.T) {
	g := hundred()
	g.Delegation = delta.Delegation{Active: 1, Queued: 2}
	w := newTeam(t, delta.Config{Poll: time.Millisecond}, g)
	a, b, c := w.child("a", 10), w.child("b", 10), w.child("c", 10)
	_, err := w.task.Delegate(t.Context(), delta.Goal{Agent: w.worker, Limit: action.Limit{Tokens: action.Max(1)}})
	require.NotNil(t, action.FailureOf(err))
	assert.Equal(t, action.BudgetExhausted, action.FailureOf(err).Code)
	assert.Equal(t, "children", action.FailureOf(err).Details[action.DetailAxis])
	state := func(c *delta.Child) string {
		s, err := c.Standing(t.Context())
		require.NoError(t, err)
		return s.State
	}
	assert.Equal(t, []string{delta.ChildActive, delta.ChildQueued, delta.ChildQueued}, []string{state(a), state(b), state(c)})
	require.NoError(t, b.Cancel(t.Context(), "no more"))
	assert.Equal(t, []string{delta.ChildActive, delta.ChildEnded, delta.ChildQueued}, []string{state(a), state(b), state(c)})
	started := make(chan *delta.Task)
	go func() {
		task, _ := c.Task(context.Background())
		started <- task
	}()
	require.NoError(t, w.taskOf(a).Done(t.Context(), ""))
	assert.Equal(t, c.ID(), (<-started).ID(), "who waited longest is next")
	assert.Equal(t, delta.ChildActive, state(c))
	w.spend(c, 1)
	require.NoError(t, w.taskOf(c).Done(t.Context(), ""))
	all, err := w.task.Children(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 3)
	assert.Equal(t, []string{"a", "b", "c"}, []string{all[0].Name, all[1].Name, all[2].Name})
}

func TestC05_DelegatingAgainFindsTheSameChild(t *testing.T) {
	w := newTeam(t, delta.Config{}, hundred())
	a := w.child("a", 10)
	w.spend(a, 4)
	assert.Equal(t, a.ID(), w.child("a", 10).ID())
	_, err := w.task.Delegate(t.Context(), delta.Goal{ID: "a", Agent: w.worker, Text: "another", Limit: action.Limit{Tokens: action.Max(10)}})
	require.NotNil(t, action.FailureOf(err), "the name is taken by another goal")
	require.NoError(t, w.taskOf(a).Done(t.Context(), ""))
	end, err := w.child("a", 10).Wait(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 4, end.Spent.Tokens, "an ended child stays ended: its end is the answer")
}

// A function that is attempted again finds the children of the attempt before.
func TestC05_AnAttemptFindsTheChildrenOfTheOneBefore(t *testing.T) {
	write := spends("write", 1).MustBuild()
	worker := delta.NewAgent("worker").Grant(write).MustBuild()
	ids := map[string]int{}
	attempts := 0
	plan := delta.Define("plan", func(ctx *delta.Context, in In) mo.Result[Out] {
		attempts++
		for range 2 {
			c, err := ctx.Delegate(delta.Goal{Agent: worker, Limit: action.Limit{Tokens: action.Max(10)}})
			if err != nil {
				return mo.Err[Out](err)
			}
			ids[c.ID()]++
			task, err := c.Task(ctx)
			if err != nil {
				return mo.Err[Out](err)
			}
			if attempts == 1 {
				if err := write.Do(ctx, task, In{ID: "x", N: 3}, delta.CallID("once")).Error(); err != nil {
					return mo.Err[Out](err)
				}
			} else if err := write.Do(ctx, task, In{ID: "x", N: 3}, delta.CallID("once")).Error(); err != nil {
				return mo.Err[Out](err)
			}
			if attempts == 2 {
				if err := task.Done(ctx, ""); err != nil {
					return mo.Err[Out](err)
				}
			}
		}
		if attempts == 1 {
			return mo.Err[Out](errors.New("again"))
		}
		return mo.Ok(Out{"planned"})
	}).Describe("plan").Risk(1).Effect(action.Idempotent).Retry(1).MustBuild()
	lead := delta.NewAgent("lead").Grant(plan).MayDelegate(write).MustBuild()
	e := engineFor(t, delta.Config{})
	task, err := e.Start(t.Context(), delta.Goal{Agent: lead, Limit: action.Limit{Tokens: action.Max(100)}})
	require.NoError(t, err)
	require.NoError(t, plan.Do(t.Context(), task, In{ID: "x"}).Error())
	assert.Len(t, ids, 2)
	b, err := task.Budget(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 6, b.Spent.Tokens, "no finished step was repeated")
}

// A child of which not even the start got through is started by whoever works, or waits.
func TestI16_WhatWasLeftUndoneIsDoneByAnybody(t *testing.T) {
	for lost := range 24 {
		synctest.Test(t, func(t *testing.T) {
			faulty := memorytest.NewFaulty(memory.New(memory.Config{}), nil)
			w := newTeam(t, delta.Config{Store: faulty}, hundred())
			calls, _ := faulty.Calls()
			faulty.Replan(func(n int) memorytest.Fault {
				if n > calls+lost && n <= calls+lost+3 {
					return memorytest.LostReply
				}
				return memorytest.None
			})
			goal := delta.Goal{ID: "a", Agent: w.worker, Limit: action.Limit{Tokens: action.Max(40)}}
			c, err := w.task.Delegate(t.Context(), goal)
			for err != nil {
				c, err = w.task.Delegate(t.Context(), goal)
			}
			ctx, stop := context.WithCancel(t.Context())
			worked := make(chan error)
			other := engineFor(t, delta.Config{Store: faulty})
			require.NoError(t, other.Register(w.lead, w.worker))
			go func() { worked <- other.Work(ctx) }()
			task, err := c.Task(t.Context())
			for err != nil {
				task, err = c.Task(t.Context())
			}
			for w.write.Do(t.Context(), task, In{ID: "x", N: 7}, delta.CallID("x")).Error() != nil {
			}
			for task.Cancel(t.Context(), "") != nil {
			}
			time.Sleep(5 * time.Second) // Work looks once a second
			s, err := c.Standing(t.Context())
			require.NoError(t, err)
			assert.Equal(t, delta.ChildEnded, s.State, "%d", lost)
			spent, reserved := w.tokens()
			assert.Equal(t, [2]int64{7, 0}, [2]int64{spent, reserved}, "%d", lost)
			stop()
			<-worked
		})
	}
}

// Many delegate at once, through two engines: no more children are active than may be, and no more is granted than there is.
func TestI16_ManyDelegateAtOnce(t *testing.T) {
	store := memory.New(memory.Config{})
	g := hundred()
	g.Delegation = delta.Delegation{Active: 3, Queued: 5}
	w := newTeam(t, delta.Config{Store: store}, g)
	other := engineFor(t, delta.Config{Store: store})
	require.NoError(t, other.Register(w.lead, w.worker))
	second, err := other.Open(t.Context(), w.task.ID())
	require.NoError(t, err)
	var all sync.WaitGroup
	for i := range 8 {
		task := []*delta.Task{w.task, second}[i%2]
		all.Go(func() {
			for range 3 {
				c, err := task.Delegate(t.Context(), delta.Goal{Agent: w.worker, Limit: action.Limit{Tokens: action.Max(15)}})
				if err != nil {
					continue
				}
				s, err := c.Standing(t.Context())
				assert.NoError(t, err)
				if s.State == delta.ChildActive {
					assert.NoError(t, c.Cancel(t.Context(), ""))
				}
				snap, err := store.Load(t.Context(), "lead", strings.TrimPrefix(w.task.ID(), "lead~"), nil)
				assert.NoError(t, err)
				assert.LessOrEqual(t, snap.Task.Counters["granted/tokens"], int64(100))
				assert.LessOrEqual(t, snap.Task.Counters["children"], int64(3))
				assert.LessOrEqual(t, snap.Task.Counters["children-waiting"], int64(5))
			}
		})
	}
	all.Wait()
	require.NoError(t, w.task.Cancel(t.Context(), ""))
	children, err := w.task.Children(t.Context())
	require.NoError(t, err)
	for _, c := range children {
		assert.Equal(t, delta.ChildEnded, c.State, c.Name)
	}
	_, reserved := w.tokens()
	assert.Zero(t, reserved)
}
