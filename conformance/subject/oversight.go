package subject

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/conformance"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

// pageOfApprovals is more requests than any case opens.
const pageOfApprovals = 1000

// Pending implements [conformance.Subject].
func (s *Subject) Pending(ctx context.Context, task string) ([]conformance.Request, error) {
	all, err := s.current().Approvals(ctx, pageOfApprovals)
	if err != nil {
		return nil, err
	}
	var out []conformance.Request
	for _, a := range all {
		if a.Task == task {
			out = append(out, conformance.Request{ID: a.ID, Action: a.Action, Input: a.Input})
		}
	}
	return out, nil
}

// Decide implements [conformance.Subject].
func (s *Subject) Decide(ctx context.Context, d conformance.Decision) error {
	e := s.current()
	by, err := e.Authenticate(ctx, d.By)
	if err != nil {
		return err
	}
	switch d.Verb {
	case conformance.Approve:
		return e.Approve(ctx, d.Approval, by, d.Reason)
	case conformance.Reject:
		return e.Reject(ctx, d.Approval, by, d.Reason)
	case conformance.Revoke:
		return e.Revoke(ctx, d.Approval, by, d.Reason)
	}
	return fmt.Errorf("no such verb: %q", d.Verb)
}

// Cancel implements [conformance.Subject].
func (s *Subject) Cancel(ctx context.Context, task, reason string) error {
	t, err := s.task(ctx, task)
	if err != nil {
		return err
	}
	return t.Cancel(ctx, reason)
}

// operator changes thresholds and resolves.
func (s *Subject) operator(ctx context.Context, task string) (*delta.Task, delta.Identity, error) {
	t, err := s.task(ctx, task)
	if err != nil {
		return nil, delta.Identity{}, err
	}
	who, err := s.current().Authenticate(ctx, conformance.Operator)
	return t, who, err
}

// SetThreshold implements [conformance.Thresholder].
func (s *Subject) SetThreshold(ctx context.Context, task string, threshold float64) error {
	t, who, err := s.operator(ctx, task)
	if err != nil {
		return err
	}
	return t.SetThreshold(ctx, who, threshold, "asked by the case")
}

// Resolve implements [conformance.Resolver].
func (s *Subject) Resolve(ctx context.Context, task, intent string, ok bool) error {
	t, who, err := s.operator(ctx, task)
	if err != nil {
		return err
	}
	return t.Resolve(ctx, intent, who, ok, nil, action.Cost{}, "asked by the case")
}

// Votes implements [conformance.Voter].
func (s *Subject) Votes(ctx context.Context, id string) (int, error) {
	a, err := s.current().Approval(ctx, id)
	return len(a.Votes), err
}

// Override implements [conformance.Overrider].
func (s *Subject) Override(ctx context.Context, task, by string, lasts time.Duration) error {
	t, err := s.task(ctx, task)
	if err != nil {
		return err
	}
	who, err := s.current().Authenticate(ctx, by)
	if err != nil {
		return err
	}
	_, err = t.BreakGlass(ctx, who, delta.Glass{For: lasts}, "asked by the case")
	return err
}

// Ledger implements [conformance.Subject]. A chain that does not verify is an error.
func (s *Subject) Ledger(ctx context.Context, task string) ([]conformance.Record, error) {
	t, err := s.task(ctx, task)
	if err != nil {
		return nil, err
	}
	stored, _, err := t.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	var out []conformance.Record
	for _, r := range stored {
		e, err := ledger.Decode(r.Val)
		if err != nil {
			return nil, err
		}
		rec := conformance.Record{
			Kind: conformance.Kind(e.Type), Code: e.Code, Action: e.Action, Intent: e.Intent, By: e.Identity,
			Input: e.Input, Output: e.Output, Text: e.Reason,
		}
		if e.Failure != nil {
			rec.Text += e.Failure.Explain()
		}
		out = append(out, rec)
	}
	return out, nil
}

// Budget implements [conformance.Accountant].
func (s *Subject) Budget(ctx context.Context, task string) (conformance.Account, error) {
	t, err := s.task(ctx, task)
	if err != nil {
		return conformance.Account{}, err
	}
	b, err := t.Budget(ctx)
	if err != nil {
		return conformance.Account{}, err
	}
	plain := func(a action.Cost) conformance.Cost {
		return conformance.Cost{Tokens: float64(a.Tokens), Money: float64(a.Money) / micro}
	}
	return conformance.Account{Spent: plain(b.Spent), Reserved: plain(b.Reserved)}, nil
}
