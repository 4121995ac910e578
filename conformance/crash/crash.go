//go:build heavy

package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// trap kills the process when a point is passed the n-th time.
type trap struct {
	at   point
	left atomic.Int64
}

func (t *trap) pass(p point) {
	if p == t.at && t.left.Add(-1) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it arrives
	}
}

// mined is a store with traps around its transactions.
type mined struct {
	*redisstore.Store
	trap *trap
}

func (m mined) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	sent, kept := phasePoints(t)
	m.trap.pass(sent)
	r, err := m.Store.Apply(ctx, t)
	if err == nil && r.OK {
		m.trap.pass(kept)
	}
	return r, err
}

func phasePoints(t *txn.Txn) (sent, kept point) {
	switch t.Phase {
	case txn.Park:
		return parkSent, parkKept
	case txn.Begin:
		return beginSent, beginKept
	case txn.Settle:
		return settleSent, settleKept
	case txn.Renew:
		if t.Step > 0 {
			return stepSent, stepKept
		}
	case txn.Plain:
		for i := range t.Clauses {
			switch t.Clauses[i].Op {
			case txn.Trim:
				return foldSent, foldKept
			case txn.Link:
				return "", sealKept
			}
		}
	}
	return "", ""
}

// Keys of the world outside, which no transaction protects: a list of effects for each action.
const effects = "world:effects:"

// effect is what the world saw.
type effect struct {
	Intent string `json:"intent"`
	Order  int    `json:"order"`
	Begun  bool   `json:"begun"` // the ledger held the intent when the effect happened
}

type order struct {
	N    int  `json:"n"`
	Fail bool `json:"fail,omitempty"` // the first attempt fails
}

// The actions: an effect that may not be repeated, one that may, one that takes two attempts, and one that a person must
// approve.
const (
	charge = "charge"
	tag    = "tag"
	retry  = "retry"
	refund = "refund"
)

var actions = []string{charge, tag, retry, refund}

const tokens = 10 // each call reserves and spends

func agent(outside redis.UniversalClient, t *trap) *delta.Agent {
	do := func(name string) func(*delta.Context, order) mo.Result[string] {
		return func(ctx *delta.Context, in order) mo.Result[string] {
			t.pass(inFunction)
			id := ctx.ExecutionID()
			text, _ := json.Marshal(effect{id, in.N, recorded(ctx, outside, id)})
			if err := outside.RPush(ctx, effects+name, text).Err(); err != nil {
				return mo.Err[string](err)
			}
			t.pass(afterwards)
			if err := ctx.Spend(action.Cost{Tokens: tokens}); err != nil {
				return mo.Err[string](err)
			}
			if name == retry && ctx.Attempt() == 1 {
				return mo.Err[string](errors.New("try again"))
			}
			return mo.Ok("done " + strconv.Itoa(in.N))
		}
	}
	h := hooks.Hooks{
		Before: func(context.Context, action.View) error { t.pass(hookBefore); return nil },
		After:  func(context.Context, action.View) error { t.pass(hookAfter); return nil },
	}
	cost := action.Cost{Tokens: tokens}
	return delta.NewAgent("clerk").Grant(
		delta.Define(charge, do(charge)).Describe("Charge").Risk(1).Cost(cost).Effect(action.Irreversible).Hooks(h).MustBuild(),
		delta.Define(tag, do(tag)).Describe("Tag").Risk(1).Cost(cost).Effect(action.Idempotent).Hooks(h).MustBuild(),
		delta.Define(retry, do(retry)).Describe("Retry").Risk(1).Cost(cost).Effect(action.Idempotent).Retry(2).Hooks(h).MustBuild(),
		delta.Define(refund, do(refund)).Describe("Refund").Risk(5).Cost(cost).Effect(action.Irreversible).Hooks(h).MustBuild(),
	).MustBuild()
}

// recorded looks for the intent among the records of the task.
func recorded(ctx context.Context, c redis.UniversalClient, intent string) bool {
	ok, err := c.HExists(ctx, "delta:{clerk}:records:"+taskName, "vintent/"+intent).Result()
	return ok && err == nil
}

const taskName = "day"

// worker is a process of its own: it opens the task, makes its share of calls, and works until it is killed or told to end.
func worker(url string, t *trap, from, calls int, linger time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	outside := redis.NewClient(o)
	defer func() { _ = outside.Close() }()
	s, err := redisstore.Open(ctx, redisstore.Config{URL: url})
	if err != nil {
		return err
	}
	e, err := delta.New(config(mined{s, t}))
	if err != nil {
		return err
	}
	if err := e.Register(agent(outside, t)); err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- e.Work(working) }()
	task, err := e.Open(ctx, "clerk~"+taskName)
	if err != nil {
		return err
	}
	for i := range calls {
		n := from + i
		raw, _ := json.Marshal(order{N: n})
		name := actions[n%len(actions)]
		if out, err := task.Do(ctx, delta.Call{ID: fmt.Sprint("c", n), Action: name, Input: raw}).Get(); err != nil {
			return fmt.Errorf("call %d: %w", n, err)
		} else if out.Code == action.ApprovalRequired {
			who, err := e.Authenticate(ctx, "ana")
			if err != nil {
				return err
			}
			if err := e.Approve(ctx, out.Failure.Approval(), who, "fine"); err != nil {
				return fmt.Errorf("approve %d: %w", n, err)
			}
		}
	}
	time.Sleep(linger)
	stop()
	<-done
	return errors.Join(e.Close(ctx), s.Close())
}

func config(s mined) delta.Config {
	return delta.Config{
		Store: s, Lease: 300 * time.Millisecond, Poll: 20 * time.Millisecond, StoreTimeout: 5 * time.Second,
		Authenticator: delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil }),
	}
}
