package subject

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-ab2cfece/delta-agents/conformance"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/workflow"
)

var _ conformance.Procedural = (*Subject)(nil)

// Define implements [conformance.Procedural]: an engine is given its workflows when it is made.
func (s *Subject) Define(ps ...conformance.Procedure) error {
	for _, p := range ps {
		d, err := procedure(p)
		if err != nil {
			return err
		}
		s.world.mu.Lock()
		s.world.workflows = append(s.world.workflows, d)
		s.world.mu.Unlock()
	}
	return s.Restart()
}

// atOnce makes no pause: the clock stands still unless a case moves it.
var atOnce = workflow.Backoff{Base: time.Nanosecond, Max: time.Nanosecond, Jitter: -1}

func procedure(p conformance.Procedure) (*workflow.Definition, error) {
	b := workflow.New(p.Name, "1")
	for _, step := range p.Steps {
		x := workflow.Execute(step.Name, step.Action).Const(".", step.Input)
		if step.Procedure != "" {
			x = workflow.Run(step.Name, step.Procedure)
		}
		b = b.Step(x.Needs(step.After...).Ladder(workflow.Rung{Kind: workflow.RungRetry, Attempts: 1}).Backoff(atOnce))
	}
	return b.Build()
}

// Begin implements [conformance.Procedural].
func (s *Subject) Begin(ctx context.Context, name string, g conformance.Goal) (string, error) {
	goal, err := s.goal(g)
	if err != nil {
		return "", err
	}
	s.world.mu.Lock()
	var d *workflow.Definition
	for _, w := range s.world.workflows {
		if w.Name() == name {
			d = w
		}
	}
	s.world.mu.Unlock()
	i, err := s.current().StartWorkflow(ctx, d, goal, nil)
	if err != nil {
		return "", err
	}
	return i.ID(), nil
}

// Proceed implements [conformance.Procedural].
func (s *Subject) Proceed(ctx context.Context, task string) (p conformance.Progress, err error) {
	i, err := s.current().OpenWorkflow(ctx, task)
	if err != nil {
		return p, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	state, err := i.Run(ctx)
	if err != nil {
		return p, err
	}
	p.Status = conformance.Proceeding
	if state.Status.Terminal() {
		p.Status = conformance.Standing(state.Status)
	}
	p.Asks = looks(&state)
	return p, s.parts(ctx, i.Task(), &p)
}

// looks reports whether an operator must look after an instance.
func looks(state *workflow.State) bool {
	for _, w := range state.Waits() {
		if w.For == workflow.WaitOperator {
			return true
		}
	}
	return false
}

func (s *Subject) parts(ctx context.Context, t *delta.Task, p *conformance.Progress) error {
	children, err := t.Children(ctx)
	if err != nil {
		return err
	}
	for _, c := range children {
		i, err := s.current().OpenWorkflow(ctx, c.ID)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		state, err := i.State(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		p.Parts, p.Asks = append(p.Parts, c.ID), p.Asks || looks(&state)
		if err := s.parts(ctx, i.Task(), p); err != nil {
			return err
		}
	}
	return nil
}

// Recall implements [conformance.Procedural].
func (s *Subject) Recall(ctx context.Context, task, by string) error {
	i, err := s.current().OpenWorkflow(ctx, task)
	if err != nil {
		return err
	}
	who, err := s.current().Authenticate(ctx, by)
	if err != nil {
		return err
	}
	return i.Cancel(ctx, who, delta.CancelMode{}, "the case says so")
}
