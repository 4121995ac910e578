package subject

import "context"

// Compensate implements [conformance.Compensator].
func (s *Subject) Compensate(ctx context.Context, task string) error {
	t, err := s.task(ctx, task)
	if err != nil {
		return err
	}
	c, err := t.Compensate(ctx, "the case says so")
	if err != nil {
		return err
	}
	return c.Err()
}

// Escalated implements [conformance.Compensator].
func (s *Subject) Escalated(ctx context.Context, task string) (bool, error) {
	waiting, err := s.current().Escalations(ctx, 100)
	for _, w := range waiting {
		if w.Task == task {
			return true, err
		}
	}
	return false, err
}
