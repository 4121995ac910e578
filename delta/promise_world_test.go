package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/hooks"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

type In struct {
	ID string `json:"id" jsonschema:"minLength=1"`
	N  int64  `json:"n,omitempty" jsonschema:"minimum=0,maximum=1000"`
}

type Out struct {
	Said string `json:"said" jsonschema:"minLength=1"`
}

// spy is a store under test: it shows each transaction to before, which may refuse to pass it on.
type spy struct {
	memory.Store
	mu     sync.Mutex
	before func(*txn.Txn) error
	down   bool // nothing gets through at all
}

var errDown = errors.New("the store is down")

// now returns what stands at this moment; the store is nil while it is down.
func (s *spy) now() (memory.Store, func(*txn.Txn) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, nil
	}
	return s.Store, s.before
}

func (s *spy) set(change func(*spy)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *spy) Apply(ctx context.Context, x *txn.Txn) (txn.Reply, error) {
	store, before := s.now()
	if store == nil {
		return txn.Reply{}, errDown
	}
	if before != nil {
		if err := before(x); err != nil {
			return txn.Reply{}, err
		}
	}
	return store.Apply(ctx, x)
}

func (s *spy) Load(ctx context.Context, agent, task string, have *txn.Snapshot) (*txn.Snapshot, error) {
	store, _ := s.now()
	if store == nil {
		return nil, errDown
	}
	return store.Load(ctx, agent, task, have)
}

func (s *spy) Records(ctx context.Context, agent, task string, from int64, limit int) ([]txn.Stored, error) {
	store, _ := s.now()
	if store == nil {
		return nil, errDown
	}
	return store.Records(ctx, agent, task, from, limit)
}

func (s *spy) Queued(ctx context.Context, agent, queue string, after txn.Queued, dueOnly bool, limit int) ([]txn.Queued, error) {
	store, _ := s.now()
	if store == nil {
		return nil, errDown
	}
	return store.Queued(ctx, agent, queue, after, dueOnly, limit)
}

// Close leaves the store open: several engines share it.
func (s *spy) Close() error { return nil }

// world is an engine with one agent that holds an action of every kind, whose behaviour a test scripts.
type world struct {
	*testing.T
	name   string // of its task
	store  *spy
	shared memory.Store
	cfg    delta.Config
	engine *delta.Engine
	agent  *delta.Agent
	task   *delta.Task
	acts   map[string]*delta.Action[In, Out]
	boss   delta.Identity

	mu      sync.Mutex
	behave  func(ctx *delta.Context, in In) mo.Result[Out]
	before  hooks.Func
	after   func()       // releases what a scene holds back
	start   books        // as the scene began
	effects atomic.Int64 // how often a function started
}

// worlds finds a world by its task, so that declarations, which take a while, are made once for all of them.
var (
	worlds   sync.Map // full task id → *world
	worldSeq atomic.Int64
	declared sync.Map // name → delta.Builder[In, Out]
)

func worldOf(task string) *world {
	w, _ := worlds.Load(task)
	return w.(*world)
}

// run is what every action does.
func run(ctx *delta.Context, in In) mo.Result[Out] {
	w := worldOf(ctx.TaskID())
	w.effects.Add(1)
	w.mu.Lock()
	f := w.behave
	w.mu.Unlock()
	if f == nil {
		return mo.Ok(Out{"done"})
	}
	return f(ctx, in)
}

// does scripts what functions do from now on.
func (w *world) does(f func(ctx *delta.Context, in In) mo.Result[Out]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behave = f
}

func (w *world) define(name string) delta.Builder[In, Out] {
	b, ok := declared.Load(name)
	if !ok {
		b, _ = declared.LoadOrStore(name, delta.Define(name, run).Describe("what "+name+" does").Risk(1).
			Effect(action.Irreversible).Timeout(time.Minute))
	}
	return b.(delta.Builder[In, Out])
}

func (w *world) keep(b delta.Builder[In, Out]) *delta.Action[In, Out] {
	a := b.MustBuild()
	w.acts[a.Name()] = a
	return a
}

// clerk is an agent with an action of every kind.
func (w *world) clerk() *delta.Agent {
	w.acts = map[string]*delta.Action[In, Out]{}
	act := w.keep(w.define("act"))
	look := w.keep(w.define("look").Effect(action.None))
	all := []delta.Definition{
		act, look,
		w.keep(w.define("amend").Effect(action.Compensatable)),
		w.keep(w.define("retried").Effect(action.Idempotent).Retry(2)),
		w.keep(w.define("keyed").IdempotencyKey(func(in In) string {
			if in.N > 0 {
				return ""
			}
			return "key of " + in.ID
		})),
		w.keep(w.define("then-act").Needs(act.On("id"))),
		w.keep(w.define("then-look").Needs(look.On("id"))),
		w.keep(w.define("ticket").Needs(look.On("id").Consumed())),
		w.keep(w.define("risky").Risk(5)),
		w.keep(w.define("steep").RiskWhen("many", func(in In) bool { return in.N > 100 }, 5)),
		w.keep(w.define("briefed").Context("crm")),
		w.keep(w.define("rated").Rate(1, time.Hour)),
		w.keep(w.define("single").AtOnce(1)),
		w.keep(delta.DefineToolOf[In, Out]("by-tool", "nobody").Describe("executed by a tool that is not there").Risk(1)),
		w.keep(w.define("metered").CostOf(func(in In) action.Cost {
			if in.N == 999 {
				panic("less than nothing")
			}
			return action.Cost{Tokens: in.N}
		}, action.Tokens).MaxCost(action.Limit{Tokens: action.Max(200)})),
		w.keep(w.define("costly").Cost(action.Cost{Tokens: 100})),
		w.keep(w.define("checked").Hooks(hooks.Hooks{Before: func(ctx context.Context, v action.View) error {
			w.mu.Lock()
			f := w.before
			w.mu.Unlock()
			if f == nil {
				return nil
			}
			return f(ctx, v)
		}})),
	}
	return delta.NewAgent("clerk").Role("clerk").Grant(all...).Actions(w.keep(w.define("forbidden"))).MustBuild()
}

type change func(*world, *delta.Goal)

// newWorld opens a task. Call it inside a bubble where time matters.
func newWorld(t *testing.T, changes ...change) *world {
	w := &world{T: t, name: fmt.Sprint("t", worldSeq.Add(1)), shared: memory.New(memory.Config{})}
	w.store = &spy{Store: w.shared}
	w.cfg = delta.Config{Store: w.store, Authenticator: anybody, Lease: 3 * time.Second, Grace: time.Second, Poll: time.Second}
	w.agent = w.clerk()
	worlds.Store("clerk~"+w.name, w)
	t.Cleanup(func() { worlds.Delete("clerk~" + w.name) })
	g := delta.Goal{ID: w.name, Agent: w.agent, Text: "get it done", Approvers: []string{"*"}, ApprovalTTL: time.Hour}
	for _, c := range changes {
		c(w, &g)
	}
	w.engine = w.open(w.store)
	var err error
	w.task, err = w.engine.Start(w.Context(), g)
	require.NoError(t, err)
	w.boss, err = w.engine.Authenticate(w.Context(), "boss")
	require.NoError(t, err)
	return w
}

var anybody = delta.AuthenticatorFunc(func(_ context.Context, credential any) (string, error) {
	return credential.(string), nil
})

// open returns another engine over a store, with the same agent.
func (w *world) open(s memory.Store) *delta.Engine {
	cfg := w.cfg
	cfg.Store = s
	e, err := delta.New(cfg)
	require.NoError(w, err)
	require.NoError(w, e.Register(w.agent))
	w.Cleanup(func() { require.NoError(w, e.Close(context.Background())) })
	return e
}

// other is an engine that shares the store but not its disturbances.
func (w *world) other() *delta.Engine { return w.open(&spy{Store: w.shared}) }

func inputOf(in In) json.RawMessage {
	raw, _ := json.Marshal(in)
	return raw
}

func call(name, id string) delta.Call { return delta.Call{Action: name, Input: inputOf(In{ID: id})} }

// do makes a call and returns its outcome.
func (w *world) do(c delta.Call) action.Outcome {
	w.Helper()
	o, err := w.task.Do(context.Background(), c).Get()
	require.NoError(w, err)
	return o
}

// background runs f beside the test and returns a function that waits for it.
func background[V any](f func() V) func() V {
	c := make(chan V, 1)
	go func() { c <- f() }()
	return func() V { return <-c }
}

// work runs e.Work until the returned function is called.
func (w *world) work(e *delta.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := background(func() error { return e.Work(ctx) })
	return func() { cancel(); done() }
}

// events returns the task's ledger, decoded.
func (w *world) events() []ledger.Event {
	w.Helper()
	var out []ledger.Event
	records, err := w.shared.Records(context.Background(), "clerk", w.name, 1, 1<<20)
	require.NoError(w, err)
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		require.NoError(w, err)
		out = append(out, e)
	}
	return out
}

func (w *world) count(t ledger.Type) (n int) {
	for _, e := range w.events() {
		if e.Type == t {
			n++
		}
	}
	return n
}

// offered reports whether a planner is offered the action now.
func (w *world) offered(name string) bool {
	w.Helper()
	o, err := w.task.Offer(context.Background())
	require.NoError(w, err)
	_, ok := o.Find(name)
	return ok
}

// bubble runs a test in a bubble of its own, in which time passes at once.
func bubble(t *testing.T, f func(*testing.T)) { synctest.Test(t, f) }

// ignores waits for the channel whatever its context does.
func ignores(c <-chan struct{}) func(*delta.Context, In) mo.Result[Out] {
	return func(*delta.Context, In) mo.Result[Out] {
		<-c
		return mo.Ok(Out{"at last"})
	}
}

// obeys waits for the end of its context.
func obeys(ctx *delta.Context, _ In) mo.Result[Out] {
	<-ctx.Done()
	return mo.Err[Out](ctx.Err())
}

func fails(*delta.Context, In) mo.Result[Out] { return mo.Err[Out](errors.New("no luck")) }
