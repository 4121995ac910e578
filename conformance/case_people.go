package conformance

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// jury is an action of which several people must approve every call.
func jury(pay *spy, n int) Action {
	return Action{Name: "pay", Schema: payment, Gated: true, Quorum: n, Do: pay.do}
}

func (t *T) votes(id string) int {
	n, err := need[Voter](t).Votes(t.Context, id)
	if err != nil {
		t.Errorf("votes: %v", err)
	}
	return n
}

func twoMustConsent(t *T) {
	need[Voter](t)
	pay := &spy{}
	task := t.open(Goal{Approvers: []string{boss, "chief", "head"}}, jury(pay, 2))
	id := t.asks(task, "pay", `{"amount":10}`)
	t.approve(id)
	if n := t.votes(id); n != 1 {
		t.Errorf("%d have consented, want 1", n)
	}
	if t.decide(id, Approve, boss) == nil {
		t.Errorf("one person consented twice")
	}
	t.want("one of two consented", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRequired)
	t.ran("pay", pay, 0)
	if err := t.decide(id, Approve, "chief"); err != nil {
		t.Fatalf("the second: %v", err)
	}
	if t.decide(id, Approve, "head") == nil {
		t.Errorf("a third decision was taken")
	}
	t.want("two consented", t.propose(task, "pay", `{"amount":10}`), action.OK)
	t.want("the call again", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRequired)
	t.ran("pay", pay, 1)
}

func oneOfTwoRejects(t *T) {
	need[Voter](t)
	pay := &spy{}
	task := t.open(Goal{Approvers: []string{boss, "chief", "head"}}, jury(pay, 2))
	id := t.asks(task, "pay", `{"amount":10}`)
	t.approve(id)
	if err := t.decide(id, Reject, "chief"); err != nil {
		t.Fatalf("reject: %v", err)
	}
	if t.decide(id, Approve, "head") == nil {
		t.Errorf("a consent was taken after the rejection")
	}
	t.want("one consented, one rejected", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRejected)
	t.ran("pay", pay, 0)
}

// voteRace has four people consent twice each, at two engines: three are needed.
func voteRace(t *T) {
	need[Voter](t)
	people := []string{"ada", "bea", "cid", "dan"}
	pay := &spy{}
	task := t.open(Goal{Approvers: people}, jury(pay, 3))
	peer, err := need[Peered](t).Peer()
	if err != nil {
		t.Fatalf("peer: %v", err)
	}
	for i := range 3 {
		input := fmt.Sprintf(`{"amount":%d}`, i)
		id := t.asks(task, "pay", input)
		var taken atomic.Int32
		together(12, func(i int) {
			engine := []Subject{t.Subject, peer}[i%2]
			if i >= 8 {
				engine.Propose(t.Context, task, Call{Action: "pay", Input: input})
				return
			}
			if engine.Decide(t.Context, Decision{Approval: id, Verb: Approve, By: people[i/2], Reason: "race"}) == nil {
				taken.Add(1)
			}
		})
		if taken.Load() != 3 {
			t.Errorf("%d consents were taken, want 3", taken.Load())
		}
		t.propose(task, "pay", input)
		t.ran("pay", pay, i+1)
	}
}

func oneWithTwoNames(t *T) {
	need[Voter](t)
	pay := &spy{}
	names := []string{"olive", "Olive", "0live", "o.live", "olive@corp"}
	task := t.open(Goal{Approvers: append(names, boss)}, jury(pay, 2))
	id := t.asks(task, "pay", `{"amount":10}`)
	taken := 0
	for _, by := range names {
		if t.decide(id, Approve, by) == nil {
			taken++
		}
	}
	if taken != 1 {
		t.Errorf("one person consented %d times under names that read alike", taken)
	}
	t.want("one person's consent", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRequired)
	t.ran("pay", pay, 0)
	t.approve(id)
	t.want("two people's consent", t.propose(task, "pay", `{"amount":10}`), action.OK)
}

func refusedOverride(t *T) {
	pay, o := &spy{}, need[Overrider](t)
	task := t.open(Goal{Requester: "mallory", Approvers: []string{boss, "mallory", clerk}}, gatedPay(pay))
	for _, by := range []string{"mallory", "Mallory", clerk, boss, "intern", ""} {
		if o.Override(t.Context, task, by, ttl) == nil {
			t.Errorf("%q waived the approvals of the task", by)
		}
	}
	t.want("the call", t.propose(task, "pay", `{"amount":10}`), action.ApprovalRequired)
	t.ran("pay", pay, 0)
}

// overrideEnds lets calls through for a while, and marks them.
func overrideEnds(t *T) {
	pay, o, clock := &spy{}, need[Overrider](t), need[Clocked](t)
	task := t.open(Goal{}, gatedPay(pay))
	if err := o.Override(t.Context, task, Operator, ttl); err != nil {
		t.Fatalf("override: %v", err)
	}
	clock.Advance(ttl - time.Second)
	t.want("under the override", t.propose(task, "pay", `{"amount":1}`), action.OK)
	if n := len(t.recorded(task, Overridden)); n != 1 {
		t.Errorf("%d calls are marked as let through, want 1", n)
	}
	clock.Advance(time.Second)
	t.want("after its end", t.propose(task, "pay", `{"amount":2}`), action.ApprovalRequired)
	t.ran("pay", pay, 1)
}

// overrideDelayed delays the start of what an override let through past the override's end.
func overrideDelayed(t *T) {
	pay, o, clock := &spy{}, need[Overrider](t), need[Clocked](t)
	late := gatedPay(pay)
	late.Before = func(context.Context) error { clock.Advance(ttl); return nil }
	task := t.open(Goal{}, late)
	if err := o.Override(t.Context, task, Operator, ttl); err != nil {
		t.Fatalf("override: %v", err)
	}
	if o := t.propose(task, "pay", `{"amount":1}`); o.Code == action.OK {
		t.Errorf("it started after the override's end")
	}
	t.ran("pay", pay, 0)
}
