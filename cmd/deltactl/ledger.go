package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/internal/table"
	"github.com/seed-ab2cfece/delta-agents/ledger"
)

const ledgerHelp = `Show reads a ledger, of a task (agent~task) or of an agent itself, from the store and
verifies its hash chain first: a record that was changed, taken out or put elsewhere
is named, and the exit code is 1. Records behind the sealed head are not linked yet.

Standard error says how far the chain is sealed and what its head is.

JSON: {"ledger", "records", "sealed", "head", "unsealed", "pruned", "events": [{"seq", "stored",
"link", "event"}], "next"}; event is the record as it was written.`

func newLedger() *cobra.Command {
	c := &cobra.Command{
		Use: "ledger", Short: "Read and verify ledgers", Args: cobra.NoArgs,
		Long: "Ledger reads what happened, and verifies that it is what was written." + storeHelp,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newLedgerShow(), newLedgerTail(), newLedgerExport(), newLedgerVerify(), newLedgerProve(), newLedgerCheck(), newLedgerFold(), newLedgerKeygen())
	return c
}

func newLedgerShow() *cobra.Command {
	var f storeFlags
	var rows rowFlags
	c := &cobra.Command{
		Use: "show TASK|AGENT", Short: "Read and verify a ledger", Long: ledgerHelp + storeHelp, Args: cobra.ExactArgs(1),
		Example: "  deltactl ledger show --store redis://localhost:6379 desk~t1",
		PreRunE: func(*cobra.Command, []string) error { return rows.check() },
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			return printLedger(c, d, &f, &rows, args[0])
		}),
	}
	f.add(c)
	rows.add(c, "seq")
	return c
}

type ledgerRow struct {
	Seq    int64           `json:"seq"`
	Stored time.Time       `json:"stored"`
	Link   string          `json:"link"`
	Event  json.RawMessage `json:"event"`
	e      ledger.Event
}

func printLedger(c *cobra.Command, d *desk, f *storeFlags, rows *rowFlags, id string) error {
	records, report, err := d.engine.Ledger(c.Context(), id)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return coded{exitNotFound, fmt.Errorf("ledger %s: there are no records", id)}
	}
	from := 0
	if rows.after != "" {
		if _, err := fmt.Sscanf(rows.after, "%d", &from); err != nil || from < 0 {
			return usageError{fmt.Errorf("--after %q: want the number of a record", rows.after)}
		}
	}
	out := struct {
		Ledger string `json:"ledger"`
		ledger.Report
		Events []ledgerRow `json:"events"`
		Next   string      `json:"next"`
	}{Ledger: id, Report: report, Events: []ledgerRow{}}
	from = max(0, from-int(report.Pruned)) // numbers go on behind what was pruned
	for _, r := range records[min(from, len(records)):] {
		if len(out.Events) == rows.limit {
			out.Next = fmt.Sprint(out.Events[rows.limit-1].Seq)
			break
		}
		e, err := ledger.Decode(r.Val)
		if err != nil {
			return fmt.Errorf("record %d of %s: %w", r.Seq, id, err)
		}
		out.Events = append(out.Events, ledgerRow{r.Seq, time.UnixMicro(r.At).UTC(), r.Link, json.RawMessage(r.Val), e})
	}
	if f.json {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "seq", "stored", "type", "action", "code", "intent", "identity", "what")
	for _, r := range out.Events {
		t.Row(r.Seq, r.Stored.Format(time.RFC3339), r.e.Type, orNil(r.e.Action), orNil(string(r.e.Code)), orNil(r.e.Intent), orNil(r.e.Identity), orNil(whatOf(&r.e)))
	}
	fmt.Fprintf(c.ErrOrStderr(), "Verified: %d records, sealed up to %d, head %s.\n", report.Records, report.Sealed, report.Head)
	if report.Pruned > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "The %d before them were pruned behind a checkpoint (ledger_pruned).\n", report.Pruned)
	}
	more(c, out.Next)
	return t.Flush()
}

// whatOf says of an event what its other columns do not.
func whatOf(e *ledger.Event) string {
	switch {
	case e.Failure != nil:
		return e.Failure.Message
	case e.Type == ledger.AgentConfigured:
		return e.Text
	case e.Reason != "":
		return e.Reason
	case e.Text != "":
		return e.Text
	case e.Child != "":
		return e.Child
	}
	return ""
}
