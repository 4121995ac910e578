package deltatest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/samber/mo"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// Offered reports actions that the task does not offer now, and why they are blocked. Gated ones are offered. It returns
// the offer.
func Offered(tb testing.TB, t *delta.Task, names ...string) action.Offer {
	tb.Helper()
	o, ok := offer(tb, t)
	for _, name := range names {
		if _, has := o.Find(name); ok && !has {
			tb.Errorf("deltatest: %s is not offered%s; offered: %s", name, standing(t, name), list(o))
		}
	}
	return o
}

// Gated reports actions that the task does not offer now as needing an approval.
func Gated(tb testing.TB, t *delta.Task, names ...string) {
	tb.Helper()
	o, ok := offer(tb, t)
	for _, name := range names {
		switch got, has := o.Find(name); {
		case !ok:
		case !has:
			tb.Errorf("deltatest: %s is not offered%s; offered: %s", name, standing(t, name), list(o))
		case got.Status != action.Gated:
			tb.Errorf("deltatest: %s is offered and would run without an approval, at a risk of %.2f", name, got.Risk)
		}
	}
}

// NotOffered reports actions that the task offers now, whether gated or not. Names that the agent does not hold are
// reported too: nobody would ever be offered them, and a slip of the pen would pass.
func NotOffered(tb testing.TB, t *delta.Task, names ...string) {
	tb.Helper()
	o, ok := offer(tb, t)
	for _, name := range names {
		if got, has := o.Find(name); has {
			tb.Errorf("deltatest: %s is offered (%s)", name, got.Status)
		} else if ok && !slices.Contains(t.Agent().Actions(), name) {
			tb.Errorf("deltatest: %s is no action of agent %s, which holds %s", name, t.Agent().Name(), strings.Join(t.Agent().Actions(), ", "))
		}
	}
}

func offer(tb testing.TB, t *delta.Task) (action.Offer, bool) {
	tb.Helper()
	o, err := t.Offer(context.Background())
	if err != nil {
		tb.Errorf("deltatest: offer of %s: %v", t, err)
	}
	return o, err == nil
}

func standing(t *delta.Task, name string) string {
	st, err := t.Explain(context.Background(), name)
	if err != nil || len(st.Reasons) == 0 {
		return ""
	}
	return ": " + strings.Join(st.Reasons, "; ")
}

func list(o action.Offer) string {
	names := make([]string, len(o.Actions))
	for i, a := range o.Actions {
		names[i] = a.Name
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// Ok returns what a call gave, of whichever kind: delta.Task.Do and an action's own Do both. It ends the test where the
// call did not succeed.
func Ok[T any](tb testing.TB, r mo.Result[T]) T {
	tb.Helper()
	v, code, f, err := ended(r)
	if err != nil {
		tb.Fatalf("deltatest: the call could not be decided: %v", err)
	}
	if code != action.OK {
		tb.Fatalf("deltatest: the call ended as %s, want OK%s", code, because(f))
	}
	return v
}

// RefusedWith reports a call, of whichever kind, that did not end with that code; any end but OK will do, so that what ran
// and failed can be looked for too. It returns the failure, nil where there is none.
func RefusedWith[T any](tb testing.TB, want action.Code, r mo.Result[T]) *action.Failure {
	tb.Helper()
	_, code, f, err := ended(r)
	switch {
	case want == action.OK:
		tb.Errorf("deltatest: OK is no refusal; use Ok")
	case err != nil:
		tb.Errorf("deltatest: the call could not be decided, want %s: %v", want, err)
	case code != want:
		tb.Errorf("deltatest: the call ended as %s, want %s%s", code, want, because(f))
	}
	return f
}

// ended takes a result apart: err is what kept the engine from deciding.
func ended[T any](r mo.Result[T]) (v T, code action.Code, f *action.Failure, err error) {
	v, err = r.Get()
	if err != nil {
		if f = action.FailureOf(err); f != nil {
			return v, f.Code, f, nil
		}
		return v, "", nil, err
	}
	if o, is := any(v).(action.Outcome); is {
		return v, o.Code, o.Failure, nil
	}
	return v, action.OK, nil, nil
}

// Spent reports where the task has spent another amount on an axis: millionths of its currency on the axis of money,
// nanoseconds on that of duration.
func Spent(tb testing.TB, t *delta.Task, axis action.Axis, want int64) {
	tb.Helper()
	b, err := t.Budget(context.Background())
	if err != nil {
		tb.Errorf("deltatest: budget of %s: %v", t, err)
		return
	}
	if got := b.Spent.Amount(axis); got != want {
		tb.Errorf("deltatest: %s has spent %s, want %s", t, axis.Amount(got, b.Spent.Currency), axis.Amount(want, b.Spent.Currency))
	}
}

// ApprovedOnce reports where it is not so that people approved one call of the action in this task, exactly once, and that
// it was begun exactly once under that approval.
func ApprovedOnce(tb testing.TB, t *delta.Task, name string) {
	tb.Helper()
	events, err := t.Events(context.Background())
	if err != nil {
		tb.Errorf("deltatest: events of %s: %v", t, err)
		return
	}
	var approved []string
	begun := map[string]int{}
	for _, e := range events {
		switch {
		case e.Action != name:
		case e.Type == ledger.ApprovalApproved:
			approved = append(approved, e.Approval)
		case e.Type == ledger.Begun && e.Fence <= 1 && e.Approval != "": // later fences are the same begin, taken over
			begun[e.Approval]++
		}
	}
	switch {
	case len(approved) != 1:
		tb.Errorf("deltatest: %s was approved %d times, want once", name, len(approved))
	case begun[approved[0]] != 1:
		tb.Errorf("deltatest: %s was begun %d times under its approval %s, want once", name, begun[approved[0]], approved[0])
	}
}
