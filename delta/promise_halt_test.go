package delta_test

import (
	"context"
	"fmt"
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
)

// fleet is engines over one store, each with a task of the agent "crew" and one of the agent "desk".
type fleet struct {
	*testing.T
	store   *memory.InProcess
	engines []*delta.Engine
	agents  []*delta.Agent
	actions []delta.Definition
	spies   []*spy
	tasks   []*delta.Task
	ops     []delta.Identity
	mu      sync.Mutex
	behave  func(ctx *delta.Context) mo.Result[Out]
}

func newFleet(t *testing.T, engines int) *fleet {
	f := &fleet{T: t, store: memory.New(memory.Config{})}
	run := func(ctx *delta.Context, _ In) mo.Result[Out] {
		f.mu.Lock()
		do := f.behave
		f.mu.Unlock()
		if do == nil {
			return mo.Ok(Out{"ok"})
		}
		return do(ctx)
	}
	look := delta.Define("look", run).Describe("looks").Risk(1).Effect(action.None).Timeout(time.Hour)
	act := delta.Define("act", run).Describe("acts").Risk(1).Timeout(time.Hour)
	f.actions = []delta.Definition{look.MustBuild(), act.MustBuild()}
	for _, name := range []string{"crew", "desk"} {
		f.agents = append(f.agents, delta.NewAgent(name).Grant(f.actions...).MustBuild())
	}
	for range engines {
		f.engine()
	}
	for i, e := range f.engines {
		for _, a := range f.agents {
			f.tasks = append(f.tasks, f.start(e, a, fmt.Sprint("t", i)))
		}
	}
	return f
}

func (f *fleet) engine() *delta.Engine {
	between := &spy{Store: f.store}
	f.spies = append(f.spies, between)
	e, err := delta.New(delta.Config{Store: between, Authenticator: anybody, Operators: []string{"op"}, Lease: 3 * time.Second, Poll: time.Second, Grace: time.Second})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, e.Close(context.Background())) })
	require.NoError(f, e.Register(f.agents...))
	op, err := e.Authenticate(context.Background(), "op")
	require.NoError(f, err)
	f.engines, f.ops = append(f.engines, e), append(f.ops, op)
	return e
}

func (f *fleet) start(e *delta.Engine, a *delta.Agent, id string) *delta.Task {
	f.Helper()
	task, err := e.Start(context.Background(), delta.Goal{ID: id, Agent: a, Text: "go"})
	require.NoError(f, err)
	return task
}

func (f *fleet) does(do func(ctx *delta.Context) mo.Result[Out]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behave = do
}

func (f *fleet) code(t *delta.Task, name string) action.Code {
	f.Helper()
	return t.Do(context.Background(), call(name, "a")).MustGet().Code
}

func untilTold(ctx *delta.Context) mo.Result[Out] {
	<-ctx.Done()
	return mo.Err[Out](ctx.Err())
}

// TestHaltOfAnAgent: nothing of the agent begins on any worker once the halt has returned, later tasks included; other agents
// go on; calls under way elsewhere hear of it with their heartbeat.
func TestHaltOfAnAgent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 2)
		f.does(untilTold)
		here := background(func() action.Code { return f.code(f.tasks[0], "look") })
		there := background(func() action.Code { return f.code(f.tasks[2], "act") })
		synctest.Wait()
		began := time.Now()
		require.NoError(t, f.engines[0].HaltAgent(context.Background(), "crew", f.ops[0], delta.HaltNow, "something is wrong"))
		assert.Equal(t, action.Interrupted, here())
		assert.Zero(t, time.Since(began), "here at once")
		assert.Equal(t, action.StartedUnknown, there())
		assert.LessOrEqual(t, time.Since(began), time.Second, "elsewhere within a third of the lease")
		f.does(nil)
		for i, e := range f.engines {
			late := f.start(e, f.agents[0], fmt.Sprint("late", i))
			o := late.Do(context.Background(), call("look", "a")).MustGet()
			assert.Equal(t, action.Cancelled, o.Code)
			assert.Equal(t, "something is wrong", o.Failure.Details[action.DetailReason])
			offer, err := late.Offer(context.Background())
			require.NoError(t, err)
			assert.Empty(t, offer.Actions)
		}
		assert.Equal(t, action.OK, f.code(f.tasks[1], "look"), "another agent goes on")
		assert.Equal(t, action.OK, f.code(f.tasks[3], "look"))
		h, halted, err := f.engines[1].Halted(context.Background(), "crew")
		require.NoError(t, err)
		assert.True(t, halted && h.By == "op" && !h.All)
		require.NoError(t, f.engines[1].LiftAgent(context.Background(), "crew", f.ops[1], "mended"))
		assert.Equal(t, action.OK, f.code(f.tasks[0], "look"))
		assert.Equal(t, []ledger.Type{ledger.AgentHalted, ledger.AgentResumed}, f.halts("crew"))
	})
}

// halts returns the events of halting in an agent's own ledger.
func (f *fleet) halts(agent string) (out []ledger.Type) {
	records, err := f.store.Records(context.Background(), agent, "", 1, 1000)
	require.NoError(f, err)
	for _, r := range records {
		e, err := ledger.Decode(r.Val)
		require.NoError(f, err)
		if e.Type == ledger.AgentHalted || e.Type == ledger.AgentResumed {
			out = append(out, e.Type)
		}
	}
	return out
}

func TestHaltAfterLetsCallsFinish(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 1)
		f.does(func(ctx *delta.Context) mo.Result[Out] {
			select {
			case <-ctx.Done():
				return mo.Err[Out](ctx.Err())
			case <-time.After(20 * time.Second):
				return mo.Ok(Out{"done"})
			}
		})
		end := background(func() action.Code { return f.code(f.tasks[0], "act") })
		synctest.Wait()
		require.NoError(t, f.engines[0].HaltAgent(context.Background(), "crew", f.ops[0], delta.HaltAfter, "enough"))
		assert.Equal(t, action.Cancelled, f.code(f.tasks[0], "look"))
		assert.Equal(t, action.OK, end())
	})
}

// TestKillSwitch: everything stops on every engine, within Config.Poll where it has something to do; agents and engines that
// come later inherit it; an operator alone lifts it.
func TestKillSwitch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 2)
		f.does(untilTold)
		there := background(func() action.Code { return f.code(f.tasks[3], "look") })
		synctest.Wait()
		anyone, err := f.engines[0].Authenticate(context.Background(), "anyone")
		require.NoError(t, err)
		require.Error(t, f.engines[0].HaltAll(context.Background(), anyone, delta.HaltNow, "because I can"))
		began := time.Now()
		require.NoError(t, f.engines[0].HaltAll(context.Background(), f.ops[0], delta.HaltNow, "stop"))
		assert.Equal(t, action.Interrupted, there())
		assert.LessOrEqual(t, time.Since(began), 2*time.Second)
		f.does(nil)
		for _, task := range f.tasks {
			assert.Equal(t, action.Cancelled, f.code(task, "look"))
		}
		later := delta.NewAgent("later").Grant(delta.Define("look", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"ok"}) }).
			Describe("looks").Risk(1).Effect(action.None).MustBuild()).MustBuild()
		task := f.start(f.engine(), later, "t")
		assert.Equal(t, action.Cancelled, f.code(task, "look"), "a new agent on a new engine")
		require.Error(t, f.engines[0].LiftAll(context.Background(), anyone, "please"))
		require.NoError(t, f.engines[0].LiftAll(context.Background(), f.ops[0], "all clear"))
		time.Sleep(2 * time.Second)
		for _, task := range append(f.tasks, task) {
			assert.Equal(t, action.OK, f.code(task, "look"))
		}
	})
}

func TestCancelOneCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 2)
		intents := make(chan string, 2)
		f.does(func(ctx *delta.Context) mo.Result[Out] {
			intents <- ctx.ExecutionID()
			select {
			case <-ctx.Done():
				return mo.Err[Out](ctx.Err())
			case <-time.After(10 * time.Second):
				return mo.Ok(Out{"done"})
			}
		})
		one := background(func() action.Code { return f.code(f.tasks[0], "look") })
		first := <-intents
		two := background(func() action.Code { return f.code(f.tasks[0], "act") })
		<-intents
		other, err := f.engines[1].Open(context.Background(), f.tasks[0].ID())
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, other.CancelCall(context.Background(), first, "not this one"))
		assert.Equal(t, action.Interrupted, one())
		assert.LessOrEqual(t, time.Since(began), time.Second, "by another worker, with the heartbeat")
		assert.Equal(t, action.OK, two(), "the rest goes on")
		require.Error(t, other.CancelCall(context.Background(), "", "which?"))
	})
}

// TestI18_CancelWith64InFlight: whatever is cancelled, each of 64 calls ends in exactly one outcome, nothing stays reserved
// but what nobody knows the outcome of, and functions that do not listen are counted until they return.
func TestI18_CancelWith64InFlight(t *testing.T) {
	for name, stop := range map[string]func(*fleet) error{
		"the task": func(f *fleet) error { return f.tasks[0].Cancel(context.Background(), "enough") },
		"the agent": func(f *fleet) error {
			return f.engines[0].HaltAgent(context.Background(), "crew", f.ops[0], delta.HaltNow, "enough")
		},
		"everything": func(f *fleet) error {
			return f.engines[0].HaltAll(context.Background(), f.ops[0], delta.HaltNow, "enough")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFleet(t, 1)
				release := make(chan struct{})
				var n int
				f.does(func(ctx *delta.Context) mo.Result[Out] {
					f.mu.Lock()
					n++
					deaf := n%8 == 0
					f.mu.Unlock()
					if deaf {
						<-release
						return mo.Ok(Out{"at last"})
					}
					return untilTold(ctx)
				})
				var ends []func() action.Outcome
				for i := range 64 {
					which := []string{"look", "act"}[i%2]
					ends = append(ends, background(func() action.Outcome {
						return f.tasks[0].Do(context.Background(), call(which, fmt.Sprint(i))).MustGet()
					}))
				}
				synctest.Wait()
				require.Equal(t, 64, n)
				require.NoError(t, stop(f))
				codes, unknown := map[string]action.Code{}, int64(0)
				for _, end := range ends {
					o := end()
					codes[o.Intent] = o.Code
					if o.Code == action.StartedUnknown {
						unknown++
					} else {
						assert.Equal(t, action.Interrupted, o.Code)
					}
				}
				require.Len(t, codes, 64, "each has an outcome of its own")
				assert.EqualValues(t, 32, unknown)
				b, err := f.tasks[0].Budget(context.Background())
				require.NoError(t, err)
				assert.Equal(t, unknown, b.Reserved.Calls)
				require.EqualValues(t, 8, f.engines[0].Abandoned())
				close(release)
				synctest.Wait()
				assert.Zero(t, f.engines[0].Abandoned())
				settled, late := map[string]action.Code{}, 0
				records, _, err := f.tasks[0].Ledger(context.Background())
				require.NoError(t, err)
				for _, r := range records {
					e, err := ledger.Decode(r.Val)
					require.NoError(t, err)
					switch e.Type {
					case ledger.Settled:
						_, twice := settled[e.Intent]
						assert.False(t, twice, "one end")
						settled[e.Intent] = e.Code
					case ledger.Late:
						late++
					}
				}
				assert.Equal(t, codes, settled)
				assert.Equal(t, 8, late, "what was abandoned is LATE")
			})
		})
	}
}
