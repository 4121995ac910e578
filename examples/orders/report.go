package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

// theBooks closes the task and prints what there is to know.
func (s *story) theBooks(ctx context.Context) error {
	s.heading("The books", "What the database holds, what was learned, what was spent (planning included), and the record of it all.")
	if err := s.task.Done(ctx, "the day is over"); err != nil {
		return err
	}
	for i, page := range []func(context.Context) error{s.databaseTable, s.trustTable, s.riskTable, s.budgetTable, s.ledgerTable} {
		if i > 0 {
			s.say("")
		}
		if err := page(ctx); err != nil {
			return err
		}
	}
	return nil
}

// table prints aligned columns, on a terminal and in a pipe alike: this is for reading, not for awk.
func (s *story) table(fill func(*table.Writer), header ...string) error {
	if table.IsTerminal(s.out) {
		t := table.New(s.out, header...)
		fill(t)
		return t.Flush()
	}
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	t := table.New(w, header...)
	fill(t)
	err := errors.Join(t.Flush(), w.Flush())
	for line := range strings.Lines(text.String()) {
		s.say("%s", strings.TrimRight(line, "\n "))
	}
	return err
}

func (s *story) databaseTable(ctx context.Context) error {
	rows, err := s.db.Rows(ctx)
	if err != nil {
		return err
	}
	return s.table(func(t *table.Writer) {
		for _, r := range rows {
			t.Row(r.ID, r.Customer, euros(r.Cents*10_000), r.Status, r.Charges, r.Refunds, r.Mails, r.Gifts)
		}
	}, "DATABASE", "customer", "amount", "status", "charges", "refunds", "mails", "gifts")
}

func (s *story) trustTable(ctx context.Context) error {
	name := s.desk.Agent.Name()
	v, err := s.engine.Trust(ctx, name)
	if err != nil {
		return err
	}
	return s.table(func(t *table.Writer) {
		t.Row(name, v.Score, fmt.Sprintf("%.2f–%.2f", v.Lower, v.Upper), v.Ok, v.Err, v.Violations)
	}, "TRUST", "score", "90 %", "ok", "err", "violations")
}

func (s *story) riskTable(ctx context.Context) error {
	risks, err := s.engine.Risks(ctx, s.desk.Agent.Name())
	if err != nil {
		return err
	}
	return s.table(func(t *table.Writer) {
		for _, r := range risks {
			if r.N == 0 {
				continue // never ran: nothing was learned
			}
			t.Row(r.Action, r.Declared, r.Effective, r.P, fmt.Sprintf("%.2f–%.2f", r.Lo, r.Hi), r.N, r.Errs)
		}
	}, "RISK", "declared", "effective", "P(fails)", "90 %", "runs", "failed")
}

func (s *story) budgetTable(ctx context.Context) error {
	b, err := s.task.Budget(ctx)
	if err != nil {
		return err
	}
	return s.table(func(t *table.Writer) {
		for a := range action.AxisCount {
			limit, limited := b.Limit.On(a).Get()
			if !limited {
				continue
			}
			left, _ := b.Left.On(a).Get()
			t.Row(a, amount(a, limit), amount(a, b.Spent.Amount(a)), amount(a, b.Reserved.Amount(a)), amount(a, left))
		}
	}, "BUDGET", "limit", "spent", "reserved", "left")
}

func amount(a action.Axis, n int64) string {
	if a == action.Money {
		return euros(n)
	}
	return fmt.Sprint(n)
}

func euros(micros int64) string {
	return fmt.Sprintf("EUR %d.%02d", micros/1_000_000, micros/10_000%100)
}

// ledgerTable prints what people decided and what came of it, and verifies the chain.
func (s *story) ledgerTable(ctx context.Context) error {
	if err := s.engine.Sync(ctx); err != nil { // records are linked into the chain beside the calls
		return err
	}
	records, report, err := s.task.Ledger(ctx)
	if err != nil {
		return err
	}
	events := make([]ledger.Event, len(records))
	asked := map[string]bool{} // intents that a person was asked about
	for i, r := range records {
		if events[i], err = ledger.Decode(r.Val); err != nil {
			return err
		}
		if events[i].Approval != "" && events[i].Intent != "" {
			asked[events[i].Intent] = true
		}
	}
	err = s.table(func(t *table.Writer) {
		for i, e := range events {
			if asked[e.Intent] && e.Type != ledger.Refused {
				t.Row(records[i].Seq, e.Type, e.Action, string(e.Input), e.Code, e.Identity, e.Reason)
			}
		}
	}, "LEDGER", "event", "action", "input", "code", "by", "reason")
	if err != nil {
		return err
	}
	s.say("Verified: %d records in one hash chain, %d not sealed yet, head %.12s.", report.Records, report.Unsealed, report.Head)
	return s.tamper(records)
}

// tamper shows on a copy that a changed record does not go unnoticed.
func (s *story) tamper(records []txn.Stored) error {
	forged := append([]txn.Stored(nil), records...)
	for i := range forged {
		r := &forged[i]
		if !strings.Contains(r.Val, "rejected") {
			continue
		}
		r.Val = strings.ReplaceAll(r.Val, "rejected", "approved")
		_, err := ledger.Verify(ledger.Genesis(s.desk.Agent.Name(), s.place.ID("monday")), forged)
		if err == nil {
			return errors.New("a forged record was not found")
		}
		s.say("Tampering: turn record %d from rejected to approved, and verifying says: %v.", r.Seq, err)
		return nil
	}
	return nil
}
