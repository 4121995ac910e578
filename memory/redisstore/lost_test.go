package redisstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/redistest"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// saved is what a server holds, to be put back as after a restore, or a fail-over to a replica that lagged.
type saved map[string]string

func save(t *testing.T, c *redis.Client) saved {
	ctx, all := context.Background(), saved{}
	for _, k := range c.Keys(ctx, "*").Val() {
		all[k] = c.Dump(ctx, k).Val()
	}
	return all
}

func (s saved) restore(t *testing.T, c *redis.Client) {
	ctx := context.Background()
	require.NoError(t, c.FlushDB(ctx).Err())
	for k, v := range s {
		require.NoError(t, c.Restore(ctx, k, 0, v).Err())
	}
}

// An engine that was told of more than the server knows stops the task, with the reason; nothing runs on lost grounds.
func TestI15_AnEngineStopsWhatTheServerLost(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	ctx := context.Background()
	s := open(t, redisstore.Config{URL: srv.URL()})
	e, err := delta.New(delta.Config{Store: s})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(ctx)) }()
	ran := 0
	act := delta.DefineRaw("act", json.RawMessage(`{"type":"object"}`), func(*delta.Context, action.Input) mo.Result[action.Output] {
		ran++
		return mo.Ok(action.Output(`{}`))
	}).Describe("Act").Risk(1).MustBuild()
	task, err := e.Start(ctx, delta.Goal{ID: "t", Agent: delta.NewAgent("clerk").Grant(act).MustBuild(), Text: "get it done"})
	require.NoError(t, err)
	do := func() action.Outcome { return task.Do(ctx, delta.Call{Action: "act", Input: []byte(`{}`)}).MustGet() }
	require.NoError(t, e.Sync(ctx))
	before := save(t, c)
	require.True(t, do().OK())
	require.NoError(t, e.Sync(ctx))
	before.restore(t, c)

	out := do()
	assert.Equal(t, action.StoreUnavailable, out.Code)
	require.ErrorContains(t, out.Err(), "lost acknowledged writes")
	require.NoError(t, e.Sync(ctx))
	status, why, err := task.Status(ctx)
	require.NoError(t, err)
	assert.Equal(t, "cancelled", status)
	assert.Contains(t, why, "lost acknowledged writes")
	assert.Equal(t, action.Cancelled, do().Code)
	assert.Equal(t, 1, ran)
}

// A restore that others have gone on from is a loss like any other: revisions have gone forward again, but the records that
// this engine knows are not there. It would else make a call again whose record is lost, or hold a task to the terms of
// another one.
func TestI15_ALossIsSeenThoughOthersWentOn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lose   func(t *testing.T, c *redis.Client, before saved) // what becomes of the server
		others func(t *testing.T, w *lossWorld)                  // what others do then
		on     string                                            // the task whose call is told of it
	}{
		"an older copy, and another worker goes on with the task": {
			lose:   func(t *testing.T, c *redis.Client, before saved) { before.restore(t, c) },
			others: func(t *testing.T, w *lossWorld) { w.goOn(t, "t") }, on: "t",
		},
		"an older copy, and another worker goes on with another task": {
			lose:   func(t *testing.T, c *redis.Client, before saved) { before.restore(t, c) },
			others: func(t *testing.T, w *lossWorld) { w.goOn(t, "other") }, on: "other",
		},
		"an empty server, and another worker starts a task of the same id": {
			lose: func(t *testing.T, c *redis.Client, _ saved) {
				require.NoError(t, c.FlushAll(context.Background()).Err())
			},
			others: func(t *testing.T, w *lossWorld) { w.startAnew(t, "t") }, on: "t",
		},
		"an empty server, and another worker starts another task": {
			lose: func(t *testing.T, c *redis.Client, _ saved) {
				require.NoError(t, c.FlushAll(context.Background()).Err())
			},
			others: func(t *testing.T, w *lossWorld) { w.startAnew(t, "new") }, on: "t",
		},
	}
	for name, x := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLossWorld(t)
			before := save(t, w.redis)
			for range 3 {
				require.True(t, w.do(t, "t", "").OK())
			}
			done := w.do(t, "t", "paid once")
			require.True(t, done.OK())
			require.NoError(t, w.engine.Sync(w.ctx))
			x.lose(t, w.redis, before)
			x.others(t, w)

			ran := w.ran.Load()
			out := w.do(t, x.on, "paid once")
			assert.Equal(t, action.StoreUnavailable, out.Code)
			require.ErrorContains(t, out.Err(), "lost acknowledged writes")
			var lost *memory.LostError
			require.ErrorAs(t, out.Err(), &lost)
			assert.Equal(t, ran, w.ran.Load(), "nothing is done on lost grounds")
			require.NoError(t, w.engine.Sync(w.ctx))
			require.NoError(t, w.engine.Sync(w.ctx))
			again := w.do(t, "t", "paid once")
			assert.Contains(t, []action.Code{action.Cancelled, action.NotLegal, action.TaskClosed, action.StoreUnavailable}, again.Code, "%v", again.Failure)
			assert.Equal(t, ran, w.ran.Load())
			assert.Eventually(t, func() bool { // once what it concerns is stopped, the agent goes on
				task, err := w.engine.Start(w.ctx, delta.Goal{ID: "later", Agent: w.clerk, Text: "go on"})
				if err != nil {
					return false
				}
				w.tasks["later"] = task
				return w.do(t, "later", "").OK()
			}, 20*time.Second, 10*time.Millisecond)
		})
	}
}

// What others prune, and begin anew under the same id, is no loss.
func TestI15_WhatWasPrunedAndBegunAnewIsNoLoss(t *testing.T) {
	t.Parallel()
	w := newLossWorld(t)
	require.True(t, w.do(t, "t", "").OK())
	require.NoError(t, w.engine.Sync(w.ctx))
	other := w.worker(t)
	far, err := other.Open(w.ctx, "clerk~t")
	require.NoError(t, err)
	require.NoError(t, far.Done(w.ctx, "done"))
	op, err := other.Authenticate(w.ctx, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		r, err := other.Prune(w.ctx, delta.Pruning{Agent: "clerk", Before: time.Now().Add(time.Hour), By: op, Reason: "retention"})
		return err == nil && len(r.Pruned)+len(r.Resumed) == 1
	}, 30*time.Second, 20*time.Millisecond)
	w.startOn(t, other, "t")

	assert.True(t, w.do(t, "other", "").OK(), "the agent was known by a record of a task that is gone")
	out := w.do(t, "t", "")
	require.ErrorIs(t, out.Err(), delta.ErrPruned)
}

// A ledger that is lost while what the task holds is left is noticed by whoever writes to it next, and what they wrote does
// not become its first record.
func TestI15_ALedgerThatIsLostAloneIsNoticed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c, ctx := srv.Client(t), context.Background()
	queued := func(val string) *txn.Txn { // nothing of which is to stand, though it is appended first
		x := put("a", val)
		x.Clauses = append([]txn.Clause{{Op: txn.Queue, Key: "q", Val: "m", N: 1}}, x.Clauses...)
		return x
	}
	for name, next := range map[string]*txn.Txn{"appends": put("a", "4"), "appends behind something else": queued("4"), "appends nothing": {
		Agent: "a", Task: "t", Phase: txn.Plain, Clauses: []txn.Clause{{Op: txn.Put, Scope: txn.Task, Key: "k", Val: "4"}}}} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.FlushAll(ctx).Err())
			s := open(t, redisstore.Config{URL: srv.URL()})
			for i := range 3 {
				_, err := s.Apply(ctx, put("a", fmt.Sprint(i)))
				require.NoError(t, err)
			}
			for _, left := range []string{"", "0123456789012345x"} { // all of it, or another one in its place
				require.NoError(t, c.Del(ctx, "delta:{a}:ledger:t").Err())
				if left != "" {
					require.NoError(t, c.RPush(ctx, "delta:{a}:ledger:t", left).Err())
				}
				before := save(t, c)
				_, err := s.Apply(ctx, next)
				var lost *memory.LostError
				require.ErrorAs(t, err, &lost)
				assert.Equal(t, "a", lost.Agent)
				assert.Equal(t, before, save(t, c), "nothing is written on lost grounds")
				s = open(t, redisstore.Config{URL: srv.URL()})
				_, err = s.Load(ctx, "a", "t", nil) // whoever comes later goes on from what is there
				require.NoError(t, err)
				for i := range 3 {
					_, err := s.Apply(ctx, put("a", fmt.Sprint(i)))
					require.NoError(t, err)
				}
			}
		})
	}
}

// lossWorld is an engine with the tasks t and other on a server that may lose what it has.
type lossWorld struct {
	ctx    context.Context
	redis  *redis.Client
	url    string
	engine *delta.Engine
	clerk  *delta.Agent
	tasks  map[string]*delta.Task
	ran    atomic.Int64
}

func newLossWorld(t *testing.T) *lossWorld {
	srv := redistest.Start(t)
	w := &lossWorld{redis: srv.Client(t), url: srv.URL(), tasks: map[string]*delta.Task{}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	w.ctx = ctx
	w.clerk = delta.NewAgent("clerk").Grant(delta.DefineRaw("act", json.RawMessage(`{"type":"object"}`), func(*delta.Context, action.Input) mo.Result[action.Output] {
		w.ran.Add(1)
		return mo.Ok(action.Output(`{}`))
	}).Describe("Act").Risk(1).MustBuild()).MustBuild()
	w.engine = w.worker(t)
	for _, id := range []string{"t", "other"} {
		task, err := w.engine.Start(ctx, delta.Goal{ID: id, Agent: w.clerk, Text: "get it done"})
		require.NoError(t, err)
		w.tasks[id] = task
		require.True(t, w.do(t, id, "").OK())
	}
	require.NoError(t, w.engine.Sync(ctx))
	return w
}

func (w *lossWorld) worker(t *testing.T) *delta.Engine {
	e, err := delta.New(delta.Config{
		Store:         open(t, redisstore.Config{URL: w.url, Keep: 10 * time.Millisecond}),
		Authenticator: delta.AuthenticatorFunc(func(context.Context, any) (string, error) { return "op", nil }),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
	require.NoError(t, e.Register(w.clerk))
	return e
}

func (w *lossWorld) do(t *testing.T, task, id string) action.Outcome {
	out, err := w.tasks[task].Do(w.ctx, delta.Call{ID: id, Action: "act", Input: []byte(`{}`)}).Get()
	require.NoError(t, err)
	return out
}

// goOn has another worker make ten calls in a task that is there.
func (w *lossWorld) goOn(t *testing.T, id string) {
	task, err := w.worker(t).Open(w.ctx, "clerk~"+id)
	require.NoError(t, err)
	w.tenCalls(t, task)
}

// startAnew has another worker start a task and make ten calls in it.
func (w *lossWorld) startAnew(t *testing.T, id string) { w.startOn(t, w.worker(t), id) }

func (w *lossWorld) startOn(t *testing.T, e *delta.Engine, id string) {
	task, err := e.Start(w.ctx, delta.Goal{ID: id, Agent: w.clerk, Text: "something else"})
	require.NoError(t, err)
	w.tenCalls(t, task)
	require.NoError(t, e.Sync(w.ctx))
}

func (w *lossWorld) tenCalls(t *testing.T, task *delta.Task) {
	for range 10 {
		out, err := task.Do(w.ctx, delta.Call{Action: "act", Input: []byte(`{}`)}).Get()
		require.NoError(t, err)
		require.True(t, out.OK())
	}
}
