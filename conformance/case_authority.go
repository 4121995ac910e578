package conformance

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func authorityCases() []Case {
	return []Case{
		{"C14", "two sources offer one name; the last silently receives the calls", "a collision is an error; calls and grants reach the agent's own action", []Variant{
			{"the name twice", collides("send_email", "send_email")},
			{"names that read the same", collides("send_email", "send-email")},
			{"look-alikes", collides("pay_all", "pay_aIl")},
			{"two agents, each its own", ownActions},
		}},
		{"C20", "a hidden action can still be called directly", "authorised at the call, per agent; what the planner is told names nothing hidden", []Variant{
			{"an action of another agent", callsForeign},
			{"held but not granted", callsUngranted},
			{"a near miss is no oracle", callsNearly},
			{"prerequisites that are hidden are not named", hiddenNeeds},
		}},
		{"C21", "an error of the policy is skipped, or denied without trace", "a policy that cannot say denies, and that is recorded", []Variant{
			{"error", policyFails(func() (bool, error) { return false, errors.New("backend down") })},
			{"error beside a permit", policyFails(func() (bool, error) { return true, errors.New("backend down") })},
			{"panic", policyFails(func() (bool, error) { panic("backend down") })},
			{"a plain no", policyFails(func() (bool, error) { return false, nil })},
			{"error when an approved call is resumed", policyFailsLater},
		}},
		{"C22", "an explicitly empty allow list means allow all", "unset and empty differ; empty is none", []Variant{
			{"grants", emptyGrants},
			{"approvers", emptyApprovers},
			{"a limit of zero", zeroLimit},
		}},
	}
}

func collides(one, two string) func(*T) {
	return func(t *T) {
		a, b := &spy{}, &spy{}
		err := t.Declare(Agent{Name: clerk, Actions: []Action{{Name: one, Do: a.do}, {Name: two, Do: b.do}}, Grants: []string{one, two}})
		if err == nil {
			t.Errorf("%q and %q were both accepted", one, two)
		}
	}
}

func ownActions(t *T) {
	mine, theirs := &spy{}, &spy{}
	t.declare(clerk, Action{Name: "send_email", Do: mine.do})
	t.declare("intruder", Action{Name: "send_email", Do: theirs.do})
	task, other := t.start(Goal{}), t.start(Goal{Agent: "intruder"})
	t.want("the clerk's", t.propose(task, "send_email", `{"n":1}`), action.OK)
	t.want("the intruder's", t.propose(other, "send_email", `{"n":2}`), action.OK)
	if a, b := mine.saw(), theirs.saw(); len(a) != 1 || a[0] != `{"n":1}` || len(b) != 1 || b[0] != `{"n":2}` {
		t.Errorf("the clerk's action saw %v, the intruder's %v", a, b)
	}
}

func callsForeign(t *T) {
	wipe, look := &spy{}, &spy{}
	t.declare("admin", Action{Name: "wipe", Do: wipe.do})
	task := t.open(Goal{}, Action{Name: "look", Do: look.do})
	for _, name := range []string{"wipe", "admin/wipe", "admin~wipe", "admin.wipe", "Wipe", "delta.plan", ""} {
		t.want("call of "+name, t.propose(task, name, `{}`), action.ActionUnknown)
	}
	t.ran("wipe", wipe, 0)
}

func callsUngranted(t *T) {
	wipe := &spy{}
	err := t.Declare(Agent{Name: clerk, Actions: []Action{{Name: "look", Do: answerBody}, {Name: "wipe", Do: wipe.do}}, Grants: []string{"look"}})
	if err != nil {
		t.Fatalf("declare: %v", err)
	}
	task := t.start(Goal{})
	t.want("an action that was not granted", t.propose(task, "wipe", `{}`), action.Denied)
	t.ran("wipe", wipe, 0)
	if len(t.recorded(task, Refused)) == 0 {
		t.Errorf("the denial is not recorded")
	}
}

func callsNearly(t *T) {
	wipe := &spy{}
	t.declare("admin", Action{Name: "wipe-all-disks", Do: wipe.do})
	err := t.Declare(Agent{Name: clerk, Actions: []Action{{Name: "look", Do: answerBody}, {Name: "purge-archive", Do: wipe.do}}, Grants: []string{"look"}})
	if err != nil {
		t.Fatalf("declare: %v", err)
	}
	task := t.start(Goal{})
	out := t.turn(task, Call{Action: "wipe-all-disk", Input: `{}`}, Call{Action: "purge-archiv", Input: `{}`}, Call{Action: "purge", Input: `{}`})
	for _, o := range out {
		t.want("a near miss", o, action.ActionUnknown)
		t.hides(o, "wipe-all-disks", "purge-archive")
	}
}

// hides checks that the planner is not told a name.
func (t *T) hides(o Outcome, names ...string) {
	for _, n := range names {
		if strings.Contains(o.Told, n) {
			t.Errorf("the planner is told of %s: %s", n, o.Told)
		}
	}
}

func hiddenNeeds(t *T) {
	refund, audit := &spy{}, &spy{}
	err := t.Declare(Agent{
		Name: clerk, Grants: []string{"refund", "look"},
		Actions: []Action{
			{Name: "look", Do: answerBody}, {Name: "secret-audit", Schema: payment, Do: audit.do},
			{Name: "refund", Schema: payment, Do: refund.do, Needs: []Need{{Action: "secret-audit", Field: "to"}}},
		},
	})
	if err != nil {
		t.Fatalf("declare: %v", err)
	}
	task := t.start(Goal{})
	for _, o := range t.turn(task, Call{Action: "refund", Input: `{"amount":1,"to":"x"}`}, Call{Action: "refund", Input: `{"amount":1}`}) {
		t.want("refund without its prerequisite", o, action.NotLegal)
		t.hides(o, "secret-audit")
	}
	t.ran("refund", refund, 0)
}

func policyFails(decide func() (bool, error)) func(*T) {
	return func(t *T) {
		pay := &spy{}
		task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Do: pay.do})
		p := need[Policed](t)
		p.SetPolicy(func(string, string, json.RawMessage) (bool, error) { return decide() })
		t.want("with a policy that cannot say", t.propose(task, "pay", `{"amount":1}`), action.Denied)
		t.ran("pay", pay, 0)
		if r := t.recorded(task, Refused); len(r) != 1 || r[0].Code != action.Denied {
			t.Errorf("the denial is recorded as %+v", r)
		}
		p.SetPolicy(nil)
		t.want("with a policy that says yes", t.propose(task, "pay", `{"amount":1}`), action.OK)
	}
}

func policyFailsLater(t *T) {
	pay, p := &spy{}, need[Policed](t)
	task := t.open(Goal{}, gatedPay(pay))
	t.approve(t.asks(task, "pay", `{"amount":1}`, "x"))
	p.SetPolicy(func(string, string, json.RawMessage) (bool, error) { return true, errors.New("backend down") })
	t.works(task)
	t.want("resumed while the policy cannot say", t.propose(task, "pay", `{"amount":1}`, "x"), action.Denied)
	t.ran("pay", pay, 0)
}

func emptyGrants(t *T) {
	pay := &spy{}
	for _, grants := range [][]string{nil, {}} {
		if err := t.Declare(Agent{Name: clerk, Actions: []Action{{Name: "pay", Do: pay.do}}, Grants: grants}); err != nil {
			t.Fatalf("declare: %v", err)
		}
		task := t.start(Goal{})
		t.want("without a grant", t.propose(task, "pay", `{}`), action.Denied)
	}
	if err := t.Declare(Agent{Name: clerk}); err == nil { // an engine may also refuse an agent of nothing
		t.want("without an action", t.propose(t.start(Goal{}), "pay", `{}`), action.ActionUnknown)
	}
	t.ran("pay", pay, 0)
}

func emptyApprovers(t *T) {
	pay := &spy{}
	task := t.open(Goal{Approvers: []string{}}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do})
	o := t.want("a gated call with nobody to ask", t.propose(task, "pay", `{"amount":1}`), action.NoApprover)
	for _, by := range []string{boss, clerk, "*", ""} {
		if o.Approval != "" && t.decide(o.Approval, Approve, by) == nil {
			t.Errorf("%q approved where nobody may", by)
		}
	}
	t.ran("pay", pay, 0)
}

func zeroLimit(t *T) {
	buy := &spy{}
	t.declare(clerk, Action{Name: "buy", Effect: Idempotent, Cost: Cost{Tokens: 1, Money: 0.01}, Do: buy.do})
	for _, l := range []Limit{{Tokens: UpTo(0)}, {Money: UpTo(0)}, {Calls: UpTo(0)}} {
		t.want("under a limit of zero", t.propose(t.start(Goal{Limit: l}), "buy", `{}`), action.BudgetExhausted)
	}
	t.ran("buy", buy, 0)
	t.want("without a limit", t.propose(t.start(Goal{}), "buy", `{}`), action.OK)
}
