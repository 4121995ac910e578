package delta_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/memorytest"
)

func watched(store memory.Store) delta.Config {
	return delta.Config{Store: store, Operators: []string{"op"}, Authenticator: delta.AuthenticatorFunc(func(_ context.Context, c any) (string, error) { return c.(string), nil })}
}

func (w *team) op() delta.Identity {
	id, err := w.engine.Authenticate(w.Context(), "op")
	require.NoError(w, err)
	return id
}

func (w *team) code(t *delta.Task) action.Code {
	f := action.FailureOf(w.find.Do(w.Context(), t, In{ID: "x"}).Error())
	if f == nil {
		return action.OK
	}
	return f.Code
}

func (w *team) status(t *delta.Task) string {
	s, _, err := t.Status(w.Context())
	require.NoError(w, err)
	return s
}

// A paused task waits for a person: nobody else closes or judges it meanwhile, whoever asks. It can be stopped.
func TestEscalation_OnlyAPersonDisposesOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*team, *delta.Task) error
		want string
	}{
		"done":     {func(_ *team, p *delta.Task) error { return p.Done(context.Background(), "x") }, "paused"},
		"conclude": {func(_ *team, p *delta.Task) error { return p.Conclude(context.Background(), action.Reached, "x") }, "paused"},
		"cancel":   {func(_ *team, p *delta.Task) error { return p.Cancel(context.Background(), "x") }, "cancelled"},
		"a person's": {func(w *team, p *delta.Task) error {
			return p.ConcludeBy(context.Background(), w.op(), action.Reached, "x")
		}, "closed"},
		"a planner's": {func(w *team, p *delta.Task) error {
			r := w.engine.Run(context.Background(), p, delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
				return delta.Proposal{Done: true, Verdict: action.Reached}, nil
			})).MustGet()
			assert.Equal(w, delta.RunPaused, r.Ended)
			assert.Empty(w, r.Verdict)
			return r.Err
		}, "paused"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTeam(t, watched(nil), hundred())
			_, err := w.task.Escalate(t.Context(), action.ConcernLoop, "look")
			require.NoError(t, err)
			err = c.end(w, w.task)
			assert.Equal(t, c.want, w.status(w.task))
			all, lerr := w.engine.Escalations(t.Context(), 9)
			require.NoError(t, lerr)
			if c.want != "paused" {
				require.NoError(t, err)
				assert.Empty(t, all)
				return
			}
			require.NotNil(t, action.FailureOf(err), "%v", err)
			assert.Equal(t, action.TaskPaused, action.FailureOf(err).Code)
			assert.Len(t, all, 1)
		})
	}
}

// A proposal that leads to an escalation and says that all is done does not resolve it; a function does not either.
func TestEscalation_WhoCausedItDoesNotResolveIt(t *testing.T) {
	cfg := watched(nil)
	cfg.Escalate.Failures = 1
	w := newTeam(t, cfg, hundred())
	r := w.engine.Run(t.Context(), w.task, delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
		return delta.Proposal{Done: true, Verdict: action.Reached, Calls: []delta.Call{{Action: "find", Input: []byte(`{"id":"err"}`)}}}, nil
	})).MustGet()
	assert.Equal(t, delta.RunPaused, r.Ended)
	assert.Equal(t, "paused", w.status(w.task))

	var said error
	judge := delta.Define("judge", func(ctx *delta.Context, _ In) mo.Result[Out] {
		if err := ctx.Escalate(action.ConcernLoop, "look"); err != nil {
			return mo.Err[Out](err)
		}
		said = ctx.Conclude(action.Reached, "all is well")
		return mo.Ok(Out{"x"})
	}).Describe("Judge").Risk(1).MustBuild()
	p, err := w.engine.Start(t.Context(), delta.Goal{Agent: delta.NewAgent("judge").Grant(judge).MustBuild(), Text: "x"})
	require.NoError(t, err)
	require.NoError(t, judge.Do(t.Context(), p, In{ID: "x"}).Error())
	require.NotNil(t, action.FailureOf(said))
	assert.Equal(t, action.TaskPaused, action.FailureOf(said).Code)
	assert.Equal(t, "paused", w.status(p))
}

// While a task is paused its children are, and theirs, and nobody who waits begins; then all go on, but for who waits for a
// person on its own account.
func TestEscalation_PausesTheFamily(t *testing.T) {
	store := memory.New(memory.Config{})
	g := hundred()
	g.Delegation.Active = 2
	w := newTeam(t, watched(store), g)
	a, b, c, d := w.child("a", 10), w.child("b", 10), w.child("c", 10), w.child("d", 10)
	ta, tb := w.taskOf(a), w.taskOf(b)
	deep, err := tb.Delegate(t.Context(), delta.Goal{ID: "deep", Agent: w.worker, Text: "x", Limit: action.Limit{Tokens: action.Max(5)}})
	require.NoError(t, err)
	td := w.taskOf(deep)
	esc, err := w.task.Escalate(t.Context(), action.ConcernLoop, "look")
	require.NoError(t, err)
	for _, x := range []*delta.Task{ta, tb, td} {
		assert.Equal(t, action.TaskPaused, w.code(x))
	}
	own, err := tb.Escalate(t.Context(), action.ConcernRisk, "this too")
	require.NoError(t, err)
	require.True(t, own.Paused)
	require.NoError(t, ta.Done(t.Context(), "enough"), "who waits on its parent's account may end")
	for _, x := range []*delta.Child{c, d} {
		s, err := x.Standing(t.Context())
		require.NoError(t, err)
		assert.Equal(t, delta.ChildQueued, s.State)
	}
	require.NoError(t, w.engine.ResumeTask(t.Context(), esc.ID, w.op(), "go"))
	assert.Equal(t, action.OK, w.code(w.task))
	assert.Equal(t, action.TaskPaused, w.code(tb), "it waits on its own account")
	assert.Equal(t, action.TaskPaused, w.code(td))
	assert.Equal(t, action.OK, w.code(w.taskOf(c)), "the place of the one that ended is free")
	s, err := d.Standing(t.Context())
	require.NoError(t, err)
	assert.Equal(t, delta.ChildQueued, s.State)

	esc, err = w.task.Escalate(t.Context(), action.ConcernLoop, "look again")
	require.NoError(t, err)
	require.NoError(t, w.engine.ResumeTask(t.Context(), own.ID, w.op(), "go"))
	assert.Equal(t, action.TaskPaused, w.code(tb), "its parent still is")
	require.NoError(t, w.engine.ResumeTask(t.Context(), esc.ID, w.op(), "go"))
	for _, x := range []*delta.Task{w.task, tb, td} {
		assert.Equal(t, action.OK, w.code(x))
	}
	for _, id := range [][2]string{{"lead", w.task.ID()}, {"worker", tb.ID()}, {"worker", td.ID()}} {
		folds(t, store, id[0], id[1][len(id[0])+1:])
	}
}

// Whatever gets lost when a task is paused and resumed, Work tells its children, at the latest a poll interval later.
func TestEscalation_TheFamilyHearsOfItWhateverIsLost(t *testing.T) {
	for lost := range 16 {
		synctest.Test(t, func(t *testing.T) {
			faulty := memorytest.NewFaulty(memory.New(memory.Config{}), nil)
			g := hundred()
			g.Delegation.Active = 1
			w := newTeam(t, watched(faulty), g)
			a, b := w.child("a", 10), w.child("b", 10)
			ta := w.taskOf(a)
			lose := func() {
				calls, _ := faulty.Calls()
				faulty.Replan(func(n int) memorytest.Fault {
					if n > calls+lost && n <= calls+lost+3 {
						return memorytest.LostRequest
					}
					return memorytest.None
				})
			}
			ctx, stop := context.WithCancel(t.Context())
			worked := make(chan error)
			other := engineFor(t, watched(faulty))
			require.NoError(t, other.Register(w.lead, w.worker))
			go func() { worked <- other.Work(ctx) }()

			lose()
			esc, err := w.task.Escalate(t.Context(), action.ConcernLoop, "look")
			for err != nil {
				esc, err = w.task.Escalate(t.Context(), action.ConcernLoop, "look")
			}
			time.Sleep(5 * time.Second)
			faulty.Replan(nil)
			assert.Equal(t, action.TaskPaused, w.code(ta), "%d", lost)
			require.NoError(t, ta.Done(t.Context(), ""))
			lose()
			for range 9 { // a reply that was lost may have been a yes
				if w.engine.ResumeTask(t.Context(), esc.ID, w.op(), "go") == nil {
					break
				}
			}
			time.Sleep(5 * time.Second)
			faulty.Replan(nil)
			assert.Equal(t, action.OK, w.code(w.taskOf(b)), "%d", lost)
			stop()
			<-worked
		})
	}
}
