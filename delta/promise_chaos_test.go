package delta_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// TestI08_I17_Chaos: two engines on one store that loses requests and replies, callers on every path, workers, people who
// decide, functions that succeed, fail, panic, hang and do not know. When the noise is over the books must be right.
func TestI08_I17_Chaos(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { bubble(t, func(t *testing.T) { chaos(t, seed) }) })
	}
}

func chaos(t *testing.T, seed uint64) {
	limit := action.Limit{Calls: action.Max(60)}
	w := newWorld(t, func(w *world, g *delta.Goal) {
		w.cfg.Lease, w.cfg.Poll = 2*time.Second, 5*time.Second
		g.Limit, g.Threshold = limit, 5
		g.ApprovalTTL = time.Minute
	})
	var seen effects
	once := map[string]string{} // intents of effects that may not be repeated
	w.does(func(ctx *delta.Context, in In) mo.Result[Out] {
		seen.note(ctx.ExecutionID(), ctx.Attempt())
		switch in.N % 6 {
		case 1:
			return mo.Err[Out](errors.New("no"))
		case 2:
			panic("no")
		case 3:
			return obeys(ctx, in)
		case 4:
			return mo.Err[Out](action.Unknown(nil))
		}
		time.Sleep(time.Duration(in.N) * 10 * time.Millisecond)
		return mo.Ok(Out{"ok"})
	})
	type end struct {
		store  *memorytest.Faulty
		engine *delta.Engine
		task   *delta.Task
	}
	var ends []end
	for i := range uint64(2) {
		f := memorytest.NewFaulty(w.shared, nil)
		e := w.open(&spy{Store: f})
		task, err := e.Open(t.Context(), w.task.ID())
		require.NoError(t, err)
		f.Replan(memorytest.FailRandomly(seed*2+i, 0.04, 0.04))
		ends = append(ends, end{f, e, task})
	}
	var callers sync.WaitGroup
	for g := range uint64(12) {
		callers.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, g))
			e := ends[g%2]
			for range 8 {
				c := delta.Call{
					Action: []string{"act", "look", "retried", "keyed", "ticket", "risky", "checked", "then-look"}[rnd.IntN(8)],
					Input:  inputOf(In{ID: []string{"a", "b"}[rnd.IntN(2)], N: int64(rnd.IntN(30))}),
				}
				if c.Action == "keyed" {
					c.Input = inputOf(In{ID: "a"})
				}
				if rnd.IntN(3) == 0 {
					c.ID = fmt.Sprint(c.Action, string(c.Input))
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rnd.IntN(90))*time.Second)
				switch rnd.IntN(4) {
				case 0:
					e.task.DoWait(ctx, c)
				case 1:
					e.engine.Run(ctx, e.task, script(c))
				default:
					e.task.Do(ctx, c)
				}
				cancel()
			}
		})
	}
	done := make(chan struct{})
	people := background(func() int {
		decided := 0
		for i := 0; ; i++ {
			e := ends[i%2]
			pending, _ := e.engine.Approvals(context.Background(), 9)
			for _, a := range pending {
				boss, _ := e.engine.Authenticate(context.Background(), "boss")
				verdict := []func(context.Context, string, delta.Identity, string) error{e.engine.Approve, e.engine.Approve, e.engine.Reject, e.engine.Revoke}[i%4]
				if verdict(context.Background(), a.ID, boss, "because") == nil {
					decided++
				}
			}
			paused, _ := e.engine.Escalations(context.Background(), 9)
			for _, p := range paused { // so much goes wrong that the task is paused now and then
				boss, _ := e.engine.Authenticate(context.Background(), "boss")
				_ = e.engine.ResumeTask(context.Background(), p.ID, boss, "go on")
			}
			select {
			case <-done:
				return decided
			case <-time.After(3 * time.Second):
			}
		}
	})
	stops := []func(){w.work(ends[0].engine), w.work(ends[1].engine), w.work(w.engine)}
	switch seed % 3 { // in the middle of it
	case 1:
		time.Sleep(30 * time.Second)
		for ends[0].task.Cancel(t.Context(), "enough") != nil {
			time.Sleep(time.Second)
		}
	case 2:
		time.Sleep(30 * time.Second)
		now, stop := context.WithCancel(context.Background())
		stop()
		assert.Error(t, ends[1].engine.Close(now))
	}
	callers.Wait()
	for _, e := range ends {
		e.store.Replan(nil)
	}
	time.Sleep(10 * time.Minute)
	close(done)
	people()
	for _, stop := range stops {
		stop()
	}
	synctest.Wait()

	w.checkBegun(seen.all)
	unknown, approvals := map[string]bool{}, map[string]string{}
	for _, e := range w.events() {
		switch e.Type {
		case ledger.Begun:
			if name := e.Action; e.Fence == 1 && (name == "act" || name == "ticket" || name == "risky" || name == "checked" || name == "then-look") {
				once[e.Intent] = name
			}
			if e.Approval != "" && e.Fence == 1 {
				assert.Empty(t, approvals[e.Approval], "approval %s was used twice", e.Approval)
				approvals[e.Approval] = e.Intent
			}
		case ledger.Settled:
			if e.Code == action.StartedUnknown {
				unknown[e.Intent] = true
			}
			if e.Returned {
				for id, intent := range approvals {
					if intent == e.Intent {
						delete(approvals, id)
					}
				}
			}
		}
	}
	starts := map[string]int{}
	for _, s := range seen.all {
		starts[s.intent]++
		if name := once[s.intent]; name != "" {
			assert.Equal(t, 1, starts[s.intent], "%s may not be repeated", name)
		}
	}
	a := audit(t, w.task, limit)
	held := 0
	for intent := range a.held {
		if !unknown[intent] {
			held++
			assert.Fail(t, "a reservation is left over", intent)
		}
	}
	for _, queue := range []string{"ready", "asks", txn.Leases} {
		left, err := w.shared.Queued(t.Context(), "clerk", queue, txn.Queued{}, true, 99)
		require.NoError(t, err)
		assert.Empty(t, left, queue)
	}
	for _, e := range ends { // what could not be sealed is, with the next call
		if _, err := e.task.Do(t.Context(), call("nothing", "a")).Get(); errors.Is(err, delta.ErrClosed) {
			continue
		}
		require.NoError(t, e.engine.Sync(t.Context()))
	}
	_, report, err := w.task.Ledger(t.Context())
	require.NoError(t, err, "the chain holds")
	assert.Zero(t, report.Unsealed)
	w.belief(t)
}
