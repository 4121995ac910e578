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
	"github.com/seed-ab2cfece/delta-agents/approval"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// sitting is a task with calls that wait for a person, and a worker that runs them.
type sitting struct {
	*testing.T
	engine *delta.Engine
	task   *delta.Task
	op     delta.Identity
	ana    delta.Identity
	ran    chan string
}

func newSitting(t *testing.T, more ...func(delta.Builder[In, Out]) delta.Builder[In, Out]) *sitting {
	s := &sitting{T: t, ran: make(chan string, 9)}
	s.engine = engineFor(t, delta.Config{Authenticator: anybody, Operators: []string{"op"}, Poll: time.Second})
	pay := delta.Define("pay", func(_ *delta.Context, in In) mo.Result[Out] {
		s.ran <- in.ID
		return mo.Ok(Out{"paid"})
	}).Describe("Pays").Risk(2).RequireApproval()
	for _, m := range more {
		pay = m(pay)
	}
	stock := delta.Define("stock", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{"there"}) }).Describe("Stocks").Risk(1)
	crew := delta.NewAgent("crew").Grant(pay.MustBuild(), stock.MustBuild()).MustBuild()
	var err error
	s.task, err = s.engine.Start(t.Context(), delta.Goal{ID: "t", Agent: crew, Text: "pay", Approvers: []string{"ana"}, ApprovalTTL: 4 * time.Minute})
	require.NoError(t, err)
	s.op, err = s.engine.Authenticate(t.Context(), "op")
	require.NoError(t, err)
	s.ana, err = s.engine.Authenticate(t.Context(), "ana")
	require.NoError(t, err)
	return s
}

func (s *sitting) work() {
	ctx, cancel := context.WithCancel(context.Background())
	worked := background(func() error { return s.engine.Work(ctx) })
	s.Cleanup(func() { cancel(); _ = worked() })
}

// ask makes a call that a person is asked about.
func (s *sitting) ask(id string) string {
	o := s.task.Do(s.Context(), delta.Call{ID: "c-" + id, Action: "pay", Input: []byte(`{"id":"` + id + `"}`)}).MustGet()
	require.Equal(s, action.ApprovalRequired, o.Code)
	return o.Failure.Approval()
}

func (s *sitting) approve(id string) {
	require.NoError(s, s.engine.Approve(s.Context(), id, s.ana, "fine"))
}

// refusals are those that the ledger has of the action.
func (s *sitting) refusals() (n int) {
	all, err := s.task.Events(s.Context())
	require.NoError(s, err)
	for _, e := range all {
		if e.Type == ledger.Refused {
			n++
		}
	}
	return n
}

func (s *sitting) idle() {
	time.Sleep(10 * time.Second) // of the bubble
	synctest.Wait()
}

// halts are the ways to halt what the task does, and to lift that.
var halts = map[string][2]func(*sitting) error{
	"everything": {func(s *sitting) error { return s.engine.HaltAll(s.Context(), s.op, delta.HaltNow, "drill") },
		func(s *sitting) error { return s.engine.LiftAll(s.Context(), s.op, "over") }},
	"agent": {func(s *sitting) error { return s.engine.HaltAgent(s.Context(), "crew", s.op, delta.HaltAfter, "drill") },
		func(s *sitting) error { return s.engine.LiftAgent(s.Context(), "crew", s.op, "over") }},
	"action": {func(s *sitting) error {
		return s.engine.HaltAction(s.Context(), "crew", "pay", s.op, delta.HaltNow, "drill")
	},
		func(s *sitting) error { return s.engine.LiftAction(s.Context(), "crew", "pay", s.op, "over") }},
	"task": {func(s *sitting) error { _, err := s.task.Escalate(s.Context(), action.ConcernLoop, "look"); return err },
		func(s *sitting) error {
			all, err := s.engine.Escalations(s.Context(), 9)
			if err != nil {
				return err
			}
			return s.engine.ResumeTask(s.Context(), all[0].ID, s.op, "go on")
		}},
}

// TestHaltIsSatOut: a call that waits for a person, or has their consent, waits on while a halt stands, silently, whoever waits
// for it; once it is lifted it runs, once.
func TestHaltIsSatOut(t *testing.T) {
	for name, h := range halts {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSitting(t)
				before, during, after := s.ask("before"), s.ask("during"), s.ask("after")
				s.approve(before)
				require.NoError(t, h[0](s))
				s.work()
				s.approve(during)
				waiting := background(func() action.Code {
					return s.task.DoWait(context.Background(), delta.Call{ID: "c-during", Action: "pay", Input: []byte(`{"id":"during"}`)}).MustGet().Code
				})
				s.idle()
				was := s.refusals()
				s.idle()
				assert.Empty(t, s.ran, "nothing runs")
				assert.Equal(t, was, s.refusals(), "and nothing is written")
				for id, want := range map[string]approval.State{before: approval.Approved, during: approval.Approved, after: approval.Pending} {
					a, err := s.engine.Approval(t.Context(), id)
					require.NoError(t, err)
					assert.Equal(t, want, a.State)
					assert.Empty(t, a.Ended)
				}
				require.NoError(t, h[1](s))
				s.approve(after)
				s.idle()
				assert.Len(t, s.ran, 3, "all run, each once")
				assert.Equal(t, action.OK, waiting(), "and who waited is told")
				a, err := s.engine.Approval(t.Context(), before)
				require.NoError(t, err)
				assert.Equal(t, approval.Consumed, a.State)
				assert.Equal(t, action.OK, a.Ended)
			})
		})
	}
}

// Who waits for an approval waits through a halt that comes in between, and leaves the call parked where they stop.
func TestHaltIsSatOutByWhoWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSitting(t)
		wait := func(ctx context.Context) func() action.Code {
			return background(func() action.Code {
				return s.task.DoWait(ctx, delta.Call{Action: "pay", Input: []byte(`{"id":"x"}`)}).MustGet().Code
			})
		}
		ctx, stop := context.WithCancel(context.Background())
		first := wait(ctx)
		synctest.Wait()
		all, err := s.engine.Approvals(t.Context(), 9)
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.NoError(t, halts["agent"][0](s))
		s.approve(all[0].ID)
		s.idle()
		stop()
		assert.Equal(t, action.ApprovalRequired, first(), "the call stays parked")
		assert.Zero(t, s.refusals())
		require.NoError(t, halts["agent"][1](s))
		s.work()
		s.idle()
		assert.Len(t, s.ran, 1)
	})
}

// A halt does not keep a request, or a consent, beyond its time: then the call has ended, and the approval says so.
func TestHaltIsNotSatOutForEver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSitting(t)
		id := s.ask("x")
		s.approve(id)
		require.NoError(t, halts["everything"][0](s))
		s.work()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.NoError(t, halts["everything"][1](s))
		s.idle()
		assert.Empty(t, s.ran)
		a, err := s.engine.Approval(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, approval.Expired, a.State)
		assert.Equal(t, action.ApprovalExpired, a.Ended)
	})
}

// A rate limit passes: an approved call that nobody waits for waits until there is room again.
func TestRatesAreSatOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSitting(t, func(b delta.Builder[In, Out]) delta.Builder[In, Out] { return b.Rate(1, time.Minute) })
		s.approve(s.ask("a"))
		s.approve(s.ask("b"))
		s.work()
		s.idle()
		assert.Len(t, s.ran, 1)
		assert.Zero(t, s.refusals())
		time.Sleep(time.Minute)
		s.idle()
		assert.Len(t, s.ran, 2)
	})
}

// What an approved call rests on may be gone when it is its turn: it ends, and the approval says that it did and how.
func TestApprovalSaysHowItsCallEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSitting(t, func(b delta.Builder[In, Out]) delta.Builder[In, Out] {
			return b.Needs(delta.Named("stock").Within(time.Minute))
		})
		require.Equal(t, action.OK, s.task.Do(t.Context(), call("stock", "x")).MustGet().Code)
		id := s.ask("x")
		time.Sleep(2 * time.Minute)
		s.approve(id)
		s.work()
		s.idle()
		a, err := s.engine.Approval(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, approval.Approved, a.State, "it was not used")
		assert.Equal(t, action.NotLegal, a.Ended)
		assert.Empty(t, s.ran)
	})
}

// TestRunOnAHaltedAgent: a run that a halt keeps from planning says so, and not that its task has ended; one that waits for
// people waits for that too.
func TestRunOnAHaltedAgent(t *testing.T) {
	for name, h := range halts {
		if name == "action" || name == "task" { // neither keeps a planner of the agent from being asked as a halt does
			continue
		}
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSitting(t)
				done := delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) { return delta.Proposal{Done: true}, nil })
				require.NoError(t, h[0](s))
				got := s.engine.Run(t.Context(), s.task, done).MustGet()
				assert.Equal(t, delta.RunHalted, got.Ended)
				assert.Contains(t, got.Why, "stopped")
				status, _, err := s.task.Status(t.Context())
				require.NoError(t, err)
				assert.Equal(t, "running", status)

				ctx, stop := context.WithCancel(context.Background())
				stopped := background(func() delta.Ended {
					return s.engine.RunWithin(ctx, s.task, done, delta.Bounds{Wait: true}).MustGet().Ended
				})
				waits := background(func() delta.Ended {
					return s.engine.RunWithin(context.Background(), s.task, done, delta.Bounds{Wait: true}).MustGet().Ended
				})
				s.idle()
				stop()
				assert.Equal(t, delta.RunStopped, stopped())
				require.NoError(t, h[1](s))
				assert.Equal(t, delta.RunDone, waits())
			})
		})
	}
}
