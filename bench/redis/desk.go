package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory/redisstore"
)

const (
	contract = `{"type":"object","properties":{"order":{"type":"string"},"cents":{"type":"integer"}},"required":["order","cents"]}`
	input    = `{"order":"ORD-2026-000042","cents":125000}`
	receipt  = `{"charged":125000}`
)

// desk is an engine on the server, with tasks of some agents.
type desk struct {
	client *redis.Client
	store  *redisstore.Store
	engine *delta.Engine
	tasks  []*delta.Task
	tape   tape
}

// open starts so many agents with so many tasks each; an agent holds so many actions.
func open(ctx context.Context, s *server, agents, tasks, actions int) (*desk, error) {
	d := &desk{client: redis.NewClient(&redis.Options{Addr: s.addr, ContextTimeoutEnabled: true, PoolSize: 64})}
	d.client.AddHook(&d.tape)
	var err error
	if d.store, err = redisstore.New(ctx, d.client, redisstore.Config{}); err != nil {
		return nil, err
	}
	if d.engine, err = delta.New(delta.Config{Store: d.store}); err != nil {
		return nil, err
	}
	var held []delta.Definition
	for i := range actions {
		a, err := delta.DefineRaw(fmt.Sprint("charge", i), json.RawMessage(contract), func(*delta.Context, action.Input) mo.Result[action.Output] {
			return mo.Ok(action.Output(receipt))
		}).Describe("Charge an order").Risk(2).Cost(action.Cost{Tokens: 100}).Effect(action.Idempotent).Timeout(delta.NoTimeout).Build()
		if err != nil {
			return nil, err
		}
		held = append(held, a)
	}
	for i := range agents {
		a, err := delta.NewAgent(fmt.Sprint("clerk", i)).Grant(held...).Build()
		if err != nil {
			return nil, err
		}
		for j := range tasks {
			t, err := d.engine.Start(ctx, delta.Goal{ID: fmt.Sprint("t", j), Agent: a, Text: "serve the counter", Limit: action.Limit{Tokens: action.Max(action.MaxAmount / 2)}})
			if err != nil {
				return nil, err
			}
			d.tasks = append(d.tasks, t)
		}
	}
	return d, d.calls(ctx, 8*len(d.tasks)) // what is learned first costs more
}

func (d *desk) close() error {
	return errors.Join(d.engine.Close(context.Background()), d.store.Close(), d.client.Close())
}

// call makes a governed call that must succeed.
func call(ctx context.Context, t *delta.Task, name string) error {
	out, err := t.Do(ctx, delta.Call{Action: name, Input: json.RawMessage(input)}).Get()
	if err == nil && !out.OK() {
		err = fmt.Errorf("the call ended as %s: %w", out.Code, out.Err())
	}
	return err
}

// calls makes n calls, one goroutine a task.
func (d *desk) calls(ctx context.Context, n int) error {
	return share(len(d.tasks), n, func(i int) error { return call(ctx, d.tasks[i], "charge0") })
}

// share has so many goroutines do something n times in all.
func share(goroutines, n int, do func(i int) error) error {
	errs := make([]error, goroutines)
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for range (n + goroutines - 1 - i) / goroutines {
				if errs[i] = do(i); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// tape is a hook that keeps what is sent while it runs.
type tape struct {
	runs atomic.Bool
	mu   sync.Mutex
	sent [][]any
}

// start runs the tape until it is stopped, which returns what is on it.
func (t *tape) start() (stop func() [][]any) {
	t.runs.Store(true)
	return func() [][]any {
		t.runs.Store(false)
		t.mu.Lock()
		defer t.mu.Unlock()
		sent := t.sent
		t.sent = nil
		return sent
	}
}

func (t *tape) DialHook(next redis.DialHook) redis.DialHook { return next }

func (t *tape) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, c := range cmds {
			t.keep(c)
		}
		return next(ctx, cmds)
	}
}

func (t *tape) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		t.keep(cmd)
		return next(ctx, cmd)
	}
}

func (t *tape) keep(c redis.Cmder) {
	if !t.runs.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	args := slices.Clone(c.Args())
	for i, a := range args {
		if s, ok := a.(*string); ok { // whose memory the store uses again
			args[i] = strings.Clone(*s)
		}
	}
	t.sent = append(t.sent, args)
}

// Where the arguments of a transaction name the lease, and the records by which its caller knows task and agent.
const (
	leaseAt = 10
	knownAt = 11
)

// unknown are the arguments of one that knows none.
var unknown = []string{"", "", "", "", "0"}

// recorded is what one governed call sends: its begin and its settle, and the intent they name.
type recorded struct {
	begin, settle []string
	intent        string
}

// record makes a call and returns the two scripts it ran, with their arguments.
func (d *desk) record(ctx context.Context, task int) (recorded, error) {
	if err := d.engine.Sync(ctx); err != nil {
		return recorded{}, err
	}
	stop := d.tape.start()
	if err := call(ctx, d.tasks[task], "charge0"); err != nil {
		return recorded{}, err
	}
	var r recorded
	for _, args := range stop() {
		text := make([]string, len(args))
		for i, a := range args {
			text[i] = fmt.Sprint(a)
		}
		if text[0] != "evalsha" || len(text) < 10 {
			continue
		}
		keys := 0
		_, _ = fmt.Sscan(text[2], &keys)
		if len(text) <= 3+keys {
			continue
		}
		switch text[3+keys] {
		case "B":
			r.begin = text
			_, r.intent, _ = strings.Cut(text[3+keys+leaseAt], "\n")
		case "X":
			r.settle = text
		}
	}
	if r.begin == nil || r.settle == nil {
		return r, errors.New("the call's transactions were not seen")
	}
	return r, nil
}

// wire writes a command as it goes over the connection.
func wire(args []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// raw is a connection that sends what is ready made and reads one answer for each.
type raw struct {
	net.Conn
	buf []byte
}

func dial(addr string) (*raw, error) {
	c, err := net.Dial("tcp", addr)
	return &raw{c, make([]byte, 64<<10)}, err
}

// do sends a command; its answer must fit one read, which those of scripts do.
func (r *raw) do(cmd []byte) error {
	if _, err := r.Write(cmd); err != nil {
		return err
	}
	n, err := r.Read(r.buf)
	if err == nil && r.buf[0] == '-' {
		err = errors.New(string(r.buf[:n]))
	}
	return err
}

// longTask is another goal for the agent of the first task.
func longTask(d *desk) delta.Goal {
	return delta.Goal{ID: "long", Agent: d.tasks[0].Agent(), Text: "serve the counter all day", Limit: action.Limit{Tokens: action.Max(action.MaxAmount / 2)}}
}
