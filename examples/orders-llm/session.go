package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/examples/orders/desk"
	"github.com/seed-ab2cfece/delta-agents/planner/chat"
)

// session is a model at work and a person who is asked.
type session struct {
	out   io.Writer
	lines *bufio.Scanner // what the person types
	yes   bool           // approves everything
}

// badge is what the person shows at the door; elsewhere a login stands behind it.
type badge string

const person badge = "you"

func signIn(_ context.Context, credential any) (string, error) {
	b, ok := credential.(badge)
	if !ok {
		return "", errors.New("show a badge")
	}
	return string(b), nil
}

// work lets the model work until it is done, asking the person in between. It reports whether the model says that the goal
// is reached.
func (s *session) work(ctx context.Context, model chat.Model, text string) (reached bool, err error) {
	db, err := desk.OpenStore(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	d, err := desk.New(db, &desk.Provider{})
	if err != nil {
		return false, err
	}
	engine, err := delta.New(delta.Config{Authenticator: delta.AuthenticatorFunc(signIn)})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
	by, err := engine.Authenticate(ctx, person)
	if err != nil {
		return false, err
	}
	task, err := engine.Start(ctx, delta.Goal{
		Agent: d.Agent, Text: text, Approvers: []string{string(person)}, Requester: "order-desk", Threshold: 3,
		Limit: action.Limit{Calls: action.Max(60), Tokens: action.Max(200_000), Money: action.Max(5_000_000), Currency: "EUR"},
	})
	if err != nil {
		return false, err
	}
	planner, err := chat.New(model, chat.Config{MaxOutput: 2048, Rules: []string{
		"Look an order up before anything else is done with it.", "Tell a customer only what happened.",
	}})
	if err != nil {
		return false, err
	}
	s.say("%v works on: %s", model, text)
	report, err := s.rounds(ctx, engine, task, by, told{planner, s})
	if err != nil {
		return false, err
	}
	s.say("\n%s: %s", report.Ended, report.Why)
	return report.Verdict == action.Reached, s.books(context.WithoutCancel(ctx), db, task)
}

// maxRounds is how often the model is set to work again after a person decided.
const maxRounds = 8

// rounds runs the model, and again as long as a person has something to decide in between.
func (s *session) rounds(ctx context.Context, engine *delta.Engine, task *delta.Task, by delta.Identity, p delta.Planner) (report delta.Report, err error) {
	for range maxRounds {
		if report, err = engine.Run(ctx, task, p).Get(); err != nil {
			return report, err
		}
		if report.Ended == delta.RunPaused {
			if err := s.resume(ctx, engine, by); err != nil {
				return report, err
			}
			continue
		}
		if report.Err != nil || report.Verdict != "" {
			return report, report.Err
		}
		pending, err := engine.Approvals(ctx, 10)
		if err != nil || len(pending) == 0 {
			return report, err
		}
		for _, a := range pending {
			if err := s.decide(ctx, engine, a, by); err != nil {
				return report, err
			}
		}
	}
	return report, nil
}

// resume asks the person whether a task that was paused may go on.
func (s *session) resume(ctx context.Context, engine *delta.Engine, by delta.Identity) error {
	paused, err := engine.Escalations(ctx, 10)
	if err != nil {
		return err
	}
	for _, e := range paused {
		s.say("! the task is paused, %s: %s", e.Concern, e.Reason)
		yes, why, err := s.ask("go on? y, or why not")
		switch {
		case err != nil:
			return err
		case !yes:
			return engine.EndTask(ctx, e.ID, by, why)
		}
		if err := engine.ResumeTask(ctx, e.ID, by, "go on"); err != nil {
			return err
		}
	}
	return nil
}

// ask asks a question of yes or no. What is not yes is no, and why.
func (s *session) ask(question string) (yes bool, why string, err error) {
	if s.yes {
		return true, "", nil
	}
	s.say("  %s", question)
	if !s.lines.Scan() {
		return false, "", errors.Join(errors.New("a person has to decide, and the input has ended; --yes says yes to everything"), s.lines.Err())
	}
	why = strings.TrimSpace(s.lines.Text())
	return why == "y" || why == "yes", why, nil
}

// decide asks the person about one request.
func (s *session) decide(ctx context.Context, engine *delta.Engine, a delta.Approval, by delta.Identity) error {
	s.say("? %s %s: %s", a.Action, action.Visible(string(a.Input)), strings.Join(a.Why, "; "))
	yes, why, err := s.ask("approve? y, or why not (the model will read it)")
	switch {
	case err != nil:
		return err
	case !yes:
		return engine.Reject(ctx, a.ID, by, why)
	}
	return engine.Approve(ctx, a.ID, by, "go on")
}

// told is the planner, telling what it proposes and what becomes of it.
type told struct {
	*chat.Planner
	s *session
}

func (t told) Plan(ctx context.Context, r delta.Request) (delta.Proposal, error) {
	for _, res := range r.Last {
		text := action.Visible(string(res.Outcome.Output))
		if f := res.Outcome.Failure; f != nil {
			text = f.Message
		}
		t.s.say("  %-16s %-40s %-17s %s", res.Call.Action, action.Visible(string(res.Call.Input)), res.Outcome.Code, text)
	}
	p, err := t.Planner.Plan(ctx, r)
	mark := ""
	if p.Estimated {
		mark = " (estimated)"
	}
	t.s.say("step %d: %d calls, %d tokens%s", r.Step, len(p.Calls), p.Used.Tokens, mark)
	return p, err
}

// books prints what the database holds and what was spent.
func (s *session) books(ctx context.Context, db *desk.Store, task *delta.Task) error {
	rows, err := db.Rows(ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		s.say("%s  %-7s %-10s charges %d, refunds %d, mails %d", r.ID, r.Customer, r.Status, r.Charges, r.Refunds, r.Mails)
	}
	b, err := task.Budget(ctx)
	if err != nil {
		return err
	}
	s.say("spent: %d tokens, %d calls, EUR %d.%02d", b.Spent.Tokens, b.Spent.Calls, b.Spent.Money/1_000_000, b.Spent.Money/10_000%100)
	return nil
}

func (s *session) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }
