package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func turnCases() []Case {
	return []Case{
		{"C03", "several gated calls carry one call id; one visible approval releases the others", "a call id names one call; another call under it is refused before anything is stored", []Variant{
			{"two inputs in one turn", sharedIDTurn("pay", `{"amount":99999}`)},
			{"two actions in one turn", sharedIDTurn("refund", `{"amount":10}`)},
			{"one after the other", sharedIDLater(false)},
			{"across a restart", sharedIDLater(true)},
			{"in two tasks it names two calls", sharedIDTasks},
		}},
		{"C04", "parallel gated calls share an interrupt; answers reach the wrong call", "one request per call, answers keyed by it", []Variant{
			{"two, answered in reverse", answeredReverse(2)},
			{"eight, every second approved, last first", answeredReverse(8)},
			{"two that are the same: one consent, one run", answeredSame},
		}},
		{"C07", "an ungated sibling ran during the pause but its result is lost, so it is repeated", "outcomes of siblings are stored before the turn parks; the same call id returns them", []Variant{
			{"resume", siblingKept(false)},
			{"resume after a restart", siblingKept(true)},
			{"a sibling that failed stays failed", siblingFailed},
		}},
	}
}

func twoGated(pay, refund *spy) []Action {
	return []Action{{Name: "pay", Schema: payment, Gated: true, Do: pay.do}, {Name: "refund", Schema: payment, Gated: true, Do: refund.do}}
}

// sharedIDTurn gives a second call of the turn the first one's id.
func sharedIDTurn(other, input string) func(*T) {
	return func(t *T) {
		pay, refund := &spy{}, &spy{}
		task := t.open(Goal{}, twoGated(pay, refund)...)
		out := t.turn(task, Call{"x", "pay", `{"amount":10}`}, Call{"x", other, input})
		if out[0].Waits() && out[1].Waits() {
			t.Errorf("both calls of id x wait, for %q and %q", out[0].Approval, out[1].Approval)
		}
		asked := t.pending(task)
		if len(asked) > 1 {
			t.Errorf("%d requests stand for one call id, want at most 1", len(asked))
		}
		for _, q := range asked {
			t.approve(q.ID)
		}
		for range 2 {
			t.turn(task, Call{"", "pay", `{"amount":10}`}) // whoever resumes by proposing again
		}
		for _, saw := range append(pay.saw(), refund.saw()...) {
			if len(asked) == 0 || saw != string(asked[0].Input) {
				t.Errorf("%s ran, which was never shown", saw)
			}
		}
	}
}

// sharedIDLater uses the id again in a later call.
func sharedIDLater(restart bool) func(*T) {
	return func(t *T) {
		pay, refund := &spy{}, &spy{}
		task := t.open(Goal{}, twoGated(pay, refund)...)
		first := t.asks(task, "pay", `{"amount":10}`, "x")
		if restart {
			t.restart()
		}
		for _, c := range []Call{{"x", "pay", `{"amount":99999}`}, {"x", "refund", `{"amount":10}`}} {
			if o := t.Propose(t.Context, task, c); o.Waits() || o.OK() {
				t.Errorf("%s(%s) under a call id in use: %s", c.Action, c.Input, o.Code)
			}
		}
		if n := len(t.pending(task)); n != 1 {
			t.Errorf("%d requests are pending, want 1", n)
		}
		t.approve(first)
		t.want("the approved call under its id", t.propose(task, "pay", `{"amount":10}`, "x"), action.OK)
		t.want("the same again is answered from the record", t.propose(task, "pay", `{"amount":10}`, "x"), action.OK)
		t.ran("pay", pay, 1)
		t.ran("refund", refund, 0)
	}
}

func sharedIDTasks(t *T) {
	pay, refund := &spy{}, &spy{}
	one := t.open(Goal{}, twoGated(pay, refund)...)
	two := t.start(Goal{})
	t.approve(t.asks(one, "pay", `{"amount":10}`, "x"))
	t.asks(two, "pay", `{"amount":10}`, "x")
	t.want("the approved one", t.propose(one, "pay", `{"amount":10}`, "x"), action.OK)
	t.want("the other task's", t.propose(two, "pay", `{"amount":10}`, "x"), action.ApprovalRequired)
	t.ran("pay", pay, 1)
}

func answeredReverse(n int) func(*T) {
	return func(t *T) {
		pay := &spy{}
		task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do})
		calls := make([]Call, n)
		for i := range calls {
			calls[i] = Call{fmt.Sprint("c", i), "pay", fmt.Sprintf(`{"amount":%d}`, i)}
		}
		out := t.turn(task, calls...)
		seen := map[string]bool{}
		for i, o := range out {
			t.want(calls[i].ID, o, action.ApprovalRequired)
			if seen[o.Approval] {
				t.Fatalf("two calls of one turn share the request %q", o.Approval)
			}
			seen[o.Approval] = true
		}
		for i := n - 1; i >= 0; i-- {
			verb := Reject
			if i%2 == 1 {
				verb = Approve
			}
			if err := t.decide(out[i].Approval, verb, boss); err != nil {
				t.Errorf("%s %s: %v", verb, calls[i].ID, err)
			}
		}
		for i, o := range t.turn(task, calls...) {
			want := action.ApprovalRejected
			if i%2 == 1 {
				want = action.OK
			}
			t.want(calls[i].ID, o, want)
		}
		for _, saw := range pay.saw() {
			var in struct{ Amount int }
			if json.Unmarshal([]byte(saw), &in) != nil || in.Amount%2 == 0 {
				t.Errorf("%s ran, which was rejected", saw)
			}
		}
		t.ran("pay", pay, n/2)
	}
}

func answeredSame(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do})
	same := []Call{{"a", "pay", `{"amount":10}`}, {"b", "pay", `{"amount":10}`}}
	out := t.turn(task, same...)
	for _, o := range out {
		if o.Waits() {
			t.approve(o.Approval)
			break
		}
	}
	t.turn(task, same...)
	t.turn(task, same...)
	t.ran("pay, approved once,", pay, 1)
}

func listAndDelete(list, remove *spy) []Action {
	return []Action{{Name: "list", Effect: NoEffect, Do: list.do}, {Name: "delete", Schema: payment, Gated: true, Do: remove.do}}
}

func siblingKept(restart bool) func(*T) {
	return func(t *T) {
		list, remove := &spy{then: answer(`{"files":["a"]}`)}, &spy{}
		task := t.open(Goal{}, listAndDelete(list, remove)...)
		calls := []Call{{"l", "list", `{}`}, {"d", "delete", `{"amount":1}`}}
		out := t.turn(task, calls...)
		t.want("list", out[0], action.OK)
		t.approve(t.want("delete", out[1], action.ApprovalRequired).Approval)
		if restart {
			t.restart()
		}
		again := t.turn(task, calls...)
		t.want("list again", again[0], action.OK)
		if string(again[0].Output) != `{"files":["a"]}` {
			t.Errorf("the sibling's output is now %s", again[0].Output)
		}
		t.want("delete after the approval", again[1], action.OK)
		t.ran("list", list, 1)
		t.ran("delete", remove, 1)
	}
}

func siblingFailed(t *T) {
	list, remove := &spy{then: fails("disk full")}, &spy{}
	task := t.open(Goal{}, listAndDelete(list, remove)...)
	calls := []Call{{"l", "list", `{}`}, {"d", "delete", `{"amount":1}`}}
	t.approve(t.want("delete", t.turn(task, calls...)[1], action.ApprovalRequired).Approval)
	o := t.want("list again", t.turn(task, calls...)[0], action.Failed)
	if !strings.Contains(o.Told, "disk full") {
		t.Errorf("the recorded failure lost its reason: %s", o.Told)
	}
	t.ran("list", list, 1)
}

// answer is a body's Ok.
func answer(output string) Func {
	return func(context.Context, Execution) (json.RawMessage, error) { return json.RawMessage(output), nil }
}

// fails is a body's Err.
func fails(why string) Func {
	return func(context.Context, Execution) (json.RawMessage, error) { return nil, fmt.Errorf("%s", why) }
}

// hook makes a before hook of a spy.
func hook(s *spy) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.do(ctx, Execution{})
		return err
	}
}
