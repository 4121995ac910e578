//go:build heavy

package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/engine"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
	"github.com/seed-ab2cfece/delta-agents/txn"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

// fuse kills the process when the n-th boundary of a workflow's commands is passed; n of 0 only counts them.
type fuse struct {
	n      int64
	passed atomic.Int64
}

func (f *fuse) pass() {
	if f.passed.Add(1) == f.n {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it arrives
	}
}

// fused is a store with a fuse before and after what a workflow and its calls write.
type fused struct {
	*redisstore.Store
	fuse *fuse
}

func (m fused) Apply(ctx context.Context, t *txn.Txn) (txn.Reply, error) {
	is := t.Phase == txn.Begin || t.Phase == txn.Settle || t.Phase == txn.Park
	for i := range t.Clauses {
		c := &t.Clauses[i]
		is = is || c.Scope == txn.Record && (c.Op == txn.Put && c.Key == "flow" || c.Op == txn.Take && c.Key == "flow-hold" || c.Op == txn.Have && c.Key == "flow-hold" && c.From == "")
	}
	if is {
		m.fuse.pass()
	}
	r, err := m.Store.Apply(ctx, t)
	if is && err == nil && r.OK {
		m.fuse.pass()
	}
	return r, err
}

type flowItem struct {
	ID string `json:"id"`
}

const flowEffects = "world:flow" // a list of "action intent"

// desk is an agent whose effects happen in a world outside, and two workflows over its actions, with steps of all types.
func flowDesk(world redis.UniversalClient, f *fuse, fails bool) (a *delta.Agent, parent, child *workflow.Definition) {
	act := func(name string, e action.Effect) delta.Builder[flowItem, flowItem] {
		return delta.Define(name, func(ctx *delta.Context, in flowItem) mo.Result[flowItem] {
			if name == "last" && fails {
				return mo.Err[flowItem](errors.New("broken"))
			}
			f.pass()
			if err := world.RPush(context.WithoutCancel(ctx), flowEffects, name+" "+ctx.ExecutionID()).Err(); err != nil {
				return mo.Err[flowItem](err)
			}
			f.pass()
			return mo.Ok(in)
		}).Describe("Has an effect").Risk(1).Effect(e)
	}
	undo := act("undo", action.Idempotent).MustBuild()
	back := func(in, _ flowItem) any { return in }
	a = delta.NewAgent("clerk").Grant(undo,
		act("charge", action.Compensatable).Undo(undo, back).MustBuild(),
		act("send", action.Compensatable).Undo(undo, back).MustBuild(),
		act("last", action.Idempotent).MustBuild()).MustBuild()
	input := `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`
	child = workflow.New("child", "1").Input(input).Step(workflow.Execute("ship", "send").Map("id", "input.id")).MustBuild()
	parent = workflow.New("sop", "1").Input(input).Owners("ana").
		Step(workflow.AskPerson("ask").Hitl(workflow.Hitl{Who: []string{"ana"}, Intake: json.RawMessage(`{"type":"object","required":["ok"]}`)})).
		Step(workflow.Reason("think", "p").Needs("ask").Output(`{"type":"object","required":["id"]}`)).
		Step(workflow.Execute("pay", "charge").Needs("think").Map("id", "steps.think.output.id")).
		Step(workflow.Run("sub", "child").Needs("pay").Map("id", "input.id")).
		Step(workflow.Execute("end", "last").Needs("sub").Map("id", "input.id").
			Limits(workflow.Limits{Attempts: 1, Iterations: 1}).Ladder(workflow.Rung{Kind: workflow.RungRetry, Attempts: 1})).
		MustBuild()
	return a, parent, child
}

func flowEngine(s fused, parent, child *workflow.Definition) (*delta.Engine, error) {
	return delta.New(delta.Config{
		Store: s, Lease: 300 * time.Millisecond, Poll: 20 * time.Millisecond, StoreTimeout: 5 * time.Second,
		Authenticator: delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil }),
		Workflows: delta.Workflows{
			Definitions: []*workflow.Definition{child, parent},
			Proposers: map[string]delta.Proposer{"p": delta.ProposerFunc(func(context.Context, delta.StepRequest) (delta.Draft, error) {
				return delta.Draft{Document: json.RawMessage(`{"id":"o1"}`)}, nil
			})},
		},
	})
}

// flowWorker is a process of its own: it works until the instance has ended, or it is killed. It tells the boundaries that it
// passed.
func flowWorker(url string, n int64, fails bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	o, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	world := redis.NewClient(o)
	defer func() { _ = world.Close() }()
	s, err := redisstore.Open(ctx, redisstore.Config{URL: url})
	if err != nil {
		return err
	}
	f := &fuse{n: n}
	a, parent, child := flowDesk(world, f, fails)
	e, err := flowEngine(fused{s, f}, parent, child)
	if err != nil {
		return err
	}
	if err := e.Register(a); err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- e.Work(working) }()
	i, err := e.OpenWorkflow(ctx, "clerk~"+taskName)
	if err == nil {
		err = closed(ctx, e, i.ID())
	}
	if err == nil {
		err = drained(ctx, s)
	}
	stop()
	<-done
	fmt.Println(f.passed.Load())
	return errors.Join(err, e.Close(ctx), s.Close())
}

// closed waits until a task was closed, as that of an instance is when it has ended.
func closed(ctx context.Context, e *delta.Engine, id string) error {
	for r, err := range e.Follow(ctx, id, 1) {
		if err != nil || r.Type == ledger.TaskClosed {
			return err
		}
	}
	return nil
}

// drained waits until nothing is owed to anybody any more: those are the last boundaries.
func drained(ctx context.Context, s memory.Store) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		owed := 0
		for _, q := range []string{engine.QueueFlows, engine.QueueStarts, engine.QueueReports, engine.QueueEnds, txn.Leases} {
			page, err := s.Queued(ctx, "clerk", q, txn.Queued{}, false, 1)
			if err != nil {
				return err
			}
			owed += len(page)
		}
		if owed == 0 {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
