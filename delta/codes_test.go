package delta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/budget"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// recorded is the event under which each code stands in the ledger; none where nothing can be, or need be, written.
var recorded = map[action.Code]ledger.Type{
	action.OK: ledger.Settled, action.Cancelled: ledger.Refused, action.TaskClosed: ledger.Refused, action.TaskPaused: ledger.Refused, action.ActionUnknown: ledger.Refused,
	action.ToolUnknown: ledger.Refused, action.ChannelUnknown: ledger.Refused, action.Unavailable: ledger.Refused, action.KeyUnavailable: ledger.Refused, action.RateLimited: ledger.Refused,
	action.ContextMissing: ledger.Refused, action.InputMalformed: ledger.Refused, action.InputInvalid: ledger.Refused,
	action.NotLegal: ledger.Refused, action.Denied: ledger.Refused, action.RiskCeiling: ledger.Refused,
	action.CostInvalid: ledger.Refused, action.BudgetExhausted: ledger.Refused, action.ApprovalRequired: ledger.ApprovalRequested, action.ApprovalRejected: ledger.Refused,
	action.ApprovalExpired: ledger.Refused, action.NoApprover: ledger.Refused, action.Stale: "", action.InFlight: ledger.Refused,
	action.StoreUnavailable: "", action.HookFailed: ledger.Settled, action.NotStarted: ledger.Settled, action.Failed: ledger.Settled,
	action.Panicked: ledger.Settled, action.Timeout: ledger.Settled, action.Interrupted: ledger.Settled,
	action.OutputInvalid: ledger.Settled, action.StartedUnknown: ledger.Settled, action.Late: ledger.Late,
}

// path is a way into the engine. Every code that can come out of it is the same on each.
type path string

const (
	byDo   path = "Do"
	typed  path = "typed Do"
	byWait path = "DoWait"
	byRun  path = "Run"
)

// make makes a call on the path.
func (w *world) make(p path, c delta.Call) action.Outcome {
	w.Helper()
	ctx := context.Background()
	switch p {
	case typed:
		var in In
		require.NoError(w, json.Unmarshal(c.Input, &in))
		a := w.acts[c.Action]
		if a == nil { // not an action of the agent
			a = w.define(c.Action).MustBuild()
		}
		out, err := a.Do(ctx, w.task, in).Get()
		if err == nil {
			raw, _ := json.Marshal(out)
			return action.Outcome{Code: action.OK, Action: c.Action, Output: raw}
		}
		f := action.FailureOf(err)
		require.NotNil(w, f, "%v", err)
		return action.Outcome{Code: f.Code, Action: c.Action, Failure: f}
	case byWait:
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // less than any approval of these tests waits
		defer cancel()
		o, err := w.task.DoWait(ctx, c).Get()
		require.NoError(w, err)
		return o
	case byRun:
		report, err := w.engine.Run(ctx, w.task, script(c)).Get()
		require.NoError(w, err)
		require.Len(w, report.Results, 1, "%s %s %v", report.Ended, report.Why, report.Err)
		return report.Results[0].Outcome
	}
	return w.do(c)
}

// script proposes the calls at once and is done.
func script(calls ...delta.Call) delta.Planner {
	return delta.PlannerFunc(func(context.Context, delta.Request) (delta.Proposal, error) {
		return delta.Proposal{Calls: calls, Done: true}, nil
	})
}

// scene produces one code.
type scene struct {
	code  action.Code
	name  string
	not   []path // paths on which it cannot come about
	setup change
	play  func(w *world, p path) action.Outcome
	// Where the cause makes it different from what the code alone says:
	event   *ledger.Type
	charge  action.Charge
	learns  action.Learns
	checked func(w *world, o action.Outcome)
}

func simple(name string) func(*world, path) action.Outcome {
	return func(w *world, p path) action.Outcome { return w.make(p, call(name, "a")) }
}

// acting makes a call whose function does f.
func acting(name string, f func(*delta.Context, In) mo.Result[Out]) func(*world, path) action.Outcome {
	return func(w *world, p path) action.Outcome {
		w.does(f)
		return w.make(p, call(name, "a"))
	}
}

// meanwhile makes a call whose function runs while f happens.
func meanwhile(name string, f func(w *world)) func(*world, path) action.Outcome {
	return func(w *world, p path) action.Outcome {
		w.does(obeys)
		out := background(func() action.Outcome { return w.make(p, call(name, "a")) })
		synctest.Wait()
		f(w)
		return out()
	}
}

func cancelTask(w *world) { assert.NoError(w, w.task.Cancel(context.Background(), "enough")) }

var none = ledger.Type("")

var scenes = []scene{
	{code: action.OK, play: simple("act"), checked: func(w *world, o action.Outcome) { assert.JSONEq(w, `{"said":"done"}`, string(o.Output)) }},
	{code: action.Cancelled, not: []path{byRun}, play: func(w *world, p path) action.Outcome {
		cancelTask(w)
		return w.make(p, call("act", "a"))
	}},
	{code: action.TaskClosed, name: "done", not: []path{byRun}, play: func(w *world, p path) action.Outcome {
		require.NoError(w, w.task.Done(w.Context(), "done"))
		return w.make(p, call("act", "a"))
	}},
	{code: action.TaskClosed, name: "deadline", not: []path{byRun}, setup: func(_ *world, g *delta.Goal) { g.Deadline = time.Now().Add(time.Minute) },
		play: func(w *world, p path) action.Outcome {
			time.Sleep(time.Minute)
			return w.make(p, call("act", "a"))
		}},
	{code: action.TaskPaused, not: []path{byRun}, play: func(w *world, p path) action.Outcome {
		_, err := w.task.Escalate(w.Context(), action.ConcernRisk, "look at it")
		require.NoError(w, err)
		return w.make(p, call("act", "a"))
	}},
	{code: action.ActionUnknown, play: simple("nothing")},
	{code: action.ToolUnknown, not: []path{typed, byWait, byRun}, play: toolUnknown},
	{code: action.ChannelUnknown, not: []path{typed}, setup: mayTell, play: func(w *world, p path) action.Outcome {
		return w.make(p, delta.Call{Action: delta.CommunicateAction, Input: json.RawMessage(`{"channel":"ops","text":"hello"}`)})
	}},
	{code: action.Unavailable, play: unavailable},
	{code: action.KeyUnavailable, not: []path{byRun}, setup: func(w *world, g *delta.Goal) { w.cfg.Keys, g.Subject = &lockedRing{}, "somebody" },
		play: func(w *world, p path) action.Outcome {
			w.cfg.Keys.(*lockedRing).locked.Store(true)
			return w.make(p, call("act", "a"))
		}},
	{code: action.ContextMissing, play: simple("briefed")},
	{code: action.InputMalformed, not: []path{typed}, play: func(w *world, p path) action.Outcome {
		return w.make(p, delta.Call{Action: "act", Input: json.RawMessage(`{"id":"a","id":"b"}`)})
	}},
	{code: action.InputMalformed, name: "call id", not: []path{typed}, play: func(w *world, p path) action.Outcome {
		return w.make(p, delta.Call{ID: "a\nb", Action: "act", Input: inputOf(In{ID: "a"})})
	}},
	{code: action.InputInvalid, play: func(w *world, p path) action.Outcome { return w.make(p, call("act", "")) }},
	{code: action.InputInvalid, name: "call id of another call", not: []path{typed}, play: func(w *world, p path) action.Outcome {
		w.do(delta.Call{ID: "c", Action: "amend", Input: inputOf(In{ID: "a"})})
		w.begin()
		return w.make(p, delta.Call{ID: "c", Action: "act", Input: inputOf(In{ID: "a"})})
	}},
	{code: action.NotLegal, play: simple("then-act")},
	{code: action.NotLegal, name: "unknown outcome stands", play: func(w *world, p path) action.Outcome {
		w.does(func(*delta.Context, In) mo.Result[Out] { return mo.Err[Out](action.Unknown(nil)) })
		require.Equal(w, action.StartedUnknown, w.do(call("act", "a")).Code)
		w.begin()
		return w.make(p, call("act", "a"))
	}},
	{code: action.Denied, play: simple("forbidden")},
	{code: action.RiskCeiling, setup: func(_ *world, g *delta.Goal) { g.Ceiling = 3 }, play: simple("risky")},
	{code: action.RiskCeiling, name: "by its input", setup: func(_ *world, g *delta.Goal) { g.Ceiling = 3 }, play: func(w *world, p path) action.Outcome {
		return w.make(p, delta.Call{Action: "steep", Input: inputOf(In{ID: "a", N: 101})})
	}},
	{code: action.BudgetExhausted, setup: func(_ *world, g *delta.Goal) { g.Limit.Tokens = action.Max(99) }, play: simple("costly")},
	{code: action.BudgetExhausted, name: "by its input", setup: func(_ *world, g *delta.Goal) { g.Limit.Tokens = action.Max(99) }, play: func(w *world, p path) action.Outcome {
		return w.make(p, delta.Call{Action: "metered", Input: inputOf(In{ID: "a", N: 100})})
	}},
	{code: action.CostInvalid, play: func(w *world, p path) action.Outcome {
		return w.make(p, delta.Call{Action: "metered", Input: inputOf(In{ID: "a", N: 999})})
	}},
	{code: action.CostInvalid, name: "above its maximum", play: func(w *world, p path) action.Outcome {
		return w.make(p, delta.Call{Action: "metered", Input: inputOf(In{ID: "a", N: 201})})
	}},
	{code: action.RateLimited, play: rateLimited},
	{code: action.RateLimited, name: "at once", play: busy},
	{code: action.ApprovalRequired, play: simple("risky"), checked: func(w *world, o action.Outcome) { assert.NotEmpty(w, o.Failure.Approval()) }},
	{code: action.ApprovalRejected, play: func(w *world, p path) action.Outcome {
		o := w.do(call("risky", "a"))
		require.NoError(w, w.engine.Reject(w.Context(), o.Failure.Approval(), w.boss, "not today"))
		w.begin()
		return w.make(p, call("risky", "a"))
	}, checked: func(w *world, o action.Outcome) { assert.Equal(w, "not today", o.Failure.Details[action.DetailReason]) }},
	{code: action.ApprovalExpired, play: func(w *world, p path) action.Outcome {
		w.do(call("risky", "a"))
		time.Sleep(time.Hour)
		w.begin()
		return w.make(p, call("risky", "a"))
	}},
	{code: action.ApprovalExpired, name: "given, not used", play: func(w *world, p path) action.Outcome {
		o := w.do(call("risky", "a"))
		require.NoError(w, w.engine.Approve(w.Context(), o.Failure.Approval(), w.boss, "fine"))
		time.Sleep(time.Hour)
		w.begin()
		return w.make(p, call("risky", "a"))
	}},
	{code: action.NoApprover, setup: func(_ *world, g *delta.Goal) { g.Approvers = nil }, play: simple("risky")},
	{code: action.Stale, play: func(w *world, p path) action.Outcome {
		e := w.other()
		t, err := e.Open(w.Context(), w.task.ID())
		require.NoError(w, err)
		boss, _ := e.Authenticate(w.Context(), "boss")
		w.store.set(func(s *spy) {
			s.before = func(x *txn.Txn) error {
				if x.Phase == txn.Begin && strings.Contains(x.Clauses[len(x.Clauses)-1].Val+fmt.Sprint(x.Clauses), `"act"`) {
					assert.NoError(w, t.SetThreshold(context.Background(), boss, 4, "again"))
				}
				return nil
			}
		})
		return w.make(p, call("act", "a"))
	}},
	{code: action.InFlight, not: []path{typed}, charge: action.ChargeReserved, play: func(w *world, p path) action.Outcome {
		release := make(chan struct{})
		w.does(ignores(release))
		c := delta.Call{ID: "c", Action: "act", Input: inputOf(In{ID: "a"})}
		first := background(func() action.Outcome { return w.do(c) })
		synctest.Wait()
		o := w.make(p, c)
		w.after = func() { close(release); assert.True(w, first().OK()) }
		return o
	}},
	{code: action.StoreUnavailable, not: []path{byRun}, play: func(w *world, p path) action.Outcome {
		w.store.set(func(s *spy) { s.down = true })
		o := w.make(p, call("act", "a"))
		w.store.set(func(s *spy) { s.down = false })
		return o
	}},
	{code: action.StoreUnavailable, name: "begin", play: func(w *world, p path) action.Outcome {
		w.store.set(func(s *spy) {
			s.before = func(x *txn.Txn) error {
				if x.Phase == txn.Begin && strings.Contains(fmt.Sprint(x.Clauses), `"act"`) {
					return errDown
				}
				return nil
			}
		})
		return w.make(p, call("act", "a"))
	}},
	{code: action.HookFailed, play: func(w *world, p path) action.Outcome {
		w.before = func(context.Context, action.View) error { return errors.New("no") }
		return w.make(p, call("checked", "a"))
	}},
	{code: action.HookFailed, name: "panic", play: func(w *world, p path) action.Outcome {
		w.before = func(context.Context, action.View) error { panic("no") }
		return w.make(p, call("checked", "a"))
	}},
	{code: action.HookFailed, name: "ignores its context", play: func(w *world, p path) action.Outcome {
		release := make(chan struct{})
		w.after = func() { close(release) }
		w.before = func(context.Context, action.View) error { <-release; return nil }
		return w.make(p, call("checked", "a"))
	}},
	{code: action.NotStarted, name: "cancelled in the before hook", play: func(w *world, p path) action.Outcome {
		w.before = func(context.Context, action.View) error { cancelTask(w); return nil }
		return w.make(p, call("checked", "a"))
	}},
	{code: action.NotStarted, name: "no idempotency key", play: func(w *world, p path) action.Outcome {
		return w.make(p, delta.Call{Action: "keyed", Input: inputOf(In{ID: "a", N: 1})})
	}},
	{code: action.Failed, play: acting("act", fails)},
	{code: action.Failed, name: "nil error", play: acting("act", func(*delta.Context, In) mo.Result[Out] { return mo.Err[Out](nil) })},
	{code: action.Panicked, play: acting("act", func(*delta.Context, In) mo.Result[Out] { panic("boom") })},
	{code: action.Timeout, play: acting("look", obeys)},
	{code: action.Timeout, name: "Ok in the grace period", play: acting("look", func(ctx *delta.Context, _ In) mo.Result[Out] {
		<-ctx.Done()
		time.Sleep(time.Millisecond)
		return mo.Ok(Out{"too late"})
	})},
	{code: action.Interrupted, play: meanwhile("look", cancelTask)},
	{code: action.OutputInvalid, play: acting("act", func(*delta.Context, In) mo.Result[Out] { return mo.Ok(Out{}) })},
	{code: action.StartedUnknown, name: "the function says so", play: acting("look", func(*delta.Context, In) mo.Result[Out] {
		return mo.Err[Out](fmt.Errorf("sent: %w", action.Unknown(errors.New("no reply"))))
	})},
	{code: action.StartedUnknown, name: "timeout of an irreversible action", play: acting("act", obeys)},
	{code: action.StartedUnknown, name: "timeout of a compensatable action", play: acting("amend", obeys)},
	{code: action.StartedUnknown, name: "cancel of an irreversible action", play: meanwhile("act", cancelTask)},
	{code: action.StartedUnknown, name: "cancel of a compensatable action", play: meanwhile("amend", cancelTask)},
	{code: action.StartedUnknown, name: "unwritable settle", event: &none, play: func(w *world, p path) action.Outcome {
		w.store.set(func(s *spy) {
			s.before = func(x *txn.Txn) error {
				if x.Phase == txn.Settle && strings.Contains(fmt.Sprint(x.Clauses), `"act"`) {
					return errDown
				}
				return nil
			}
		})
		return w.make(p, call("act", "a"))
	}, checked: func(w *world, o action.Outcome) {
		w.store.set(func(s *spy) { s.before = nil })
		defer w.work(w.engine)()
		time.Sleep(time.Minute)
		synctest.Wait()
		e := w.events()
		assert.Equal(w, action.StartedUnknown, e[len(e)-1].Code, "written once the lease had run out")
	}},
	{code: action.Late, name: "superseded", charge: action.ChargeReserved, play: func(w *world, p path) action.Outcome {
		release := make(chan struct{})
		w.does(ignores(release))
		w.store.set(func(s *spy) { s.before = failOn(txn.Renew) })
		out := background(func() action.Outcome { return w.make(p, call("act", "a")) })
		e := w.other()
		stop := w.work(e)
		time.Sleep(10 * time.Second)
		stop()
		close(release)
		return out()
	}, checked: func(w *world, o action.Outcome) {
		assert.Equal(w, 1, w.count(ledger.Settled)-w.planned(), "the takeover's STARTED_UNKNOWN stands")
	}},
}

func failOn(phase txn.Phase) func(*txn.Txn) error {
	return func(x *txn.Txn) error {
		if x.Phase == phase {
			return errDown
		}
		return nil
	}
}

// planned counts settled proposals.
func (w *world) planned() (n int) {
	for _, e := range w.events() {
		if e.Type == ledger.Settled && e.Action == "delta.plan" {
			n++
		}
	}
	return n
}

// books is what a call may change.
type books struct {
	budget budget.Snapshot
	trust  delta.Trust
	events int
	plans  int64
	ran    int64
}

func (w *world) books() books {
	w.Helper()
	ctx := context.Background()
	require.NoError(w, w.engine.Sync(ctx))
	b, err := w.task.Budget(ctx)
	require.NoError(w, err)
	trust, err := w.engine.Trust(ctx, "clerk")
	require.NoError(w, err)
	return books{b, trust, len(w.events()), int64(w.planned()), w.effects.Load()}
}

// begin says that all so far was preparation.
func (w *world) begin() { w.start = w.books() }

// TestCodes plays every scene on every path and holds the outcome to what its code says.
func TestI12_CodesStayApart(t *testing.T) {
	for _, s := range scenes {
		for _, p := range []path{byDo, typed, byWait, byRun} {
			if slices.Contains(s.not, p) {
				continue
			}
			t.Run(strings.TrimSpace(fmt.Sprintf("%s %s/%s", s.code, s.name, p)), func(t *testing.T) {
				bubble(t, func(t *testing.T) { s.on(t, p) })
			})
		}
	}
}

func (s scene) on(t *testing.T, p path) {
	var w *world
	if s.setup != nil {
		w = newWorld(t, s.setup)
	} else {
		w = newWorld(t)
	}
	w.begin()
	o := s.play(w, p)
	if w.after != nil {
		defer w.after()
	}
	info := s.code.Info()
	require.Equal(t, s.code, o.Code, "%v", o.Failure)
	s.checkFailure(w, o)
	s.checkEvent(w)
	s.checkBooks(w, info)
	dependents := w.running() && w.offered("then-act") || w.running() && w.offered("then-look")
	assert.Equal(t, info.Satisfies, dependents, "only an Ok makes dependents legal")
	if s.checked != nil {
		s.checked(w, o)
	}
}

func (w *world) running() bool {
	status, _, err := w.task.Status(context.Background())
	require.NoError(w, err)
	return status == "running"
}

func (s scene) checkFailure(w *world, o action.Outcome) {
	w.Helper()
	if s.code == action.OK {
		assert.Nil(w, o.Failure)
		assert.NoError(w, o.Err())
		return
	}
	info, f := s.code.Info(), o.Failure
	require.NotNil(w, f)
	assert.Empty(w, o.Output)
	assert.Equal(w, []any{info.Code, info.Layer, info.Executed, info.Retryable}, []any{f.Code, f.Layer, f.Executed, f.Retryable})
	assert.NotEmpty(w, f.Message)
	seen := fmt.Sprint(f.ForPlanner().Message, f.ForPlanner().Details)
	for name := range w.acts { // of actions the planner did not name itself, it is told nothing
		if name != o.Action {
			assert.NotContains(w, seen, `"`+name+`"`, "names an action that the planner did not")
		}
	}
	for _, hidden := range []string{action.DetailUnmet, action.DetailRule, action.DetailIntent} {
		assert.NotContains(w, f.ForPlanner().Details, hidden)
	}
}

func (s scene) checkEvent(w *world) {
	w.Helper()
	want := recorded[s.code]
	if s.event != nil {
		want = *s.event
	}
	var found []ledger.Type
	for _, e := range w.events()[w.start.events:] {
		if e.Code == s.code && e.Action != "delta.plan" {
			found = append(found, e.Type)
		}
	}
	if want == "" {
		assert.Empty(w, found)
		return
	}
	assert.Equal(w, []ledger.Type{want}, found, "the event that records the code")
}

func (s scene) checkBooks(w *world, info action.Info) {
	w.Helper()
	before, after := w.start, w.books()
	charge, learns := info.Charge, info.Learns
	if s.charge != "" {
		charge = s.charge
	}
	if s.learns != "" {
		learns = s.learns
	}
	if info.Executed == action.No && s.code != action.InFlight {
		assert.Equal(w, before.ran, after.ran, "no function ran")
	}
	plans := after.plans - before.plans
	spent, reserved := after.budget.Spent.Calls-before.budget.Spent.Calls-plans, after.budget.Reserved.Calls-before.budget.Reserved.Calls
	wantSpent, wantReserved := int64(0), int64(0)
	switch charge {
	case action.ChargeActual:
		wantSpent = 1
	case action.ChargeReserved:
		wantReserved = 1
	}
	assert.Equal(w, []int64{wantSpent, wantReserved}, []int64{spent, reserved}, "calls spent and reserved")
	if wantReserved == 0 {
		assert.Equal(w, before.budget.Reserved, after.budget.Reserved, "nothing stays reserved on any axis")
	}
	ok, errs, breaches := int64(0), int64(0), int64(0)
	switch learns {
	case action.LearnsOk:
		ok = 1
	case action.LearnsErr:
		errs = 1
	}
	if info.Violation {
		breaches = 1
	}
	assert.Equal(w, []int64{ok, errs, breaches},
		[]int64{after.trust.Ok - before.trust.Ok, after.trust.Err - before.trust.Err, after.trust.Violations - before.trust.Violations}, "trust")
	if ok+errs == 0 {
		assert.Equal(w, before.trust.Trust, after.trust.Trust, "no belief moves")
	}
}

const outcomesDoc = "../doc/outcomes.md"

// TestOutcomesTable holds doc/outcomes.md to the table of codes, and the scenes above to both.
func TestOutcomesTable(t *testing.T) {
	played := map[action.Code]bool{}
	for _, s := range scenes {
		played[s.code] = true
	}
	for _, i := range action.Infos() {
		assert.True(t, played[i.Code], "no scene produces %s", i.Code)
		_, ok := recorded[i.Code]
		assert.True(t, ok, "no event is named for %s", i.Code)
	}
	text, err := os.ReadFile(outcomesDoc)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(text), tableStart)
	require.True(t, ok, "%s needs the line %q", outcomesDoc, tableStart)
	_, tail, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok, "%s needs the line %q", outcomesDoc, tableEnd)
	want := head + tableStart + outcomesTable() + tableEnd + tail
	if *update {
		require.NoError(t, os.WriteFile(outcomesDoc, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(text), "run: go test ./delta -run TestOutcomesTable -update")
}

const (
	tableStart = "<!-- generated by: go test ./delta -run TestOutcomesTable -update -->\n"
	tableEnd   = "<!-- end of what is generated -->\n"
)

func outcomesTable() string {
	var b strings.Builder
	b.WriteString("\n| code | gate | layer | executed | risk learns | satisfies | budget | retryable | violation | ledger event | metric | what a planner is told |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, i := range action.Infos() {
		gate, event := "—", "none"
		if i.Gate > 0 {
			gate = fmt.Sprint(i.Gate)
		}
		if e := recorded[i.Code]; e != "" {
			event = "`" + string(e) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			i.Code, gate, i.Layer, i.Executed, i.Learns, yes(i.Satisfies), i.Charge, yes(i.Retryable), yes(i.Violation), event, metric(i.Code), i.Tells)
	}
	b.WriteString("\n")
	return b.String()
}

// metric is what counts the code, beside it as the attribute delta.code where that is an end of an action.
func metric(c action.Code) string {
	switch recorded[c] {
	case ledger.Refused:
		return "`delta.action.ended` refused"
	case ledger.ApprovalRequested:
		return "`delta.approval.requested`"
	case ledger.Late:
		return "`delta.tool.late`"
	case ledger.Settled:
		if c == action.OK {
			return "`delta.action.ended` completed"
		}
		return "`delta.action.ended` failed"
	}
	return "none"
}

// TestOutcomesNameMetrics: what the table calls a metric is one.
func TestOutcomesNameMetrics(t *testing.T) {
	text, err := os.ReadFile("../doc/telemetry.md")
	require.NoError(t, err)
	for _, i := range action.Infos() {
		if name, _, _ := strings.Cut(metric(i.Code), " "); name != "none" {
			assert.Contains(t, string(text), "| "+name+" |")
		}
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
