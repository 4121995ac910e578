package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/ledger"
	"github.com/seed-ab2cfece/delta-agents/txn"
)

const tailHelp = `Tail prints the last events of a ledger, a line each, and with --follow, of a ledger in
the store, those that come until it is interrupted.

Each line: number, time by the store's clock, event, and what there is of action, code,
intent, person. With --json each line is {"seq", "stored", "event"}: what went in and
out, what failures say and how a task is configured is left out, since it may hold
secrets, unless --payload asks for the event as it was recorded.` + sourceHelp

type tailFlags struct {
	storeFlags
	name   string
	lines  int
	follow bool
	whole  bool
}

func newLedgerTail() *cobra.Command {
	var f tailFlags
	c := &cobra.Command{
		Use: "tail SOURCE", Short: "Print the last events, and those that come", Args: cobra.ExactArgs(1), Long: tailHelp + storeHelp,
		Example: "  deltactl ledger tail desk~t1 --follow\n  deltactl ledger tail t1.jsonl -n 3",
		PreRunE: func(_ *cobra.Command, args []string) error {
			switch {
			case f.lines < 0:
				return usageError{fmt.Errorf("--lines is %d, want 0 or more", f.lines)}
			case f.follow && fromFile(args[0]):
				return usageError{errors.New("--follow is for a ledger in the store: a file does not grow")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	f.add(c)
	c.Flags().StringVar(&f.name, "ledger", "", "which ledger, where the file has several")
	c.Flags().IntVarP(&f.lines, "lines", "n", 10, "how many of the last events")
	c.Flags().BoolVar(&f.whole, "payload", false, "with --json: events as they were recorded, inputs and outputs included")
	c.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with what comes")
	return c
}

func (f *tailFlags) run(c *cobra.Command, source string) error {
	if fromFile(source) {
		all, err := f.exported(c, source)
		if err != nil {
			return err
		}
		x, err := one(all, f.name)
		if err != nil {
			return err
		}
		return f.last(c.OutOrStdout(), x.Records)
	}
	return onDesk(&f.storeFlags, func(c *cobra.Command, d *desk, _ []string) error { return f.stored(c, d, source) })(c, nil)
}

func (f *tailFlags) stored(c *cobra.Command, d *desk, id string) error {
	records, _, err := d.engine.Ledger(c.Context(), id)
	if err != nil {
		return err
	}
	if len(records) == 0 && !f.follow {
		return coded{exitNotFound, fmt.Errorf("ledger %s: there are no records", id)}
	}
	if err := f.last(c.OutOrStdout(), records); err != nil || !f.follow {
		return err
	}
	next := int64(1)
	if n := len(records); n > 0 {
		next = records[n-1].Seq + 1
	}
	for r, err := range d.engine.Follow(c.Context(), id, next) {
		if err != nil && c.Context().Err() != nil {
			return nil // interrupted, as one does
		}
		if err != nil {
			return err
		}
		if err := f.print(c.OutOrStdout(), &r); err != nil {
			return err
		}
	}
	return nil
}

func (f *tailFlags) last(w io.Writer, records []txn.Stored) error {
	for _, s := range records[max(0, len(records)-f.lines):] {
		e, err := ledger.Decode(s.Val)
		if err != nil {
			return fmt.Errorf("record %d: %w", s.Seq, err)
		}
		if err := f.print(w, &delta.Record{Event: e, Seq: s.Seq, Stored: s.At}); err != nil {
			return err
		}
	}
	return nil
}

func (f *tailFlags) print(w io.Writer, r *delta.Record) error {
	stored := time.UnixMicro(r.Stored).UTC()
	if f.json {
		text, err := ledger.Encode(f.shown(r.Event))
		if err != nil {
			return err
		}
		line, err := json.Marshal(struct {
			Seq    int64     `json:"seq"`
			Stored time.Time `json:"stored"`
		}{r.Seq, stored})
		if err == nil {
			_, err = fmt.Fprintf(w, "%s,\"event\":%s}\n", strings.TrimSuffix(string(line), "}"), text)
		}
		return err
	}
	parts := []string{fmt.Sprintf("%d", r.Seq), stored.Format(time.RFC3339), string(r.Type)}
	for _, p := range []string{r.Action, string(r.Code), r.Intent, r.Identity} {
		if p != "" {
			parts = append(parts, plainText(p))
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(parts, "  "))
	return err
}

// shown is an event without what may hold secrets, unless they were asked for.
func (f *tailFlags) shown(e ledger.Event) ledger.Event {
	if f.whole {
		return e
	}
	e.Input, e.Output, e.State, e.Value, e.Sealed, e.Text, e.Facts, e.Bulk, e.Claimed = nil, nil, nil, "", "", "", nil, nil, nil
	if e.Failure != nil {
		bare := *e.Failure
		bare.Message, bare.Details = "", nil
		e.Failure = &bare
	}
	bare := make([]*action.Failure, 0, len(e.Waived))
	for _, w := range e.Waived {
		bare = append(bare, &action.Failure{Code: w.Code, Layer: w.Layer, Executed: w.Executed, Retryable: w.Retryable})
	}
	e.Waived = bare
	return e
}

// plainText is a name as a terminal may have it: what a model made up may hold anything.
func plainText(s string) string {
	q := fmt.Sprintf("%q", s)
	if q[1:len(q)-1] == s {
		return s
	}
	return q
}

func cutID(id string) (agent, task string) {
	agent, task, _ = strings.Cut(id, "~")
	return agent, task
}
