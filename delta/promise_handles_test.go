package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// An agent that was built anew has new handles of its tasks: cancelling through any reaches every call.
func TestCancelReachesCallsOfOtherHandles(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.does(obeys)
		running := background(func() action.Outcome { return w.do(call("look", "a")) })
		synctest.Wait()
		require.NoError(t, w.engine.Register(w.clerk()))
		there, err := w.engine.Open(t.Context(), w.task.ID())
		require.NoError(t, err)
		require.NotSame(t, w.task, there)
		started := time.Now()
		require.NoError(t, there.Cancel(t.Context(), "enough"))
		assert.Equal(t, action.Interrupted, running().Code)
		assert.Zero(t, time.Since(started))
		assert.Equal(t, action.Cancelled, w.do(call("look", "b")).Code)
	})
}

// An offer is the planner's own: what it does to it changes nothing, now or in what is said later.
func TestAnOfferIsACopy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		offer, err := w.task.Offer(t.Context())
		require.NoError(t, err)
		epoch := offer.Epoch
		require.True(t, w.do(call("look", "a")).OK())
		spoiling := background(func() bool {
			for i := range offer.Actions {
				offer.Actions[i].Name = "SPOILT"
				copy(offer.Actions[i].Schema, "SPOILT")
			}
			slices.Reverse(offer.Actions)
			return true
		})
		c := call("then-look", "b")
		c.Epoch = epoch
		o := w.do(c)
		spoiling()
		assert.Equal(t, action.NotLegal, o.Code)
		assert.Contains(t, o.Failure.Details[action.DetailChanged], "then-look is available now")
		assert.NotContains(t, o.Failure.Explain(), "SPOILT")
		again, err := w.task.Offer(t.Context())
		require.NoError(t, err)
		text, _ := json.Marshal(again)
		assert.NotContains(t, string(text), "SPOILT")
	})
}

// blank takes links and more away from what a store's ledger says.
type blank struct {
	memory.Store
	change func([]txn.Stored)
}

func (b *blank) Records(ctx context.Context, agent, task string, from int64, limit int) ([]txn.Stored, error) {
	rs, err := b.Store.Records(ctx, agent, task, from, limit)
	rs = slices.Clone(rs)
	if b.change != nil {
		b.change(rs)
	}
	return rs, err
}

// What was sealed once stays sealed: an engine that saw the links notices that they are gone.
func TestI14_LostLinksAreNoticed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &blank{Store: memory.New(memory.Config{})}
		e, err := delta.New(delta.Config{Store: store})
		require.NoError(t, err)
		defer e.Close(context.Background())
		a := delta.Define("a", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"x"}) }).Describe("a").Risk(1).MustBuild()
		task, err := e.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("g").Grant(a).MustBuild()})
		require.NoError(t, err)
		older, _, err := task.Ledger(t.Context())
		require.NoError(t, err)
		for i := range older {
			older[i].Link = ""
		}
		require.True(t, task.Do(t.Context(), call("a", "a")).MustGet().OK())
		require.NoError(t, e.Sync(t.Context()))
		whole, _, err := task.Ledger(t.Context())
		require.NoError(t, err)
		for _, copied := range [][]txn.Stored{whole, whole[:2], older} {
			_, err = task.Verify(copied)
			assert.NoError(t, err, "a copy may be older")
		}
		var broken *ledger.BrokenError
		for fault, change := range map[ledger.Fault]func([]txn.Stored){
			ledger.Unsealed: func(rs []txn.Stored) {
				for i := range rs {
					rs[i].Link = ""
				}
			},
			ledger.Changed: func(rs []txn.Stored) {
				for i := range rs {
					rs[i].Link, rs[i].At = "", rs[i].At+1
				}
			},
		} {
			store.change = change
			_, err = task.Events(t.Context())
			require.ErrorAs(t, err, &broken, fault)
			assert.Equal(t, fault, broken.Fault)
			copied := slices.Clone(whole)
			change(copied)
			_, err = task.Verify(copied)
			assert.Equal(t, fault == ledger.Changed, err != nil)
		}
		store.change = nil
		_, err = task.Events(t.Context())
		assert.NoError(t, err)
	})
}

// What planning used is charged whatever becomes of the store, and before anything more is planned.
func TestI07_WhatPlanningUsedIsNotLost(t *testing.T) {
	spends := delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
		return delta.Proposal{Done: true, Used: action.Cost{Tokens: 7}}, nil
	})
	refuses := func(x *txn.Txn) error {
		if x.Phase == txn.Settle || x.Phase == txn.Plain && x.Intent == "" && len(x.Clauses) > 0 && x.Clauses[0].Op == txn.Event {
			return errors.New("not now")
		}
		return nil
	}
	limit := action.Limit{Tokens: action.Max(10)}
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprint("taken over: ", taken), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, func(_ *world, g *delta.Goal) { g.Limit = limit })
				w.store.set(func(s *spy) { s.before = refuses })
				for range 3 {
					r := w.engine.Run(t.Context(), w.task, spends).MustGet()
					assert.Equal(t, delta.RunStore, r.Ended)
				}
				if taken {
					other := w.other()
					stop := w.work(other)
					time.Sleep(10 * time.Minute)
					stop()
				}
				w.store.set(func(s *spy) { s.before = nil })
				r := w.engine.Run(t.Context(), w.task, spends).MustGet()
				assert.Equal(t, delta.RunDone, r.Ended)
				b, err := w.task.Budget(t.Context())
				require.NoError(t, err)
				assert.Equal(t, int64(14), b.Spent.Tokens)
				assert.Equal(t, delta.RunBudget, w.engine.Run(t.Context(), w.task, spends).MustGet().Ended)
				_, err = w.task.Events(t.Context())
				assert.NoError(t, err)
			})
		})
	}
}

// Zero values and nil contexts are mistakes that are named.
func TestZeroValuesAreNamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		f := func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"x"}) }
		b := delta.Define("a", f).Describe("a")
		var none context.Context
		empty := &delta.Task{}
		second := func(_ any, err error) error { return err }
		for name, try := range map[string]func() error{
			"an action":                      func() error { return second(delta.NewAgent("g").Grant(&delta.Action[In, Out]{}).Build()) },
			"a need":                         func() error { return second(b.Needs(&delta.Action[In, Out]{}).Build()) },
			"a bound need":                   func() error { return second(b.Needs((&delta.Action[In, Out]{}).On("id")).Build()) },
			"a Pre":                          func() error { return second(b.Needs(delta.Pre{}).Build()) },
			"a builder":                      func() error { return second(delta.Builder[In, Out]{}.Build()) },
			"an option":                      func() error { return second(b.RequireApproval(nil).Build()) },
			"an agent":                       func() error { return second(w.engine.Start(t.Context(), delta.Goal{Agent: &delta.Agent{}})) },
			"to register":                    func() error { return w.engine.Register(&delta.Agent{}) },
			"a task":                         func() error { return second(empty.Do(t.Context(), call("a", "a")).Get()) },
			"a nil task":                     func() error { return second((*delta.Task)(nil).DoWait(t.Context(), call("a", "a")).Get()) },
			"a task's offer":                 func() error { return second(empty.Offer(t.Context())) },
			"a task's events":                func() error { return second(empty.Events(t.Context())) },
			"a task to cancel":               func() error { return empty.Cancel(t.Context(), "") },
			"a task to end":                  func() error { return empty.Done(t.Context(), "") },
			"a task to run":                  func() error { return second(w.engine.Run(t.Context(), empty, script()).Get()) },
			"an action to call":              func() error { return second((&delta.Action[In, Out]{}).Do(t.Context(), w.task, In{"a", 1}).Get()) },
			"Do without a context":           func() error { return second(w.task.Do(none, call("act", "a")).Get()) },
			"typed Do without a context":     func() error { return second(w.acts["act"].Do(none, w.task, In{"a", 1}, nil).Get()) },
			"Offer without a context":        func() error { return second(w.task.Offer(none)) },
			"Start without a context":        func() error { return second(w.engine.Start(none, delta.Goal{Agent: w.agent})) },
			"Open without a context":         func() error { return second(w.engine.Open(none, w.task.ID()+"x")) },
			"Run without a context":          func() error { return second(w.engine.Run(none, w.task, script()).Get()) },
			"Work without a context":         func() error { return w.engine.Work(none) },
			"Close without a context":        func() error { return w.engine.Close(none) },
			"Sync without a context":         func() error { return w.engine.Sync(none) },
			"Cancel without a context":       func() error { return w.task.Cancel(none, "x") },
			"Done without a context":         func() error { return w.task.Done(none, "x") },
			"Authenticate without a context": func() error { return second(w.engine.Authenticate(none, "x")) },
			"Approvals without a context":    func() error { return second(w.engine.Approvals(none, 1)) },
			"Trust without a context":        func() error { return second(w.engine.Trust(none, "clerk")) },
			"Approve without a context":      func() error { return w.engine.Approve(none, w.task.ID()+"~x", w.boss, "") },
			"SetThreshold without a context": func() error { return w.task.SetThreshold(none, w.boss, 3, "") },
		} {
			assert.NotPanics(t, func() { assert.Error(t, try(), name) }, name)
		}
		assert.Empty(t, empty.ID()+(&delta.Action[In, Out]{}).Name())
		assert.Empty(t, (&delta.Agent{}).Actions())
		assert.True(t, w.do(call("act", "a")).OK(), "nothing was harmed")
	})
}
