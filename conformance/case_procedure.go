package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// procedureCases are variants of cases that stand elsewhere: whoever makes the calls, a planner or a workflow, and however
// deep that is nested, the same must hold.
func procedureCases() []Case {
	both := func(name string, run func(depth int) func(*T)) []Variant {
		return []Variant{
			{name + " of a workflow", run(0)},
			{name + " of a workflow in a workflow", run(1)},
			{name + " of a workflow, two levels down", run(2)},
		}
	}
	return []Case{
		{ID: "C04", Variants: both("steps", stepsAnsweredReverse)},
		{ID: "C05", Variants: append(both("the finished step", func(depth int) func(*T) { return stepsResumed(depth, false) }),
			both("after a restart, the finished step", func(depth int) func(*T) { return stepsResumed(depth, true) })...)},
		{ID: "C06", Variants: both("a step", stepUnanswered)},
		{ID: "C07", Variants: both("the sibling step", siblingStepKept)},
		{ID: "C16", Variants: both("the question of a step", stepExpires)},
		{ID: "C28", Variants: append(both("the function, of a step", func(depth int) func(*T) { return stepCancelled(depth, false) }),
			both("recalled, the function of a step", func(depth int) func(*T) { return stepCancelled(depth, true) })...)},
		{ID: "C29", Variants: append(append(both("steps", func(depth int) func(*T) { return stepsUndone(depth, "", false) }),
			both("a failing undo of a step", func(depth int) func(*T) { return stepsUndone(depth, "2", false) })...),
			both("with approvals and restarts, steps", func(depth int) func(*T) { return stepsUndone(depth, "", true) })...)},
	}
}

// calls is a step that makes a call.
func calls(name, action, input string, after ...string) Step {
	return Step{Name: name, Action: action, Input: input, After: after}
}

// begin declares a procedure, so many levels below the one that is begun, and begins that.
func (t *T) begin(depth int, g Goal, steps ...Step) (Procedural, string) {
	all := []Procedure{{Name: "p0", Steps: steps}}
	for i := range depth {
		all = append(all, Procedure{Name: fmt.Sprint("p", i+1), Steps: []Step{within(i)}})
	}
	return need[Procedural](t), t.beginAll(all, g)
}

// within is a step that runs the procedure of that level.
func within(level int) Step { return Step{Name: "part", Procedure: fmt.Sprint("p", level)} }

// beginAll declares procedures and begins the last.
func (t *T) beginAll(all []Procedure, g Goal) string {
	p := need[Procedural](t)
	if err := p.Define(all...); err != nil {
		t.Fatalf("define: %v", err)
	}
	g.Agent = clerk
	if g.Approvers == nil {
		g.Approvers = []string{boss}
	}
	task, err := p.Begin(t.Context, all[len(all)-1].Name, g)
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	return task
}

// proceed drives the procedure as far as it goes.
func (t *T) proceed(task string) Progress {
	p, err := need[Procedural](t).Proceed(t.Context, task)
	if err != nil {
		t.Fatalf("proceed: %v", err)
	}
	return p
}

// asked lists what waits for a person in the procedure and those within it.
func (t *T) asked(task string, p Progress) (out []Request) {
	for _, id := range append([]string{task}, p.Parts...) {
		out = append(out, t.pending(id)...)
	}
	slices.SortFunc(out, func(a, b Request) int { return strings.Compare(string(a.Input), string(b.Input)) })
	return out
}

func (t *T) stands(p Progress, want Standing) {
	if p.Status != want {
		t.Errorf("the procedure is %s, want %s", p.Status, want)
	}
}

func stepsAnsweredReverse(depth int) func(*T) {
	return func(t *T) {
		pay := &spy{}
		t.declare(clerk, gatedPay(pay))
		_, task := t.begin(depth, Goal{}, calls("a", "pay", `{"amount":1}`), calls("b", "pay", `{"amount":2}`), calls("c", "pay", `{"amount":3}`))
		asked := t.asked(task, t.proceed(task))
		if len(asked) != 3 {
			t.Fatalf("%d requests for three steps", len(asked))
		}
		t.approve(asked[2].ID)
		t.proceed(task)
		t.approve(asked[1].ID)
		p := t.proceed(task)
		if saw := strings.Join(pay.saw(), " "); saw != `{"amount":3} {"amount":2}` {
			t.Errorf("of three steps the last two were approved, the last first; what ran is %s", saw)
		}
		if err := t.decide(asked[0].ID, Reject, boss); err != nil {
			t.Errorf("reject: %v", err)
		}
		p = t.proceed(task)
		t.ran("pay", pay, 2)
		if p.Status == Completed {
			t.Errorf("it completed, though one of its steps was rejected")
		}
	}
}

// stepsResumed: what has finished is not done again when a later step goes on after its approval.
func stepsResumed(depth int, restart bool) func(*T) {
	return func(t *T) {
		pay, refund := &spy{}, &spy{}
		t.declare(clerk, Action{Name: "pay", Schema: payment, Do: pay.do}, Action{Name: "refund", Schema: payment, Gated: true, Do: refund.do})
		_, task := t.begin(depth, Goal{}, calls("pay", "pay", `{"amount":10}`), calls("refund", "refund", `{"amount":5}`, "pay"))
		asked := t.asked(task, t.proceed(task))
		if len(asked) != 1 {
			t.Fatalf("%d requests, want one", len(asked))
		}
		again := func() Progress {
			if restart {
				t.restart()
			}
			return t.proceed(task)
		}
		t.stands(again(), Proceeding)
		t.approve(asked[0].ID)
		for range 2 {
			t.stands(again(), Completed)
		}
		t.ran("pay", pay, 1)
		t.ran("refund", refund, 1)
	}
}

func stepUnanswered(depth int) func(*T) {
	return func(t *T) {
		pay, ship, before := &spy{}, &spy{}, &spy{}
		t.declare(clerk, Action{Name: "pay", Schema: payment, Gated: true, Before: hook(before), Do: pay.do}, Action{Name: "ship", Schema: payment, Do: ship.do})
		_, task := t.begin(depth, Goal{}, calls("pay", "pay", `{"amount":1}`), calls("ship", "ship", `{"amount":1}`, "pay"))
		for range 3 {
			t.stands(t.proceed(task), Proceeding)
		}
		t.restart()
		if w, ok := t.Subject.(Worker); ok {
			rounds := 0
			if err := w.Work(t.Context, func() bool { rounds++; return rounds > 20 }); err != nil {
				t.Errorf("work: %v", err)
			}
		}
		p := t.proceed(task)
		t.ran("pay, which nobody approved,", pay, 0)
		t.ran("its hook", before, 0)
		t.ran("ship, which comes after it,", ship, 0)
		if n := len(t.asked(task, p)); n != 1 {
			t.Errorf("%d requests for one step", n)
		}
	}
}

// siblingStepKept: what ran beside a step that waits is stored, and is what comes after it is given.
func siblingStepKept(depth int) func(*T) {
	return func(t *T) {
		list, remove := &spy{then: answer(`{"files":["a"]}`)}, &spy{}
		t.declare(clerk, listAndDelete(list, remove)...)
		_, task := t.begin(depth, Goal{}, calls("list", "list", `{}`), calls("delete", "delete", `{"amount":1}`))
		p := t.proceed(task)
		asked := t.asked(task, p)
		if len(asked) != 1 {
			t.Fatalf("%d requests, want one", len(asked))
		}
		t.ran("list", list, 1)
		t.restart()
		t.stands(t.proceed(task), Proceeding)
		t.approve(asked[0].ID)
		t.stands(t.proceed(task), Completed)
		t.ran("list", list, 1)
		t.ran("delete", remove, 1)
		kept := 0
		for _, id := range append([]string{task}, p.Parts...) {
			for _, r := range t.recorded(id, Settled) {
				if r.Action == "list" && string(r.Output) == `{"files":["a"]}` {
					kept++
				}
			}
		}
		if kept != 1 {
			t.Errorf("the sibling's output is recorded %d times", kept)
		}
	}
}

func stepExpires(depth int) func(*T) {
	return func(t *T) {
		pay, clock := &spy{}, need[Clocked](t)
		t.declare(clerk, gatedPay(pay))
		_, task := t.begin(depth, Goal{TTL: ttl}, calls("pay", "pay", `{"amount":1}`))
		p := t.proceed(task)
		asked := t.asked(task, p)
		if len(asked) != 1 {
			t.Fatalf("%d requests, want one", len(asked))
		}
		clock.Advance(ttl + time.Second)
		if err := t.decide(asked[0].ID, Approve, boss); err == nil {
			t.Errorf("it was approved after the wait was over")
		}
		p = t.proceed(task)
		t.ran("pay, approved too late,", pay, 0)
		t.stands(p, Proceeding)
		for _, id := range append([]string{task}, p.Parts...) {
			if r := t.recorded(id, Rejected); len(r) != 0 {
				t.Errorf("waiting too long is recorded as a rejection by %q", r[0].By)
			}
		}
		again := t.asked(task, p)
		if len(again) != 1 || again[0].ID == asked[0].ID {
			t.Fatalf("after the wait %d requests stand, want a new one", len(again))
		}
		t.approve(again[0].ID)
		t.stands(t.proceed(task), Completed)
		t.ran("pay", pay, 1)
	}
}

// stepCancelled has the function return Ok after its procedure was cancelled.
func stepCancelled(depth int, recall bool) func(*T) {
	return func(t *T) {
		hold := newGate()
		pay, ship := slow(t, hold), &spy{}
		t.declare(clerk, Action{Name: "pay", Schema: payment, Effect: Idempotent, Do: pay.do}, Action{Name: "ship", Schema: payment, Do: ship.do})
		p, task := t.begin(depth, Goal{}, calls("pay", "pay", `{"amount":1}`), calls("ship", "ship", `{"amount":1}`, "pay"))
		done := make(chan Progress, 1)
		go func() {
			got, err := p.Proceed(t.Context, task)
			if err != nil {
				t.Errorf("proceed: %v", err)
			}
			done <- got
		}()
		hold.arrived(t)
		var err error
		if recall {
			err = p.Recall(t.Context, task, boss)
		} else {
			err = t.Cancel(t.Context, task, "enough")
		}
		if err != nil {
			t.Fatalf("cancel: %v", err)
		}
		if !recall {
			hold.open()
		}
		first := <-done // recalled, the function is told to stop, and does
		hold.open()
		last := t.proceed(task)
		for _, got := range []Progress{first, last} {
			if got.Status == Completed {
				t.Errorf("it was cancelled, and is %s", got.Status)
			}
		}
		if last.Status == Proceeding || recall && last.Status != Recalled {
			t.Errorf("it was cancelled, and is %s", last.Status)
		}
		t.ran("ship, which comes after what was cancelled,", ship, 0)
		for _, id := range append([]string{task}, last.Parts...) {
			if !recall {
				t.absorbed(id)
			}
			for _, r := range t.recorded(id, Settled) {
				if r.Code == "OK" {
					t.Errorf("an Ok of %s is recorded, which was cancelled while it ran", r.Action)
				}
			}
		}
	}
}

// stepsUndone runs 1, then 2 and 3 (where it is nested: in the procedure within), then one that fails.
func stepsUndone(depth int, broken string, gated bool) func(*T) {
	return func(t *T) {
		p := &trip{broken: broken}
		t.declare(clerk, p.actions(gated)...)
		task := t.beginTrip(depth)
		got := t.proceed(task)
		said := func(want string) {
			if said := p.said(); said != want {
				t.Fatalf("done and undone: %s, want %s", said, want)
			}
		}
		switch {
		case broken != "":
			said("+1 +2 +3 -3")
			t.stands(got, Proceeding)
			if !got.Asks {
				t.Errorf("nobody is told of the undo that failed")
			}
			return
		case gated:
			for _, so := range []string{"+1 +2 +3", "+1 +2 +3 -3", "+1 +2 +3 -3 -2"} {
				said(so)
				asked := t.asked(task, got)
				if len(asked) != 1 {
					t.Fatalf("after %s %d undoings wait, want one", so, len(asked))
				}
				t.restart()
				t.approve(asked[0].ID)
				got = t.proceed(task)
			}
		}
		said("+1 +2 +3 -3 -2 -1")
		t.stands(got, Broken)
	}
}

// beginTrip begins a procedure that books 1, 2 and 3, and then fails; nested, it books 2 and 3 so many levels below.
func (t *T) beginTrip(depth int) string {
	book := func(n string, after ...string) Step { return calls("s"+n, "book", `{"step":"`+n+`"}`, after...) }
	if depth == 0 {
		_, task := t.begin(0, Goal{}, book("1"), book("2", "s1"), book("3", "s2"), book("0", "s3"))
		return task
	}
	all := []Procedure{{Name: "p0", Steps: []Step{book("2"), book("3", "s2")}}}
	for i := 1; i < depth; i++ {
		all = append(all, Procedure{Name: fmt.Sprint("p", i), Steps: []Step{within(i - 1)}})
	}
	part := within(depth - 1)
	part.After = []string{"s1"}
	return t.beginAll(append(all, Procedure{Name: "top", Steps: []Step{book("1"), part, book("0", "part")}}), Goal{})
}
