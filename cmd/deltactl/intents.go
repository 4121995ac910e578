package main

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-ab2cfece/delta-agents/action"
	"github.com/seed-ab2cfece/delta-agents/delta"
	"github.com/seed-ab2cfece/delta-agents/internal/table"
)

const intentsHelp = `Intents lists calls whose outcome is not known: their worker died or could not tell
whether the effect happened. What they reserved stays reserved and the same call is
refused until somebody resolves them. Those that became so first come first.

JSON: {"intents": [{"task", "intent", "action", "version", "since", "input", "reserved"}]};
the input may be long and is in the JSON alone, digests in place of secrets.`

type intentRow struct {
	Task     string          `json:"task"`
	Intent   string          `json:"intent"`
	Action   string          `json:"action"`
	Version  string          `json:"version"`
	Since    time.Time       `json:"since"`
	Input    json.RawMessage `json:"input,omitempty"`
	Reserved action.Cost     `json:"reserved,omitzero"`
}

func newIntents() *cobra.Command {
	c := &cobra.Command{
		Use: "intents", Short: "List and resolve calls of unknown outcome, cancel a call", Args: cobra.NoArgs,
		Long: "Intents lists calls of unknown outcome, takes what you found out about one, and\ncancels single calls." + storeHelp,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newIntentsList(), newIntentsResolve(), newIntentsCancel())
	return c
}

func newIntentsList() *cobra.Command {
	var f storeFlags
	var rows rowFlags
	c := &cobra.Command{
		Use: "list [AGENT]", Short: "List calls of unknown outcome", Long: intentsHelp + storeHelp, Args: cobra.MaximumNArgs(1),
		Example: "  deltactl intents list --store redis://localhost:6379",
		PreRunE: func(*cobra.Command, []string) error { return rows.check() },
		RunE: onDesk(&f, func(c *cobra.Command, d *desk, args []string) error {
			return printIntents(c, d, &f, &rows, strings.Join(args, ""))
		}),
	}
	f.add(c)
	rows.add(c, "since")
	return c
}

func printIntents(c *cobra.Command, d *desk, f *storeFlags, rows *rowFlags, agent string) error {
	if err := d.adopt(c.Context(), agent); err != nil {
		return err
	}
	all, err := d.engine.Unresolved(c.Context(), delta.MaxTasks)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b delta.Unresolved) int { return a.Since.Compare(b.Since) })
	from, err := behind(all, rows.after, func(u delta.Unresolved) string { return u.Intent })
	if err != nil {
		return err
	}
	all = all[from:]
	out := struct {
		Intents []intentRow `json:"intents"`
		Next    string      `json:"next"`
	}{Intents: []intentRow{}}
	for _, u := range all[:min(rows.limit, len(all))] {
		out.Intents = append(out.Intents, intentRow{u.Task, u.Intent, u.Begun.Action, u.Begun.Version, u.Since, u.Begun.Input, u.Begun.Reserved})
	}
	if len(all) > rows.limit {
		out.Next = out.Intents[rows.limit-1].Intent
	}
	if f.json {
		return printJSON(c.OutOrStdout(), out)
	}
	t := table.New(c.OutOrStdout(), "task", "intent", "action", "since", "reserved")
	for _, r := range out.Intents {
		t.Row(r.Task, r.Intent, r.Action, r.Since.Format(time.RFC3339), r.Reserved)
	}
	more(c, out.Next)
	return t.Flush()
}

func newIntentsResolve() *cobra.Command {
	var f storeFlags
	var reason, output, money string
	var ok, failed bool
	var cost action.Cost
	c := &cobra.Command{
		Use: "resolve TASK INTENT", Short: "Say what became of a call", Args: cobra.ExactArgs(2),
		Long: `Resolve writes down what you found out: --ok that the call succeeded, with what it
returned, or --failed that it did not; and what it cost: one call where --calls does
not say otherwise, and how long it took is learned only where --duration says it. What it reserved is settled,
the outcome is learned from, and a call that succeeded counts as a prerequisite for
others. Of a step of a workflow its output is held to what the step declares of it and
its undo needs; to the action's own schema it is not, for want of that.
It is for the task's approvers and for operators, never for whoever requested it.` + operatorsHelp + deedsHelp + storeHelp,
		Example: "  deltactl intents resolve --ok --output '{\"charge\":\"ch_1\"}' --money '25 EUR' --reason 'it is in the statement' desk~t1 INTENT",
		PreRunE: func(*cobra.Command, []string) (err error) {
			if ok == failed {
				return usageError{errors.New("say what became of it: --ok or --failed")}
			}
			if cost, err = withMoney(cost, money); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: onTask(&f, func(c *cobra.Command, d *desk, me delta.Identity, t *delta.Task, args []string) error {
			if err := t.Resolve(c.Context(), args[1], me, ok, []byte(output), cost, reason); err != nil {
				return err
			}
			did := newDeeds(c, &f)
			did.add(deed{Did: "resolved", What: args[1]})
			return did.end()
		}),
	}
	c.Flags().BoolVar(&ok, "ok", false, "it succeeded")
	c.Flags().BoolVar(&failed, "failed", false, "it did not")
	c.Flags().StringVar(&output, "output", "", "what it returned, as JSON (null)")
	costFlags(c, &cost, &money)
	reasonFlag(c, &reason)
	f.add(c)
	return c
}

func newIntentsCancel() *cobra.Command {
	var f storeFlags
	var reason string
	c := &cobra.Command{
		Use: "cancel TASK INTENT", Short: "Cancel one call; the rest of its task goes on", Args: cobra.ExactArgs(2),
		Long: `Cancel ends one call: where it runs its worker tells it to stop with its next heartbeat,
where it waits for a person it will not start. How it ended is said by its end, see
deltactl ledger show TASK. Anybody may stop a call.` + deedsHelp + storeHelp,
		Example: "  deltactl intents cancel --reason 'not this one' desk~t1 INTENT",
		RunE: onTask(&f, func(c *cobra.Command, d *desk, me delta.Identity, t *delta.Task, args []string) error {
			if err := t.CancelCallBy(c.Context(), args[1], me, reason); err != nil {
				return err
			}
			did := newDeeds(c, &f)
			did.add(deed{Did: "cancelled", What: args[1]})
			return did.end()
		}),
	}
	reasonFlag(c, &reason)
	f.add(c)
	return c
}
