package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/seed-ab2cfece/delta-agents/action"
)

func compensateCases() []Case {
	return []Case{
		{"C29", "compensations run 4, 1, 2, 3", "what completed is undone in strict reverse, through the gates; one that fails stops the rest and is brought before a person", []Variant{
			{"four steps, the last fails", undone(4, "")},
			{"in the order of completion, not of begin", undoneAsCompleted},
			{"a failing undo stops and escalates", undone(4, "2")},
			{"asked for twice", undoneTwice},
			{"what only reads is no step", undoneReads},
			{"an undo that a person must approve", undoneGated},
		}},
	}
}

// trip books steps and undoes them, and writes down what happened.
type trip struct {
	mu     sync.Mutex
	log    []string
	broken string // the step whose undo fails
	holds  map[string]*gate
}

type step struct {
	Step string `json:"step"`
}

const stepSchema = `{"type":"object","properties":{"step":{"type":"string"}},"required":["step"],"additionalProperties":false}`

func (p *trip) did(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, what)
}

func (p *trip) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.log, " ")
}

// actions are book, which fails at step 0, and cancel.
func (p *trip) actions(gated bool) []Action {
	book := func(ctx context.Context, x Execution) (json.RawMessage, error) {
		var s step
		if err := json.Unmarshal(x.Input, &s); err != nil || s.Step == "0" {
			return nil, errors.Join(err, errors.New("no seat"))
		}
		if h := p.holds[s.Step]; h != nil {
			h.wait(ctx)
		}
		p.did("+" + s.Step)
		return x.Input, nil
	}
	cancel := func(_ context.Context, x Execution) (json.RawMessage, error) {
		var s step
		if err := json.Unmarshal(x.Input, &s); err != nil || s.Step == p.broken {
			return nil, errors.Join(err, errors.New("the desk is closed"))
		}
		p.did("-" + s.Step)
		return x.Input, nil
	}
	return []Action{
		{Name: "cancel", Schema: stepSchema, Effect: Idempotent, Do: cancel, Gated: gated},
		{Name: "book", Schema: stepSchema, Do: book, Undo: "cancel"},
		{Name: "look", Schema: stepSchema, Effect: NoEffect, Do: func(_ context.Context, x Execution) (json.RawMessage, error) { return x.Input, nil }},
	}
}

func (p *trip) open(t *T, gated bool) (Compensator, string) {
	c := need[Compensator](t)
	return c, t.open(Goal{Approvers: []string{boss}}, p.actions(gated)...)
}

func (t *T) books(task string, steps ...string) {
	for _, s := range steps {
		t.want("book "+s, t.propose(task, "book", `{"step":"`+s+`"}`), action.OK)
	}
}

func undone(n int, broken string) func(*T) {
	return func(t *T) {
		p := &trip{broken: broken}
		c, task := p.open(t, false)
		want, back := []string{}, []string{}
		stopped := false
		for i := 1; i <= n; i++ {
			s := string(rune('0' + i))
			t.books(task, s)
			want, back = append(want, "+"+s), append(back, "-"+s)
		}
		t.want("the last step", t.propose(task, "book", `{"step":"0"}`), action.Failed)
		slices.Reverse(back)
		for _, b := range back {
			if stopped = b == "-"+broken; stopped {
				break
			}
			want = append(want, b)
		}
		err := c.Compensate(t.Context, task)
		if said := p.said(); said != strings.Join(want, " ") {
			t.Errorf("done and undone: %s, want %s", said, strings.Join(want, " "))
		}
		if (err != nil) != stopped {
			t.Errorf("compensate: %v", err)
		}
		if !stopped {
			return
		}
		if escalated, err := c.Escalated(t.Context, task); err != nil || !escalated {
			t.Errorf("nobody was told of the undo that failed (%v)", err)
		}
	}
}

// undoneAsCompleted begins 1 before 2 and has it end after it.
func undoneAsCompleted(t *T) {
	hold := newGate()
	p := &trip{holds: map[string]*gate{"1": hold}}
	c, task := p.open(t, false)
	out := make(chan Outcome, 1)
	go func() { out <- t.propose(task, "book", `{"step":"1"}`) }()
	hold.arrived(t)
	t.books(task, "2")
	hold.open()
	t.want("book 1", <-out, action.OK)
	if err := c.Compensate(t.Context, task); err != nil {
		t.Errorf("compensate: %v", err)
	}
	if said := p.said(); said != "+2 +1 -1 -2" {
		t.Errorf("done and undone: %s, want +2 +1 -1 -2", said)
	}
}

func undoneTwice(t *T) {
	p := &trip{}
	c, task := p.open(t, false)
	t.books(task, "1", "2")
	for range 2 {
		if err := c.Compensate(t.Context, task); err != nil {
			t.Errorf("compensate: %v", err)
		}
	}
	if said := p.said(); said != "+1 +2 -2 -1" {
		t.Errorf("done and undone: %s, want +1 +2 -2 -1", said)
	}
}

func undoneReads(t *T) {
	p := &trip{}
	c, task := p.open(t, false)
	t.books(task, "1")
	t.want("look", t.propose(task, "look", `{"step":"1"}`), action.OK)
	if err := c.Compensate(t.Context, task); err != nil {
		t.Errorf("compensate: %v", err)
	}
	if said := p.said(); said != "+1 -1" {
		t.Errorf("done and undone: %s, want +1 -1", said)
	}
}

func undoneGated(t *T) {
	p := &trip{}
	c, task := p.open(t, true)
	t.books(task, "1")
	if err := c.Compensate(t.Context, task); err == nil {
		t.Errorf("compensate: it says that all was undone, and nobody approved the undo")
	}
	if said := p.said(); said != "+1" {
		t.Errorf("undone without an approval: %s", said)
	}
	pending, err := t.Pending(t.Context, task)
	if err != nil || len(pending) != 1 {
		t.Fatalf("%d requests wait, want one (%v)", len(pending), err)
	}
	t.approve(pending[0].ID)
	if err := c.Compensate(t.Context, task); err != nil {
		t.Errorf("compensate: %v", err)
	}
	if said := p.said(); said != "+1 -1" {
		t.Errorf("done and undone: %s, want +1 -1", said)
	}
}
