package conformance

import (
	"fmt"
	"sync/atomic"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func approvalCases() []Case {
	return []Case{
		{"C01", "a person approves one set of arguments; others run", "an approval is bound to agent, task, action, version and exact input; anything else opens another request", []Variant{
			{"another amount", approvedOther("pay", `{"amount":10}`, "pay", `{"amount":99999}`)},
			{"another optional field", approvedOther("pay", `{"amount":10}`, "pay", `{"amount":10,"note":"and the tip"}`)},
			{"another action with the same input", approvedOther("pay", `{"amount":10}`, "refund", `{"amount":10}`)},
			{"a neighbour beyond 2^53", approvedOther("pay", `{"amount":9007199254740993}`, "pay", `{"amount":9007199254740992}`)},
			{"another task", approvedElsewhere},
			{"another version of the action", approvedVersion},
			{"another schema under the same version", approvedSchema},
			{"a number spelled differently is the same input", approvedSpelling},
		}},
		{"C02", "one approval id twice in a list runs twice; approve and reject both take", "one decision per request, consumed once; a second decision is refused", []Variant{
			{"the id twice in a list", decidedTwice},
			{"approve, then reject", decidedBoth(Approve, Reject)},
			{"reject, then approve", decidedBoth(Reject, Approve)},
			{"many people at two engines at once", decidedRace},
			{"many proposals of one approved call at once", consumedRace},
			{"revoke after use", revokedLate},
			{"approve after revoke", decidedBoth(Revoke, Approve)},
			{"a decision whose reply is lost", decidedLost},
			{"two must consent: one yes is none", twoMustConsent},
			{"two must consent: one no is enough", oneOfTwoRejects},
			{"three must consent: many at two engines at once", voteRace},
		}},
		{"C06", "the function starts while the confirmation is still open", "no body and no hook before a terminal approval", []Variant{
			{"never answered", unanswered},
			{"workers and a restart while it is open", unansweredWork},
		}},
		{"C26", "the requester approves itself under another name", "the approver comes from an authenticated transport and is never the requester, its agent or a look-alike", []Variant{
			{"the agent", refusedApprover(clerk)},
			{"the agent under a name that reads the same", refusedApprover("C1erk")},
			{"the requester", refusedApprover("mallory")},
			{"the requester in capitals", refusedApprover("MALLORY")},
			{"nobody", refusedApprover("")},
			{"somebody who may not", refusedApprover("intern")},
			{"where anybody may: still not the requester", refusedAmongAll},
			{"two must consent: one person with two names", oneWithTwoNames},
			{"who may waive the need for approvals", refusedOverride},
		}},
	}
}

// approvedOther approves one call and proposes another.
func approvedOther(name, input, other, otherInput string) func(*T) {
	return func(t *T) {
		pay, refund := &spy{}, &spy{}
		task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do}, Action{Name: "refund", Schema: payment, Gated: true, Do: refund.do})
		first := t.asks(task, name, input)
		t.approve(first)
		o := t.want("the call that nobody approved", t.propose(task, other, otherInput), action.ApprovalRequired)
		if o.Approval == first {
			t.Errorf("the other call goes by the approval of the first")
		}
		if n := pay.runs() + refund.runs(); n > 0 {
			t.Errorf("%s(%s) was approved, and %v %v ran", name, input, pay.saw(), refund.saw())
		}
		t.want("the approved call", t.propose(task, name, input), action.OK)
		if saw := append(pay.saw(), refund.saw()...); len(saw) != 1 || saw[0] != input {
			t.Errorf("ran with %v, want only the approved %s", saw, input)
		}
	}
}

func approvedElsewhere(t *T) {
	pay := &spy{}
	one := t.open(Goal{}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do})
	two := t.start(Goal{})
	t.approve(t.asks(one, "pay", `{"amount":10}`))
	t.want("the same call in another task", t.propose(two, "pay", `{"amount":10}`), action.ApprovalRequired)
	t.ran("pay", pay, 0)
}

func approvedVersion(t *T) {
	v1, v2 := &spy{}, &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Version: "1", Schema: payment, Gated: true, Do: v1.do})
	first := t.asks(task, "pay", `{"amount":10}`)
	t.approve(first)
	t.declare(clerk, Action{Name: "pay", Version: "2", Schema: payment, Gated: true, Do: v2.do})
	o := t.want("the same call of another version", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRequired)
	if o.Approval == first {
		t.Errorf("version 2 goes by the approval of version 1")
	}
	t.ran("version 2", v2, 0)
}

// approvedSchema changes what the fields mean after a person has consented.
func approvedSchema(t *T) {
	v1, v2 := &spy{}, &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Gated: true, Do: v1.do})
	first := t.asks(task, "pay", `{"amount":10}`)
	t.approve(first)
	t.declare(clerk, Action{Name: "pay", Schema: `{"type":"object","description":"amount is in thousands","properties":{"amount":{"type":"number"}}}`, Gated: true, Do: v2.do})
	if o := t.want("the same call under another schema", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRequired); o.Approval == first {
		t.Errorf("another schema goes by the approval of the first")
	}
	t.ran("pay under the other schema", v2, 0)
}

func approvedSpelling(t *T) {
	for _, same := range []string{`{"amount":10}`, `{"amount":10.0}`, `{"amount":1e1}`, `{ "amount" : 100E-1 }`} {
		pay := &spy{}
		t.declare(clerk, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do})
		task := t.start(Goal{})
		t.approve(t.asks(task, "pay", `{"amount":10}`))
		t.want(same+" after 10 was approved", t.propose(task, "pay", same), action.OK)
		t.ran("pay", pay, 1)
	}
}

func decidedTwice(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do})
	id := t.asks(task, "pay", `{"amount":10}`)
	t.approve(id)
	if err := t.decide(id, Approve, boss); err == nil {
		t.Errorf("a second approval of one request was taken")
	}
	t.want("the approved call", t.propose(task, "pay", `{"amount":10}`), action.OK)
	t.want("the call again", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRequired)
	if err := t.decide(id, Approve, boss); err == nil {
		t.Errorf("a request that was used was approved again")
	}
	t.ran("pay", pay, 1)
}

func decidedBoth(first, second Verb) func(*T) {
	return func(t *T) {
		pay := &spy{}
		task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do})
		id := t.asks(task, "pay", `{"amount":10}`)
		if err := t.decide(id, first, boss); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if err := t.decide(id, second, boss); err == nil {
			t.Errorf("%s was taken after %s", second, first)
		}
		o := t.propose(task, "pay", `{"amount":10}`)
		switch first {
		case Approve:
			t.want("the approved call", o, action.OK)
		case Reject:
			t.want("the rejected call", o, action.ApprovalRejected)
		default:
			t.want("the revoked call", o, action.ApprovalRequired, action.ApprovalRejected)
		}
		t.ran("pay", pay, map[Verb]int{Approve: 1}[first])
	}
}

func decidedRace(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do})
	peer, err := need[Peered](t).Peer()
	if err != nil {
		t.Fatalf("peer: %v", err)
	}
	for i := range 5 {
		input := fmt.Sprintf(`{"amount":%d}`, i)
		id := t.asks(task, "pay", input)
		var taken atomic.Int32
		var won atomic.Value
		together(8, func(i int) {
			engine, verb := t.Subject, Approve
			if i%2 == 1 {
				verb = Reject
			}
			if i%4 > 1 {
				engine = peer
			}
			if engine.Decide(t.Context, Decision{Approval: id, Verb: verb, By: boss, Reason: "race"}) == nil {
				taken.Add(1)
				won.Store(verb)
			}
		})
		if taken.Load() != 1 {
			t.Fatalf("%d of 8 decisions of one request were taken, want 1", taken.Load())
		}
		want := map[any]action.Code{Approve: action.OK, Reject: action.ApprovalRejected}[won.Load()]
		before := pay.runs()
		t.want(fmt.Sprintf("after %v won", won.Load()), t.propose(task, "pay", input), want)
		if n := pay.runs() - before; (n == 1) != (want == action.OK) {
			t.Errorf("after %v won the call ran %d times", won.Load(), n)
		}
	}
}

// decidedLost loses replies of the store while a person decides: who is told of an error has not decided, and the other
// way round.
func decidedLost(t *T) {
	pay, f := &spy{}, need[Faulty](t)
	task := t.open(Goal{}, gatedPay(pay))
	for from := 1; from <= 4; from++ {
		for _, reply := range []bool{false, true} {
			input := fmt.Sprintf(`{"amount":%d}`, 2*from+map[bool]int{true: 1}[reply])
			id := t.asks(task, "pay", input)
			f.FailStore(Fault{From: from, To: from, Reply: reply})
			err := t.decide(id, Approve, boss)
			f.FailStore(Fault{})
			open := false
			for _, q := range t.pending(task) {
				open = open || q.ID == id
			}
			if open != (err != nil) {
				t.Errorf("access %d lost (reply %v): the approver is told %v, and the request is pending: %v", from, reply, err, open)
			}
		}
	}
}

func consumedRace(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do})
	t.approve(t.asks(task, "pay", `{"amount":10}`))
	engines := []Subject{t.Subject}
	if p, ok := t.Subject.(Peered); ok {
		if peer, err := p.Peer(); err == nil {
			engines = append(engines, peer)
		}
	}
	together(16, func(i int) {
		engines[i%len(engines)].Propose(t.Context, task, Call{Action: "pay", Input: `{"amount":10}`})
	})
	t.ran("pay, approved once,", pay, 1)
}

func revokedLate(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do})
	id := t.asks(task, "pay", `{"amount":10}`)
	t.approve(id)
	t.want("the approved call", t.propose(task, "pay", `{"amount":10}`), action.OK)
	if err := t.decide(id, Revoke, boss); err == nil {
		t.Errorf("an approval that was used was revoked: nothing is taken back by that")
	}
}

func unanswered(t *T) {
	pay, looked := &spy{}, &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do, Before: hook(looked)})
	id := t.asks(task, "pay", `{"amount":10}`)
	for range 3 {
		o := t.want("the call again", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRequired)
		if o.Approval != id {
			t.Errorf("asking again opened another request")
		}
	}
	t.ran("pay", pay, 0)
	t.ran("its before hook", looked, 0)
	if n := len(t.pending(task)); n != 1 {
		t.Errorf("%d requests are pending, want 1", n)
	}
}

func unansweredWork(t *T) {
	pay := &spy{}
	task := t.open(Goal{}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do}, Action{Name: "sign", Schema: payment, Gated: true, Do: pay.do})
	w := need[Worker](t)
	t.asks(task, "pay", `{"amount":10}`)
	other := t.asks(task, "sign", `{"amount":1}`)
	t.approve(other)
	// The approved call is the sign that workers have looked at what is due.
	if err := w.Work(t.Context, func() bool { return pay.runs() >= 1 }); err != nil {
		t.Errorf("work: %v", err)
	}
	t.restart()
	if err := need[Worker](t).Work(t.Context, func() bool { return true }); err != nil {
		t.Errorf("work: %v", err)
	}
	if saw := pay.saw(); len(saw) != 1 || saw[0] != `{"amount":1}` {
		t.Errorf("ran with %v, want only the approved call", saw)
	}
}

func refusedApprover(by string) func(*T) {
	return func(t *T) {
		pay := &spy{}
		approvers := []string{boss, clerk, "C1erk", "mallory", "MALLORY"}
		task := t.open(Goal{Requester: "mallory", Approvers: approvers}, Action{Name: "pay", Schema: payment, Gated: true, Do: pay.do})
		id := t.asks(task, "pay", `{"amount":10}`)
		for _, v := range []Verb{Approve, Reject, Revoke} {
			if err := t.decide(id, v, by); err == nil {
				t.Errorf("%q may %s", by, v)
			}
		}
		t.want("the call", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRequired)
		t.ran("pay", pay, 0)
		t.approve(id)
		t.want("the call, approved by somebody else", t.propose(task, "pay", `{"amount":10}`), action.OK)
	}
}

func refusedAmongAll(t *T) {
	pay := &spy{}
	task := t.open(Goal{Requester: "mallory", Approvers: []string{"*"}}, gatedPay(pay))
	id := t.asks(task, "pay", `{"amount":10}`)
	for _, by := range []string{"mallory", "Mallory", "ma11ory", clerk, "", " "} {
		if t.decide(id, Approve, by) == nil {
			t.Errorf("%q approved where anybody but the requester may", by)
		}
	}
	t.ran("pay", pay, 0)
	if err := t.decide(id, Approve, "intern"); err != nil {
		t.Errorf("where anybody may: %v", err)
	}
}
