package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

func newGlass() *cobra.Command {
	c := &cobra.Command{
		Use: "glass", Short: "Let calls through without approvals, in an emergency", Args: cobra.NoArgs,
		Long: `Glass opens and closes an override of the need for approvals: calls of a task run without
them for a while. It waives nothing else. It is for operators alone, and every call that
it lets through is recorded with it.` + operatorsHelp + storeHelp,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newGlassBreak(), newGlassRestore(), newGlassShow())
	return c
}

func newGlassBreak() *cobra.Command {
	var f storeFlags
	var reason string
	var glass delta.Glass
	c := &cobra.Command{
		Use: "break TASK", Short: "Open the override for a while", Args: cobra.ExactArgs(1),
		Long:    "Break opens the override of a task, for all its actions or those named." + operatorsHelp + deedsHelp + storeHelp,
		Example: "  deltactl glass break --for 15m --actions restart --reason 'the database is down' desk~t1",
		PreRunE: func(*cobra.Command, []string) error {
			if glass.For < time.Millisecond {
				return usageError{fmt.Errorf("--for is %v: say for how long, 15m say", glass.For)}
			}
			return nil
		},
		RunE: onTask(&f, func(c *cobra.Command, d *desk, me delta.Identity, t *delta.Task, args []string) error {
			o, err := t.BreakGlass(c.Context(), me, glass, reason)
			if err != nil {
				return err
			}
			did := newDeeds(c, &f)
			did.add(deed{Did: "open until " + o.Until.UTC().Format(time.RFC3339), What: t.ID(), By: me.String()})
			return did.end()
		}),
	}
	c.Flags().DurationVar(&glass.For, "for", 0, "how long, at most an hour (required)")
	c.Flags().StringSliceVar(&glass.Actions, "actions", nil, "for these alone; every action where none is named")
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

func newGlassRestore() *cobra.Command {
	var f storeFlags
	var reason string
	c := &cobra.Command{
		Use: "restore TASK", Short: "Close the override before its time", Args: cobra.ExactArgs(1),
		Long:    "Restore closes the override of a task. Where none is open it does nothing." + operatorsHelp + deedsHelp + storeHelp,
		Example: "  deltactl glass restore --reason 'it is up again' desk~t1",
		RunE: onTask(&f, func(c *cobra.Command, d *desk, me delta.Identity, t *delta.Task, args []string) error {
			if err := t.RestoreGlass(c.Context(), me, reason); err != nil {
				return err
			}
			did := newDeeds(c, &f)
			did.add(deed{Did: "closed", What: t.ID(), By: me.String()})
			return did.end()
		}),
	}
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

type glassRow struct {
	ID      string    `json:"id"`
	Task    string    `json:"task"`
	By      string    `json:"by"`
	Until   time.Time `json:"until"`
	Actions []string  `json:"actions"`
	Reason  string    `json:"reason"`
}

func newGlassShow() *cobra.Command {
	var f storeFlags
	c := &cobra.Command{
		Use: "show TASK", Short: "Print the override that is open", Args: cobra.ExactArgs(1),
		Long:    "Show prints the override that is open for a task, if there is one.\n\nJSON: {\"open\": [{\"id\", \"task\", \"by\", \"until\", \"actions\", \"reason\"}]}." + storeHelp,
		Example: "  deltactl glass show desk~t1",
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			t, err := d.task(c.Context(), args[0])
			if err != nil {
				return err
			}
			o, open, err := t.Override(c.Context())
			if err != nil {
				return err
			}
			rows := []glassRow{}
			if open {
				rows = append(rows, glassRow{o.ID, t.ID(), o.By, o.Until.UTC(), append([]string{}, o.Actions...), o.Reason})
			}
			if f.json {
				return printJSON(c.OutOrStdout(), struct {
					Open []glassRow `json:"open"`
				}{rows})
			}
			w := table.New(c.OutOrStdout(), "task", "by", "until", "actions", "reason")
			for _, r := range rows {
				w.Row(r.Task, r.By, r.Until.Format(time.RFC3339), orNil(strings.Join(r.Actions, ", ")), r.Reason)
			}
			return w.Flush()
		}),
	}
	f.add(c)
	return c
}
