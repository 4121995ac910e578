package deltatest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/samber/mo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/deltatest"
	"github.com/seed-ab2cfece/delta-agents/memory"
	"github.com/seed-ab2cfece/delta-agents/memory/faulty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type Order struct {
	ID string `json:"orderId" jsonschema:"pattern=^ORD-[0-9]+$"`
}

var (
	confirm = delta.Define("confirm-order", func(_ *delta.Context, in Order) mo.Result[string] {
		return mo.Ok("confirmed " + in.ID)
	}).Describe("Confirm an order").Risk(2).Cost(action.Cost{Tokens: 10}).Effect(action.Idempotent).MustBuild()
	charge = delta.Define("charge-order", func(_ *delta.Context, in Order) mo.Result[string] {
		return mo.Ok("charged " + in.ID)
	}).Describe("Charge an order").Risk(2).Needs(confirm.On("orderId")).MustBuild()
	refund = delta.Define("refund-order", func(_ *delta.Context, in Order) mo.Result[string] {
		return mo.Ok("refunded " + in.ID)
	}).Describe("Refund an order").Risk(2).RequireApproval().MustBuild()
	crash = delta.Define("crash", func(*delta.Context, Order) mo.Result[string] {
		return mo.Err[string](errors.New("no"))
	}).Describe("Fail").Risk(2).MustBuild()
	clerk  = delta.NewAgent("clerk").Grant(confirm, charge, refund).MustBuild()
	clumsy = delta.NewAgent("clumsy").Grant(crash).MustBuild() // apart: a failure raises the risk of its agent's other actions
)

// recorder takes down what an assertion reports.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// reports runs an assertion and returns what it reported.
func reports(t *testing.T, assertion func(tb testing.TB)) string {
	r, done := &recorder{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		assertion(r)
	}()
	<-done
	return strings.Join(r.said, "\n")
}

func open(t *testing.T) (*deltatest.Desk, *delta.Task) {
	d := deltatest.Open(t, delta.Config{})
	return d, d.Start(delta.Goal{Agent: clerk, Approvers: []string{"ana"}, Limit: action.Limit{Tokens: action.Max(1000)}})
}

// Every assertion is silent where it holds and reports where it does not, in words that say what is.
func TestAssertions(t *testing.T) {
	d, task := open(t)
	ctx := t.Context()
	input := Order{"ORD-1"}
	deltatest.Ok(t, confirm.Do(ctx, task, input))
	require.Equal(t, "charged ORD-1", deltatest.Ok(t, charge.Do(ctx, task, input)))
	raw := delta.Call{ID: "r1", Action: "refund-order", Input: json.RawMessage(`{"orderId":"ORD-1"}`)}
	id := deltatest.RefusedWith(t, action.ApprovalRequired, task.Do(ctx, raw)).Approval()
	bare, failing := d.Start(delta.Goal{Agent: clerk}), d.Start(delta.Goal{Agent: clumsy})

	for _, c := range []struct {
		name, want string // "" is silence
		assertion  func(tb testing.TB)
	}{
		{"offered", "", func(tb testing.TB) { deltatest.Offered(tb, task, "confirm-order", "charge-order", "refund-order") }},
		{"offered, blocked", "charge-order is not offered: needs confirm-order on orderId", func(tb testing.TB) { deltatest.Offered(tb, bare, "charge-order") }},
		{"offered, unknown", "nothing-such is not offered", func(tb testing.TB) { deltatest.Offered(tb, task, "nothing-such") }},
		{"gated", "", func(tb testing.TB) { deltatest.Gated(tb, task, "refund-order") }},
		{"gated, legal", "confirm-order is offered and would run without an approval", func(tb testing.TB) { deltatest.Gated(tb, task, "confirm-order") }},
		{"gated, blocked", "refund-order is not offered", func(tb testing.TB) { deltatest.Gated(tb, bare, "refund-order") }},
		{"not offered", "", func(tb testing.TB) { deltatest.NotOffered(tb, bare, "charge-order", "refund-order") }},
		{"not offered, legal", "confirm-order is offered (legal)", func(tb testing.TB) { deltatest.NotOffered(tb, bare, "confirm-order") }},
		{"not offered, gated", "refund-order is offered (gated)", func(tb testing.TB) { deltatest.NotOffered(tb, task, "refund-order") }},
		{"not offered, misspelt", "charge-ordr is no action of agent clerk", func(tb testing.TB) { deltatest.NotOffered(tb, task, "charge-ordr") }},
		{"ok", "", func(tb testing.TB) { deltatest.Ok(tb, charge.Do(ctx, task, input)) }},
		{"ok, refused", "ended as NOT_LEGAL, want OK", func(tb testing.TB) { deltatest.Ok(tb, charge.Do(ctx, bare, input)) }},
		{"ok, an outcome", "ended as APPROVAL_REQUIRED, want OK", func(tb testing.TB) { deltatest.Ok(tb, task.Do(ctx, raw)) }},
		{"ok, undecided", "could not be decided", func(tb testing.TB) { deltatest.Ok(tb, mo.Err[int](errors.New("down"))) }},
		{"refused", "", func(tb testing.TB) { deltatest.RefusedWith(tb, action.NotLegal, charge.Do(ctx, bare, input)) }},
		{"refused, an outcome", "", func(tb testing.TB) { deltatest.RefusedWith(tb, action.ApprovalRequired, task.Do(ctx, raw)) }},
		{"refused, failed", "", func(tb testing.TB) { deltatest.RefusedWith(tb, action.Failed, crash.Do(ctx, failing, input)) }},
		{"refused, otherwise", "ended as NOT_LEGAL, want DENIED", func(tb testing.TB) { deltatest.RefusedWith(tb, action.Denied, charge.Do(ctx, bare, input)) }},
		{"refused, ran", "ended as OK, want DENIED", func(tb testing.TB) { deltatest.RefusedWith(tb, action.Denied, charge.Do(ctx, task, input)) }},
		{"refused, undecided", "could not be decided, want DENIED", func(tb testing.TB) { deltatest.RefusedWith(tb, action.Denied, mo.Err[int](errors.New("down"))) }},
		{"refused with ok", "OK is no refusal", func(tb testing.TB) { deltatest.RefusedWith(tb, action.OK, charge.Do(ctx, task, input)) }},
		{"spent", "", func(tb testing.TB) { deltatest.Spent(tb, task, action.Bytes, 0) }},
		{"spent, otherwise", "has spent 0 bytes, want 7 bytes", func(tb testing.TB) { deltatest.Spent(tb, task, action.Bytes, 7) }},
		{"approved once, never", "refund-order was approved 0 times, want once", func(tb testing.TB) { deltatest.ApprovedOnce(tb, task, "refund-order") }},
	} {
		said := reports(t, c.assertion)
		if c.want == "" {
			assert.Empty(t, said, c.name)
		} else {
			assert.Contains(t, said, c.want, c.name)
		}
	}

	require.NoError(t, d.Approve(ctx, id, d.As("ana"), "the customer called"))
	once := func(tb testing.TB) { deltatest.ApprovedOnce(tb, task, "refund-order") }
	assert.Contains(t, reports(t, once), "refund-order was begun 0 times under its approval")
	deltatest.Ok(t, task.Do(ctx, raw))
	deltatest.Ok(t, task.Do(ctx, raw)) // the same call: answered, not run again
	assert.Empty(t, reports(t, once))
	second := delta.Call{ID: "r2", Action: "refund-order", Input: json.RawMessage(`{"orderId":"ORD-2"}`)}
	require.NoError(t, d.Approve(ctx, deltatest.RefusedWith(t, action.ApprovalRequired, task.Do(ctx, second)).Approval(), d.As("ana"), "again"))
	assert.Contains(t, reports(t, once), "refund-order was approved 2 times, want once")
}

func TestAssertionsWithoutAStore(t *testing.T) {
	d, task := open(t)
	d.Lose(faulty.FailFrom(faulty.LostRequest, 1))
	for name, assertion := range map[string]func(testing.TB){
		"offered":       func(tb testing.TB) { deltatest.Offered(tb, task, "charge-order") },
		"gated":         func(tb testing.TB) { deltatest.Gated(tb, task, "charge-order") },
		"not offered":   func(tb testing.TB) { deltatest.NotOffered(tb, task, "charge-order") },
		"spent":         func(tb testing.TB) { deltatest.Spent(tb, task, action.Tokens, 0) },
		"approved once": func(tb testing.TB) { deltatest.ApprovedOnce(tb, task, "refund-order") },
	} {
		said := reports(t, assertion)
		assert.Contains(t, said, "deltatest: ", name)
		assert.NotContains(t, said, "\n", "%s: one fault is reported once", name)
	}
	d.Lose(nil)
	deltatest.Offered(t, task, "confirm-order")
}

// Lose counts from the next call, whatever was called before.
func TestLoseCountsFromNow(t *testing.T) {
	d, task := open(t)
	d.Lose(faulty.FailAt(faulty.LostRequest, 1))
	_, err := task.Budget(t.Context())
	require.ErrorIs(t, err, faulty.ErrLost)
	_, err = task.Budget(t.Context())
	require.NoError(t, err)
}

func TestScript(t *testing.T) {
	d, task := open(t)
	run := func(s *deltatest.Script) { d.Run(t.Context(), task, s) }
	order := Order{"ORD-9"}

	good := deltatest.NewScript(t).Call("charge-order", order, action.NotLegal).Call("confirm-order", `{"orderId":"ORD-9"}`, action.OK).
		Call("charge-order", json.RawMessage(`{"orderId":"ORD-9"}`), action.OK).Call("confirm-order", []byte(`{}`), action.InputInvalid)
	run(good)
	good.Played()

	assert.Contains(t, reports(t, func(tb testing.TB) {
		run(deltatest.NewScript(tb).Call("confirm-order", order, action.Denied))
	}), `line 1 of the script, confirm-order {"orderId":"ORD-9"}: ended as OK, want DENIED`)
	assert.Contains(t, reports(t, func(tb testing.TB) {
		s := deltatest.NewScript(tb).Call("confirm-order", order, action.OK).Call("charge-order", order, action.OK)
		d.RunWithin(t.Context(), task, s, delta.Bounds{Steps: 1})
		s.Played()
	}), "the run ended before the script; not played: confirm-order, charge-order")
	assert.Contains(t, reports(t, func(tb testing.TB) { deltatest.NewScript(tb).Call("x", make(chan int), action.OK) }), "script: input of x")
}

func TestOpenIsFilledIn(t *testing.T) {
	clock := deltatest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	store := memory.New(memory.Config{Clock: clock.Now})
	d := deltatest.Open(t, delta.Config{Now: clock.Now, Store: store})
	task := d.Start(delta.Goal{Agent: clerk, Deadline: clock.Now().Add(time.Hour)})
	deltatest.Ok(t, confirm.Do(t.Context(), task, Order{"ORD-1"}))
	clock.Advance(2 * time.Hour)
	deltatest.RefusedWith(t, action.TaskClosed, confirm.Do(t.Context(), task, Order{"ORD-2"}))

	assert.Contains(t, reports(t, func(tb testing.TB) { deltatest.Open(tb, delta.Config{Lease: -1}) }), "deltatest: open:")
}

func TestClock(t *testing.T) {
	var c deltatest.Clock
	require.Equal(t, deltatest.Start, c.Now())
	c.Advance(time.Minute)
	c.Advance(-time.Second)
	require.Equal(t, deltatest.Start.Add(59*time.Second), c.Now())
}
