package explain

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
)

// Run explains the set of actions that src, the text of a YAML file, declares.
func Run(ctx context.Context, src []byte) (report *Report, err error) {
	s, err := parse(src)
	if err != nil {
		return nil, err
	}
	play := &player{}
	agent, err := s.build(play)
	if err != nil {
		return nil, err
	}
	flows, err := s.workflows(play)
	if err != nil {
		return nil, err
	}
	engine, err := delta.New(delta.Config{Authenticator: delta.AuthenticatorFunc(anybody), Workflows: flows})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
	task, err := engine.Start(ctx, delta.Goal{
		Agent: agent, Text: s.goal.text, Limit: s.goal.limit, Threshold: s.goal.threshold, Ceiling: s.goal.ceiling,
		Approvers: s.goal.approvers, Context: s.goal.context,
	})
	if err != nil {
		return nil, err
	}
	report = &Report{Agent: agent.Name(), Goal: s.goal.text}
	for _, c := range s.done {
		for range c.times {
			play.now = c
			if err := s.perform(ctx, engine, task, agent, c); err != nil {
				return nil, fmt.Errorf("line %d: done: %w", c.line, err)
			}
			report.Done++
		}
	}
	for _, a := range s.actions {
		st, err := task.Explain(ctx, a.name)
		if err != nil {
			return nil, err
		}
		report.Actions = append(report.Actions, newAction(st))
	}
	return report, nil
}

// anybody vouches for whoever the file says may approve.
func anybody(_ context.Context, credential any) (string, error) {
	name, ok := credential.(string)
	if !ok {
		return "", errors.New("not a name")
	}
	return name, nil
}

// perform makes a call that was done before. Where it needed an approval, it was given: else it had not been done.
func (s *set) perform(ctx context.Context, e *delta.Engine, t *delta.Task, a *delta.Agent, c call) error {
	if c.workflow != "" {
		return s.complete(ctx, t, a, c)
	}
	out, err := t.Do(ctx, delta.Call{Action: c.action, Input: c.input}).Get()
	if err != nil {
		return err
	}
	if out.Code == action.ApprovalRequired {
		if out, err = s.approved(ctx, e, t, c, out); err != nil {
			return err
		}
	}
	want := action.OK
	if !c.ok {
		want = action.Failed
	}
	if out.Code == want {
		return nil
	}
	why := string(out.Code)
	if out.Failure != nil {
		why = out.Failure.Explain()
	}
	return fmt.Errorf("this call of %q could not have been made: %s", c.action, why)
}

func (s *set) approved(ctx context.Context, e *delta.Engine, t *delta.Task, c call, out action.Outcome) (action.Outcome, error) {
	name := s.goal.approvers[0]
	if name == "*" {
		name = "somebody"
	}
	by, err := e.Authenticate(ctx, name)
	if err != nil {
		return out, err
	}
	if err := e.Approve(ctx, out.Failure.Approval(), by, "the file says that it was done"); err != nil {
		return out, err
	}
	return t.Do(ctx, delta.Call{Action: c.action, Input: c.input}).Get()
}
