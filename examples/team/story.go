package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/examples/internal/held"
)

// pool caps what both agents use in a day, whatever their tasks are allowed.
var pool = delta.Pool{Name: "research", Period: delta.Day, Agents: []string{"editor", "researcher"}, Shared: true, Limit: action.Limit{Tokens: action.Max(2_000)}}

type story struct {
	ctx    context.Context
	out    io.Writer
	engine *delta.Engine
	report *delta.Task
	pool   string
}

func tell(ctx context.Context, url string, out io.Writer) (err error) {
	at, err := held.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	pool := pool
	pool.Name = at.ID(pool.Name) // its cap is for a day, and another run has spent it
	engine, err := delta.New(delta.Config{Store: at.Store(), Pools: []delta.Pool{pool}, Poll: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()
	report, err := engine.Start(ctx, delta.Goal{
		ID: at.ID("report"), Agent: editor, Text: "a report on rivers, lakes and seas",
		Limit: action.Limit{Tokens: action.Max(2_500), Calls: action.Max(40)}, Delegation: delta.Delegation{Active: 2, Queued: 2, Depth: 1},
	})
	if err != nil {
		return err
	}
	s := &story{ctx, out, engine, report, pool.Name}
	for _, step := range []func() error{s.assign, s.research, s.queued, s.cascade, s.table} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// assign lets the editor's planner, a script, hand out topics.
func (s *story) assign() error {
	s.say("THE EDITOR ASSIGNS (two at a time, two may wait)")
	topics := []assignment{{"rivers", 900}, {"lakes", 400}, {"seas", 600}, {"oceans", 9_000}}
	plan := delta.PlannerFunc(func(_ context.Context, r delta.Request) (delta.Proposal, error) {
		if r.Step > len(topics) {
			return delta.Proposal{Done: true}, nil
		}
		input, err := json.Marshal(topics[r.Step-1])
		return delta.Proposal{Calls: []delta.Call{{Action: "assign", Input: input}}}, err
	})
	r, err := s.engine.Run(s.ctx, s.report, plan).Get()
	if err != nil {
		return err
	}
	for _, c := range r.Results {
		s.say("  assign %s  %s", c.Call.Input, c.Outcome.Code)
	}
	return nil
}

// script is what a researcher proposes: every call of it, one after the other.
func script(calls ...delta.Call) delta.Planner {
	return delta.PlannerFunc(func(_ context.Context, r delta.Request) (delta.Proposal, error) {
		if r.Step > len(calls) {
			return delta.Proposal{Done: true, Verdict: action.Reached, Why: "nothing more to find"}, nil
		}
		return delta.Proposal{Calls: calls[r.Step-1 : r.Step]}, nil
	})
}

func call(name, topic string) delta.Call {
	return delta.Call{Action: name, Input: fmt.Appendf(nil, `{"topic":%q}`, topic)}
}

// work runs the researcher of a topic once it may work.
func (s *story) work(topic string, calls ...delta.Call) error {
	child, err := s.report.Child(s.ctx, topic)
	if err != nil {
		return err
	}
	task, err := child.Task(s.ctx)
	if err != nil {
		return err
	}
	r, err := s.engine.Run(s.ctx, task, script(calls...)).Get()
	if err != nil {
		return err
	}
	for _, c := range r.Results {
		said := string(c.Outcome.Output)
		if c.Outcome.Failure != nil {
			said = c.Outcome.Failure.Message
		}
		s.say("  %-7s %-10s %-17s %s", topic, c.Call.Action, c.Outcome.Code, said)
	}
	return nil
}

func (s *story) research() error {
	s.say("\nRESEARCHERS WORK (nobody passes publish on; lakes has little to spend)")
	return s.work("rivers", call("search", "rivers"), call("publish", "rivers"), call("summarise", "rivers"))
}

// queued ends the second, so that the third, which waits in the queue, takes its place.
func (s *story) queued() error {
	return s.work("lakes", call("search", "lakes"), call("summarise", "lakes"))
}

// cascade cancels the report while seas is still at work.
func (s *story) cascade() error {
	seas, err := s.report.Child(s.ctx, "seas")
	if err != nil {
		return err
	}
	task, err := seas.Task(s.ctx)
	if err != nil {
		return err
	}
	s.say("\nTHE REPORT IS CANCELLED WHILE SEAS WORKS")
	if o := task.Do(s.ctx, call("search", "seas")).OrEmpty(); !o.OK() {
		return o.Err()
	}
	if err := s.report.Cancel(s.ctx, "the client does not want it any more"); err != nil {
		return err
	}
	o := task.Do(s.ctx, call("summarise", "seas")).OrEmpty()
	s.say("  seas    summarise  %s", o.Code)
	return nil
}

// table shows who spent what.
func (s *story) table() error {
	s.say("\nWHO SPENT WHAT")
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  task\tended\tverdict\ttokens\tof\tcalls")
	children, err := s.report.Children(s.ctx)
	if err != nil {
		return err
	}
	for _, c := range children {
		verdict := action.Verdict("-")
		if c.Conclusion != nil {
			verdict = c.Conclusion.Verdict
		}
		limit, _ := c.Limit.Tokens.Get()
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%d\t%d\n", c.Name, c.Ended, verdict, c.Spent.Tokens, limit, c.Spent.Calls)
	}
	b, err := s.report.Budget(s.ctx)
	if err != nil {
		return err
	}
	limit, _ := b.Limit.Tokens.Get()
	fmt.Fprintf(w, "  report\tcancelled\t-\t%d\t%d\t%d\n", b.Spent.Tokens, limit, b.Spent.Calls)
	if err := w.Flush(); err != nil {
		return err
	}
	p, err := s.engine.Pool(s.ctx, s.pool)
	if err != nil {
		return err
	}
	left, _ := p.Limit.Tokens.Get()
	s.say("  reserved for nobody any more: %d tokens; pool %s: %d of %d tokens today", b.Reserved.Tokens, p.Name, p.Spent().Tokens, left)
	return nil
}
