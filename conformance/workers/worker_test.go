//go:build heavy

package workers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

// hire is what a worker is started with.
type hire struct {
	Name, Store, World string        // the URLs of the store, and of what actions have effects on
	Skew               time.Duration // of its clock
	Version            string        // of the action refund; "" is 1
	Lease              time.Duration
	Works              bool // it runs Engine.Work
}

// order is something a worker is told to do, on a line of its standard input; report is what came of it.
type (
	order struct {
		N                int
		Do               string
		Task, ID         string
		Call             delta.Call
		Who, Name, Why   string
		Tokens, Children int64
		TTL, Deadline    time.Duration
		Quorum           bool
	}
	report struct {
		N    int
		Err  string `json:",omitempty"`
		Code action.Code
		Out  action.Outcome
		Text string
	}
)

// work is the input of all actions.
type work struct {
	N    int    `json:"n"`
	Fail bool   `json:"fail,omitempty"`
	Hold string `json:"hold,omitempty"` // the function has its effect once this is opened
	Deaf bool   `json:"deaf,omitempty"` // whatever its context says
}

// effect is what the world saw.
type effect struct {
	Worker, Intent string
	N              int
}

// Keys of the world outside, which no transaction protects.
const (
	effects = "effects:" // a list for each action
	entered = "entered:" // who waits for what to be opened
	opened  = "opened:"
)

const cost = 10 // tokens, of each call

func body(h hire, world redis.UniversalClient, name string) func(*delta.Context, work) mo.Result[string] {
	return func(ctx *delta.Context, in work) mo.Result[string] {
		if in.Hold != "" {
			if err := wait(ctx, world, in, h.Name); err != nil {
				return mo.Err[string](err)
			}
		}
		text, _ := json.Marshal(effect{h.Name, ctx.ExecutionID(), in.N})
		if err := world.RPush(context.WithoutCancel(ctx), effects+name, text).Err(); err != nil {
			return mo.Err[string](err)
		}
		if err := ctx.Spend(action.Cost{Tokens: cost}); err != nil {
			return mo.Err[string](err)
		}
		if in.Fail {
			return mo.Err[string](errors.New("no luck"))
		}
		return mo.Ok(fmt.Sprint(name, " ", in.N))
	}
}

func wait(ctx context.Context, world redis.UniversalClient, in work, who string) error {
	heard := ctx
	if in.Deaf {
		heard = context.WithoutCancel(ctx)
	}
	if err := world.RPush(heard, entered+in.Hold, who).Err(); err != nil {
		return err
	}
	for {
		if n, err := world.Exists(heard, opened+in.Hold).Result(); err != nil || n > 0 {
			return err
		}
		select {
		case <-heard.Done():
			return heard.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// staff are the agents that a worker holds: a clerk, and a lead that has others do what a clerk does.
func staff(h hire, world redis.UniversalClient) (clerk, lead *delta.Agent) {
	define := func(name string, risk int, e action.Effect) delta.Builder[work, string] {
		return delta.Define(name, body(h, world, name)).Describe("Has an effect").Risk(risk).Cost(action.Cost{Tokens: cost}).Effect(e)
	}
	confirm := define("confirm", 1, action.Idempotent).MustBuild()
	charge, tag := define("charge", 1, action.Irreversible).MustBuild(), define("tag", 1, action.Idempotent).MustBuild()
	refund := define("refund", 1, action.Irreversible).RequireApproval().Version(map[string]string{"": "1", "2": "2"}[h.Version]).MustBuild()
	clerk = delta.NewAgent("clerk").Grant(confirm, charge, tag, refund,
		define("ship", 1, action.Irreversible).Needs(confirm.On("n").Consumed()).MustBuild(),
		define("payout", 1, action.Irreversible).RequireApproval().Needs(confirm.On("n").Consumed()).MustBuild(),
		define("wire", 1, action.Irreversible).RequireApproval().Quorum(2).MustBuild(),
	).MustBuild()
	return clerk, delta.NewAgent("lead").MayDelegate(charge, refund).MustBuild()
}

func engineOf(h hire, s *redisstore.Store, world redis.UniversalClient) (e *delta.Engine, clerk, lead *delta.Agent, err error) {
	e, err = delta.New(delta.Config{
		Store: s, Lease: h.Lease, Poll: 20 * time.Millisecond, Operators: []string{"op"}, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Now:           func() time.Time { return time.Now().Add(h.Skew) },
		Authenticator: delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil }),
	})
	if err != nil {
		return nil, nil, nil, err
	}
	clerk, lead = staff(h, world)
	return e, clerk, lead, e.Register(clerk, lead)
}

// serve is the life of a worker: it does what it is told, all at the same time, until its input ends.
func serve(h hire, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	o, err := redis.ParseURL(h.World)
	if err != nil {
		return err
	}
	world := redis.NewClient(o)
	defer func() { _ = world.Close() }()
	s, err := redisstore.Open(ctx, redisstore.Config{URL: h.Store, Dial: 10 * time.Second, Read: 10 * time.Second, Write: 10 * time.Second})
	if err != nil {
		return err
	}
	e, clerk, lead, err := engineOf(h, s, world)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	if h.Works {
		all.Go(func() { _ = e.Work(working) })
	}
	w := &desk{engine: e, agents: map[string]*delta.Agent{"clerk": clerk, "lead": lead}}
	var mu sync.Mutex
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			stop()
			return err
		}
		all.Go(func() {
			r, err := w.do(ctx, o)
			if r.N = o.N; err != nil {
				r.Err = err.Error()
			}
			text, _ := json.Marshal(r)
			mu.Lock()
			defer mu.Unlock()
			_, _ = fmt.Fprintf(out, "%s\n", text)
		})
	}
	stop()
	all.Wait()
	return errors.Join(e.Close(ctx), s.Close())
}

// desk is where orders are carried out.
type desk struct {
	engine *delta.Engine
	agents map[string]*delta.Agent
}

func (w *desk) do(ctx context.Context, o order) (r report, err error) {
	who, err := w.engine.Authenticate(ctx, o.Who)
	if err != nil && o.Who != "" {
		return r, err
	}
	e := w.engine
	switch o.Do {
	case "start":
		t, err := e.Start(ctx, w.goal(o))
		if err != nil {
			return r, err
		}
		return report{Text: t.ID()}, nil
	case "approve":
		return r, e.Approve(ctx, o.ID, who, o.Why)
	case "reject":
		return r, e.Reject(ctx, o.ID, who, o.Why)
	case "revoke":
		return r, e.Revoke(ctx, o.ID, who, o.Why)
	case "withdraw":
		return r, e.Withdraw(ctx, o.ID, who, o.Why)
	case "halt":
		return r, e.HaltAgent(ctx, "clerk", who, delta.HaltNow, o.Why)
	case "lift":
		return r, e.LiftAgent(ctx, "clerk", who, o.Why)
	case "beliefs":
		if err := e.Sync(ctx); err != nil {
			return r, err
		}
		trust, err := e.Trust(ctx, "clerk")
		risks, err2 := e.Risks(ctx, "clerk")
		text, err3 := json.Marshal([]any{trust, risks})
		return report{Text: string(text)}, errors.Join(err, err2, err3)
	}
	t, err := e.Open(ctx, o.Task)
	if err != nil {
		return r, err
	}
	return w.of(ctx, t, o)
}

// of carries out what is to be done with a task.
func (w *desk) of(ctx context.Context, t *delta.Task, o order) (r report, err error) {
	switch o.Do {
	case "call":
		for { // who lost a race is told so, and tries again
			r.Out, err = t.Do(ctx, o.Call).Get()
			if r.Code = r.Out.Code; err != nil || r.Code != action.Stale {
				return r, err
			}
		}
	case "cancel":
		return r, t.Cancel(ctx, o.Why)
	case "end":
		return r, t.Done(ctx, o.Why)
	case "status":
		r.Text, _, err = t.Status(ctx)
		return r, err
	case "delegate":
		c, err := t.Delegate(ctx, w.goal(o))
		if err != nil {
			return r, err
		}
		child, err := c.Task(ctx)
		if err != nil {
			return r, err
		}
		return report{Text: child.ID()}, nil
	case "await":
		c, err := t.Child(ctx, o.ID)
		if err != nil {
			return r, err
		}
		s, err := c.Wait(ctx)
		return report{Text: s.Ended}, err
	}
	return r, fmt.Errorf("what is %q", o.Do)
}

func (w *desk) goal(o order) delta.Goal {
	g := delta.Goal{
		ID: o.ID, Agent: w.agents[o.Name], Text: "a day's work", Approvers: []string{"ana", "ben", "eve"}, Threshold: 5, ApprovalTTL: o.TTL,
		Limit: action.Limit{Tokens: action.Max(o.Tokens)},
	}
	if o.Deadline > 0 {
		g.Deadline = time.Now().Add(o.Deadline)
	}
	return g
}

const hireEnv = "DELTA_WORKER"

// hired serves where this process was started as a worker, and ends it.
func hired() {
	text := os.Getenv(hireEnv)
	if text == "" {
		return
	}
	var h hire
	err := json.Unmarshal([]byte(text), &h)
	if err == nil {
		err = serve(h, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
