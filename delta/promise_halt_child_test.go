package delta_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// lineage is a task of the crew, a child of it at the desk, and a child of that one at the yard.
func (f *fleet) lineage(e *delta.Engine) (parent, child, grandchild *delta.Task) {
	ctx := context.Background()
	yard := delta.NewAgent("yard").Grant(f.actions...).MustBuild()
	for _, e := range f.engines {
		require.NoError(f, e.Register(yard))
	}
	below := func(t *delta.Task, a *delta.Agent) *delta.Task {
		c, err := t.Delegate(ctx, delta.Goal{ID: "part", Agent: a, Text: "a part"})
		require.NoError(f, err)
		task, err := e.Open(ctx, c.ID())
		require.NoError(f, err)
		return task
	}
	parent = f.start(e, f.agents[0], "root")
	child = below(parent, f.agents[1])
	return parent, child, below(child, yard)
}

// TestI16_HaltOfAnAgentReachesWhatWorksForIt: whoever's tasks those are, on whatever engine; they go on with it.
func TestI16_HaltOfAnAgentReachesWhatWorksForIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.Background()
		f := newFleet(t, 2)
		parent, child, grandchild := f.lineage(f.engines[0])
		far, err := f.engines[1].Open(ctx, grandchild.ID())
		require.NoError(t, err)
		f.does(untilTold)
		there := background(func() action.Code { return f.code(far, "look") })
		here := background(func() action.Code { return f.code(child, "look") })
		synctest.Wait()
		began := time.Now()
		require.NoError(t, f.engines[0].HaltAgent(ctx, "crew", f.ops[0], delta.HaltNow, "stop it"))
		assert.Equal(t, action.Interrupted, here())
		assert.Zero(t, time.Since(began), "here at once")
		assert.Equal(t, action.Interrupted, there())
		assert.LessOrEqual(t, time.Since(began), time.Second, "elsewhere with the heartbeat")
		f.does(nil)
		for _, held := range []*delta.Task{child, grandchild, far} {
			out := held.Do(ctx, call("look", "a")).MustGet()
			assert.Equal(t, action.TaskPaused, out.Code)
			assert.Contains(t, out.Failure.Message, "halted")
		}
		assert.Equal(t, action.OK, f.code(f.tasks[1], "look"), "what the desk does for others goes on")
		_, err = parent.Delegate(ctx, delta.Goal{ID: "more", Agent: f.agents[1], Text: "more"})
		assert.Equal(t, action.Cancelled, action.FailureOf(err).Code, "and nobody is given more to do")
		require.NoError(t, f.engines[1].LiftAgent(ctx, "crew", f.ops[1], "mended"))
		for _, free := range []*delta.Task{parent, child, grandchild, far} {
			assert.Equal(t, action.OK, f.code(free, "look"))
		}
	})
}

// TestI16_HaltSurvivesWhoGaveIt: an engine that dies between the halt and telling leaves the rest to whoever works for the
// agent, a poll interval later.
func TestI16_HaltSurvivesWhoGaveIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.Background()
		f := newFleet(t, 2)
		_, child, grandchild := f.lineage(f.engines[0])
		f.mute(0, "desk", "yard") // the halt is written, nothing behind it is
		require.NoError(t, f.engines[0].HaltAgent(ctx, "crew", f.ops[0], delta.HaltAfter, "stop it"))
		f.mute(0)
		assert.Equal(t, action.OK, f.code(child, "look"), "nobody told it yet")
		working, stop := context.WithCancel(ctx)
		defer stop()
		done := background(func() error { return f.engines[1].Work(working) })
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, action.TaskPaused, f.code(child, "look"))
		assert.Equal(t, action.TaskPaused, f.code(grandchild, "look"))
		stop()
		require.ErrorIs(t, done(), context.Canceled)
	})
}

// TestHaltOfAnAction: it is neither offered nor begun, nor by what works for the agent; all else goes on.
func TestHaltOfAnAction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.Background()
		f := newFleet(t, 2)
		parent, child, grandchild := f.lineage(f.engines[0])
		f.does(untilTold)
		look := background(func() action.Code { return f.code(parent, "look") })
		below := background(func() action.Code { return f.code(grandchild, "look") })
		synctest.Wait()
		f.does(nil)
		act := f.code(parent, "act")
		require.Equal(t, action.OK, act)
		require.NoError(t, f.engines[0].HaltAction(ctx, "crew", "look", f.ops[0], delta.HaltNow, "it lies"))
		assert.Equal(t, action.Interrupted, look())
		assert.Equal(t, action.Interrupted, below())
		for _, task := range []*delta.Task{parent, child, grandchild} {
			assert.Equal(t, action.Cancelled, f.code(task, "look"))
			assert.Equal(t, action.OK, f.code(task, "act"))
			offer, err := task.Offer(ctx)
			require.NoError(t, err)
			_, offered := offer.Find("look")
			assert.False(t, offered)
		}
		assert.Equal(t, action.OK, f.code(f.tasks[1], "look"), "others may")
		halts, err := f.engines[1].Halts(ctx, "crew")
		require.NoError(t, err)
		require.Len(t, halts, 1)
		assert.Equal(t, "look", halts[0].Action)
		require.NoError(t, f.engines[1].LiftAction(ctx, "crew", "look", f.ops[1], "it does not"))
		for _, task := range []*delta.Task{parent, child, grandchild} {
			assert.Equal(t, action.OK, f.code(task, "look"))
		}
		assert.Equal(t, []ledger.Type{ledger.AgentHalted, ledger.AgentResumed}, f.halts("crew"))
	})
}

// TestKillSwitchReachesWhomTheStoreLists: also agents that no engine here knows.
func TestKillSwitchReachesWhomTheStoreLists(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.Background()
		f := newFleet(t, 1)
		desk, err := delta.New(delta.Config{Store: f.store, Authenticator: anybody, Operators: []string{"op"}})
		require.NoError(t, err)
		defer func() { require.NoError(t, desk.Close(ctx)) }()
		op, err := desk.Authenticate(ctx, "op")
		require.NoError(t, err)
		require.NoError(t, desk.HaltAll(ctx, op, delta.HaltNow, "all of it"))
		for _, task := range f.tasks {
			assert.Equal(t, action.Cancelled, f.code(task, "look"))
		}
		all, err := desk.Halts(ctx, "")
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.True(t, all[0].All && all[0].By == "op")
		require.NoError(t, desk.LiftAll(ctx, op, "all clear"))
		for _, task := range f.tasks {
			assert.Equal(t, action.OK, f.code(task, "look"))
		}
	})
}

// A child that waits behind others starts when what halted its parent's agent is lifted, not before.
func TestWhoWaitsBehindOthersStartsOnceTheHaltIsLifted(t *testing.T) {
	for name, all := range map[string]bool{"of the agent": false, "of everything": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx := context.Background()
				f := newFleet(t, 1)
				e, op := f.engines[0], f.ops[0]
				parent, err := e.Start(ctx, delta.Goal{ID: "p", Agent: f.agents[0], Text: "go", Delegation: delta.Delegation{Active: 1}})
				require.NoError(t, err)
				first, err := parent.Delegate(ctx, delta.Goal{ID: "first", Agent: f.agents[1], Text: "one"})
				require.NoError(t, err)
				_, err = parent.Delegate(ctx, delta.Goal{ID: "second", Agent: f.agents[1], Text: "two"})
				require.NoError(t, err)
				states := func() (out []string) {
					all, err := parent.Children(ctx)
					require.NoError(t, err)
					for _, c := range all {
						out = append(out, c.State)
					}
					return out
				}
				halt := func() error { return e.HaltAgent(ctx, "crew", op, delta.HaltAfter, "wait") }
				lift := func() error { return e.LiftAgent(ctx, "crew", op, "go on") }
				if all {
					halt = func() error { return e.HaltAll(ctx, op, delta.HaltAfter, "wait") }
					lift = func() error { return e.LiftAll(ctx, op, "go on") }
				}
				require.NoError(t, halt())
				require.NoError(t, first.Cancel(ctx, "not needed"))
				assert.Equal(t, []string{delta.ChildEnded, delta.ChildQueued}, states())
				require.NoError(t, lift())
				assert.Equal(t, []string{delta.ChildEnded, delta.ChildActive}, states())
			})
		})
	}
}

// mute has the store of an engine refuse what it writes of some agents, of none where nobody is named.
func (f *fleet) mute(engine int, agents ...string) {
	f.spies[engine].set(func(s *spy) {
		s.before = func(x *txn.Txn) error {
			if slices.Contains(agents, x.Agent) {
				return errDown
			}
			return nil
		}
	})
}

// TestI16_WhatIsDelegatedLaterIsHeldToo: a child, and its, that are delegated after an action was halted for those they work
// for, and one that waited for a place until then. Lifted, all may.
func TestI16_WhatIsDelegatedLaterIsHeldToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.Background()
		f := newFleet(t, 1)
		e := f.engines[0]
		root, err := e.Start(ctx, delta.Goal{ID: "root", Agent: f.agents[0], Approvers: []string{"op"}, Delegation: delta.Delegation{Active: 1}})
		require.NoError(t, err)
		part := func(of *delta.Task, name string) *delta.Child {
			c, err := of.Delegate(ctx, delta.Goal{ID: name, Agent: f.agents[1]})
			require.NoError(t, err)
			return c
		}
		open := func(c *delta.Child) *delta.Task {
			task, err := c.Task(ctx)
			require.NoError(t, err)
			return task
		}
		first, waits := part(root, "first"), part(root, "waits")
		firstTask := open(first)
		require.NoError(t, e.HaltAction(ctx, "crew", "look", f.ops[0], delta.HaltAfter, "it lies"))
		require.NoError(t, root.SetThreshold(ctx, f.ops[0], 1.5, "be careful"))
		below := open(part(firstTask, "below"))
		assert.Equal(t, action.Cancelled, f.code(below, "look"), "a grandchild that began later")
		require.NoError(t, first.Cancel(ctx, "done"))
		waited := open(waits)
		assert.Equal(t, action.Cancelled, f.code(waited, "look"), "a child that waited until then")
		standing, err := waited.Standing(ctx)
		require.NoError(t, err)
		assert.Equal(t, 1.5, standing.Threshold, "and starts by the threshold that its parent has now")
		last := open(part(waited, "last"))
		assert.Equal(t, action.Cancelled, f.code(last, "look"))
		assert.Equal(t, action.OK, f.code(f.tasks[1], "look"), "others may")
		require.NoError(t, e.LiftAction(ctx, "crew", "look", f.ops[0], "it does not"))
		for _, task := range []*delta.Task{waited, last} {
			assert.Equal(t, action.OK, f.code(task, "look"))
		}
	})
}
